"""Partitions that move between log directories while the power is cut, at any operation of the disk."""

import os
from collections.abc import Mapping
from concurrent.futures import Executor
from functools import partial
from pathlib import Path
from random import Random

import pytest

from lamina.log.index_rebuild import IndexesLost
from tests.broker.moving.two_directories import ALTER_REPLICA_LOG_DIRS
from tests.broker.power_cuts import Interleaved, PowerCutBroker

pytestmark = pytest.mark.random

STORIES = range(max(int(os.environ.get("LAMINA_STORIES", "6")), 1))
NAMES = ("one", "two")


class TwoDirectories(PowerCutBroker):
    def __init__(self, root: Path, settings: Mapping[str, str], rng: Random) -> None:
        self._rng = rng
        super().__init__(root, settings)

    def _new_executor(self, count: int) -> Executor:
        return Interleaved(self._loop, self._rng, count)

    def _place(self, path: Path) -> None:
        super()._place(path)
        self.paths = [str(path / "disk" / name) for name in NAMES]
        self._given["log.dirs"] = ",".join(self.paths)

    @property
    def end_offset(self) -> int:
        return self.parts.partitions.get("t", 0).log.log_end_offset

    @property
    def place(self) -> int:
        return self.paths.index(self.parts.directories.of["t", 0].path)

    def move(self) -> int:
        """To the other directory, to the end. Returns which one that is."""
        number = 1 - self.place
        wanted = {"path": self.paths[number], "topics": [{"name": "t", "partitions": [0]}]}
        response = self.ask(*ALTER_REPLICA_LOG_DIRS, dirs=[wanted])
        assert response.results[0].partitions[0].error_code == 0
        return number

    def finish_moves(self) -> None:
        self.run_until(lambda: not self.parts.moves.under_way)

    def can_read(self, offset: int) -> bool:
        """False while an index that the power cut took is being made again."""
        try:
            lease = self.parts.partitions.get("t", 0).log.read(offset, 1)
        except IndexesLost:
            return False
        assert lease is not None
        lease.give_back()
        return True

    def logs(self) -> int:
        """How many directories have the partition's name."""
        return sum(os.path.isdir(f"{path}/t-0") for path in self.paths)


def moment_of_cut(broker: TwoDirectories, before: int, rng: Random) -> int:
    """How many operations there were when the power is cut: any number, often just after a change of a name."""
    named = [number for number, op in enumerate(broker.disk.ops) if op.kind == "sync_dir" and number >= before]
    if named and rng.random() < 0.5:
        return rng.choice(named) + 1
    return rng.randint(before, len(broker.disk.ops))


@pytest.mark.parametrize("seed", STORIES)
def test_after_a_power_cut_one_directory_has_all_that_was_acknowledged(tmp_path: Path, seed: int) -> None:
    rng = Random(seed)
    broker = TwoDirectories(tmp_path, {"replica.fetch.max.bytes": "300", "log.segment.delete.delay.ms": "0"}, rng)
    broker.create("t")
    end = 0
    for _ in range(3):
        for _ in range(rng.randint(1, 12)):
            broker.produce("t", rng.randint(1, 4))
            if rng.random() < 0.2:
                broker.parts.partitions.get("t", 0).log.roll(broker.parts.clocks.now_ms())
            if rng.random() < 0.2:
                broker.parts.directories.of["t", 0].write_recovery_points()
        before = len(broker.disk.ops)
        acknowledged = [(before, broker.end_offset)]
        broker.move()
        while broker.parts.moves.under_way and rng.random() < 0.99:
            if rng.random() < 0.05:
                broker.produce("t", 2)
                acknowledged.append((len(broker.disk.ops), broker.end_offset))
            broker.turn()
        if rng.random() < 0.5:
            broker.finish_moves()
            broker.produce("t", 1)
            acknowledged.append((len(broker.disk.ops), broker.end_offset))
        prefix = moment_of_cut(broker, before, rng)
        broker.cut_power(prefix, rng)
        end = max(offset for ops, offset in acknowledged if ops <= prefix)
        assert broker.end_offset >= end, f"{end} was acknowledged"
        assert broker.produce("t", 1) == broker.end_offset - 1
        broker.finish_moves()
        assert broker.logs() == 1
        for offset in range(broker.end_offset):
            broker.run_until(partial(broker.can_read, offset))
    broker.close()
