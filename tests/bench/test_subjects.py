"""Brokers and all below them are gone after a run."""

import subprocess

from bench.family import family_of, parents
from bench.subjects import kill_all
from tests.bench.idle_broker import IdleBroker


class BrokerWithChild(IdleBroker):
    """A process with another below it, which outlives it if nobody sees to that."""

    def launch(self) -> None:
        self._process = subprocess.Popen(
            ["sh", "-c", "sleep 1000 & echo ready; wait"], stdout=subprocess.PIPE, start_new_session=True
        )
        assert self._process.stdout is not None
        self._process.stdout.readline()
        self.is_running = True

    @property
    def process_id(self) -> int:
        return self._process.pid

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()
        self.is_running = False


def test_what_is_below_a_broker_goes_with_it() -> None:
    broker = BrokerWithChild("broker", [])
    broker.launch()
    family = family_of(broker.process_id, parents())
    assert len(family) == 2
    kill_all([broker])
    assert not parents().keys() & set(family)
