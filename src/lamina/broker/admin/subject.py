"""The parts of a broker that the routes show, and the few that they act on.

Must not know HTTP.
"""

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from lamina.broker.admin.access import Access
from lamina.broker.admin.scan_pool import ScanPool
from lamina.broker.cleaner.cleaner import Cleaner
from lamina.broker.coordination.group_coordinator import GroupCoordinator
from lamina.broker.coordination.transaction_coordinator import TransactionCoordinator
from lamina.broker.counters import Counters
from lamina.broker.metadata.metadata import Metadata
from lamina.broker.metrics.sources import MetricSources
from lamina.broker.network.connection import Connection
from lamina.broker.partitions.log_directories import LogDirectories
from lamina.broker.partitions.partition_set import Partitions
from lamina.broker.partitions.read_leases import ReadLeases
from lamina.broker.readiness import Readiness
from lamina.broker.requests.request_watch import RequestWatch
from lamina.broker.threads import Threads
from lamina.clocks import Clocks
from lamina.settings.listeners import Listener


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    loop: asyncio.AbstractEventLoop
    clocks: Clocks
    threads: Threads
    counters: Counters
    readiness: Readiness
    metadata: Metadata
    directories: LogDirectories
    partitions: Partitions
    read_leases: ReadLeases
    groups: GroupCoordinator
    transactions: TransactionCoordinator
    cleaner: Cleaner
    request_watch: RequestWatch
    actual_values: Mapping[str, str]
    """Settings whose values came about at start, by name: shown instead of what was given."""
    metrics: MetricSources
    connections: Collection[Connection]
    access: Access
    listeners: tuple[Listener, ...]
    """Where the admin listener is, with the ports that it got."""
    advertised: tuple[Listener, ...]
    """Where tools are told to find it."""
    started_ms: int
    scan_pool: ScanPool
