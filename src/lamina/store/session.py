"""Is this broker's session with the cluster store proven?

Owns the lease: the session in which the broker is registered counts as proven as long as the time since the sending
of the last request that was answered in it is below the negotiated timeout, for before that nobody can have been given
the broker's place. Time is that since boot, because others do not wait while this machine sleeps. Must not know what a
broker does without a proof.
"""

import logging
import threading
from dataclasses import dataclass

from lamina.clocks import SYSTEM_CLOCKS, Clocks
from lamina.store.interface import ClusterStore, StoreAway, StoreError

PROBES_PER_TIMEOUT = 6
GHOST_TIMEOUTS = 1.5
"""By then a session has ended: the servers look for those once in a tick, which is half of the shortest timeout."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Proof:
    session_id: int
    sent_ms: int


class Session:
    """May be read on any thread. ``probe`` is called by a :class:`SessionProber`, or by whoever drives time."""

    def __init__(self, store: ClusterStore, clocks: Clocks = SYSTEM_CLOCKS) -> None:
        self._store = store
        self._clocks = clocks
        self.held = 0
        """The session that owns the broker's registration; 0 for none."""
        self._proof = _Proof(0, 0)
        self.is_answered = True
        """Whether the store answered when it was asked last."""
        self.was_proven = False
        """Whether it ever was: until then the broker is still starting, and nothing is wrong."""

    @property
    def negotiated_timeout_ms(self) -> int:
        return self._store.negotiated_timeout_ms

    def hold(self, session_id: int) -> None:
        """From now on only this session counts: the one that owns the broker's registration. 0 for none."""
        self.held = session_id

    def is_proven(self, now_boottime_ms: int) -> bool:
        # One read of each: the prober replaces the proof on a thread of its own.
        proof, held = self._proof, self.held
        return held != 0 and proof.session_id == held and now_boottime_ms - proof.sent_ms < self.negotiated_timeout_ms

    def probe(self) -> None:
        """Ask the store, and keep the proof if it answers; raises :class:`StoreError` if it does not."""
        sent_ms = self._clocks.boottime_ms()
        try:
            session_id = self._store.sync()
        except StoreAway:
            self.is_answered = False
            raise
        self._proof = _Proof(session_id, sent_ms)
        self.was_proven |= session_id == self.held
        self.is_answered = True


class SessionProber:
    """A thread that probes six times in each timeout. An outage is one line in the log, and so is its end."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="session-prober", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Probe no more; one that waits for an answer says nothing of it."""
        self._stopping.set()

    def _run(self) -> None:
        """The first at once: a broker that has just come into the cluster may acknowledge alone."""
        seconds = 0.0
        while not self._stopping.wait(seconds):
            seconds = self._session.negotiated_timeout_ms / PROBES_PER_TIMEOUT / 1000
            was_answered = self._session.is_answered
            try:
                self._session.probe()
            except StoreAway as error:
                if was_answered and not self._stopping.is_set():
                    log.warning("%s: no metadata changes until it answers, and acks 0 and 1 are refused soon", error)
            except StoreError as error:
                log.debug("nothing is proven now: %s", error)
            else:
                if not was_answered:
                    log.warning("ZooKeeper answers again")
