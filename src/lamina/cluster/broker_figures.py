"""What the brokers of a cluster say of themselves, asked all at once, through their admin listeners.

Owns that one that does not answer keeps nobody waiting for long, and the rates between two looks. Must not know how
anything is shown.
"""

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from types import TracebackType

from lamina.client.admin_listener import VIEWER_TOKEN_FILE, AdminListener, Token
from lamina.client.errors import ClientError
from lamina.clocks import SYSTEM_CLOCKS, Clocks
from lamina.cluster.broker_status import BrokerStatus

ANSWER_SECONDS = 1.0
_MOST_AT_ONCE = 16


@dataclass(frozen=True, slots=True)
class BrokerFigures:
    """``in_bytes`` and ``out_bytes`` are counted since the broker started; ``at_seconds`` is when they were asked."""

    at_seconds: float
    is_controller: bool
    leader_partitions: int
    under_replicated_partitions: int
    under_min_isr_partitions: int
    offline_partitions: int
    """Of the cluster, as this broker knows it."""
    replica_max_lag: int
    is_session_lost: bool
    """With ZooKeeper. A broker that has only just started has none to lose yet."""
    in_bytes: int
    out_bytes: int
    low_log_dirs: tuple[str, ...] = ()
    """Nothing is written to them now: their disks are nearly full."""


@dataclass(frozen=True, slots=True)
class Rates:
    in_bytes: float
    """A second."""
    out_bytes: float


@dataclass(frozen=True, slots=True)
class BrokerView:
    status: BrokerStatus
    figures: BrokerFigures | None = None
    """``None`` where it does not run, or does not answer."""
    rates: Rates | None = None
    """``None`` at the first look."""


class BrokerWatch:
    """Looks again and again."""

    def __init__(self, clocks: Clocks = SYSTEM_CLOCKS) -> None:
        self._clocks = clocks
        self._threads = ThreadPoolExecutor(_MOST_AT_ONCE)
        self._last: Mapping[int, BrokerFigures] = {}

    def __enter__(self) -> "BrokerWatch":
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    def look(self, statuses: Iterable[BrokerStatus]) -> list[BrokerView]:
        statuses = list(statuses)
        asked = list(self._threads.map(self._ask, statuses))
        views = [
            BrokerView(status, figures, rates_between(self._last.get(status.id), figures))
            for status, figures in zip(statuses, asked, strict=True)
        ]
        self._last = {view.status.id: view.figures for view in views if view.figures is not None}
        return views

    def _ask(self, status: BrokerStatus) -> BrokerFigures | None:
        if status.started is None or status.started.admin_address is None:
            return None
        try:
            listener = AdminListener(status.started.admin_address, _viewer_token(status), seconds=ANSWER_SECONDS)
            told = listener.get("v1", "brokers")
        except ClientError:
            return None
        own = next((row for row in told["brokers"] if row["is_this_broker"]), None)
        if own is None:
            return None
        figures = own["replication"]
        return BrokerFigures(
            self._clocks.monotonic_seconds(),
            # Without a session it cannot know that it still is.
            own["is_controller"] and figures["is_session_proven"],
            figures["leader_partitions"],
            figures["under_replicated_partitions"],
            figures["under_min_isr_partitions"],
            figures["offline_partitions"],
            figures["replica_max_lag"],
            figures["was_session_proven"] and not figures["is_session_proven"],
            figures["in_bytes"],
            figures["out_bytes"],
            # A broker of the version before does not tell it.
            tuple(own.get("low_log_dirs") or ()),
        )


def _viewer_token(status: BrokerStatus) -> Token | None:
    """The broker may want it for reading."""
    if status.data_directory is None:
        return None
    file = status.data_directory / VIEWER_TOKEN_FILE
    try:
        return Token(file.read_text(encoding="ascii", errors="replace").strip(), str(file))
    except OSError:
        return None


def rates_between(before: BrokerFigures | None, now: BrokerFigures | None) -> Rates | None:
    """A broker that began anew, or a topic that went, does not count backwards."""
    if before is None or now is None or now.at_seconds <= before.at_seconds:
        return None
    seconds = now.at_seconds - before.at_seconds
    return Rates(max(now.in_bytes - before.in_bytes, 0) / seconds, max(now.out_bytes - before.out_bytes, 0) / seconds)
