"""The rows of the comparison of sources and sinks in Spark, and who takes part in them."""

from pathlib import Path

import pytest

from bench.empty_source import ROWS, EmptyReader
from bench.small_requests import WrongAnswer
from bench.source_log import Log
from bench.spark import BENCH
from bench.spark_subjects import new_subjects
from bench.spark_trials import LOG, QUERIES, check_answer, new_trials, shown
from tests.peers import spark


@pytest.fixture(autouse=True)
def nothing_is_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.spark_session.connector_jars", lambda: "jars/*")
    monkeypatch.setattr("bench.spark_session.site_packages", lambda: Path("site"))


def test_every_subject_that_a_row_names_is_there(tmp_path: Path) -> None:
    trials = new_trials(False, tmp_path)
    assert {name for trial in trials for name in trial.subjects.values()} == new_subjects(tmp_path).keys()
    assert {who for trial in trials for who in trial.subjects} == BENCH.contestants.keys()


def test_all_stay_up_from_one_row_to_the_next(tmp_path: Path) -> None:
    assert new_subjects(tmp_path).keys() <= set(BENCH.kept_up)


def test_rows_of_a_quick_run_are_those_of_a_whole_one(tmp_path: Path) -> None:
    whole, quick = ([trial.name for trial in new_trials(is_quick, tmp_path)] for is_quick in (False, True))
    assert whole == quick
    assert len(set(whole)) == len(whole)


def test_a_topic_in_words() -> None:
    assert shown(LOG, "lamina") == "10 M records, 4 partitions, values of 100 B, from Lamina"
    log = Log(100_000, 10, 5, partitions=2, codec="zstd")
    assert shown(log, "kafka") == "0.1 M records, 2 partitions, values of 5 B, zstd, from Kafka"


def test_an_answer_has_to_be_that_of_the_topic_and_of_the_record_that_it_was_made_with() -> None:
    for (query, _), answer in zip(QUERIES.values(), (101, 10_100, None, 1_700), strict=True):
        check_answer(query, answer, Log(100, 10, 100))
    with pytest.raises(WrongAnswer, match="count gave 99 of a topic of 100 records"):
        check_answer("count", 99, Log(100, 10, 100))


def test_the_empty_source_has_rows_like_those_of_topics() -> None:
    reader = EmptyReader(4 * ROWS + 8, 2, ["key", "value", "offset"])
    rows = [list(reader.read(partition)) for partition in reader.partitions()]
    assert [sum(batch.num_rows for batch in batches) for batches in rows] == [2 * ROWS + 4] * 2
    batch = rows[0][0]
    assert {len(key.as_py()) for key in batch.column("key")[:10]} == {17}
    assert {len(value.as_py()) for value in batch.column("value")[:10]} == {100}


def test_a_spark_that_pip_does_not_find_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark, "VERSION", "0.0.0")
    monkeypatch.setenv("LAMINA_PEERS_DIR", str(tmp_path))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    spark.site_packages.cache_clear()
    with pytest.raises(spark.SparkMissingError, match=r"pip could not fetch PySpark 0\.0\.0: ERROR"):
        spark.site_packages()
    spark.site_packages.cache_clear()
    assert list(tmp_path.iterdir()) == []
