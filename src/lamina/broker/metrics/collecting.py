"""From the parts of a broker to the samples of every metric on the list.

Owns where each value comes from. Samples are made one by one as they are asked for, so that the caller may let
requests go first. Labels come from what exists: topics, listeners, directories, APIs, error codes; what a client may
invent, the names of groups, is bounded in number. Must not know any format.
"""

import platform
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from operator import attrgetter

from lamina import __version__
from lamina.broker.coordination.transaction_coordinator import TransactionCoordinator
from lamina.broker.counters import BOUNDS_NS, Counters, Histogram, Place, RequestCounters, TopicCounters
from lamina.broker.metrics.cleaning import collect_cleaning
from lamina.broker.metrics.definitions import (
    broker,
    connections,
    groups,
    logs,
    process,
    replication,
    requests,
    topics,
    transactions,
)
from lamina.broker.metrics.group_lag import GroupLags
from lamina.broker.metrics.group_tally import GroupTally
from lamina.broker.metrics.machine import Machine
from lamina.broker.metrics.metric import Metric, Sample, Samples
from lamina.broker.metrics.replication_tally import ReplicationTally
from lamina.broker.metrics.sources import MetricSources
from lamina.broker.network.connection import Ended
from lamina.broker.network.listening import Listening
from lamina.broker.partitions.partition import Partition
from lamina.broker.partitions.read_leases import Ended as LeaseEnded
from lamina.coordinators.records.transaction_records import Status
from lamina.errors import ErrorCode
from lamina.security.quotas import QUOTAS_OF_CLIENTS

_NS = 1_000_000_000
_BOUNDS = (*(repr(bound_ns / _NS) for bound_ns in BOUNDS_NS), "+Inf")


@dataclass(frozen=True, slots=True)
class Tallies:
    """What takes a while to count, and was counted before."""

    machine: Machine
    groups: GroupTally
    group_lags: GroupLags
    replication: ReplicationTally


def collect(sources: MetricSources, tallies: Tallies) -> Iterator[tuple[Metric, Samples]]:
    """Each metric of the list once, with its samples."""
    yield from _broker(sources)
    yield from _replication(sources, tallies.replication)
    yield from _topics(sources.counters)
    yield from _requests(sources)
    yield from _connections(sources.counters, sources.listening)
    yield from _groups(sources, tallies.groups, tallies.group_lags)
    yield from _transactions(sources.transactions)
    yield from _logs(sources)
    yield from _machine(sources, tallies.machine)
    yield from collect_cleaning(sources)


def _one(value: float) -> Samples:
    return (Sample((), value),)


def _by_reason(**counts: int) -> Samples:
    return [Sample((reason,), count) for reason, count in counts.items()]


def _broker(sources: MetricSources) -> Iterator[tuple[Metric, Samples]]:
    yield broker.BUILD_INFO, [Sample((__version__, platform.python_version()), 1)]
    yield broker.START_TIME, _one(sources.started_ms / 1000)
    yield broker.UNEXPECTED_EXCEPTIONS, [Sample((place,), sources.counters.unexpected[place]) for place in Place]
    yield broker.KERNEL_LOADED, _one(sources.kernel_loading.is_loaded)


def _replication(sources: MetricSources, tally: ReplicationTally) -> Iterator[tuple[Metric, Samples]]:
    counters = sources.counters.replication
    yield replication.ACTIVE_CONTROLLER, _one(tally.is_controller)
    yield replication.CONTROLLER_OFFLINE_PARTITIONS, _one(tally.without_leader if tally.is_controller else 0)
    yield replication.PREFERRED_REPLICA_IMBALANCE, _one(tally.led_by_others if tally.is_controller else 0)
    yield replication.LEADER_PARTITIONS, _one(tally.led)
    yield replication.UNDER_REPLICATED_PARTITIONS, _one(tally.under_replicated)
    yield replication.UNDER_MIN_ISR_PARTITIONS, _one(tally.under_min_isr)
    yield replication.AT_MIN_ISR_PARTITIONS, _one(tally.at_min_isr)
    yield replication.REASSIGNING_PARTITIONS, _one(tally.reassigning)
    yield replication.REASSIGNMENT_IN_BYTES, _one(counters.reassignment_in_bytes)
    yield replication.REASSIGNMENT_OUT_BYTES, _one(counters.reassignment_out_bytes)
    yield replication.THROTTLED_OUT_BYTES, _one(counters.throttled_out_bytes)
    yield replication.THROTTLED_IN_BYTES, _one(counters.throttled_in_bytes)
    yield replication.THROTTLED_READS, _one(counters.throttled_reads)
    yield replication.THROTTLED_FETCHES, _one(counters.throttled_fetches)
    yield replication.ISR_SHRINKS, _one(counters.isr_shrinks)
    yield replication.ISR_EXPANDS, _one(counters.isr_expands)
    yield replication.LEADER_ELECTIONS, _one(counters.leader_elections)
    yield replication.UNCLEAN_LEADER_ELECTIONS, _one(counters.unclean_leader_elections)
    yield replication.REPLICA_MAX_LAG, _one(sources.replica_max_lag())
    yield replication.ZOOKEEPER_SESSION_PROVEN, _one(sources.is_session_proven())


def _topics(counters: Counters) -> Iterator[tuple[Metric, Samples]]:
    def each(read: Callable[[TopicCounters], int]) -> Samples:
        return (Sample((name,), read(topic)) for name, topic in list(counters.topics.items()))

    yield topics.TOPIC_IN_MESSAGES, each(attrgetter("in_messages"))
    yield topics.TOPIC_IN_BYTES, each(attrgetter("in_bytes"))
    yield topics.TOPIC_OUT_BYTES, each(attrgetter("out_bytes"))
    yield topics.TOPIC_REJECTED_BYTES, each(attrgetter("rejected_bytes"))
    yield topics.TOPIC_PRODUCE_REQUESTS, each(attrgetter("produce_requests"))
    yield topics.TOPIC_PRODUCE_FAILURES, each(attrgetter("produce_failures"))
    yield topics.TOPIC_FETCH_REQUESTS, each(attrgetter("fetch_requests"))
    yield topics.TOPIC_FETCH_FAILURES, each(attrgetter("fetch_failures"))


def _requests(sources: MetricSources) -> Iterator[tuple[Metric, Samples]]:
    seen = [counters for counters in sources.counters.requests.values() if counters.requests or counters.errors]

    def times(part: str) -> Samples:
        by_api: dict[str, Histogram] = {}
        for counters in seen:
            by_api.setdefault(counters.api, Histogram()).add(counters.histogram(part))
        for api, histogram in by_api.items():
            yield from _histogram(histogram, (api,))

    yield requests.REQUESTS, [Sample((one.api, str(one.version)), one.requests) for one in seen]
    yield requests.REQUEST_ERRORS, (sample for counters in seen for sample in _errors(counters))
    yield requests.REQUEST_DURATION, times("duration")
    yield requests.REQUEST_ARRIVAL, times("arrival")
    yield requests.REQUEST_QUEUE, times("queue")
    yield requests.REQUEST_LOCAL, times("local")
    yield requests.REQUEST_THREADS, times("threads")
    yield requests.REQUEST_REMOTE, times("remote")
    yield requests.REQUEST_SEND, times("send")
    yield requests.SLOW_REQUESTS, _one(sources.request_watch.slow_total)
    quotas = sources.counters.quotas
    yield requests.THROTTLED_REQUESTS, [Sample((key,), quotas.throttled[key]) for key in QUOTAS_OF_CLIENTS]
    yield requests.THROTTLE_TIME, [Sample((key,), quotas.throttle_ms[key] / 1000) for key in QUOTAS_OF_CLIENTS]
    yield requests.PARKED_FETCHES, _one(sources.counters.parked_fetches)
    yield requests.FETCH_SESSIONS, _one(len(sources.fetch_sessions))
    yield requests.FETCH_SESSION_PARTITIONS, _one(sources.fetch_sessions.partitions)
    yield requests.FETCH_SESSION_EVICTIONS, _one(sources.fetch_sessions.evictions)


def _errors(counters: RequestCounters) -> Samples:
    labels = (counters.api, str(counters.version))
    yield Sample((*labels, ErrorCode.NONE.name), counters.requests - counters.failed)
    for code, count in list(counters.errors.items()):
        yield Sample((*labels, ErrorCode(code).name), count)


def _connections(counters: Counters, listening: Listening) -> Iterator[tuple[Metric, Samples]]:
    now = Counter(connection.listener_name for connection in listening.connections)
    yield connections.CONNECTIONS, [Sample((name,), now[name]) for name in listening.names]
    yield connections.CONNECTIONS_MUTED, _one(sum(connection.is_muted for connection in listening.connections))
    yield connections.CONNECTIONS_CREATED, [Sample((name,), listening.created[name]) for name in listening.names]
    yield connections.CONNECTIONS_CLOSED, [Sample((reason,), listening.closed[reason]) for reason in Ended]
    quota = listening.quota
    yield (
        connections.CONNECTIONS_REFUSED,
        _by_reason(
            descriptors=listening.refused_by_system,
            per_ip=quota.refused_per_ip,
            per_ip_rate=listening.address_rates.refused,
        ),
    )
    yield connections.CONNECTIONS_HELD_BACK, _by_reason(room=quota.waits_for_room, rate=quota.waits_for_rate)
    yield connections.LOGINS, [Sample(labels, count) for labels, count in sorted(counters.logins.items())]
    yield connections.NETWORK_IN_BYTES, _one(listening.bytes_in)
    yield connections.NETWORK_OUT_BYTES, _one(listening.bytes_out)
    yield (
        connections.REQUEST_MEMORY_HELD,
        _one(listening.admission.held_bytes + listening.strangers_admission.held_bytes),
    )
    yield connections.REQUEST_MEMORY_LIMIT, _one(listening.admission.limit_bytes)
    yield connections.REQUEST_MEMORY_WAITING, _one(listening.admission.waiting + listening.strangers_admission.waiting)
    tls, handshakes = listening.tls, listening.handshakes
    yield (
        connections.TLS_CERTIFICATE_EXPIRES,
        [Sample((one.name,), one.identity.facts.not_after_ms / 1000) for one in tls],
    )
    yield (
        connections.TLS_CERTIFICATE_RELOADS,
        [Sample(("taken",), tls.reloads), Sample(("refused",), tls.refused_reloads)],
    )
    yield (
        connections.TLS_HANDSHAKES,
        [
            Sample((one.name, outcome), counted[one.name])
            for one in tls
            for outcome, counted in (("completed", handshakes.completed), ("failed", handshakes.failed))
        ],
    )
    yield connections.TLS_HANDSHAKES_OPEN, _one(len(handshakes))


def _logs(sources: MetricSources) -> Iterator[tuple[Metric, Samples]]:
    partitions = list(sources.partitions)
    offline = sum(partition.log.failure is not None for partition in partitions)

    def each(read: Callable[[Partition], int]) -> Samples:
        for partition in partitions:
            # One that went away meanwhile has no more series, and its log is closed.
            if sources.partitions.find(partition.topic, partition.index) is partition:
                yield Sample((partition.topic, str(partition.index)), read(partition))

    yield logs.LOG_SIZE, each(lambda partition: partition.log.size_bytes())
    yield logs.LOG_SEGMENTS, each(lambda partition: len(partition.log.segments))
    yield logs.LOG_START_OFFSET, each(lambda partition: partition.log.log_start_offset)
    yield logs.LOG_END_OFFSET, each(lambda partition: partition.log.log_end_offset)
    yield logs.HIGH_WATERMARK, each(attrgetter("high_watermark"))
    yield logs.LAST_STABLE_OFFSET, each(attrgetter("last_stable_offset"))
    yield logs.PARTITIONS, _one(len(partitions) + sources.partitions.missing)
    yield logs.OFFLINE_PARTITIONS, _one(offline + sources.partitions.missing)
    yield logs.FLUSH_DURATION, _histogram(sources.counters.flushes)
    failed = sum(directory.failure is not None for directory in sources.directories)
    yield logs.OFFLINE_LOG_DIRECTORIES, _one(failed)
    yield (
        logs.LOG_DIRECTORY_OFFLINE,
        [Sample((directory.path,), directory.failure is not None) for directory in sources.directories],
    )
    yield (
        logs.LOG_DIRECTORY_LOW,
        [Sample((path,), space.is_low) for path, space in sources.directories.free_space.items()],
    )
    yield from _read_leases(sources)
    yield logs.LOG_DIRECTORY_MOVES, _one(sources.moves.under_way)
    yield logs.LOG_DIRECTORY_MOVE_MAX_LAG, _one(sources.moves.max_lag)
    yield logs.LOG_DIRECTORY_MOVED_BYTES, _one(sources.counters.moved_log_bytes)


def _read_leases(sources: MetricSources) -> Iterator[tuple[Metric, Samples]]:
    leases, now, held = sources.read_leases, Counter[str](), Counter[str]()
    for lease in leases:
        now[lease.directory.path] += 1
        held[lease.directory.path] += lease.held_bytes
    paths = [directory.path for directory in sources.directories]
    yield logs.READ_LEASES, [Sample((path,), now[path]) for path in paths]
    yield logs.READ_LEASES_HELD, [Sample((path,), held[path]) for path in paths]
    yield logs.READ_LEASES_GRANTED, _one(leases.granted)
    yield logs.READ_LEASES_ENDED, [Sample((how,), leases.ended[how]) for how in LeaseEnded]


_STATES = {
    "classic": ("Empty", "PreparingRebalance", "CompletingRebalance", "Stable"),
    "consumer": ("Empty", "Assigning", "Reconciling", "Stable"),
}


def _groups(sources: MetricSources, tally: GroupTally, lags: GroupLags) -> Iterator[tuple[Metric, Samples]]:
    shards = list(sources.groups.runtime)
    active = sum(shard.machine is not None for shard in shards)
    loading = sum(shard.is_loading for shard in shards)
    counts = sources.groups.counts
    yield (
        groups.GROUPS,
        [Sample((kind, state), tally.states[kind, state]) for kind, some in _STATES.items() for state in some],
    )
    yield groups.GROUP_MEMBERS, [Sample((kind,), tally.members[kind]) for kind in _STATES]
    yield groups.GROUP_OFFSETS, _one(tally.offsets)
    yield groups.GROUP_REBALANCES, [Sample((kind,), counts.rebalances[kind]) for kind in _STATES]
    yield groups.GROUP_COMMITTED_OFFSETS, _one(counts.committed_offsets)
    yield (
        groups.GROUP_LAG,
        [Sample((one.group_id, one.topic, str(one.partition)), one.lag) for one in lags.most],
    )
    yield groups.GROUP_LAG_OMITTED, _one(lags.omitted)
    failed = max(sources.groups.existing_partition_count - active - loading, 0)
    yield groups.COORDINATOR_PARTITIONS, _by_reason(active=active, loading=loading, failed=failed)
    yield groups.COORDINATOR_LOAD, _histogram(sources.counters.coordinator_loads)


def _transactions(coordinator: TransactionCoordinator) -> Iterator[tuple[Metric, Samples]]:
    counts = coordinator.counts()
    yield (
        transactions.TRANSACTIONS,
        [Sample((status.state_name,), counts[status]) for status in Status if status is not Status.DEAD],
    )
    yield transactions.TRANSACTIONS_TIMED_OUT, _one(coordinator.timed_out)
    yield transactions.TRANSACTION_MARKERS, _one(coordinator.markers.written)
    yield transactions.TRANSACTION_MARKERS_PENDING, _one(coordinator.markers.pending)


def _machine(sources: MetricSources, machine: Machine) -> Iterator[tuple[Metric, Samples]]:
    yield logs.LOG_DIRECTORY_FREE, [Sample((path,), disk.free_bytes) for path, disk in machine.disks.items()]
    yield logs.LOG_DIRECTORY_CAPACITY, [Sample((path,), disk.capacity_bytes) for path, disk in machine.disks.items()]
    yield process.EVENT_LOOP_LAG, _histogram(sources.counters.loop_lag)
    yield process.THREADS_BUSY, _one(sources.threads.busy)
    yield process.THREADS_QUEUED, _one(sources.threads.waiting)
    yield process.THREADS_BUSY_SECONDS, _one(sources.threads.busy_ns / _NS)
    yield process.PROCESS_RESIDENT_MEMORY, _known(machine.resident_bytes)
    yield process.PROCESS_CPU_SECONDS, _known(machine.cpu_seconds)
    yield process.PROCESS_OPEN_DESCRIPTORS, _known(machine.open_descriptors)
    yield process.PROCESS_MAX_DESCRIPTORS, _known(machine.max_descriptors)


def _known(value: float | None) -> Samples:
    return () if value is None else _one(value)


def _histogram(histogram: Histogram, labels: tuple[str, ...] = ()) -> Samples:
    total = 0
    for bound, count in zip(_BOUNDS, histogram.counts, strict=True):
        total += count
        yield Sample(labels, total, "_bucket", bound)
    yield Sample(labels, histogram.sum_ns / _NS, "_sum")
    yield Sample(labels, total, "_count")
