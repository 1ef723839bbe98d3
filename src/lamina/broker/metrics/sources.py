"""The parts of a broker that metrics are read from. Must not change any of them."""

from collections.abc import Callable
from typing import NamedTuple

from lamina.broker.cleaner.cleaner import Cleaner
from lamina.broker.coordination.group_coordinator import GroupCoordinator
from lamina.broker.coordination.transaction_coordinator import TransactionCoordinator
from lamina.broker.counters import Counters
from lamina.broker.metadata.metadata import Metadata
from lamina.broker.moving.moves import Moves
from lamina.broker.network.listening import Listening
from lamina.broker.partitions.log_directories import LogDirectories
from lamina.broker.partitions.partition_set import Partitions
from lamina.broker.partitions.read_leases import ReadLeases
from lamina.broker.requests.fetch_sessions import FetchSessions
from lamina.broker.requests.kernel_loading import KernelLoading
from lamina.broker.requests.request_watch import RequestWatch
from lamina.broker.threads import Threads
from lamina.clocks import Clocks


class MetricSources(NamedTuple):
    started_ms: int
    clocks: Clocks
    threads: Threads
    counters: Counters
    metadata: Metadata
    directories: LogDirectories
    partitions: Partitions
    read_leases: ReadLeases
    groups: GroupCoordinator
    transactions: TransactionCoordinator
    cleaner: Cleaner
    moves: Moves
    request_watch: RequestWatch
    kernel_loading: KernelLoading
    fetch_sessions: FetchSessions
    listening: Listening
    replica_max_lag: Callable[[], int]
    """Offsets behind the leaders, the most of all partitions that are followed here."""
    is_session_proven: Callable[[], bool]
    """Whether this broker may act as a member of its cluster."""
    was_session_proven: Callable[[], bool]
    """Whether it ever was, since this broker started."""
