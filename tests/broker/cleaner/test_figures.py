"""What the cleaner tells in numbers: its metrics (facts 99, 100 and 102) and what it logs of a pass (fact 101)."""

import asyncio
import logging
from dataclasses import replace

import pytest

from lamina.broker.cleaner.engine_child import Progress
from lamina.broker.cleaner.history import History, Outcome, PhaseSeconds, describe
from lamina.broker.metrics.cleaning import collect_cleaning
from lamina.cleaning.contract import Counts, Dropped, Manifest, Plan, Seconds
from lamina.cleaning.engine_messages import Answer, Failure
from tests.broker.cleaner.cleaning import CleaningBroker
from tests.broker.cleaner.engines import JobEngine
from tests.broker.metrics.sources import sources_of
from tests.cleaning.test_contract import MANIFEST, PLAN

MB = 1 << 20


class TellingEngine(JobEngine):
    """Says of every pass what ``said`` has of it, by topic."""

    def __init__(self) -> None:
        super().__init__()
        self.said: dict[str, dict[str, object]] = {}

    async def clean(self, plan: Plan, progress: Progress) -> Answer:
        answer = await super().clean(plan, progress)
        return replace(answer, **self.said.get(plan.topic, {})) if isinstance(answer, Manifest) else answer  # type: ignore[arg-type]


def counts(size_bytes: int, records: int) -> Counts:
    return Counts(1, size_bytes, 1, records, 0, 0, 0)


@pytest.fixture
def telling(cleaning: CleaningBroker) -> TellingEngine:
    engine = TellingEngine()
    cleaning.engine = cleaning.cleaner.engine = engine
    return engine


def metrics(cleaning: CleaningBroker) -> dict[str, float]:
    """By name, without ``lamina_cleaner_``, and label."""
    found = {}
    for metric, samples in collect_cleaning(sources_of(cleaning)):
        for sample in samples:
            labels = "".join(f"{{{value}}}" for value in sample.labels)
            found[metric.name.removeprefix("lamina_cleaner_") + labels] = sample.value
    return found


def test_fact_99_before_the_first_pass_everything_is_zero(cleaning: CleaningBroker) -> None:
    found = metrics(cleaning)
    for name in ("max_buffer_utilization_percent", "recopy_percent", "max_clean_time_seconds"):
        assert found[name] == 0
    assert (found["max_compaction_delay_seconds"], found["dead"], found["max_dirty_percent"]) == (0, 0, 0)


def test_fact_99_recopy_and_buffer_are_those_of_the_last_pass_of_each_log(
    cleaning: CleaningBroker, telling: TellingEngine
) -> None:
    telling.said = {
        "a": {"before": counts(300, 9), "after": counts(100, 5), "keys": 1_000_000},
        "b": {"before": counts(100, 1), "after": counts(100, 1), "keys": 10},
    }
    cleaning.compacted("a")
    cleaning.compacted("b")
    cleaning.clean()
    found = metrics(cleaning)
    assert found["recopy_percent"] == 50
    assert found["max_buffer_utilization_percent"] == 24_000_000 * 100 // int(134_217_728 * 0.9) == 19
    longest = max(record.seconds.total for record in cleaning.cleaner.history.records)
    assert found["max_clean_time_seconds"] == longest > 0
    assert found["passes_total{cleaned}"] == 2


def test_fact_99_the_longest_delay_is_that_of_the_most_overdue_log(cleaning: CleaningBroker) -> None:
    cleaning.compacted("t", max_compaction_lag_ms="1000", min_cleanable_dirty_ratio="1.0", segment_ms="100000000")
    for late_ms in (5000, 9000):
        cleaning.write("t", b"k=v", timestamp_ms=cleaning.parts.clocks.now_ms() - late_ms)
        cleaning.roll("t")
    cleaning.clean()
    assert 8 <= metrics(cleaning)["max_compaction_delay_seconds"] < 100


def test_fact_99_a_cleaner_that_should_run_and_does_not_is_dead(cleaning: CleaningBroker) -> None:
    cleaning.cleaner.start()
    task = cleaning.cleaner._task
    assert task is not None
    assert metrics(cleaning)["dead"] == 0
    task.cancel()
    cleaning.run(asyncio.wait({task}))
    assert metrics(cleaning)["dead"] == 1


def test_facts_23_and_100_the_dirtiest_log_counts_eligible_or_not(cleaning: CleaningBroker) -> None:
    cleaning.compacted("clean", min_cleanable_dirty_ratio="1.0")
    cleaning.compacted("dirty", min_cleanable_dirty_ratio="1.0")
    cleaning.parts.directories[0].write_cleaner_offsets({("clean", 0): 6, ("dirty", 0): 2})
    assert not cleaning.clean()
    found = metrics(cleaning)
    assert found["max_dirty_percent"] == 66
    assert found["compacted_partitions"] == 2


def test_fact_100_the_time_since_the_last_choice_starts_again_with_every_round(cleaning: CleaningBroker) -> None:
    cleaning.cleaner.search.searched_at_ms = cleaning.parts.clocks.now_ms() - 70_000
    assert metrics(cleaning)["time_since_last_run_seconds"] >= 70
    cleaning.clean()
    assert metrics(cleaning)["time_since_last_run_seconds"] < 70


def test_fact_100_uncleanable_partitions_and_their_bytes_are_told_by_directory(cleaning: CleaningBroker) -> None:
    partition = cleaning.compacted("bad")
    cleaning.engine.failure = lambda plan: Failure(plan.plan_id, "damaged", is_uncleanable=True)
    cleaning.clean()
    path = cleaning.parts.directories[0].path
    found = metrics(cleaning)
    closed = sum(segment.size_bytes for segment in list(partition.log.segments)[:-1])
    assert found[f"uncleanable_partitions{{{path}}}"] == 1
    assert found[f"uncleanable_bytes{{{path}}}"] == closed > 0
    assert found["passes_total{uncleanable}"] == 1


def test_facts_100_and_102_what_passes_read_and_wrote_adds_up(cleaning: CleaningBroker, telling: TellingEngine) -> None:
    telling.said["t"] = {
        "before": counts(300, 5),
        "after": counts(100, 2),
        "bytes_read": 500,
        "bytes_written": 120,
        "seconds": Seconds(1.0, 2.0, 4.0, 0.5, 7.0),
    }
    cleaning.compacted()
    for passes in (1, 2):
        cleaning.clean()
        found = metrics(cleaning)
        assert (found["read_records_total"], found["written_records_total"]) == (5 * passes, 2 * passes)
        assert (found["read_bytes_total"], found["written_bytes_total"]) == (500 * passes, 120 * passes)
        phases = [found[f"phase_seconds_total{{{name}}}"] for name in ("verdicts", "keys", "rewrite", "throttled")]
        assert phases == [1.0 * passes, 2.0 * passes, 4.0 * passes, 0.5 * passes]
        for number in range(9):
            cleaning.write("t", b"a=%d" % number)
        cleaning.roll("t")


# What is logged


def test_fact_101_a_pass_tells_its_range_its_phases_and_what_it_saved() -> None:
    manifest = replace(
        MANIFEST,
        end_offset=900,
        before=Counts(4, 100 * MB, 9, 1000, 0, 0, 0),
        after=Counts(2, 25 * MB, 9, 400, 0, 0, 0),
        keys=500_000,
        bytes_read=160 * MB,
        bytes_written=26 * MB,
        seconds=Seconds(0.5, 2.0, 4.0, 1.5, 7.0),
    )
    record = History().add(
        replace(PLAN, first_dirty_offset=100, memory_limit_bytes=120_000_000),
        Outcome.CLEANED,
        "",
        is_manual=False,
        began_ms=0,
        ended_ms=8000,
        seconds=PhaseSeconds(0.5, 7.0, 0.5),
        manifest=manifest,
    )
    assert describe(record) == (
        "orders-3: cleaned offsets [100, 900): 100.0 MB processed in 8.0 s, 12.5 MB/s; "
        "500000 keys found in 60.0 MB, 2.0 s, 30.0 MB/s, 25.0 % of the time, which would fill 10.0 % of the memory for "
        "them; rewritten: 26.0 MB, 4.0 s, 6.5 MB/s, 50.0 % of the time; throttled 1.5 s; "
        "start: 100.0 MB, 1000 records in 4 segments; end: 25.0 MB, 400 records in 2 segments; "
        "75.0 % smaller, 60.0 % fewer records"
    )


def test_a_pass_over_a_few_records_tells_how_many_there_were_and_are() -> None:
    manifest = replace(
        MANIFEST, end_offset=4, before=Counts(1, 320, 1, 4, 0, 0, 0), after=Counts(1, 250, 1, 3, 0, 0, 0)
    )
    record = History().add(
        PLAN,
        Outcome.CLEANED,
        "",
        is_manual=False,
        began_ms=0,
        ended_ms=2000,
        seconds=PhaseSeconds(0.5, 1.0, 0.5),
        manifest=manifest,
    )
    assert describe(record) == (
        f"{PLAN.topic}-{PLAN.partition}: cleaned offsets [{PLAN.first_dirty_offset}, 4) in 2.0 s: 4 records of 320 "
        "bytes before, 3 records of 250 bytes after"
    )


def test_fact_101_one_message_follows_each_finished_pass_and_one_those_that_are_late(
    cleaning: CleaningBroker, telling: TellingEngine, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    telling.said["t"] = {"dropped": Dropped(0, 0, 7, 0, 0)}
    cleaning.compacted(max_compaction_lag_ms="1", segment_ms="100000000")
    cleaning.roll("t")
    # The first batch of a segment stands for its age.
    cleaning.write("t", b"k=v", timestamp_ms=cleaning.parts.clocks.now_ms() - 60_000)
    cleaning.roll("t")
    cleaning.clean()
    told = [(record.levelname, record.message) for record in caplog.records if "lamina.broker.cleaner" in record.name]
    assert [level for level, _ in told] == ["INFO", "WARNING", "INFO"]
    assert told[0][1].startswith("t-0: cleaned offsets [0, ")
    assert not any("\n" in message for _, message in told), "every line of the log has a time and a level"
    assert told[1][1] == "t-0: 7 records without key were dropped"
    assert told[2][1].startswith("logs that could be cleaned: 1; of them overdue: 1, the longest by ")
