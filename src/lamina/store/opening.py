"""Connecting to a cluster's store, with kazoo loaded only then: a broker alone needs no such package.

Owns the sentence for whoever has not installed it. Must not know what the store is for.
"""

from importlib import import_module
from importlib.util import find_spec

from lamina.clocks import SYSTEM_CLOCKS, Clocks
from lamina.settings.zookeeper_options import ZooKeeperOptions
from lamina.store.interface import ClusterStore, StoreError


def connect(options: ZooKeeperOptions, clocks: Clocks = SYSTEM_CLOCKS) -> ClusterStore:
    """A store in a session of its own; raises :class:`StoreError` when ZooKeeper does not answer."""
    if find_spec("kazoo") is None:
        raise StoreError('a cluster needs the package kazoo: pip install "lamina[cluster]" brings it')
    store: ClusterStore = import_module("lamina.store.zookeeper").ZooKeeperStore(options, clocks)
    return store
