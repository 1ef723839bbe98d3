"""What is measured of topics in Spark, row by row: reading, small batches of a stream, writing.

Owns the topics, the order of the rows, and how both Sparks are warmed up. What a query answers is compared with what
was written: a wrong answer ends the run.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet
from confluent_kafka import Producer

from bench.empty_source import EmptySource
from bench.librdkafka import CALL_SECONDS, PRODUCER, create_topic, delete_topic, end_offset
from bench.results import Figure
from bench.rounds import Trial, Values, again
from bench.small_requests import WrongAnswer
from bench.source_log import Log, SourceLogs, messages_of
from bench.spark_subjects import BROKERS, CEILING, FILES, OFFICIAL, OURS, SparkSubject, name_of
from bench.subjects import KAFKA, LAMINA, Subject
from bench.usage import Usage

PARTITIONS, KEY_BYTES, VALUE_BYTES = 4, 17, 100
LOG = Log(10_000_000, 2_000_000, VALUE_BYTES, partitions=PARTITIONS)
COMPRESSED = {codec: replace(LOG, records=4_000_000, codec=codec) for codec in ("lz4", "zstd")}
WARM_UP_LOG = replace(LOG, records=1_000_000)
WRITTEN_ROWS = 2_000_000
BATCH_ROWS, BATCHES = 100, 10
"""Of a stream, in one round."""
QUICK_SHARE = 0.1
WARM_UP_SECONDS = 30.0
ROUNDS = 3
"""Of rows that take a minute each."""
QUERIES = {
    "count": ("count", None),
    "sum": ("sum of the values' lengths", None),
    "noop": ("all columns to noop", None),
    "two-columns": ("offset and key", "offset long, key binary"),
}
"""By row: the query, and the schema that sources are given that take one."""
_LOOK_SECONDS = 0.05
SHOWN = {LAMINA: "Lamina", KAFKA: "Kafka"}
SPEED_UNIT = "M records/s"
REPEATED = "zstd"
"""The row that shows whether the machine was the same at the end."""


def new_trials(is_quick: bool, scratch: Path) -> list[Trial]:
    rows = SparkTrials(QUICK_SHARE if is_quick else 1.0, Topics(scratch), scratch / "rows", scratch / "checkpoints")
    compressed = [rows.reading(codec, "sum", LAMINA, log) for codec, log in COMPRESSED.items()]
    return [
        *(rows.reading(f"{broker}-{name}", name, broker, LOG) for broker in BROKERS for name in QUERIES),
        *compressed,
        *(rows.small_batches(broker) for broker in BROKERS),
        *(rows.writing(broker, is_once=is_once) for broker in BROKERS for is_once in (False, True)),
        *(again(trial) for trial in compressed if trial.name == REPEATED),
    ]


class Topics:
    """Those to be read, each filled when it is first asked for, with the same batches on every broker."""

    def __init__(self, scratch: Path) -> None:
        self._scratch = scratch
        self._names: dict[tuple[str, Log], str] = {}
        self._sources: dict[str, SourceLogs] = {}

    def name_of(self, subject: Subject, log: Log) -> str:
        name = f"read-{log.codec}-{log.records}"
        if (subject.bootstrap, log) not in self._names:
            source = self._sources.setdefault(name, SourceLogs(self._scratch / name))
            create_topic(subject.bootstrap, name, {"compression.type": "producer"}, log.partitions)
            source.append(log, subject, name)
            self._names[subject.bootstrap, log] = name
        return name


@dataclass(frozen=True, slots=True)
class SparkTrials:
    share: float
    topics: Topics
    rows: Path
    """Those to be written, as Parquet."""
    checkpoints: Path

    def reading(self, name: str, row: str, broker: str, log: Log) -> Trial:
        query, schema = QUERIES[row]
        asked = replace(log, records=self._count(log.records))
        figures = _figures(shown(asked, broker), query)
        subjects = {who: name_of(who, broker) for who in (OFFICIAL, CEILING, OURS, FILES)}
        if broker == KAFKA:
            subjects = {who: name_of(who, broker) for who in (OFFICIAL, OURS)}
        elif log.codec != "none":
            del subjects[CEILING]
        return Trial(
            name,
            figures,
            partial(self._read, asked, query, schema),
            subjects,
            "reading",
            WARM_UP_SECONDS * self.share,
            self._read_all,
            most_rounds=ROUNDS,
        )

    def small_batches(self, broker: str) -> Trial:
        group = f"A stream from {SHOWN[broker]} of batches of {BATCH_ROWS} rows, to noop"
        figures = (
            Figure(group, "one batch", "s", "less"),
            Figure(group, "from the acknowledgement to the end of the batch", "s", "less"),
            Figure(group, "CPU for a batch", "s", "less"),
        )
        subjects = {who: name_of(who, broker) for who in (OFFICIAL, OURS)}
        return Trial(f"{broker}-small-batch", figures, self._stream, subjects, "streaming", most_rounds=ROUNDS)

    def writing(self, broker: str, *, is_once: bool) -> Trial:
        count = self._count(WRITTEN_ROWS)
        group = f"{count / 1e6:.3g} M rows to {SHOWN[broker]}, {PARTITIONS} partitions, values of {VALUE_BYTES} B"
        how = "exactly once" if is_once else "at least once"
        subjects = {who: name_of(who, broker) for who in (OFFICIAL, OURS)}
        name = f"{broker}-write-once" if is_once else f"{broker}-write"
        run = partial(self._write, count, is_once)
        return Trial(name, _figures(group, how), run, subjects, name, most_rounds=ROUNDS)

    # Doing it

    def _read(self, log: Log, query: str, schema: str | None, subject: Subject, _: str) -> Values:
        spark = cast(SparkSubject, subject)
        topic = self.topics.name_of(subject, log)
        options = {"kafka.bootstrap.servers": subject.bootstrap, "subscribe": topic, **spark.options}
        if spark.source == EmptySource.name():
            options = {"records": str(log.records), "partitions": str(log.partitions)}
        takes_schema = spark.source != "kafka"
        more = {"schema": schema} if schema is not None and takes_schema else {}
        with Usage(subject.process_ids) as usage:
            found = spark.session.ask("read", source=spark.source, options=options, query=query, **more)
        check_answer(query, found["answer"], log)
        return _values(log.records, found["seconds"], usage)

    def _read_all(self, subject: Subject, topic: str) -> Values:
        """Every query once, over a smaller topic."""
        log = replace(WARM_UP_LOG, records=self._count(WARM_UP_LOG.records))
        each = [self._read(log, query, schema, subject, topic) for query, schema in QUERIES.values()]
        return (sum(1 / values[0] for values in each),)

    def _stream(self, subject: Subject, topic: str) -> Values:
        spark = cast(SparkSubject, subject)
        create_topic(subject.bootstrap, topic, partitions=PARTITIONS)
        options = {"kafka.bootstrap.servers": subject.bootstrap, "subscribe": topic, **spark.options}
        checkpoint = str(self.checkpoints / topic)
        spark.session.ask("begin_stream", source=spark.source, options=options, checkpoint=checkpoint)
        producer = Producer({"bootstrap.servers": subject.bootstrap, **PRODUCER})
        messages = next(messages_of(Log(BATCH_ROWS, BATCH_ROWS, VALUE_BYTES)))
        batches, waits = [], []
        with Usage(subject.process_ids) as usage:
            for _ in range(BATCHES):
                for number, message in enumerate(messages):
                    producer.produce(topic, message["value"], message["key"], number % PARTITIONS)
                if producer.flush(CALL_SECONDS):
                    raise TimeoutError(f"{topic}: messages were not acknowledged")
                acknowledged_at = time.time()
                found = spark.session.ask("await_rows", count=BATCH_ROWS)
                batches.append(found["batch_seconds"])
                waits.append(found["over_at"] - acknowledged_at)
        spark.session.ask("end_stream")
        delete_topic(subject.bootstrap, topic)
        return median(batches), median(waits), usage.cpu_seconds / BATCHES

    def _write(self, count: int, is_once: bool, subject: Subject, topic: str) -> Values:
        spark = cast(SparkSubject, subject)
        create_topic(subject.bootstrap, topic, partitions=PARTITIONS)
        options = {"kafka.bootstrap.servers": subject.bootstrap, "topic": topic}
        if is_once and spark.source != "kafka":
            options |= {"queryId": topic, "batchId": "0"}
        rows = str(self._rows(count))
        with Usage(subject.process_ids) as usage:
            found = spark.session.ask("write", source=spark.source, options=options, rows=rows)
        _await_written(subject, topic, count)
        delete_topic(subject.bootstrap, topic)
        return _values(count, found["seconds"], usage)

    def _rows(self, count: int) -> Path:
        directory = self.rows / str(count)
        if not directory.exists():
            directory.mkdir(parents=True)
            log = Log(count, LOG.keys, VALUE_BYTES, partitions=PARTITIONS)
            messages = [one for some in messages_of(log) for one in some]
            each = -(-len(messages) // PARTITIONS)
            for number in range(PARTITIONS):
                table = pa.Table.from_pylist(messages[number * each : (number + 1) * each])
                pa.parquet.write_table(table, directory / f"{number}.parquet", compression="none")
        return directory

    def _count(self, whole: int) -> int:
        """In whole lists of messages for every partition, as they are made."""
        return int(whole * self.share) // (10_000 * PARTITIONS) * 10_000 * PARTITIONS


def _figures(group: str, variant: str) -> tuple[Figure, ...]:
    return (
        Figure(group, "speed", SPEED_UNIT, "more", variant),
        Figure(group, "CPU for a million records", "s", "less", variant),
        Figure(group, "peak memory", "MB", "less", variant),
    )


def _values(records: int, seconds: float, usage: Usage) -> Values:
    return records / seconds / 1e6, usage.cpu_seconds / records * 1e6, usage.peak_bytes / 1e6


def _await_written(subject: Subject, topic: str, count: int) -> None:
    """Brokers write the markers of a transaction after they have said that it is committed."""
    deadline = time.monotonic() + CALL_SECONDS
    while (there := sum(end_offset(subject.bootstrap, topic, one) for one in range(PARTITIONS))) < count:
        if time.monotonic() > deadline:
            raise WrongAnswer(f"{count} rows were written, and {there} records are in {topic}")
        time.sleep(_LOOK_SECONDS)


def check_answer(query: str, answer: Any, log: Log) -> None:
    """The topic has a record of its own from when it was made (``create_topic``)."""
    of_a_record = {"count": 1, "sum of the values' lengths": VALUE_BYTES, "offset and key": KEY_BYTES}
    if query not in of_a_record:
        return
    expected = log.records * of_a_record[query]
    if not expected <= answer <= expected + VALUE_BYTES:
        raise WrongAnswer(f"{query} gave {answer} of a topic of {log.records} records")


def shown(log: Log, broker: str) -> str:
    """Where it is read from, in words."""
    codec = "" if log.codec == "none" else f", {log.codec}"
    size = f"{log.records / 1e6:.3g} M records, {log.partitions} partitions, values of {log.value_bytes} B"
    return f"{size}{codec}, from {SHOWN[broker]}"
