"""One client's connection: bytes in, one request at a time, answers out in order.

Owns its socket, its receive buffer and what is done next; ``frame_room`` holds the memory of large requests, ``outbox``
the answers on their way. It reads straight from the socket (network facts §5.4). While a request waits or an answer is
stuck, the next frame is not served, so a slow client holds one answer and nothing else. Must not know any API.
"""

import asyncio
import itertools
import logging
import socket
from collections.abc import Awaitable, Callable, Sized
from enum import StrEnum
from time import perf_counter_ns, time_ns
from typing import TYPE_CHECKING

from lamina.broker.network.admission import Admission
from lamina.broker.network.frame_room import FrameRoom
from lamina.broker.network.outbox import Outbox, drop
from lamina.broker.network.service import Answer, ConnectionRefused, Service
from lamina.wire.frames import BASE_BUFFER_BYTES, FrameError, FrameSplitter
from lamina.wire.primitives import MalformedRequest

if TYPE_CHECKING:
    from lamina.broker.requests.router import Request

logger = logging.getLogger(__name__)

_REQUESTS_AT_A_TIME = 32
_TURN_NS = 1_000_000
"""Requests that came together are served for so long, then others have their turn: one may roll several logs."""
_ANSWERS_AT_A_TIME_BYTES = 256 * 1024
"""Small requests that came together may ask for large answers: no more is made than this before it is sent."""

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


class Connection:
    __slots__ = (
        "_arrived_ns",
        "_closed",
        "_fd",
        "_frames",
        "_is_behind",
        "_is_draining",
        "_is_reading",
        "_is_writing",
        "_loop",
        "_on_close",
        "_outbox",
        "_received_ns",
        "_room",
        "_service",
        "_socket",
        "_task",
        "_unsent",
        "active_at",
        "bytes_in",
        "bytes_out",
        "client_id",
        "client_software",
        "ended",
        "id",
        "listener_name",
        "opened_at_ms",
        "peer",
        "request",
        "requests",
    )

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        accepted: socket.socket,
        peer: str,
        listener_name: str,
        service: Service,
        admission: Admission,
        max_frame_bytes: int,
        on_close: "Callable[[Connection], None]",
    ) -> None:
        self.id = next(_numbers)
        self.peer = peer
        self.listener_name = listener_name
        self.client_software = ""
        self.client_id: str | None = None
        """What the last request said."""
        self.opened_at_ms = time_ns() // 1_000_000
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
        """Requests whose answers are not all out."""
        self._arrived_ns = 0
        """When the first bytes of the next frame came; 0 when none are there."""
        self._received_ns = 0
        self._loop = loop
        self._socket = accepted
        self._fd = accepted.fileno()
        self._service = service
        self._frames = FrameSplitter(max_frame_bytes)
        self._room = FrameRoom(admission, self._frames)
        self._outbox = Outbox(accepted)
        self._task: asyncio.Future[Answer] | None = None
        self._is_reading = False
        self._is_writing = False
        self._is_behind = False
        self._is_draining = False
        self._closed = False
        self._on_close = on_close

    def start(self) -> None:
        self._read_more()

    @property
    def is_waiting(self) -> bool:
        """Whether the client waits for the broker: for an answer, or for room for its request."""
        return self._task is not None or self._room.is_waited_for

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
        if self._task is not None or self._outbox or self._is_behind:
            self._look_for_end()
            return
        try:
            frame_bytes = self._frames.pending_frame_bytes
            if not frame_bytes:
                self._arrived_ns = 0
            elif frame_bytes > BASE_BUFFER_BYTES and not self._has_room(frame_bytes):
                self._read_no_more()
                return
            count = self._socket.recv_into(self._frames.buffer_for_recv())
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self.close(Ended.ERROR)
            return
        except FrameError as error:
            self._refuse(str(error))
            return
        if count == 0:
            self.close(Ended.CLIENT)
            return
        now_ns = perf_counter_ns()
        self.active_at = self._loop.time()
        self.bytes_in += count
        self._received_ns = now_ns
        if not self._arrived_ns:
            self._arrived_ns = now_ns
        self._frames.received(count)
        self._serve_frames(now_ns)

    def _has_room(self, frame_bytes: int) -> bool:
        return self._room.take(frame_bytes, self._loop.time(), self._found_room)

    def is_dawdling(self, now: float) -> bool:
        """Whether a large request has had more than enough time to arrive; its room is wanted by others."""
        return self._task is None and self._room.is_overdue(now)

    def _found_room(self) -> None:
        self.active_at = self._loop.time()
        self._read_more()

    def _look_for_end(self) -> None:
        """While a request is under way: notice that the client is gone, and leave what it sent for later."""
        try:
            if self._socket.recv(1, socket.MSG_PEEK):
                self._read_no_more()
            else:
                self.close(Ended.CLIENT)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self.close(Ended.ERROR)

    # Serving

    def _serve_frames(self, now_ns: int) -> None:
        """Serve frames that are there, until one has to wait or others should have their turn.

        Answers that come at once leave together.
        """
        answers: list[Sized] = []
        answers_bytes = served = 0
        turn_ends_ns = now_ns + _TURN_NS
        arrived_ns, received_ns, unsent = self._arrived_ns, self._received_ns, self._unsent
        room = self._room
        try:
            for frame in self._frames.frames():
                answer = self._service.serve(self, frame)
                request = self.request
                assert request is not None
                request.arrived_ns = arrived_ns
                request.received_ns = arrived_ns = received_ns
                request.began_ns = now_ns
                request.size_bytes = len(frame)
                if answer is not None and not isinstance(answer, list):
                    self._wait_for(answer)
                    break
                request.ended_ns = now_ns = perf_counter_ns()
                unsent.append(request)
                if room.held_bytes:
                    room.give_back(keeps_buffer=not self._closed)
                served += 1
                if answer is not None:
                    answers += answer
                    answers_bytes += len(answer[0]) if len(answer) == 1 else sum(map(len, answer))
                enough = served == _REQUESTS_AT_A_TIME or answers_bytes >= _ANSWERS_AT_A_TIME_BYTES
                if enough or now_ns >= turn_ends_ns:
                    self._is_behind = True
                    self._loop.call_soon(self._go_on)
                    break
        except (FrameError, MalformedRequest, ConnectionRefused) as error:
            self._outbox.add(answers)
            self._refuse(str(error))
            return
        except Exception as error:
            # A fault of ours: without an answer to give, an end is better than a client that waits for ever.
            logger.error("%s: a request failed", self.peer, exc_info=error)
            self._service.count_unexpected()
            drop(answers)
            self.close(Ended.FAILURE)
            return
        if answers:
            self.bytes_out += answers_bytes
            self._outbox.add(answers)
            self._write()
        elif unsent:
            self._settle(now_ns)
        self._drain_if_idle()

    def _wait_for(self, answer: Awaitable[Answer]) -> None:
        self._task = asyncio.ensure_future(answer, loop=self._loop)
        self._task.add_done_callback(self._answered)

    def _answered(self, task: "asyncio.Future[Answer]") -> None:
        self._task = None
        if self._room.held_bytes:
            self._room.give_back(keeps_buffer=not self._closed)
        if task.cancelled():
            self.close(Ended.FAILURE)
            return
        error = task.exception()
        if error is not None:
            if isinstance(error, MalformedRequest | ConnectionRefused):
                self._refuse(str(error))
            else:
                logger.error("%s: an answer failed", self.peer, exc_info=error)
                self._service.count_unexpected()
                self.close(Ended.FAILURE)
            return
        self.active_at = self._loop.time()
        answer = task.result()
        if self._closed:
            drop(answer or ())
            return
        if self.request is not None:
            self.request.ended_ns = perf_counter_ns()
            self._unsent.append(self.request)
        if answer is not None:
            self.bytes_out += sum(map(len, answer))
            self._outbox.add(answer)
        self._write()
        self._go_on()

    def _settle(self, sent_ns: int) -> None:
        """Everything is out: account for it."""
        self.requests += len(self._unsent)
        self._service.settle(self._unsent, sent_ns)
        self._unsent.clear()

    def _go_on(self) -> None:
        """Serve what came in meanwhile, once the last answer is out; nothing new on a connection that ends."""
        if self._is_draining:
            self._drain_if_idle()
        elif not self._closed and not self._outbox and self._task is None:
            now_ns = perf_counter_ns()
            if not self._is_behind:
                # It stood behind the client's own last request: that is no time of its own.
                self._arrived_ns = self._received_ns = now_ns
            self._is_behind = False
            self._read_more()
            self._serve_frames(now_ns)

    # Writing

    def _write(self) -> None:
        try:
            self._outbox.send()
        except (BlockingIOError, InterruptedError):
            if not self._is_writing:
                self._is_writing = True
                self._loop.add_writer(self._fd, self._writable)
        except OSError:
            self.close(Ended.ERROR)
        else:
            if self._unsent:
                self._settle(perf_counter_ns())

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
        self._drain_if_idle()

    def _drain_if_idle(self) -> None:
        if self._is_draining and self._task is None and not self._outbox:
            self.close(Ended.STOP)

    def _refuse(self, reason: str) -> None:
        logger.warning("%s: %s", self.peer, reason)
        self.ended = Ended.REFUSED
        if self._outbox:
            self._is_draining = True
            self._write()
            self._drain_if_idle()
        else:
            self.close(Ended.REFUSED)

    def close(self, why: Ended) -> None:
        if self._closed:
            return
        self._closed = True
        self.ended = self.ended or why
        self._read_no_more()
        if self._is_writing:
            self._is_writing = False
            self._loop.remove_writer(self._fd)
        self._room.forget()
        if self._task is not None:
            self._task.cancel()
        self._outbox.drop()
        if self._unsent:
            self._settle(perf_counter_ns())
        self.request = None
        self._socket.close()
        self._on_close(self)
