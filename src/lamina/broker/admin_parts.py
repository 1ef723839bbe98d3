"""Which parts of a broker the admin listener and the metrics get.

Part of the composition in ``server``. Must not do anything with them.
"""

from lamina.broker.admin.scan_pool import ScanPool
from lamina.broker.admin.subject import Subject
from lamina.broker.admin.token import Token
from lamina.broker.metrics.sources import MetricSources
from lamina.broker.network.listening import Listening
from lamina.broker.parts import Parts
from lamina.settings.listeners import Listener


def metric_sources(parts: Parts, listening: Listening, started_ms: int) -> MetricSources:
    return MetricSources(
        started_ms,
        parts.clocks,
        parts.threads,
        parts.counters,
        parts.metadata,
        parts.directories,
        parts.partitions,
        parts.read_leases,
        parts.groups,
        parts.transactions,
        parts.cleaner,
        parts.moves,
        parts.request_watch,
        parts.kernel_loading,
        parts.fetch_sessions,
        listening,
        replica_max_lag=lambda: 0 if parts.fetchers is None else parts.fetchers.max_lag(),
        is_session_proven=parts.partitions.cluster.lease.is_proven,
        was_session_proven=parts.partitions.cluster.lease.was_proven,
    )


def admin_subject(
    parts: Parts,
    listening: Listening,
    token: Token | None,
    taken: tuple[Listener, ...],
    advertised: tuple[Listener, ...],
) -> Subject:
    started_ms = parts.clocks.now_ms()
    return Subject(
        parts.loop,
        parts.clocks,
        parts.threads,
        parts.counters,
        parts.readiness,
        parts.metadata,
        parts.directories,
        parts.partitions,
        parts.read_leases,
        parts.groups,
        parts.transactions,
        parts.cleaner,
        parts.request_watch,
        parts.actual_values,
        metric_sources(parts, listening, started_ms),
        listening.connections,
        token,
        taken,
        advertised,
        started_ms,
        ScanPool(parts.loop, parts.clocks),
    )
