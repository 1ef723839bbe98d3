"""A cluster that is founded from what was there before: a backup, or a broker that was a cluster by itself.

Owns ``/lamina/founding``, which is there from the first write to the last: it says from what the cluster is founded,
and which brokers still wait for their directories. Such a broker does not start, nor does any before the founder has
its own, so nobody takes half of a cluster for a whole one, and who was interrupted goes on from there. Must not know
where the metadata comes from, nor directories.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from lamina.image.image import Image
from lamina.image.topic import NO_LEADER, Partition
from lamina.store import values
from lamina.store.cluster_identity import CLUSTER_ID, stored_cluster_id
from lamina.store.entries import create_path, parsed
from lamina.store.interface import Create, Delete, Operation, Set, Store, StoreConflict, StoreError
from lamina.store.membership import BROKER_IDS, CONTROLLER_EPOCH, Tenure
from lamina.store.producer_ids import LastBlock, ProducerIds
from lamina.store.znode_paths import TOPICS
from lamina.store.znodes import ControllerMoved, ZnodeMetadata

FOUNDING = "/lamina/founding"
_VERSION = 1


class FoundingRefused(StoreError):
    """The ensemble cannot take this cluster; nothing was changed in it."""


@dataclass(frozen=True, slots=True)
class Founding:
    """A cluster that is not whole yet."""

    cluster_id: str
    source: str
    """What it is founded from: the same source goes on where it was interrupted."""
    brokers: tuple[int, ...]
    """Those whose directories are still to be laid down."""
    is_filled: bool = False
    """Whether all of the metadata is there."""
    founder: int | None = None
    """The broker whose directory all others wait for: until it has that, the metadata may be written again."""


@dataclass(frozen=True, slots=True)
class Inheritance:
    """What a cluster begins with."""

    image: Image
    controller_epoch: int
    """The last one that anybody has followed; the first controller is elected with a later one."""
    next_producer_id: int


def founding(store: Store) -> Founding | None:
    found = store.get(FOUNDING)
    return None if found is None else parsed(FOUNDING, _load, found.value)


def check_may_start(store: Store, node_id: int) -> None:
    """Raise :class:`StoreError` for a broker whose cluster, or whose own directory, is not whole yet."""
    under_way = founding(store)
    if under_way is None:
        return
    if not under_way.is_filled or under_way.founder in under_way.brokers:
        raise StoreError(f"this cluster is being made from {under_way.source}, and that has not ended: run it again")
    if node_id in under_way.brokers:
        raise StoreError(
            f"broker {node_id} is to get its records from {under_way.source} first: run that on this machine"
        )


def check_may_found(store: Store, source: str) -> Founding | None:
    """The founding from this source that was interrupted, if any. Raises :class:`FoundingRefused`. Changes nothing."""
    stored, under_way = stored_cluster_id(store), founding(store)
    if under_way is not None:
        if under_way.source != source:
            raise FoundingRefused(
                f"ZooKeeper holds cluster {under_way.cluster_id}, which is being made from {under_way.source}: "
                "finish that, or choose another chroot in zookeeper.connect"
            )
        return under_way
    if stored is not None:
        raise FoundingRefused(
            f"ZooKeeper holds cluster {stored} already: choose another chroot in zookeeper.connect, such as /lamina2"
        )
    if store.children(TOPICS) or store.children(BROKER_IDS):
        raise FoundingRefused(
            "ZooKeeper holds topics or brokers of another cluster: choose another chroot in zookeeper.connect"
        )
    return None


def begin(store: Store, new: Founding) -> Founding:
    """Claim an empty ensemble, or go on with what was begun from the same source. Raises :class:`FoundingRefused`."""
    under_way = check_may_found(store, new.source)
    if under_way is not None:
        return under_way
    for path in (CLUSTER_ID, FOUNDING):
        create_path(store, path.rpartition("/")[0])
    identity = values.dump({"version": "1", "id": new.cluster_id})
    try:
        store.transact([Create(CLUSTER_ID, identity), Create(FOUNDING, _dump(new))])
    except StoreConflict:
        return begin(store, new)  # somebody else was quicker
    return new


def fill(store: Store, inheritance: Inheritance) -> None:
    """Write all of the metadata, in place of what an interrupted attempt left.

    Of two that do so at once one is told that it is not the last. Raises :class:`StoreError`.
    """
    tenure = _take_office(store, inheritance.controller_epoch)
    metadata = ZnodeMetadata(store)
    try:
        left, image = metadata.load(), _newborn(inheritance.image)
        nothing = Image(left.cluster_id)
        metadata.write(left, nothing, tenure)
        metadata.write(nothing, replace(image, cluster_id=left.cluster_id), tenure)
    except (ControllerMoved, StoreConflict):
        raise StoreError(
            "somebody else fills this ensemble at the same time: run this again when that is done"
        ) from None
    if inheritance.next_producer_id:
        ProducerIds(store, LastBlock(-1)).skip_to(inheritance.next_producer_id)
    _change(store, lambda under_way: replace(under_way, is_filled=True))


def directory_laid(store: Store, node_id: int) -> None:
    """A broker has its directory: it may start. With the last one the cluster is founded."""
    _change(
        store,
        lambda under_way: replace(under_way, brokers=tuple(one for one in under_way.brokers if one != node_id)),
    )


def _change(store: Store, changed: Callable[[Founding], Founding]) -> None:
    while True:
        found = store.get(FOUNDING)
        if found is None:
            return
        after = changed(parsed(FOUNDING, _load, found.value))
        is_over = after.is_filled and not after.brokers
        operation: Operation = (
            Delete(FOUNDING, found.version) if is_over else Set(FOUNDING, _dump(after), found.version)
        )
        try:
            store.transact([operation])
        except StoreConflict:
            continue  # another broker of the same founding
        return


def _take_office(store: Store, controller_epoch: int) -> Tenure:
    """Nobody is elected while a cluster is founded; whoever fills it later replaces the one before."""
    value = values.dump(controller_epoch)
    found = store.get(CONTROLLER_EPOCH)
    try:
        if found is None:
            store.transact([Create(CONTROLLER_EPOCH, value)])
            return Tenure(controller_epoch, 0)
        store.transact([Set(CONTROLLER_EPOCH, value, found.version)])
    except StoreConflict:
        return _take_office(store, controller_epoch)
    return Tenure(controller_epoch, found.version + 1)


def _newborn(image: Image) -> Image:
    """An image as the first controller finds it: nobody is there, and the states of partitions are new entries."""
    topics = {
        name: replace(topic, partitions=tuple(map(_first_state, topic.partitions)))
        for name, topic in image.topics.items()
    }
    return Image(
        image.cluster_id,
        topics=topics,
        topic_names=image.topic_names,
        configs=image.configs,
        features=image.features,
        deletions=image.deletions,
        acls=image.acls,
        scram_credentials=image.scram_credentials,
        quotas=image.quotas,
    )


def _first_state(partition: Partition) -> Partition:
    """The partition epoch is the version of the entry. What never had a state gets its first one from a controller."""
    if partition.leader_epoch < 0:
        return replace(partition, leader=NO_LEADER, isr=(), partition_epoch=-1)
    return replace(partition, partition_epoch=0)


def _dump(one: Founding) -> bytes:
    return values.dump(
        {
            "version": _VERSION,
            "cluster_id": one.cluster_id,
            "source": one.source,
            "brokers": one.brokers,
            "filled": one.is_filled,
            "founder": one.founder,
        }
    )


def _load(data: bytes) -> Founding:
    value = values.load(data)
    if values.number(value["version"]) > _VERSION:
        raise ValueError("it was written by a newer Lamina")
    return Founding(
        values.text(value["cluster_id"]),
        values.text(value["source"]),
        values.numbers(value["brokers"]),
        value["filled"] is True,
        values.number(founder) if (founder := value.get("founder")) is not None else None,
    )
