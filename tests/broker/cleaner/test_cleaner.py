"""The cleaner's rounds: what is chosen, what becomes of a pass, and who may stop it (facts 10-32, 88-98)."""

import asyncio
import errno
import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from lamina.broker.cleaner.candidates import CleaningCandidate
from lamina.broker.cleaner.engine_child import Progress
from lamina.broker.cleaner.history import Outcome
from lamina.broker.cleaner.partition_states import State
from lamina.broker.counters import Place
from lamina.cleaning.contract import Plan
from lamina.cleaning.engine_messages import Answer, Failure
from lamina.cleaning.install import installing
from lamina.image.changes import mark_deleted, set_configs
from lamina.image.image import ConfigResource, ResourceType
from lamina.log.steps import run_steps
from lamina.settings.log_config import LogConfig
from lamina.topic_partition import TopicPartition
from tests.broker.cleaner.cleaning import CleaningBroker

CLEANED = [b"a=2", b"b=2", b"c=last"]
DIRTY = [b"a=0", b"b=0", b"a=1", b"b=1", b"a=2", b"b=2", b"c=last"]


def outcomes(cleaning: CleaningBroker) -> list[Outcome]:
    return [record.outcome for record in cleaning.cleaner.history.records]


async def configure(cleaning: CleaningBroker, name: str, **configs: str) -> None:
    given = {key.replace("_", "."): value for key, value in configs.items()}
    resource = ConfigResource(ResourceType.TOPIC, name)
    await cleaning.parts.metadata.change(lambda image: set_configs(image, resource, given))


# A pass


def test_a_dirty_log_is_cleaned_up_to_its_active_segment_and_checkpointed(cleaning: CleaningBroker) -> None:
    """Facts 22, 39 and 88."""
    partition = cleaning.compacted()
    assert cleaning.clean()
    assert cleaning.texts() == CLEANED
    assert cleaning.checkpoint() == partition.log.segments.active.base_offset == 6
    assert cleaning.folders() == []
    path = Path(cleaning.parts.directories[0].path, "cleaner-offset-checkpoint")
    assert path.read_text() == "0\n1\nt 0 6\n"
    assert outcomes(cleaning) == [Outcome.CLEANED]


def test_a_log_without_new_dirty_bytes_is_not_touched_again(cleaning: CleaningBroker) -> None:
    """Fact 25."""
    cleaning.compacted()
    assert cleaning.clean()
    assert not cleaning.clean()
    cleaning.write("t", b"a=9")
    assert not cleaning.clean()
    assert len(cleaning.engine.plans) == 1


def test_after_a_restart_the_checkpoint_still_says_what_is_clean(cleaning: CleaningBroker) -> None:
    cleaning.compacted()
    cleaning.clean()
    cleaning.restart()
    cleaning.cleaner.engine = cleaning.engine
    assert cleaning.texts() == CLEANED
    assert not cleaning.clean()


def test_the_filthiest_logs_come_first_and_those_below_their_ratio_not_at_all(cleaning: CleaningBroker) -> None:
    """Facts 20 and 23."""
    cleaning.compacted("half")
    cleaning.compacted("little", min_cleanable_dirty_ratio="0.6")
    cleaning.clean()
    for _ in range(2):
        cleaning.write("half", b"a=x", b"b=y", b"c=z")
    cleaning.roll("half")
    cleaning.write("little", b"a=x")
    cleaning.roll("little")
    cleaning.compacted("new")
    del cleaning.engine.plans[:]
    assert 0.5 < cleaning.cleaner.search.inspect(cleaning.partition("little")).cleanable.dirty_ratio <= 0.6
    assert cleaning.clean()
    assert [plan.topic for plan in cleaning.engine.plans] == ["new", "half"]


def test_only_compacted_topics_are_candidates(cleaning: CleaningBroker) -> None:
    """Fact 10."""
    cleaning.compacted("plain", policy="delete")
    cleaning.compacted("both", policy="compact,delete")
    cleaning.clean()
    assert [plan.topic for plan in cleaning.engine.plans] == ["both"]


def test_what_is_appended_while_the_job_works_is_kept(cleaning: CleaningBroker) -> None:
    cleaning.compacted()
    log = cleaning.partition("t").log

    def meanwhile() -> None:
        log.roll(cleaning.parts.clocks.now_ms())

    cleaning.engine.meanwhile = meanwhile
    assert cleaning.clean()
    cleaning.write("t", b"d=new")
    assert cleaning.texts() == [*CLEANED, b"d=new"]
    assert cleaning.checkpoint() == 6


def test_records_that_are_too_young_stay(cleaning: CleaningBroker) -> None:
    """Fact 15: the lag."""
    cleaning.compacted(min_compaction_lag_ms=str(3_600_000))
    assert not cleaning.clean()
    assert cleaning.engine.plans == []


def test_an_overdue_log_is_cleaned_below_its_ratio(cleaning: CleaningBroker) -> None:
    """Facts 20 and 21."""
    cleaning.clock.wall_ms = now_ms = cleaning.parts.clocks.now_ms()
    cleaning.compacted(max_compaction_lag_ms="60000", min_cleanable_dirty_ratio="1.0", segment_ms="1000000")
    cleaning.roll("t")
    assert not cleaning.clean()
    cleaning.clock.wall_ms = now_ms + 60_001
    assert cleaning.clean()
    assert cleaning.cleaner.search.max_overdue_ms > 0


# Checkpoints that are no place in the log


@pytest.mark.parametrize(("checkpoint", "start"), [(1, 3), (99, 0)])
def test_a_checkpoint_outside_of_the_log_is_written_again_at_once(
    cleaning: CleaningBroker, checkpoint: int, start: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Facts 12 and 13: even if the log is not chosen."""
    partition = cleaning.compacted(min_cleanable_dirty_ratio="1.0")
    cleaning.parts.directories[0].write_cleaner_offsets({("t", 0): checkpoint})
    partition.log.advance_log_start(start)
    assert not cleaning.clean()
    assert cleaning.checkpoint() == start
    assert "counts as dirty from its start on" in caplog.text


def test_a_checkpoint_below_the_start_of_a_log_that_also_deletes_is_no_surprise(
    cleaning: CleaningBroker, caplog: pytest.LogCaptureFixture
) -> None:
    """Fact 12."""
    partition = cleaning.compacted(policy="compact,delete", min_cleanable_dirty_ratio="1.0")
    cleaning.parts.directories[0].write_cleaner_offsets({("t", 0): 1})
    partition.log.advance_log_start(3)
    cleaning.clean()
    assert cleaning.checkpoint() == 3
    assert "counts as dirty from its start on" not in caplog.text


def test_fact_13_a_checkpoint_above_the_end_of_a_log_is_a_surprise_even_where_it_also_deletes(
    cleaning: CleaningBroker, caplog: pytest.LogCaptureFixture
) -> None:
    cleaning.compacted(policy="compact,delete", min_cleanable_dirty_ratio="1.0")
    cleaning.parts.directories[0].write_cleaner_offsets({("t", 0): 99})
    cleaning.clean()
    assert cleaning.checkpoint() == 0
    assert "t-0 counts as dirty from its start on: the checkpoint 99 lies above the log end offset 7" in caplog.text


# Failing


def test_a_failed_pass_leaves_the_log_and_is_tried_again_later(cleaning: CleaningBroker) -> None:
    """Facts 90 and 91; a job that dies does not make the partition uncleanable (F9)."""
    cleaning.compacted()
    cleaning.engine.failure = lambda plan: Failure(plan.plan_id, "it died")
    assert not cleaning.clean()
    assert cleaning.texts() == DIRTY
    assert cleaning.checkpoint() == 0
    assert cleaning.folders() == []
    failed = cleaning.cleaner.failed_passes.get(("t", 0))
    assert failed is not None
    assert (failed.reason, failed.is_uncleanable) == ("it died", False)
    cleaning.engine.failure = lambda plan: None
    assert not cleaning.clean(), "it was tried again before its time"
    cleaning.cleaner.failed_passes.retry_now(("t", 0), 0)
    assert cleaning.clean()
    assert cleaning.cleaner.failed_passes.get(("t", 0)) is None
    assert outcomes(cleaning) == [Outcome.FAILED, Outcome.CLEANED]


def test_a_damaged_log_makes_only_that_partition_uncleanable(cleaning: CleaningBroker) -> None:
    """Fact 91."""
    cleaning.compacted("good")
    cleaning.compacted("bad")

    def failure(plan: Plan) -> Failure | None:
        return Failure(plan.plan_id, "damaged at position 7", is_uncleanable=True) if plan.topic == "bad" else None

    cleaning.engine.failure = failure
    assert cleaning.clean()
    assert cleaning.texts("good") == CLEANED
    assert cleaning.texts("bad") == DIRTY
    assert cleaning.cleaner.failed_passes.uncleanable() == [("bad", 0)]


def test_a_log_that_cannot_be_looked_at_ends_the_round_and_not_the_next(cleaning: CleaningBroker) -> None:
    """Fact 24."""
    cleaning.compacted("bad", max_compaction_lag_ms="1")
    cleaning.compacted("good")
    (segment, *_) = cleaning.partition("bad").log.segments
    segment._first_timestamp = None
    Path(segment.path()).unlink()
    assert not cleaning.clean()
    assert cleaning.cleaner.failed_passes.uncleanable() == [("bad", 0)]
    assert cleaning.clean()
    assert cleaning.texts("good") == CLEANED


def test_a_full_disk_fails_that_pass_alone(cleaning: CleaningBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    cleaning.compacted()
    disk = cleaning.partition("t").log.disk

    def full(_old: str, _new: str) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(disk, "link", full)
        assert not cleaning.clean()
    failed = cleaning.cleaner.failed_passes.get(("t", 0))
    assert failed is not None
    assert "No space left" in failed.reason
    assert cleaning.partition("t").log.failure is None
    cleaning.write("t", b"d=still")


def test_too_little_room_is_refused_with_the_figures(cleaning: CleaningBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    cleaning.compacted()
    monkeypatch.setattr(cleaning.partition("t").log.disk, "free_bytes", lambda _path: 123)
    assert not cleaning.clean()
    failed = cleaning.cleaner.failed_passes.get(("t", 0))
    assert failed is not None
    assert "123 are free" in failed.reason
    assert cleaning.engine.plans == []


def test_an_engine_that_raises_fails_its_plans_and_not_the_cleaner(cleaning: CleaningBroker) -> None:
    cleaning.compacted()

    async def broken(*_arguments: object) -> object:
        raise RuntimeError("a bug")

    clean, cleaning.engine.clean = cleaning.engine.clean, broken  # type: ignore[assignment, method-assign]
    assert not cleaning.clean()
    assert cleaning.cleaner.states.state(("t", 0)) is State.NONE
    assert cleaning.parts.counters.unexpected == {Place.CLEANING: 1}
    cleaning.engine.clean = clean  # type: ignore[method-assign]
    cleaning.cleaner.failed_passes.retry_now(("t", 0), 0)
    assert cleaning.clean()


def test_an_install_that_fails_unexpectedly_fails_that_pass_alone(
    cleaning: CleaningBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    cleaning.compacted()

    def broken(*_arguments: object) -> object:
        raise RuntimeError("a bug")

    with monkeypatch.context() as patch:
        patch.setattr("lamina.broker.cleaner.passes.installing", broken)
        assert not cleaning.clean()
    assert outcomes(cleaning) == [Outcome.FAILED]
    assert cleaning.texts() == DIRTY
    assert cleaning.cleaner.states.state(("t", 0)) is State.NONE
    assert cleaning.parts.counters.unexpected == {Place.CLEANING: 1}


# Side by side


def test_a_log_is_installed_while_the_job_of_another_still_works(cleaning: CleaningBroker) -> None:
    for name in ("huge", "small"):
        cleaning.compacted(name)

    async def live() -> None:
        cleaning.engine.holds["huge"] = hold = asyncio.Event()
        begun = await cleaning.cleaner.begin_round()
        while cleaning.cleaner.open_passes > 1:
            await asyncio.sleep(0)
        assert (cleaning.checkpoint("small"), cleaning.checkpoint("huge")) == (6, None)
        assert cleaning.cleaner.states.state(("huge", 0)) is State.IN_PROGRESS
        hold.set()
        assert await asyncio.gather(*begun) == [True, True]

    cleaning.run(asyncio.wait_for(live(), 30))
    assert cleaning.texts("small") == cleaning.texts("huge") == CLEANED


def test_a_round_begins_passes_beside_one_that_takes_long(cleaning: CleaningBroker) -> None:
    cleaning.compacted("huge")

    async def begin_huge() -> list[asyncio.Task[bool]]:
        cleaning.engine.holds["huge"] = asyncio.Event()
        return await cleaning.cleaner.begin_round()

    begun = cleaning.run(begin_huge())
    cleaning.compacted("new")
    assert cleaning.clean()
    assert cleaning.texts("new") == CLEANED
    assert cleaning.texts("huge") == DIRTY
    cleaning.engine.holds["huge"].set()
    cleaning.run(asyncio.wait_for(begun[0], 30))
    assert cleaning.texts("huge") == CLEANED


def test_only_so_many_passes_are_open_and_the_rest_follow_without_a_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lamina.broker.cleaner.cleaner.PASSES_AT_ONCE", 2)
    broker = CleaningBroker(tmp_path / "data", {"log.cleaner.backoff.ms": "3600000"})
    most = 0

    def count() -> None:
        nonlocal most
        most = max(most, broker.cleaner.open_passes)

    try:
        for number in range(5):
            broker.compacted(f"t{number}")
        broker.engine.meanwhile = count

        async def live() -> None:
            broker.cleaner.start()
            while len(broker.cleaner.history.records) < 5:
                await asyncio.sleep(0)
            await broker.cleaner.stop()

        broker.run(asyncio.wait_for(live(), 30))
        assert outcomes(broker) == [Outcome.CLEANED] * 5
        assert most <= 2
    finally:
        broker.close()


def test_stopping_ends_what_an_engine_still_works_on_and_keeps_what_is_installed(tmp_path: Path) -> None:
    """Fact 32."""
    broker = CleaningBroker(tmp_path / "data", {})
    try:
        for name in ("huge", "small"):
            broker.compacted(name)

        async def live() -> None:
            broker.engine.holds["huge"] = asyncio.Event()
            broker.cleaner.start()
            while not broker.cleaner.history.records:
                await asyncio.sleep(0)
            await broker.cleaner.stop()

        broker.run(asyncio.wait_for(live(), 30))
        found = {record.topic: (record.outcome, record.reason) for record in broker.cleaner.history.records}
        assert found == {"small": (Outcome.CLEANED, ""), "huge": (Outcome.ABORTED, "the broker stops")}
        assert broker.texts("huge") == DIRTY
        assert broker.folders("huge") == []
    finally:
        broker.close()


def test_checkpoints_that_come_while_one_is_written_are_written_together(
    cleaning: CleaningBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Facts 88 and 89: each is on disk when its pass is over."""
    for number in range(4):
        cleaning.compacted(f"t{number}")
    directory = cleaning.parts.directories[0]
    written: list[int] = []
    write = directory.write_checkpoints

    def counting(changed: Any) -> None:
        written.append(len(next(iter(changed.values()))))
        write(changed)

    monkeypatch.setattr(directory, "write_checkpoints", counting)

    async def write_all() -> None:
        checkpoints = cleaning.cleaner.passes.checkpoints
        first = asyncio.ensure_future(checkpoints.write(cleaning.partition("t0"), 6))
        while not written:
            await asyncio.sleep(0)
        await asyncio.gather(first, *(checkpoints.write(cleaning.partition(f"t{at}"), 6) for at in (1, 2, 3)))

    cleaning.run(write_all())
    assert written == [1, 4]
    assert [cleaning.checkpoint(f"t{number}") for number in range(4)] == [6] * 4
    text = Path(directory.path, "cleaner-offset-checkpoint").read_text()
    assert text.splitlines()[1] == "4"


def test_a_checkpoint_of_a_partition_that_is_gone_by_then_is_not_written(cleaning: CleaningBroker) -> None:
    partition = cleaning.compacted()

    async def delete_meanwhile() -> None:
        writing = asyncio.ensure_future(cleaning.cleaner.passes.checkpoints.write(partition, 6))
        cleaning.parts.partitions.remove(partition.topic, partition.index)
        await writing

    cleaning.run(delete_meanwhile())
    assert cleaning.checkpoint() is None


# Aborting


async def deleted_topic(cleaning: CleaningBroker) -> None:
    await cleaning.parts.metadata.change(lambda image: mark_deleted(image, "t"))


def test_deleting_a_topic_does_not_wait_for_its_job(cleaning: CleaningBroker) -> None:
    """Fact 29."""
    cleaning.compacted()
    path = cleaning.partition("t").log.path

    async def meanwhile() -> None:
        await deleted_topic(cleaning)

    cleaning.engine.meanwhile = meanwhile
    assert not cleaning.clean()
    assert cleaning.engine.cancelled == [cleaning.engine.plans[0].plan_id]
    assert not os.path.exists(path)
    assert outcomes(cleaning) == [Outcome.ABORTED]
    assert cleaning.cleaner.failed_passes.get(("t", 0)) is None
    assert cleaning.checkpoint() is None


def test_a_topic_made_again_meanwhile_does_not_get_the_old_ones_records(cleaning: CleaningBroker) -> None:
    cleaning.compacted()

    async def meanwhile() -> None:
        await deleted_topic(cleaning)

    cleaning.engine.meanwhile = meanwhile
    cleaning.clean()
    cleaning.engine.meanwhile = lambda: None
    cleaning.compacted(segments=1)
    assert cleaning.texts() == [b"a=0", b"b=0", b"c=last"]
    assert cleaning.clean()


def test_a_topic_that_is_deleted_while_its_pass_is_installed_goes_without_a_trace(
    cleaning: CleaningBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    cleaning.compacted()
    deleting: list[asyncio.Task[object]] = []
    is_out_of_service, forget = threading.Event(), cleaning.cleaner.forget

    def forget_and_tell(key: TopicPartition) -> None:
        forget(key)
        is_out_of_service.set()

    def install_and_delete(*arguments: Any) -> Iterator[object]:
        for number, step in enumerate(installing(*arguments)):
            if number == 3:
                deleting.append(asyncio.get_running_loop().create_task(deleted_topic(cleaning)))
                yield partial(is_out_of_service.wait, 30)
            yield step

    monkeypatch.setattr(cleaning.cleaner, "forget", forget_and_tell)
    monkeypatch.setattr("lamina.broker.cleaner.passes.installing", install_and_delete)
    assert not cleaning.clean()

    async def deleted() -> None:
        await asyncio.wait_for(asyncio.gather(*deleting), 30)

    cleaning.run(deleted())
    assert outcomes(cleaning) == [Outcome.ABORTED]
    assert cleaning.parts.directories[0].failure is None
    assert cleaning.checkpoint() is None
    assert not list(Path(cleaning.parts.directories[0].path).glob("t-0/*"))


def test_a_policy_that_changes_meanwhile_aborts_the_pass(cleaning: CleaningBroker) -> None:
    """Fact 29: no checkpoint, and nobody calls it uncleanable."""
    cleaning.compacted()
    cleaning.engine.meanwhile = lambda: configure(cleaning, "t", cleanup_policy="delete")
    assert not cleaning.clean()
    assert cleaning.texts() == DIRTY
    assert cleaning.checkpoint() is None
    assert cleaning.cleaner.failed_passes.get(("t", 0)) is None
    assert outcomes(cleaning) == [Outcome.ABORTED]
    assert cleaning.folders() == []


def test_a_log_that_is_about_to_be_cut_is_not_cleaned_until_that_is_done(cleaning: CleaningBroker) -> None:
    """Facts 26 and 28: whoever cuts does not wait for the job."""
    partition = cleaning.compacted()
    directory = cleaning.parts.directories[0]

    async def meanwhile() -> None:
        await cleaning.cleaner.pause(("t", 0))
        run_steps(directory.truncate(partition.log, 4, cleaning.parts.clocks.now_ms()))
        partition.high_watermark = partition.log.log_end_offset
        assert cleaning.cleaner.states.state(("t", 0)) is State.ABORTED

    cleaning.engine.meanwhile = meanwhile
    assert not cleaning.clean()
    assert cleaning.texts() == DIRTY[:4]
    assert cleaning.cleaner.states.state(("t", 0)) is State.PAUSED
    assert not cleaning.clean()
    cleaning.cleaner.resume(("t", 0))
    cleaning.engine.meanwhile = lambda: None
    cleaning.roll("t")
    assert cleaning.clean()
    assert cleaning.texts() == [b"a=1", b"b=1"]


def test_what_a_job_says_of_another_plan_is_not_installed(cleaning: CleaningBroker) -> None:
    cleaning.compacted()
    clean = cleaning.engine.clean

    async def confused(plan: Plan, progress: Progress) -> Answer:
        return replace(await clean(plan, progress), plan_id="another")

    cleaning.engine.clean = confused  # type: ignore[method-assign]
    assert not cleaning.clean()
    assert cleaning.texts() == DIRTY


# Retention


def retained(cleaning: CleaningBroker) -> None:
    cleaning.run(cleaning.cleaner.retention.expire_compacted())


def test_a_compacted_log_loses_only_what_lies_below_its_start(cleaning: CleaningBroker) -> None:
    """Facts 94 and 95."""
    partition = cleaning.compacted(retention_ms="1", retention_bytes="1")
    partition.log.advance_log_start(3)
    retained(cleaning)
    assert [segment.base_offset for segment in partition.log.segments] == [2, 4, 6]


def test_a_log_that_is_compacted_and_deleted_also_loses_what_is_old(cleaning: CleaningBroker) -> None:
    """Fact 96: whatever its keys."""
    cleaning.create(
        "t", cleanup_policy="compact,delete", retention_ms="1000", message_timestamp_before_max_ms=str(10**15)
    )
    old_ms = cleaning.parts.clocks.now_ms() - 60_000
    cleaning.write("t", b"a=old", timestamp_ms=old_ms)
    cleaning.roll("t")
    cleaning.write("t", b"b=new")
    retained(cleaning)
    assert cleaning.texts() == [b"b=new"]


def test_retention_leaves_the_sources_of_an_open_pass_alone(cleaning: CleaningBroker) -> None:
    partition = cleaning.compacted(policy="compact,delete", retention_bytes="1")
    seen: list[int] = []

    async def meanwhile() -> None:
        partition.log.advance_log_start(3)
        await cleaning.cleaner.retention.expire_compacted()
        seen.append(partition.log.segments.first.base_offset)

    cleaning.engine.meanwhile = meanwhile
    assert cleaning.clean()
    assert seen == [0]


def test_an_uncleanable_log_is_left_alone_by_retention_too(cleaning: CleaningBroker) -> None:
    """Fact 92."""
    partition = cleaning.compacted()
    cleaning.engine.failure = lambda plan: Failure(plan.plan_id, "damaged", is_uncleanable=True)
    cleaning.clean()
    partition.log.advance_log_start(3)
    retained(cleaning)
    assert partition.log.segments.first.base_offset == 0


def test_the_retention_timer_leaves_compacted_logs_to_the_cleaner(cleaning: CleaningBroker) -> None:
    """Facts 30 and 98."""
    both = cleaning.compacted("both", policy="compact,delete", retention_bytes="1")
    plain = cleaning.compacted("plain", policy="delete", retention_bytes="1")
    cleaning.run(cleaning.parts.cleaner.retention.expire_others(cleaning.parts.upkeep.in_turns()))
    assert both.log.log_start_offset == 0
    assert plain.log.log_start_offset > 0


def test_retention_skips_a_log_whose_pass_began_before_its_policy_changed(cleaning: CleaningBroker) -> None:
    """Fact 30."""
    partition = cleaning.compacted()
    starts: list[int] = []

    async def meanwhile() -> None:
        await configure(cleaning, "t", cleanup_policy="delete", retention_bytes="1")
        await cleaning.parts.cleaner.retention.expire_others(cleaning.parts.upkeep.in_turns())
        starts.append(partition.log.log_start_offset)

    cleaning.engine.meanwhile = meanwhile
    cleaning.clean()
    assert starts == [0]
    cleaning.run(cleaning.parts.cleaner.retention.expire_others(cleaning.parts.upkeep.in_turns()))
    assert partition.log.log_start_offset > 0


# Asking


def test_a_log_that_somebody_asks_for_is_cleaned_whatever_its_ratio(cleaning: CleaningBroker) -> None:
    cleaning.compacted(min_cleanable_dirty_ratio="1.0")
    assert not cleaning.clean()
    sight = cleaning.cleaner.want(cleaning.partition("t"), roll=False)
    assert sight.cleanable.cleanable_bytes
    assert cleaning.clean()
    assert cleaning.texts() == CLEANED
    assert cleaning.cleaner.history.records[-1].is_manual
    assert not cleaning.clean()


def test_with_roll_the_active_segment_is_cleaned_too(cleaning: CleaningBroker) -> None:
    cleaning.compacted(segments=0)
    cleaning.write("t", b"c=newer")
    assert not cleaning.cleaner.want(cleaning.partition("t"), roll=False).cleanable.cleanable_bytes
    assert cleaning.cleaner.want(cleaning.partition("t"), roll=True).cleanable.cleanable_bytes
    assert cleaning.clean()
    assert cleaning.texts() == [b"c=newer"]


def test_an_uncleanable_partition_is_tried_at_once_when_somebody_asks(cleaning: CleaningBroker) -> None:
    cleaning.compacted()
    cleaning.engine.failure = lambda plan: Failure(plan.plan_id, "damaged", is_uncleanable=True)
    cleaning.clean()
    cleaning.engine.failure = lambda plan: None
    cleaning.cleaner.want(cleaning.partition("t"), roll=False)
    assert cleaning.clean()


# Idle topics


def test_an_idle_log_is_planned_for_its_horizons_alone_and_only_when_that_is_on(tmp_path: Path) -> None:
    broker = CleaningBroker(tmp_path / "data", {"lamina.cleaner.expire.idle": "true"})
    try:
        broker.compacted()
        broker.clean()
        broker.cleaner.passes.horizons[("t", 0)] = broker.parts.clocks.now_ms() - 1
        broker.clean()
        plan = broker.engine.plans[-1]
        assert plan.only_expired
        assert (plan.first_dirty_offset, plan.first_uncleanable_offset) == (6, 6)
        assert broker.checkpoint() == 6
        broker.cleaner.passes.horizons[("t", 0)] = None
        count = len(broker.engine.plans)
        broker.clean()
        assert len(broker.engine.plans) == count
    finally:
        broker.close()


# Without an engine


def test_without_an_engine_nothing_is_cleaned_and_logs_are_still_trimmed(cleaning: CleaningBroker) -> None:
    """Decision 12."""
    partition = cleaning.compacted()
    cleaning.engine.lacks = "numba not installed"
    assert not cleaning.clean()
    partition.log.advance_log_start(3)
    retained(cleaning)
    assert partition.log.segments.first.base_offset == 2
    assert cleaning.cleaner.why_not() == "numba not installed"


def test_a_broker_without_an_engine_says_so_when_it_starts(
    cleaning: CleaningBroker, caplog: pytest.LogCaptureFixture
) -> None:
    cleaning.compacted()
    cleaning.engine.lacks = "numba not installed"

    async def start_and_stop() -> None:
        cleaning.cleaner.start()
        await cleaning.cleaner.stop()

    cleaning.run(start_and_stop())
    assert "1 compacted topics are not being compacted: numba not installed" in caplog.text


def test_a_cleaner_that_is_off_does_nothing(tmp_path: Path) -> None:
    """Fact 98."""
    broker = CleaningBroker(tmp_path / "data", {"log.cleaner.enable": "false"})
    try:
        broker.compacted()

        async def start_and_stop() -> None:
            broker.cleaner.start()
            await asyncio.sleep(0)
            await broker.cleaner.stop()

        broker.run(start_and_stop())
        assert broker.engine.plans == []
        assert broker.cleaner.why_not() == "log.cleaner.enable is false"
    finally:
        broker.close()


def test_the_loop_cleans_without_waiting_and_then_waits_the_backoff(tmp_path: Path) -> None:
    """Fact 94."""
    broker = CleaningBroker(tmp_path / "data", {"log.cleaner.backoff.ms": "3600000"})
    try:
        broker.compacted()

        async def live() -> None:
            broker.cleaner.start()
            while not broker.cleaner.history.records:
                await asyncio.sleep(0.001)
            broker.cleaner.want(broker.partition("t"), roll=True)
            while len(broker.cleaner.history.records) < 2:
                await asyncio.sleep(0.001)
            await broker.cleaner.stop()

        broker.run(asyncio.wait_for(live(), 30))
        assert outcomes(broker) == [Outcome.CLEANED, Outcome.CLEANED]
        assert broker.engine.is_stopped
    finally:
        broker.close()


def test_what_is_asked_for_while_a_round_looks_at_logs_is_not_forgotten(
    cleaning: CleaningBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    partition = cleaning.compacted()
    assert cleaning.clean()
    search = cleaning.cleaner.search
    find_candidates = search.find_candidates

    async def asked_meanwhile(may_be_cleaned: Callable[[tuple[str, int]], bool]) -> list[CleaningCandidate]:
        found = await find_candidates(may_be_cleaned)
        cleaning.cleaner.want(partition, roll=True)
        return found

    with monkeypatch.context() as patch:
        patch.setattr(search, "find_candidates", asked_meanwhile)
        assert not cleaning.clean()
    assert cleaning.cleaner.is_wanted(("t", 0))
    assert cleaning.clean()


def test_the_number_of_threads_may_double_or_halve_while_the_broker_runs(cleaning: CleaningBroker) -> None:
    """Fact 9."""

    def set_threads(count: int) -> int:
        config = {"name": "log.cleaner.threads", "value": str(count), "config_operation": 0}
        resource = {"resource_type": 4, "resource_name": "1", "configs": [config]}
        return int(cleaning.ask(44, 1, resources=[resource]).responses[0].error_code)

    assert set_threads(2) == 0
    assert set_threads(4) == 0
    assert set_threads(9) == 42
    assert set_threads(1) == 42
    assert set_threads(2) == 0
    assert set_threads(0) == 42


def test_the_defaults_of_compaction_are_kafkas(cleaning: CleaningBroker) -> None:
    """Facts 4 and 5."""
    config = LogConfig()
    assert (config.min_cleanable_dirty_ratio, config.delete_retention_ms) == (0.5, 86_400_000)
    assert (config.min_compaction_lag_ms, config.max_compaction_lag_ms) == (0, 2**63 - 1)
