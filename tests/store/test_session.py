"""The lease: how long a session counts as proven."""

import pytest

from lamina.store.interface import SessionLost, StoreError
from lamina.store.session import Session, SessionProber
from tests.driven_clock import DrivenClock
from tests.store.ensembles import TIMEOUT_MS, RealEnsemble, wait_until
from tests.store.memory_zookeeper import MemoryZooKeeper


class Case:
    def __init__(self) -> None:
        self.zookeeper = MemoryZooKeeper()
        self.store = self.zookeeper.connect(timeout_ms=6000)
        self.clock = DrivenClock()
        self.clock.monotonic_ms = 0
        self.session = Session(self.store, self.clock.clocks)
        self.session.hold(self.store.session_id)


def test_a_session_is_proven_for_one_timeout_after_the_sending_of_what_was_answered() -> None:
    case = Case()
    assert not case.session.is_proven(0)
    case.clock.monotonic_ms = 1000
    case.session.probe()
    assert case.session.is_proven(1000)
    assert case.session.is_proven(6999)
    assert not case.session.is_proven(7000)


def test_the_time_that_counts_is_that_of_the_sending_not_that_of_the_answer() -> None:
    case = Case()
    times = iter([1000])
    case.clock.monotonic_ms = lambda: next(times)
    case.session.probe()
    assert not case.session.is_proven(7000)


def test_without_an_answer_nothing_is_proven_any_longer() -> None:
    case = Case()
    case.session.probe()
    case.store.is_connected = False
    case.clock.monotonic_ms = 5000
    with pytest.raises(StoreError):
        case.session.probe()
    assert case.session.is_proven(5999)
    assert not case.session.is_proven(6000)


def test_another_session_proves_nothing_until_the_broker_is_registered_in_it() -> None:
    case = Case()
    case.session.probe()
    case.zookeeper.expire(case.store)
    with pytest.raises(SessionLost):
        case.session.probe()
    case.session.probe()
    assert not case.session.is_proven(0)
    case.session.hold(case.store.session_id)
    assert case.session.is_proven(0)


def test_no_session_at_all_is_never_proven() -> None:
    case = Case()
    case.session.hold(0)
    case.session.probe()
    assert not case.session.is_proven(0)


def test_a_session_that_was_proven_once_can_be_lost() -> None:
    case = Case()
    case.session.hold(0)
    case.session.probe()
    assert not case.session.was_proven
    case.session.hold(case.store.session_id)
    case.session.probe()
    case.session.hold(0)
    assert case.session.was_proven


def test_a_prober_proves_a_real_session_again_and_again(real_ensemble: RealEnsemble) -> None:
    store = real_ensemble.connect()
    clock = DrivenClock()
    clock.monotonic_ms = 0
    session = Session(store, clock.clocks)
    assert session.negotiated_timeout_ms == TIMEOUT_MS
    session.hold(store.session_id)
    prober = SessionProber(session)
    prober.start()
    try:
        wait_until(lambda: session.is_proven(0))
        clock.monotonic_ms = TIMEOUT_MS
        wait_until(lambda: session.is_proven(TIMEOUT_MS))
    finally:
        prober.stop()


def test_a_session_is_proven_as_soon_as_somebody_probes_it() -> None:
    store = MemoryZooKeeper().connect(timeout_ms=10**9)
    session = Session(store, DrivenClock().clocks)
    session.hold(store.session_id)
    prober = SessionProber(session)
    prober.start()
    try:
        wait_until(lambda: session.is_proven(0))
    finally:
        prober.stop()
