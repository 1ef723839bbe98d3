"""One client's connection: bytes in, one request at a time, responses out in order.

Owns its receive buffer and what is done next; the channel moves the bytes, ``admission`` counts the memory of large
requests. While a request waits or a response is stuck, the next frame is not served, so a slow client holds one
response and nothing else. What a client sent before it went away is served to the end, as Kafka does, but nothing
waits for news any more: its long polls end at once. A client that was told to wait is muted for that long: nothing more
of it is served or read. Must not know sockets, nor any API.
"""

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable, Sequence, Sized
from enum import StrEnum
from typing import Protocol

from lamina.broker.network.admission import Admission, FrameAdmission
from lamina.broker.network.channel import Channel, drop
from lamina.broker.network.hang_ups import HangUps
from lamina.broker.network.refusal_lines import RefusalLines
from lamina.broker.requests.later_response import LaterResponse
from lamina.broker.requests.loop_time import LoopTime
from lamina.broker.requests.request import ANONYMOUS, CloseConnection, Request, Response, host_of
from lamina.clocks import Clocks
from lamina.wire.frames import BASE_BUFFER_BYTES, FrameError, FrameSplitter, SharedBuffers
from lamina.wire.primitives import MalformedRequest

logger = logging.getLogger(__name__)

_REQUESTS_AT_A_TIME = 32
_TURN_NS = 1_000_000
"""Requests that came together are served for so long, then others have their turn: one may roll several logs."""
_RESPONSES_AT_A_TIME_BYTES = 256 * 1024
"""Small requests that came together may ask for large responses: no more is made than this before it is sent."""
_REFUSALS_SAID_AT_A_TIME = 20

_numbers = itertools.count(1)


class Ended(StrEnum):
    """Why a connection was closed."""

    CLIENT = "client"
    ERROR = "error"
    IDLE = "idle"
    REFUSED = "refused"
    ARRIVAL = "arrival"
    EXCESS = "excess"
    FAILURE = "failure"
    STOP = "stop"


class Service(Protocol):
    """What answers requests: the router, on a listener with SASL once the client has logged in."""

    def serve(self, client: "Connection", frame: memoryview) -> "tuple[Request, Response | Awaitable[Response]]":
        """May raise :class:`MalformedRequest` or :class:`CloseConnection`."""

    def sent(self, requests: Sequence[Request], sent_ns: int) -> None:
        """Told of requests whose responses went out, and when."""

    def connection_failed(self) -> None:
        """Told of a fault of ours that cost a connection."""


def refusal_lines() -> RefusalLines:
    """For all connections together: what strangers do must not fill the log."""
    return RefusalLines(logger, at_a_time=_REFUSALS_SAID_AT_A_TIME)


class Connection:
    __slots__ = (
        "_admission",
        "_admission_of_all",
        "_arrived_ns",
        "_channel",
        "_clocks",
        "_closed",
        "_fd",
        "_frames",
        "_gone",
        "_hang_ups",
        "_has_hung_up",
        "_is_behind",
        "_is_draining",
        "_is_reading",
        "_is_writing",
        "_loop",
        "_on_close",
        "_outgoing",
        "_receive_into",
        "_received_ns",
        "_refusals",
        "_service",
        "_task",
        "_unmuting",
        "_unsent",
        "_when_gone",
        "active_at",
        "bytes_in",
        "bytes_out",
        "client_id",
        "client_software",
        "ended",
        "host",
        "id",
        "listener_name",
        "opened_at_ms",
        "peer",
        "principal",
        "request",
        "requests",
    )

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        clocks: Clocks,
        channel: Channel,
        peer: str,
        listener_name: str,
        service: Service,
        admission: Admission,
        buffers: SharedBuffers,
        hang_ups: HangUps,
        refusals: RefusalLines,
        max_frame_bytes: int,
        on_close: "Callable[[Connection], None]",
    ) -> None:
        self.id = next(_numbers)
        self.peer = peer
        self.host = host_of(peer)
        self.listener_name = listener_name
        self.client_software = ""
        self.principal = ANONYMOUS
        self.client_id: str | None = None
        """What the last request said."""
        self.opened_at_ms = clocks.now_ms()
        self.active_at = loop.time()
        """When bytes last went either way."""
        self.requests = 0
        """How many were answered."""
        self.bytes_in = 0
        self.bytes_out = 0
        self.request: Request | None = None
        """The one that is served, or was last."""
        self.ended: Ended | None = None
        self._unsent: list[Request] = []
        """Requests whose responses are not all out."""
        self._arrived_ns = 0
        """When the first bytes of the next frame came; 0 when none are there."""
        self._received_ns = 0
        self._loop = loop
        self._clocks = clocks
        self._channel = channel
        self._outgoing = channel.outgoing
        self._receive_into = channel.receive_into
        self._fd = channel.fileno
        self._service = service
        self._frames = FrameSplitter(max_frame_bytes, buffers)
        self._admission = FrameAdmission(admission, self._frames)
        self._admission_of_all = admission
        self._task: asyncio.Future[Response] | None = None
        self._gone: Ended | None = None
        """Why nothing more can be received; what came before is still served."""
        self._hang_ups = hang_ups
        self._refusals = refusals
        self._when_gone: tuple[Callable[[], None], ...] = ()
        self._has_hung_up = False
        """Whether the client is known to send nothing more; what it sent may not be received yet."""
        self._is_reading = False
        self._is_writing = False
        self._is_behind = False
        self._is_draining = False
        self._unmuting: asyncio.TimerHandle | None = None
        """While the client is muted; then it counts as behind, too."""
        self._closed = False
        self._on_close = on_close

    def start(self) -> None:
        self._hang_ups.watch(self._fd, self._hung_up)
        self._read_more()

    @property
    def is_waiting(self) -> bool:
        """Whether the client waits for the broker: for a response, until there is memory for its request, or muted."""
        return self._task is not None or self._admission.is_waiting or self.is_muted

    @property
    def is_muted(self) -> bool:
        return self._unmuting is not None

    # Reading

    def _read_more(self) -> None:
        if not self._is_reading and not self._closed:
            self._is_reading = True
            self._loop.add_reader(self._fd, self._readable)

    def _read_no_more(self) -> None:
        if self._is_reading:
            self._is_reading = False
            self._loop.remove_reader(self._fd)

    def _readable(self) -> None:
        if self._task is not None or self._outgoing or self._is_behind:
            self._look_for_end()
            return
        try:
            frame_bytes = self._frames.pending_frame_bytes
            if not frame_bytes:
                self._arrived_ns = 0
            elif frame_bytes > BASE_BUFFER_BYTES and not self._is_admitted(frame_bytes):
                self._read_no_more()
                return
            count = self._receive_into(self._frames.buffer_for_recv())
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self._client_went(Ended.ERROR)
            return
        except FrameError as error:
            self.refuse(str(error))
            return
        if count == 0:
            self._client_went(Ended.CLIENT)
            return
        now_ns = self._clocks.monotonic_ns()
        self.active_at = self._loop.time()
        self.bytes_in += count
        self._received_ns = now_ns
        if not self._arrived_ns:
            self._arrived_ns = now_ns
        self._frames.received(count)
        self._serve_frames(now_ns)

    def _is_admitted(self, frame_bytes: int) -> bool:
        return self._admission.take(frame_bytes, self._loop.time(), self._admitted)

    def is_stalled(self, now: float) -> bool:
        """Whether a large request has had more than enough time to arrive, and others wait for its memory."""
        return self._task is None and self._admission.is_overdue(now)

    def _admitted(self) -> None:
        self.active_at = self._loop.time()
        self._read_more()
        if self._has_hung_up:
            self._loop.call_soon(self._read_rest)

    def _look_for_end(self) -> None:
        """While a request is under way: notice that the client is gone, and leave what it sent for later."""
        try:
            has_more = self._channel.has_more()
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self._client_went(Ended.ERROR)
            return
        self._read_no_more()
        if not has_more:
            self._client_went(Ended.CLIENT)

    def _client_went(self, why: Ended) -> None:
        """Nothing more will come, and what came is finished first."""
        self._gone = why
        self._read_no_more()
        # Whoever is muted and has nothing left to be served needs no connection to wait on.
        is_behind = self._is_behind and not (self.is_muted and self._frames.is_empty)
        if self._task is None and not self._outgoing and not is_behind:
            self.close(why)
        elif not self._has_hung_up:
            self._hung_up()

    def _hung_up(self) -> None:
        """Nobody waits for news any more: not in the request under way, nor in those behind it.

        The rest of what was sent is read without waiting for the loop to tell of it.
        """
        self._has_hung_up = True
        self._tell_gone()
        if self._task is not None and self.request is not None:
            self.request.abandon()
        elif self._is_writing:
            self._writable()
        elif self.is_muted:
            self._look_for_end()
        else:
            self._loop.call_soon(self._read_rest)

    def when_gone(self, told: Callable[[], None]) -> None:
        """Call once when the client has hung up, or at once if it has."""
        self._when_gone = (*self._when_gone, told)
        if self._has_hung_up or self._closed:
            self._tell_gone()

    def _tell_gone(self) -> None:
        waiting, self._when_gone = self._when_gone, ()
        for told in waiting:
            told()

    def _read_rest(self) -> None:
        is_busy = self._task is not None or self._outgoing or self._is_behind
        if not is_busy and not self._closed and self._gone is None:
            self._readable()

    # Serving

    def _serve_frames(self, now_ns: int) -> None:
        """Serve frames that are there, until one has to wait or others should have their turn.

        Responses that come at once leave together.
        """
        responses: list[Sized] = []
        responses_bytes = served = 0
        turn_ends_ns = now_ns + _TURN_NS
        arrived_ns, received_ns, unsent = self._arrived_ns, self._received_ns, self._unsent
        admission, serve, clock = self._admission, self._service.serve, self._clocks.monotonic_ns
        holds_frame = False
        try:
            for frame in self._frames.frames():
                request, response = serve(self, frame)
                self.request = request
                self.client_id = request.client_id
                request.arrived_ns = arrived_ns
                request.received_ns = arrived_ns = received_ns
                request.began_ns = now_ns
                request.size_bytes = len(frame)
                if response is not None and not isinstance(response, list):
                    holds_frame = request.holds_frame
                    if self._has_hung_up:
                        request.abandon()
                    self._wait_for(response if request.charge is None else LoopTime(response, request.charge))
                    break
                request.ended_ns = now_ns = clock()
                unsent.append(request)
                if admission.held_bytes:
                    admission.give_back(keeps_buffer=not self._closed)
                served += 1
                if response is not None:
                    responses += response
                    responses_bytes += len(response[0]) if len(response) == 1 else sum(map(len, response))
                if request.throttle_ms:
                    self._mute(request.throttle_ms)
                    break
                enough = served == _REQUESTS_AT_A_TIME or responses_bytes >= _RESPONSES_AT_A_TIME_BYTES
                if enough or now_ns >= turn_ends_ns:
                    self._is_behind = True
                    self._loop.call_soon(self._go_on)
                    break
        except (FrameError, MalformedRequest, CloseConnection) as error:
            self._outgoing += responses
            self.refuse(str(error))
            return
        except Exception as error:
            # A fault of ours: without a response to give, an end is better than a client that waits for ever.
            logger.error("%s: a request failed", self.peer, exc_info=error)
            self._service.connection_failed()
            drop(responses)
            self.close(Ended.FAILURE)
            return
        if not holds_frame:
            self._frames.rest()
        if responses:
            self.bytes_out += responses_bytes
            self._outgoing += responses
            self._write()
        elif unsent:
            self._account(now_ns)
        if self._is_draining or self._has_hung_up or self._gone is not None:
            self._end_if_idle()

    def _wait_for(self, response: Awaitable[Response]) -> None:
        if type(response) is LaterResponse:
            self._task = response
            response.tell(self._responded_at_once)
        else:
            self._task = asyncio.ensure_future(response, loop=self._loop)
            self._task.add_done_callback(self._responded)

    def _responded(self, task: "asyncio.Future[Response]") -> None:
        self._respond(task)
        self._go_on()

    def _responded_at_once(self, response: LaterResponse) -> None:
        """In the midst of another request: it leaves, but nothing more is served before the next turn."""
        self._respond(response)
        is_ending = self._is_draining or self._has_hung_up or self._gone is not None
        if self._closed or self._outgoing or (self._is_reading and self._frames.is_empty and not is_ending):
            return
        # What came meanwhile stood behind the client's own request: that is no time of its own.
        self._arrived_ns = self._received_ns = self._clocks.monotonic_ns()
        self._is_behind = True
        self._loop.call_soon(self._go_on)

    def _respond(self, task: "asyncio.Future[Response]") -> None:
        """A response has come."""
        self._task = None
        if self._admission.held_bytes:
            self._admission.give_back(keeps_buffer=not self._closed)
        if task.cancelled():
            self.close(Ended.FAILURE)
            return
        error = task.exception()
        if error is not None:
            if isinstance(error, MalformedRequest | CloseConnection):
                self.refuse(str(error))
            else:
                logger.error("%s: a response failed", self.peer, exc_info=error)
                self._service.connection_failed()
                self.close(Ended.FAILURE)
            return
        self.active_at = self._loop.time()
        response = task.result()
        if self._closed:
            drop(response or ())
            return
        if self.request is not None:
            self.request.ended_ns = self._clocks.monotonic_ns()
            self._unsent.append(self.request)
            if self.request.throttle_ms:
                self._mute(self.request.throttle_ms)
        if response is not None:
            self.bytes_out += sum(map(len, response))
            self._outgoing += response
        self._write()

    def _account(self, sent_ns: int) -> None:
        """Everything is out."""
        self.requests += len(self._unsent)
        self._service.sent(self._unsent, sent_ns)
        self._unsent.clear()

    def _go_on(self) -> None:
        """Serve what came in meanwhile, once the last response is out; nothing new on a connection that ends."""
        if self._is_draining or self.is_muted:
            self._end_if_idle()
        elif not self._closed and not self._outgoing and self._task is None:
            now_ns = self._clocks.monotonic_ns()
            if not self._is_behind:
                # It stood behind the client's own last request: that is no time of its own.
                self._arrived_ns = self._received_ns = now_ns
            self._is_behind = False
            if self._gone is None:
                self._read_more()
            self._serve_frames(now_ns)

    # Muting

    def _mute(self, throttle_ms: int) -> None:
        """Serve nothing more for so long; the response leaves at once."""
        if self._closed:
            return
        self._is_behind = True
        self._unmuting = self._loop.call_later(throttle_ms / 1000, self._unmute)

    def _unmute(self) -> None:
        self._unmuting = None
        self._is_behind = False
        self.active_at = self._loop.time()
        self._go_on()

    # Writing

    def _write(self) -> None:
        try:
            self._channel.send()
        except (BlockingIOError, InterruptedError):
            if not self._is_writing:
                self._is_writing = True
                self._loop.add_writer(self._fd, self._writable)
        except OSError:
            # The responses cannot be sent any more; what was asked before is done all the same.
            self._channel.give_up()
            self.ended = self.ended or Ended.ERROR
            self._hung_up()
        if self._unsent and not self._outgoing:
            self._account(self._clocks.monotonic_ns())

    def _writable(self) -> None:
        self.active_at = self._loop.time()
        self._is_writing = False
        self._loop.remove_writer(self._fd)
        self._write()
        if not self._is_writing:
            self._go_on()

    # Ending

    def drain(self) -> None:
        """Close as soon as what is under way is answered."""
        self._is_draining = True
        self._end_if_idle()

    def _end_if_idle(self) -> None:
        """Close a connection that has nothing under way, if it drains or its client is gone."""
        if self._task is not None or self._outgoing or self._closed:
            return
        if self._is_draining:
            self.close(Ended.STOP)
        elif self.is_muted and self._has_hung_up:
            self._look_for_end()
        elif self._is_behind:
            return
        elif self._gone is not None:
            self.close(self._gone)
        elif self._has_hung_up:
            self._loop.call_soon(self._read_rest)

    def refuse(self, reason: str) -> None:
        """End it, with what is on its way to the client; the reason goes to the log, if few are refused."""
        self._say_refused(reason)
        self.ended = Ended.REFUSED
        if self._outgoing:
            self._is_draining = True
            self._write()
            self._end_if_idle()
        else:
            self.close(Ended.REFUSED)

    def refuse_after_response(self, reason: str) -> None:
        """End it once the response that is being made is out; the reason goes to the log."""
        self._say_refused(reason)
        self.ended = Ended.REFUSED
        self._is_draining = True

    def _say_refused(self, reason: str) -> None:
        self._refusals.say(f"{self.peer}: {reason}", self._loop.time())

    def limit_frames(self, max_bytes: int, setting: str) -> None:
        """Take no larger requests from now on, by the setting of that name."""
        self._frames.limit(max_bytes, setting)

    def hold_apart(self, strangers: Admission) -> None:
        """Take memory from their share, until :meth:`share_memory`."""
        self._admission.join(strangers)

    def share_memory(self) -> None:
        """Take memory where all do that have logged in."""
        self._admission.join(self._admission_of_all)

    def close(self, why: Ended) -> None:
        if self._closed:
            return
        self._closed = True
        self._tell_gone()
        self.ended = self.ended or why
        self._read_no_more()
        self._hang_ups.forget(self._fd)
        if self._is_writing:
            self._is_writing = False
            self._loop.remove_writer(self._fd)
        self._admission.forget()
        if self._unmuting is not None:
            self._unmuting.cancel()
            self._unmuting = None
        if self._task is not None:
            # In the next turn: a task that is cancelled before its first step leaves its handler's coroutine behind.
            self._loop.call_soon(self._task.cancel)
        else:
            self._frames.rest()
        if self._unsent:
            self._account(self._clocks.monotonic_ns())
        self.request = None
        self._channel.close()
        self._on_close(self)
