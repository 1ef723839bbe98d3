"""What the parts of a broker stand on, as they are handed on while it is put together.

Owns the names of these few, so that nobody passes a dozen arguments. Must not know what is built on them.
"""

import asyncio
from typing import NamedTuple

from lamina.broker.cleaner.cleaner import Cleaner
from lamina.broker.counters import Counters
from lamina.broker.metadata.publisher import Publisher
from lamina.broker.moving.moves import Moves
from lamina.broker.partitions.cluster import Cluster
from lamina.broker.partitions.log_directories import LogDirectories
from lamina.broker.partitions.partition_set import Partitions
from lamina.broker.partitions.removal import Removal
from lamina.broker.partitions.truncations import Truncations
from lamina.broker.readiness import Readiness
from lamina.broker.threads import Threads
from lamina.clocks import Clocks
from lamina.settings.values import BrokerSettings


class Ground(NamedTuple):
    """What all other parts stand on."""

    loop: asyncio.AbstractEventLoop
    clocks: Clocks
    threads: Threads
    message_thread: Threads
    counters: Counters
    readiness: Readiness
    settings: BrokerSettings


class Logs(NamedTuple):
    """The partitions of this broker, and who makes them what the metadata says."""

    cluster: Cluster
    directories: LogDirectories
    partitions: Partitions
    removal: Removal
    cleaner: Cleaner
    moves: Moves
    truncations: Truncations
    publisher: Publisher
