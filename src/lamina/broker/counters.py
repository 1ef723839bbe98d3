"""What is counted while the broker works: plain integers, touched on the loop alone.

Owns the counters that exist nowhere else; what can be read off the broker's state is not counted twice. A request
that took less than the first bound from its first byte to its last is counted once for all its times: they are all
in the first bucket. Must not know how anything is exposed.
"""

from bisect import bisect_left
from collections import Counter
from enum import StrEnum

BOUNDS_NS = (
    *(
        250_000,
        500_000,
        1_000_000,
        2_500_000,
        5_000_000,
        10_000_000,
        25_000_000,
        50_000_000,
        100_000_000,
        250_000_000,
        500_000_000,
    ),
    *(1_000_000_000, 2_500_000_000, 5_000_000_000, 10_000_000_000, 30_000_000_000),
)
QUICK_NS = BOUNDS_NS[0]
_BUCKETS = len(BOUNDS_NS) + 1


class Place(StrEnum):
    """Where an unexpected exception was caught."""

    HANDLER = "handler"
    RECORDS = "records"
    PARTITION = "partition"
    TIMER = "timer"
    CONNECTION = "connection"
    METADATA = "metadata"
    ADMIN = "admin"
    COORDINATOR = "coordinator"
    REPLICATION = "replication"
    CLEANING = "cleaning"
    MOVE = "move"


class LoginOutcome(StrEnum):
    """What became of a login on a listener with SASL."""

    SUCCESS = "success"
    FAILURE = "failure"
    REAUTHENTICATION_SUCCESS = "reauthentication_success"
    REAUTHENTICATION_FAILURE = "reauthentication_failure"
    EXPIRED = "expired"
    """The client did not log in again in time."""


class Histogram:
    __slots__ = ("counts", "sum_ns")

    def __init__(self) -> None:
        self.counts = [0] * _BUCKETS
        self.sum_ns = 0

    def observe(self, duration_ns: int) -> None:
        self.counts[bisect_left(BOUNDS_NS, duration_ns)] += 1
        self.sum_ns += duration_ns

    def add(self, other: "Histogram") -> None:
        self.counts = [mine + theirs for mine, theirs in zip(self.counts, other.counts, strict=True)]
        self.sum_ns += other.sum_ns


class ReplicationCounters:
    """What leaders and the controller decide about replicas, what is copied to new ones, and what throttles hold back.

    All 0 on a broker by itself.
    """

    __slots__ = (
        "isr_expands",
        "isr_shrinks",
        "leader_elections",
        "reassignment_in_bytes",
        "reassignment_out_bytes",
        "throttled_fetches",
        "throttled_in_bytes",
        "throttled_out_bytes",
        "throttled_reads",
        "unclean_leader_elections",
    )

    def __init__(self) -> None:
        self.isr_shrinks = 0
        self.isr_expands = 0
        self.leader_elections = 0
        self.unclean_leader_elections = 0
        self.reassignment_in_bytes = 0
        self.reassignment_out_bytes = 0
        self.throttled_in_bytes = 0
        self.throttled_out_bytes = 0
        self.throttled_reads = 0
        """Partitions that a leader left out of a response."""
        self.throttled_fetches = 0
        """Partitions that a follower left out of its requests for a while."""

    def count_in_sync_change(self, growth: int) -> None:
        """A leader's in-sync set has another size, and the controller has stored it."""
        if growth > 0:
            self.isr_expands += 1
        elif growth < 0:
            self.isr_shrinks += 1


class QuotaCounters:
    """How often clients were told to wait, and how long in all, by the key of the quota that they had exceeded."""

    __slots__ = ("throttle_ms", "throttled")

    def __init__(self) -> None:
        self.throttled: Counter[str] = Counter()
        self.throttle_ms: Counter[str] = Counter()

    def count(self, key: str, throttle_ms: int) -> None:
        self.throttled[key] += 1
        self.throttle_ms[key] += throttle_ms


class TopicCounters:
    __slots__ = (
        "fetch_failures",
        "fetch_requests",
        "in_bytes",
        "in_messages",
        "out_bytes",
        "produce_failures",
        "produce_requests",
        "rejected_bytes",
    )

    def __init__(self) -> None:
        self.in_messages = 0
        self.in_bytes = 0
        self.out_bytes = 0
        self.rejected_bytes = 0
        self.produce_requests = 0
        self.produce_failures = 0
        self.fetch_requests = 0
        self.fetch_failures = 0


class RequestTimes:
    """The times of requests that were not quick; arrival, threads and remote only where there was any."""

    __slots__ = ("arrival", "duration", "local", "queue", "remote", "send", "threads")

    def __init__(self) -> None:
        self.duration = Histogram()
        self.arrival = Histogram()
        self.queue = Histogram()
        self.local = Histogram()
        self.threads = Histogram()
        self.remote = Histogram()
        self.send = Histogram()


class RequestCounters:
    """All requests of one version of an API. ``failed`` are those with an error, ``errors`` counts errors by code."""

    __slots__ = ("api", "errors", "failed", "local_ns", "queue_ns", "quick", "send_ns", "times", "version")

    def __init__(self, api: str, version: int) -> None:
        self.api = api
        self.version = version
        self.errors: dict[int, int] = {}
        self.failed = 0
        self.quick = 0
        self.queue_ns = 0
        self.local_ns = 0
        self.send_ns = 0
        self.times: RequestTimes | None = None

    @property
    def requests(self) -> int:
        return self.quick + (0 if self.times is None else sum(self.times.duration.counts))

    def histogram(self, part: str) -> Histogram:
        """One time of all requests, by its name in :class:`RequestTimes`."""
        whole = Histogram()
        whole.counts[0] = self.quick
        whole.sum_ns = {
            "duration": self.queue_ns + self.local_ns + self.send_ns,
            "queue": self.queue_ns,
            "local": self.local_ns,
            "send": self.send_ns,
        }.get(part, 0)
        if self.times is not None:
            whole.add(getattr(self.times, part))
            whole.counts[0] += self.requests - sum(whole.counts)
        return whole


class Counters:
    def __init__(self) -> None:
        self.topics: dict[str, TopicCounters] = {}
        self.requests: dict[tuple[int, int], RequestCounters] = {}
        self.unexpected: Counter[Place] = Counter()
        self.parked_fetches = 0
        self.flushes = Histogram()
        self.coordinator_loads = Histogram()
        self.loop_lag = Histogram()
        self.replication = ReplicationCounters()
        self.logins: Counter[tuple[str, str, LoginOutcome]] = Counter()
        """By listener and mechanism."""
        self.quotas = QuotaCounters()
        self.moved_log_bytes = 0
        """What was copied from one log directory of this broker to another."""

    def topic(self, name: str) -> TopicCounters:
        """The counters of a topic that exists."""
        return self.topics.setdefault(name, TopicCounters())

    def forget_topic(self, name: str) -> None:
        self.topics.pop(name, None)

    def count_unexpected(self, place: Place) -> None:
        """Our own code failed unexpectedly."""
        self.unexpected[place] += 1
