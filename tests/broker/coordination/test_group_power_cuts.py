"""Groups over real logs, through power cuts: what a member or a commit was told before the cut is so after it.

Everything is flushed before it is acknowledged. The power is cut after any operation on the disk, in the middle of a
request or after it; of what was not acknowledged either the old or the new is there.
"""

import os
from pathlib import Path
from random import Random
from typing import Any

import pytest

from lamina.broker.partitions.partition import Partition
from lamina.coordinators.records.consumer_protocol import write_assignment
from lamina.errors import ErrorCode
from tests.broker.power_cuts import PowerCutBroker
from tests.broker.requests.handlers.groups_world import DELETE, JOIN, LEAVE, SYNC, Groups

pytestmark = pytest.mark.random

STORIES = max(int(os.environ.get("LAMINA_STORIES", "6")) // 10, 3)
"""Lives of a few groups; `make faults` tells many more."""
STEPS = 25
SETTINGS = {"offsets.topic.num.partitions": "2", "group.initial.rebalance.delay.ms": "0"}
SIMPLE = ("s1", "s2", "s3")
CLASSIC, CONSUMER = "classic", "consumer"
GONE = -1


class Story:
    """Some groups, and what they were told last."""

    def __init__(self, root: Path, seed: int) -> None:
        self.rng = Random(seed)
        self.broker = PowerCutBroker(root, SETTINGS)
        self.broker.create("t", partitions=2)
        self.groups = Groups(self.broker).found()
        self.offsets: dict[tuple[str, int], int] = {}
        self.generation: tuple[str, int] | None = None
        """The member of the classic group and its generation."""
        self.epoch: tuple[str, int] | None = None
        """The member of the consumer group and its epoch."""
        self.number = 0

    def live(self) -> None:
        steps = [self.commit] * 4 + [self.forget] + [self.join, self.leave] + [self.join_consumer, self.leave_consumer]
        for _ in range(STEPS):
            before = len(self.broker.disk.ops)
            was = (dict(self.offsets), self.generation, self.epoch)
            self.rng.choice(steps)()
            fate = self.rng.random()
            if fate < 0.25:
                self.cut(len(self.broker.disk.ops))
                self.check()
            elif fate < 0.5:
                self.cut(self.rng.randint(before, len(self.broker.disk.ops)))
                self.check_either(*was)
        self.cut(len(self.broker.disk.ops))
        self.check()

    def cut(self, prefix: int) -> None:
        self.broker.cut_power(prefix, self.rng)

    # Steps

    def commit(self) -> None:
        self.number += 1
        group, partition = self.rng.choice(SIMPLE), self.rng.randint(0, 1)
        assert self.groups.commit(("t", partition, self.number), group_id=group) == [0]
        self.offsets[group, partition] = self.number

    def forget(self) -> None:
        group = self.rng.choice(SIMPLE)
        (response,) = self.broker.ask(DELETE, 2, groups_names=[group]).results
        is_there = any(key[0] == group for key in self.offsets)
        assert response.error_code == (0 if is_there else ErrorCode.GROUP_ID_NOT_FOUND)
        self.offsets = {key: offset for key, offset in self.offsets.items() if key[0] != group}

    def join(self) -> None:
        """Alone in the group: whoever was there goes first."""
        if self.generation is not None:
            self.leave()
        joined = self.broker.ask(JOIN, 3, **self.groups.join_facts("", group_id=CLASSIC))
        assert joined.error_code == 0
        assignment = {"member_id": joined.member_id, "assignment": write_assignment({"t": (0, 1)}, 1)}
        facts: dict[str, Any] = {"generation_id": joined.generation_id, "member_id": joined.member_id}
        synced = self.broker.ask(SYNC, 3, group_id=CLASSIC, assignments=[assignment], **facts)
        assert synced.error_code == 0
        self.generation = (joined.member_id, joined.generation_id)

    def leave(self) -> None:
        if self.generation is not None:
            members = [{"member_id": self.generation[0]}]
            assert self.broker.ask(LEAVE, 4, group_id=CLASSIC, members=members).error_code == 0
            self.generation = None

    def join_consumer(self) -> None:
        if self.epoch is None:
            self.number += 1
            member_id = f"m{self.number}"
            joined = self.groups.consumer(member_id, 0, "t", group_id=CONSUMER)
            assert joined.error_code == 0
            self.epoch = (member_id, joined.member_epoch)

    def leave_consumer(self) -> None:
        if self.epoch is not None:
            assert self.groups.consumer(self.epoch[0], -1, group_id=CONSUMER).error_code == 0
            self.epoch = None

    # What must be so

    def check(self) -> None:
        for group in SIMPLE:
            for partition in range(2):
                assert self.offset(group, partition) == self.offsets.get((group, partition), GONE)
        assert self.is_in_generation(self.generation)
        assert self.is_in_epoch(self.epoch)

    def check_either(
        self,
        offsets: dict[tuple[str, int], int],
        generation: tuple[str, int] | None,
        epoch: tuple[str, int] | None,
    ) -> None:
        """The last step happened or did not; from here on that is what holds."""
        for key in [(group, partition) for group in SIMPLE for partition in range(2)]:
            found = self.offset(*key)
            assert found in (offsets.get(key, GONE), self.offsets.get(key, GONE)), key
            offsets[key] = found
        self.offsets = {key: offset for key, offset in offsets.items() if offset != GONE}
        self.generation = self._either(self.is_in_generation, generation, self.generation)
        self.epoch = self._either(self.is_in_epoch, epoch, self.epoch)

    def _either(self, is_in: Any, old: tuple[str, int] | None, new: tuple[str, int] | None) -> tuple[str, int] | None:
        if new is not None and is_in(new):
            return new
        if old is not None and is_in(old):
            return old
        assert new != old or new is None, "a member that nobody removed is gone"
        return None

    def offset(self, group: str, partition: int) -> int:
        (topic,) = self.groups.fetch(("t", partition), group_id=group).topics
        return int(topic.partitions[0].committed_offset)

    def is_in_generation(self, generation: tuple[str, int] | None) -> bool:
        return generation is None or self.groups.heartbeat(*generation, group_id=CLASSIC) == 0

    def is_in_epoch(self, epoch: tuple[str, int] | None) -> bool:
        if epoch is None:
            return True
        beat = self.groups.consumer(*epoch, group_id=CONSUMER)
        return (beat.error_code, beat.member_epoch) == (0, epoch[1])


@pytest.mark.parametrize("seed", range(STORIES))
def test_what_a_group_was_told_before_a_power_cut_is_so_after_it(tmp_path: Path, seed: int) -> None:
    story = Story(tmp_path, seed)
    story.live()
    story.broker.close()


def test_a_coordinator_that_does_not_wait_for_the_disk_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Partition, "is_flushed", lambda _: True)
    for seed in range(20):
        story = Story(tmp_path / str(seed), seed)
        try:
            story.live()
        except AssertionError:
            return
        finally:
            story.broker.close()
    pytest.fail("no power cut showed it")
