"""Which cluster a store holds, and the ids that it gives to brokers without one.

Owns ``/cluster/id`` and ``/brokers/seqid``, as Kafka has them. Must not know who is in the cluster.
"""

from lamina.store import values
from lamina.store.entries import create_missing, create_path, parsed
from lamina.store.interface import Set, Store, StoreConflict, StoreError, WrongCluster

BROKER_SEQUENCE = "/brokers/seqid"
CLUSTER_ID = "/cluster/id"


def cluster_id(store: Store, new: str, known: str | None = None) -> str:
    """The id of the cluster in this store, which becomes ``new`` where there was none.

    ``known`` is what this broker's directories say. Raises :class:`WrongCluster` when the store holds another cluster,
    or has forgotten it.
    """
    if known is not None:
        check_cluster_id(store, known)
        return known
    stored = stored_cluster_id(store)
    if stored is None:
        create_path(store, CLUSTER_ID.rpartition("/")[0])
        create_missing(store, CLUSTER_ID, values.dump({"version": "1", "id": new}))
        return cluster_id(store, new)
    return stored


def check_cluster_id(store: Store, known: str) -> None:
    """Raise :class:`WrongCluster` unless the store holds that cluster."""
    stored = stored_cluster_id(store)
    if stored is None:
        raise WrongCluster(
            f"this broker belongs to cluster {known}, and there is no cluster in ZooKeeper: "
            "the ensemble was wiped, or zookeeper.connect names another one"
        )
    if stored != known:
        raise WrongCluster(f"this broker belongs to cluster {known}, and ZooKeeper holds cluster {stored}")


def stored_cluster_id(store: Store) -> str | None:
    found = store.get(CLUSTER_ID)
    return None if found is None else parsed(CLUSTER_ID, _load, found.value)


def generated_id(store: Store, floor: int) -> int:
    """An id above ``floor`` that no broker was given before."""
    create_path(store, BROKER_SEQUENCE)
    while True:
        found = store.get(BROKER_SEQUENCE)
        if found is None:
            raise StoreError(f"{BROKER_SEQUENCE} in ZooKeeper has just been deleted")
        try:
            store.transact([Set(BROKER_SEQUENCE, b"", found.version)])
        except StoreConflict:
            continue  # another broker was given that one
        return floor + found.version + 1


def _load(data: bytes) -> str:
    return values.text(values.load(data)["id"])
