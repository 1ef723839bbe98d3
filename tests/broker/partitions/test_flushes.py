"""Flushes on threads: each is counted, whatever becomes of it."""

from pathlib import Path

from lamina.broker.counters import Place
from lamina.broker.partitions.flushes import Flushes
from tests.broker.in_process import InProcessBroker


def test_a_flush_with_a_fault_of_ours_is_counted(tmp_path: Path) -> None:
    broker = InProcessBroker(tmp_path / "data", {})
    done = broker.parts.loop.create_future()

    def fail() -> None:
        raise RuntimeError("no such luck")

    Flushes(broker.parts.threads, broker.parts.counters, broker.parts.clocks).run(fail, done.set_result)
    assert isinstance(broker.parts.loop.run_until_complete(done), OSError)
    assert broker.parts.counters.unexpected == {Place.PARTITION: 1}
    assert sum(broker.parts.counters.flushes.counts) == 1
    broker.close()
