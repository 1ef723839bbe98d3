"""The cluster's ZooKeeper, simulated: who has a session, whom it hears, and whose session ends.

Owns the sessions. A session lives as long as its process can be heard; one of which nothing was heard for its timeout
ends, with all that is ephemeral in it. Whatever is asked counts as heard. While the whole ensemble is away no session
ends, and each has its timeout before it afterwards. Must not know what is stored.
"""

import asyncio
from collections.abc import Sequence
from random import Random

from lamina.store import values
from lamina.store.interface import Operation, StoreError, Watcher
from lamina.store.membership import CONTROLLER_EPOCH
from tests.simulation.loop import Process, VirtualLoop
from tests.simulation.story import Story
from tests.store.memory_zookeeper import MemorySession, MemoryZooKeeper

TIMEOUT_MS = 600
_TICK_S = 0.1
_LAST_ANSWER_S = 0.1
"""How long a connection that is about to break waits for a transaction, to lose its answer."""
_NOTICE_S = (0.0001, 0.01)


class Ensemble:
    def __init__(self, loop: VirtualLoop, rng: Random, story: Story) -> None:
        self._loop = loop
        self._rng = rng
        self._story = story
        self._process = loop.new_process("zookeeper")
        self._cut_off: set[str] = set()
        self._is_away = False
        self._sessions: list[BrokerSession] = []
        self.zookeeper = MemoryZooKeeper(self._has_news)
        loop.spawn(self._process, self._end_silent_sessions())

    def connect(self, machine: str, process: Process) -> "BrokerSession":
        """Raises :class:`StoreError` where nobody answers."""
        if self._is_away or machine in self._cut_off:
            raise StoreError("ZooKeeper does not answer")
        session = BrokerSession(self, machine, process, self._loop)
        self._sessions.append(session)
        return session

    def forget(self, session: "BrokerSession") -> None:
        """It was closed."""
        if session in self._sessions:
            self._sessions.remove(session)

    def tell(self, what: str) -> None:
        self._story.tell("zookeeper", what)

    # Who is heard

    def hears(self, session_id: int) -> bool:
        """Whether a session lives, and its process is connected."""
        return any(one.session_id == session_id and one.sends_pings and not one.is_expired for one in self._sessions)

    @property
    def is_reachable(self) -> bool:
        """By everybody."""
        return not self._is_away and not self._cut_off

    @property
    def controller_epoch(self) -> int:
        found = self.zookeeper.entries.get(CONTROLLER_EPOCH)
        return 0 if found is None else values.load_number(found.value)

    def cut_off(self, machine: str) -> None:
        """The broker there cannot reach any server, and learns of it; perhaps with the answer to what it asks next."""
        self.tell(f"cannot be reached by {machine}")
        self._cut_off.add(machine)
        self._disconnect([session for session in self._sessions if session.machine == machine])

    def reach_again(self, machine: str) -> None:
        self.tell(f"can be reached by {machine} again")
        self._cut_off.discard(machine)
        self._reconnect()

    def go_away(self) -> None:
        self.tell("is away")
        self._is_away = True
        self._disconnect(self._sessions)

    def come_back(self, chance_of_loss: float) -> None:
        """Some sessions may not have survived."""
        self.tell("is back")
        self._is_away = False
        for session in list(self._sessions):
            session.heard_ns = self._loop.now_ns
            if self._rng.random() < chance_of_loss:
                self._expire(session)
        self._reconnect()

    def _disconnect(self, sessions: Sequence["BrokerSession"]) -> None:
        for session in sessions:
            session.disconnect(loses_answer=self._rng.random() < 0.5)

    def _reconnect(self) -> None:
        for session in self._sessions:
            if not self._is_away and session.machine not in self._cut_off:
                session.reconnect()

    # Sessions that end

    async def _end_silent_sessions(self) -> None:
        while True:
            await asyncio.sleep(_TICK_S)
            if not self._is_away:
                for session in list(self._sessions):
                    self._look_at(session)

    def _look_at(self, session: "BrokerSession") -> None:
        if session.sends_pings:
            session.heard_ns = self._loop.now_ns
        elif self._loop.now_ns - session.heard_ns > session.negotiated_timeout_ms * 1_000_000:
            self._expire(session)

    def _expire(self, session: "BrokerSession") -> None:
        if not session.is_expired:
            self.tell(f"ends session {session.session_id} of {session.machine}")
            self.zookeeper.expire(session)
        if session.process.is_dead:
            session.close()

    # Watches

    def _has_news(self) -> None:
        self._loop.call_later(self._rng.uniform(*_NOTICE_S), self.zookeeper.deliver, context=self._process.context)


class BrokerSession(MemorySession):
    """That of one process."""

    def __init__(self, ensemble: Ensemble, machine: str, process: Process, loop: VirtualLoop) -> None:
        super().__init__(ensemble.zookeeper, TIMEOUT_MS)
        self._ensemble = ensemble
        self._loop = loop
        self.machine = machine
        self.process = process
        self.heard_ns = loop.now_ns
        self._watchers: list[Watcher] = []

    @property
    def sends_pings(self) -> bool:
        return self.is_connected and not self.process.is_dead and not self.process.is_paused

    def disconnect(self, *, loses_answer: bool) -> None:
        if loses_answer and self.sends_pings:
            self.loses_next_answer = True
            self._loop.call_later(_LAST_ANSWER_S, self._cut_late)
        else:
            self._cut()

    def _cut_late(self) -> None:
        if self.loses_next_answer:
            self.loses_next_answer = False
            self._cut()

    def reconnect(self) -> None:
        self.loses_next_answer = False
        if not self.is_connected:
            self.is_connected = True
            self._call_watchers()

    def _cut(self) -> None:
        self.is_connected = False
        self._call_watchers()

    def _call_watchers(self) -> None:
        """After trouble with the session changes may have been missed."""
        for watcher in self._watchers:
            self._loop.call_in(self.process, watcher)

    # What a broker asks

    def transact(self, operations: Sequence[Operation]) -> None:
        loses_answer = self.loses_next_answer
        try:
            super().transact(operations)
        finally:
            if loses_answer and not self.loses_next_answer:
                self._cut()

    def watch(self, path: str, watcher: Watcher) -> None:
        self._watchers.append(watcher)

        def tell() -> None:
            if self.is_connected:
                self._loop.call_in(self.process, watcher)

        super().watch(path, tell)

    def close(self) -> None:
        super().close()
        self._ensemble.forget(self)

    def _reach(self) -> None:
        super()._reach()
        self.heard_ns = self._loop.now_ns
