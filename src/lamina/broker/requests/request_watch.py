"""What became of requests: their times counted, slow ones told and remembered, followed ones logged.

Owns ``lamina.slow.request.ms``, the last slow requests, and whose requests are logged one by one. A fetch's own waiting
is what its client wished and makes no request slow. Must not know what any request asks for.
"""

import logging
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from lamina.broker.counters import QUICK_NS, RequestTimes
from lamina.broker.metadata.listener import MetadataListener
from lamina.broker.requests.request import Request
from lamina.clocks import Clocks
from lamina.errors import ErrorCode
from lamina.settings.network import LAMINA_SLOW_REQUEST_MS
from lamina.settings.values import BrokerSettings

logger = logging.getLogger(__name__)

REMEMBERED = 100
MAX_FOLLOWED = 32
_LINES_PER_SECOND = 10
_SHOWN_CHARACTERS = 80


class FollowError(ValueError):
    """Why a client's requests cannot be logged, in one sentence."""


@dataclass(frozen=True, slots=True)
class SlowRequest:
    """One request that took long, and where its time went. ``waiting_ms`` is being parked, and is not in the total."""

    ended_at_ms: int
    connection_id: int
    peer: str
    client_id: str | None
    api: str
    api_version: int
    correlation_id: int
    size_bytes: int
    error: str
    total_ms: float
    arriving_ms: float
    queued_ms: float
    handling_ms: float
    threads_ms: float
    waiting_ms: float
    sending_ms: float


class RequestWatch(MetadataListener):
    def __init__(self, slow_ms: int, clocks: Clocks) -> None:
        self.slow_requests: deque[SlowRequest] = deque(maxlen=REMEMBERED)
        """The last ones, oldest first."""
        self.slow_total = 0
        self._clocks = clocks
        self._followed: set[str] = set()
        self._lines = 0
        self._untold = 0
        self._lines_until = 0.0
        self.configure(slow_ms)

    def configure(self, slow_ms: int) -> None:
        self._slow_ns = slow_ms * 1_000_000

    def settings_changed(self, settings: BrokerSettings) -> None:
        self.configure(settings[LAMINA_SLOW_REQUEST_MS])

    # Following

    @property
    def followed(self) -> list[str]:
        return sorted(self._followed)

    def follow(self, who: str) -> None:
        """Log every request of a connection: by its number, its peer's ``host:port``, or its client's id."""
        if not who:
            raise FollowError("say whom to follow: a connection's number, its host:port or its client id")
        if len(self._followed) >= MAX_FOLLOWED and who not in self._followed:
            raise FollowError(f"{MAX_FOLLOWED} are followed already; unfollow one of them first")
        self._followed.add(who)

    def unfollow(self, who: str) -> bool:
        """Whether it was followed."""
        if who not in self._followed:
            return False
        self._followed.discard(who)
        return True

    # Counting

    def answered(self, requests: Iterable[Request], sent_ns: int) -> None:
        """These were answered: the last byte of their answers went to the socket at ``sent_ns``."""
        for request in requests:
            counters = request.counters
            if sent_ns - request.arrived_ns < QUICK_NS and request.waits is None:
                began_ns, ended_ns = request.began_ns, request.ended_ns
                counters.quick += 1
                counters.queue_ns += began_ns - request.received_ns
                counters.local_ns += ended_ns - began_ns
                counters.send_ns += sent_ns - ended_ns
            else:
                self._count_parts(request, sent_ns)
            if request.error_code:
                counters.failed += 1
            if self._followed:
                self._log_followed(request, sent_ns)

    def _count_parts(self, request: Request, sent_ns: int) -> None:
        times = request.counters.times
        if times is None:
            times = request.counters.times = RequestTimes()
        elapsed_ns = request.ended_ns - request.began_ns
        parked_ns = threads_ns = 0
        if request.waits is not None:
            parked_ns = min(request.waits.parked_ns, elapsed_ns)
            threads_ns = min(request.waits.threads_ns, elapsed_ns - parked_ns)
        arrival_ns = request.received_ns - request.arrived_ns
        queue_ns = request.began_ns - request.received_ns
        send_ns = sent_ns - request.ended_ns
        local_ns = elapsed_ns - parked_ns - threads_ns
        times.duration.observe(sent_ns - request.received_ns)
        times.queue.observe(queue_ns)
        times.local.observe(local_ns)
        times.send.observe(send_ns)
        if arrival_ns:
            times.arrival.observe(arrival_ns)
        if threads_ns:
            times.threads.observe(threads_ns)
        if parked_ns:
            times.remote.observe(parked_ns)
        if 0 <= self._slow_ns <= sent_ns - request.arrived_ns - parked_ns:
            self._slow(
                SlowRequest(
                    ended_at_ms=self._clocks.now_ms(),
                    connection_id=request.client.id,
                    peer=request.client.peer,
                    client_id=_shown(request.client_id),
                    api=request.counters.api,
                    api_version=request.api_version,
                    correlation_id=request.correlation_id,
                    size_bytes=request.size_bytes,
                    error=_error_name(request.error_code),
                    total_ms=_ms(sent_ns - request.arrived_ns - parked_ns),
                    arriving_ms=_ms(arrival_ns),
                    queued_ms=_ms(queue_ns),
                    handling_ms=_ms(local_ns),
                    threads_ms=_ms(threads_ns),
                    waiting_ms=_ms(parked_ns),
                    sending_ms=_ms(send_ns),
                )
            )

    def _slow(self, slow: SlowRequest) -> None:
        self.slow_total += 1
        self.slow_requests.append(slow)
        if not self._may_say():
            return
        logger.warning(
            "slow request: %s version %d of %s (connection %d, client id %r), correlation id %d, %d bytes, %s: "
            "%g ms = arriving %g + queued %g + handling %g + threads %g + sending %g; waiting %g",
            *(slow.api, slow.api_version, slow.peer, slow.connection_id, slow.client_id, slow.correlation_id),
            *(slow.size_bytes, slow.error, slow.total_ms, slow.arriving_ms, slow.queued_ms, slow.handling_ms),
            *(slow.threads_ms, slow.sending_ms, slow.waiting_ms),
        )

    def _may_say(self) -> bool:
        """A few lines a second tell enough; how many were left out is told with the next."""
        now = self._clocks.monotonic_seconds()
        if now >= self._lines_until:
            if self._untold:
                logger.warning("%d more slow requests had no line", self._untold)
            self._lines_until, self._lines, self._untold = now + 1.0, 0, 0
        if self._lines == _LINES_PER_SECOND:
            self._untold += 1
            return False
        self._lines += 1
        return True

    def _log_followed(self, request: Request, sent_ns: int) -> None:
        connection = request.client
        if self._followed.isdisjoint((str(connection.id), connection.peer, request.client_id or "")):
            return
        logger.info(
            "followed: connection %d of %s, client id %r: %s version %d, correlation id %d, %d bytes: %s after %g ms",
            *(connection.id, connection.peer, _shown(request.client_id), request.counters.api, request.api_version),
            *(request.correlation_id, request.size_bytes, _error_name(request.error_code)),
            _ms(sent_ns - request.arrived_ns),
        )


def _shown(client_id: str | None) -> str | None:
    """A client may call itself anything, at any length."""
    return client_id if client_id is None else client_id[:_SHOWN_CHARACTERS]


def _error_name(code: int) -> str:
    return ErrorCode(code).name


def _ms(duration_ns: int) -> float:
    return round(duration_ns / 1_000_000, 3)
