"""The rows of the comparison of sources and sinks in Spark, and who takes part in them."""

from pathlib import Path

import pytest

from bench.empty_source import ROWS, EmptyReader
from bench.rounds import Trial
from bench.small_requests import WrongAnswer
from bench.source_log import Log
from bench.spark import BENCH
from bench.spark_subjects import CEILING, FILES, NEWER, OURS, TUNED, TUNED_SINK, TUNED_SOURCE, new_subjects
from bench.spark_trials import LOG, QUERIES, check_answer, new_trials, shown
from bench.subjects import KAFKA, LAMINA
from tests.peers import spark
from tests.peers.kafka import JAVA_DIRECTORY, SPARK_SOURCE_VERSION


@pytest.fixture(autouse=True)
def nothing_is_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.spark_session.connector_jars", lambda: "jars/*")
    monkeypatch.setattr("bench.spark_session.spark_source_jars", lambda: "jars/*")
    monkeypatch.setattr("bench.spark_session.site_packages", lambda: Path("site"))


def test_every_subject_that_a_row_names_is_there(tmp_path: Path) -> None:
    trials = new_trials(False, tmp_path)
    assert {name for trial in trials for name in trial.subjects.values()} == new_subjects(tmp_path).keys()
    assert {who for trial in trials for who in trial.subjects} == BENCH.contestants.keys()


def test_all_stay_up_from_one_row_to_the_next(tmp_path: Path) -> None:
    assert new_subjects(tmp_path).keys() <= set(BENCH.kept_up)


def test_of_those_that_share_a_spark_ours_and_the_one_that_is_not_tuned_are_warmed_up(tmp_path: Path) -> None:
    for trial in new_trials(False, tmp_path):
        order = list(trial.subjects)
        for first, others in ((OURS, (FILES, CEILING)), (NEWER, (TUNED,))):
            assert all(order.index(first) < order.index(other) for other in others if other in order)


def test_rows_of_a_quick_run_are_those_of_a_whole_one(tmp_path: Path) -> None:
    whole, quick = ([trial.name for trial in new_trials(is_quick, tmp_path)] for is_quick in (False, True))
    assert whole == quick
    assert len(set(whole)) == len(whole)


def test_a_topic_in_words() -> None:
    assert shown(LOG, "lamina") == "10 M records, 4 partitions, values of 100 B, from Lamina"
    log = Log(100_000, 10, 5, partitions=2, codec="zstd")
    assert shown(log, "kafka") == "0.1 M records, 2 partitions, values of 5 B, zstd, from Kafka"


ANSWERS = {
    "count": [101],
    "sum of the values' lengths": [10_100],
    "all columns to noop": None,
    "offset and key": [1_700, 50],
}


def test_an_answer_has_to_be_that_of_the_topic_and_of_the_one_record_that_it_was_made_with() -> None:
    log = Log(100, 10, 100, partitions=2)
    assert {query for query, _ in QUERIES.values()} == ANSWERS.keys()
    for query, answer in ANSWERS.items():
        check_answer(query, answer, 101, log)
        for rows in (100, 102):
            with pytest.raises(WrongAnswer, match=f"of {rows} rows, not"):
                check_answer(query, answer, rows, log)
    for query, wrong in (("count", [100]), ("count", [102]), ("offset and key", [1_700, 49])):
        with pytest.raises(WrongAnswer, match=f"{query} gave .* of a topic of 100 records"):
            check_answer(query, wrong, 101, log)


def test_an_answer_of_the_empty_source_has_no_record_more() -> None:
    log = Log(2 * ROWS, 10, 100)
    check_answer("count", [2 * ROWS], 2 * ROWS, log, is_topic=False)
    check_answer("offset and key", [2 * ROWS * 17, ROWS - 1], 2 * ROWS, log, is_topic=False)
    with pytest.raises(WrongAnswer):
        check_answer("count", [2 * ROWS + 1], 2 * ROWS + 1, log, is_topic=False)


def test_memory_is_measured_once_and_first_of_sparks_that_have_just_started(tmp_path: Path) -> None:
    trials = new_trials(False, tmp_path)
    assert [trial.name for trial in trials if any(figure.unit == "MB" for figure in trial.figures)] == ["memory"]
    assert trials[0].name == "memory"


def test_the_empty_source_is_compared_with_nobody() -> None:
    assert CEILING not in {who for pair in BENCH.pairs for who in pair}


def test_every_row_has_as_many_rounds_and_is_warm_but_for_memory(tmp_path: Path) -> None:
    memory, *others = new_trials(False, tmp_path)
    assert {trial.most_rounds for trial in (memory, *others)} == {3}
    assert not memory.api
    warm_ups = {(broker, round(trial.least_warm_up_seconds or 0)) for trial in others for broker in _brokers(trial)}
    assert warm_ups == {(LAMINA, 20), (KAFKA, 7)}


def _brokers(trial: Trial) -> set[str]:
    return {name.rpartition("-")[2] for name in trial.subjects.values()}


def test_what_was_tuned_is_told_with_the_result() -> None:
    notes = " ".join(BENCH.notes)
    assert all(f"{name}={value}" in notes for name, value in {**TUNED_SOURCE, **TUNED_SINK}.items())


def test_the_version_of_sparks_own_source_is_that_of_its_jars() -> None:
    pom = (JAVA_DIRECTORY / "spark" / "pom.xml").read_text()
    assert f"<artifactId>spark-sql-kafka-0-10_2.13</artifactId>\n      <version>{SPARK_SOURCE_VERSION}<" in pom


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
