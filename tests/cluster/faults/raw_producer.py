"""A producer on one connection to one broker, which tries nothing twice: what exactly does that broker answer?"""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from lamina.clocks import SYSTEM_CLOCKS
from lamina.peer.addresses import parse_bootstrap
from tests.broker.raw import PRODUCE, PRODUCE_VERSION, Closed, RawClient, batch_of, produce_request
from tests.cluster.faults.story import Story
from tests.history.events import Partition, Send, SendOutcome

NO_ERROR, NOT_LEADER_OR_FOLLOWER, REQUEST_TIMED_OUT, NOT_ENOUGH_REPLICAS = 0, 6, 7, 19
NO_ANSWER = -2
"""The connection ended, or nothing came in time."""
_ANSWER_SECONDS = 60.0
_TIMEOUT_MS = 1000
_BETWEEN_SECONDS = 0.05


class Address(NamedTuple):
    """Of a broker, as its clients reach it."""

    text: str

    def connect(self) -> socket.socket:
        return socket.create_connection(parse_bootstrap(self.text)[0], _ANSWER_SECONDS)


class RawProducer:
    """``acks`` are 1 or -1. What the leader alone acknowledges need not stay."""

    def __init__(self, address: str, partition: Partition, acks: int, name: str, story: Story) -> None:
        self.sends: list[Send] = []
        self.errors: list[int] = []
        """Of each send; 0 is none."""
        self._partition = partition
        self._acks = acks
        self._name = name
        self._story = story
        self._began: list[tuple[bytes, float]] = []
        self._client = RawClient(Address(address))

    def send(self) -> None:
        """Wait for nothing."""
        topic, index = self._partition
        value = f"{self._name} {len(self.sends) + len(self._began)}".encode()
        batch = batch_of((None, value), now_ms=SYSTEM_CLOCKS.now_ms())
        request = produce_request(topic, batch, partition=index, acks=self._acks, timeout_ms=_TIMEOUT_MS)
        self._began.append((value, self._story.now_ms()))
        self._client.begin(request)

    def answer(self) -> int:
        """To the first send that has none yet; returns its error."""
        value, began_ms = self._began.pop(0)
        try:
            told = self._client.answer(PRODUCE, PRODUCE_VERSION).responses[0].partition_responses[0]
            error, offset = int(told.error_code), int(told.base_offset)
        except (Closed, OSError):
            error, offset = NO_ANSWER, -1
        outcome = SendOutcome.UNKNOWN
        if error == NO_ERROR:
            outcome = SendOutcome.ACKED
        elif error in (NOT_LEADER_OR_FOLLOWER, NOT_ENOUGH_REPLICAS) and self._acks == 1:
            outcome = SendOutcome.FAILED
        at = offset if outcome is SendOutcome.ACKED else None
        is_lasting, ended_ms = self._acks == -1, self._story.now_ms()
        self.errors.append(error)
        self.sends.append(
            Send(self._name, self._partition, value, outcome, at, began_ms, ended_ms, is_lasting=is_lasting)
        )
        return error

    def close(self) -> None:
        self._client.socket.close()

    @property
    def acked(self) -> list[Send]:
        return [send for send in list(self.sends) if send.outcome is SendOutcome.ACKED]

    @contextmanager
    def sending(self) -> Iterator["RawProducer"]:
        """One record after the other, from a thread of its own."""
        stopping = threading.Event()

        def send_on() -> None:
            while not stopping.wait(_BETWEEN_SECONDS):
                self.send()
                if self.answer() == NO_ANSWER:
                    return

        thread = threading.Thread(target=send_on, name=self._name, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            stopping.set()
            thread.join()
            self.close()
