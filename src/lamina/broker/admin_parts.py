"""Which parts of a broker the admin listener and the metrics get.

A part of putting a broker together, as ``assembly`` is. Must not do anything with the parts.
"""

from lamina.broker.admin.access import Access
from lamina.broker.admin.scan_pool import ScanPool
from lamina.broker.admin.subject import Subject
from lamina.broker.metrics.sources import MetricSources
from lamina.broker.network.listening import Listening
from lamina.broker.parts import Parts
from lamina.settings.listeners import Listener


def metric_sources(parts: Parts, listening: Listening, started_ms: int) -> MetricSources:
    return MetricSources(
        started_ms=started_ms,
        clocks=parts.clocks,
        threads=parts.threads,
        counters=parts.counters,
        metadata=parts.metadata,
        directories=parts.directories,
        partitions=parts.partitions,
        read_leases=parts.read_leases,
        groups=parts.groups,
        transactions=parts.transactions,
        cleaner=parts.cleaner,
        moves=parts.moves,
        request_watch=parts.request_watch,
        kernel_loading=parts.kernel_loading,
        fetch_sessions=parts.fetch_sessions,
        listening=listening,
        replica_max_lag=lambda: 0 if parts.fetchers is None else parts.fetchers.max_lag(),
        is_session_proven=parts.partitions.cluster.lease.is_proven,
        was_session_proven=parts.partitions.cluster.lease.was_proven,
    )


def admin_subject(
    parts: Parts,
    listening: Listening,
    access: Access,
    taken: tuple[Listener, ...],
    advertised: tuple[Listener, ...],
) -> Subject:
    started_ms = parts.clocks.now_ms()
    return Subject(
        loop=parts.loop,
        clocks=parts.clocks,
        threads=parts.threads,
        counters=parts.counters,
        readiness=parts.readiness,
        metadata=parts.metadata,
        directories=parts.directories,
        partitions=parts.partitions,
        read_leases=parts.read_leases,
        groups=parts.groups,
        transactions=parts.transactions,
        cleaner=parts.cleaner,
        request_watch=parts.request_watch,
        actual_values=parts.actual_values,
        metrics=metric_sources(parts, listening, started_ms),
        connections=listening.connections,
        access=access,
        listeners=taken,
        advertised=advertised,
        started_ms=started_ms,
        scan_pool=ScanPool(parts.loop, parts.clocks),
    )
