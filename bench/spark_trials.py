"""What is measured of topics in Spark, row by row: reading, small batches of a stream, writing.

Owns the topics, the order of the rows, and how both Sparks are warmed up. What a query answers is compared with what
was written: a wrong answer ends the run.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import fmean, median
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet
from confluent_kafka import Producer

from bench.empty_source import ROWS as EMPTY_SOURCE_ROWS
from bench.empty_source import EmptySource
from bench.librdkafka import CALL_SECONDS, PRODUCER, create_topic, delete_topic, end_offset
from bench.results import Figure
from bench.rounds import Trial, Values
from bench.small_requests import WrongAnswer
from bench.source_log import Log, SourceLogs, messages_of
from bench.spark_subjects import (
    BROKERS,
    CEILING,
    FILES,
    NEWER,
    OFFICIAL,
    OURS,
    TUNED,
    SparkSubject,
    name_of,
)
from bench.subjects import KAFKA, LAMINA, Subject
from bench.usage import Usage

PARTITIONS, KEY_BYTES, VALUE_BYTES = 4, 17, 100
LOG = Log(10_000_000, 2_000_000, VALUE_BYTES, partitions=PARTITIONS)
COMPRESSED = {codec: replace(LOG, records=4_000_000, codec=codec) for codec in ("lz4", "zstd")}
WARM_UP_LOG = replace(LOG, records=1_000_000)
WRITTEN_ROWS = 2_000_000
BATCH_ROWS, BATCHES = 100, 4
"""Of a stream, in one round."""
QUICK_SHARE = 0.1
WARM_UP_SECONDS, LEAST_WARM_UP_SECONDS = 24.0, 20.0
"""For each Spark, of each kind of load, before it is measured with Lamina; a third with Kafka, which comes after it."""
MEMORY_LOG = COMPRESSED["lz4"]
ROUNDS = 3
"""Of rows that take a minute each."""
ALL = (OFFICIAL, NEWER, TUNED, OURS, FILES, CEILING)
"""Of those that share a Spark the first is warmed up, and each of the others runs once."""
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


def new_trials(is_quick: bool, scratch: Path) -> list[Trial]:
    rows = SparkTrials(QUICK_SHARE if is_quick else 1.0, Topics(scratch), scratch / "rows", scratch / "checkpoints")
    return [
        rows.memory(),
        *(rows.reading(f"{LAMINA}-{name}", name, LAMINA, LOG) for name in QUERIES),
        *(rows.reading(codec, "sum", LAMINA, log) for codec, log in COMPRESSED.items()),
        rows.reading(f"{KAFKA}-sum", "sum", KAFKA, LOG),
        rows.small_batches(),
        *(rows.writing(broker, is_once=is_once) for broker in BROKERS for is_once in (False, True)),
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

    def memory(self) -> Trial:
        """Of a Spark that has just started: later its heap has what earlier rows left there."""
        log = replace(MEMORY_LOG, records=self._count(MEMORY_LOG.records))
        group = "Peak memory of a Spark that has just started, with its Python workers and the broker"
        figure = Figure(group, f"while it reads {shown(log, LAMINA)}, all columns to noop", "MB", "less")
        subjects = {who: name_of(who, LAMINA) for who in (OFFICIAL, NEWER, OURS)}
        return Trial("memory", (figure,), partial(self._read_afresh, log), subjects, most_rounds=ROUNDS)

    def reading(self, name: str, row: str, broker: str, log: Log) -> Trial:
        query, schema = QUERIES[row]
        asked = replace(log, records=self._count(log.records))
        who: tuple[str, ...] = (OFFICIAL, NEWER, OURS)
        if broker == LAMINA and log.codec == "none":
            # Of the tuned one the row that all others are like.
            who = tuple(one for one in ALL if one != TUNED or row == "sum")
        elif broker == LAMINA:
            who = (OFFICIAL, NEWER, OURS, FILES)
        return self._warmed(
            name,
            _figures(shown(asked, broker), query),
            partial(self._read, asked, query, schema),
            who,
            broker,
            f"reading-{log.codec}",
            partial(self._read_all, log.codec),
        )

    def small_batches(self) -> Trial:
        group = f"A stream from {SHOWN[LAMINA]} of batches of {BATCH_ROWS} rows, to noop"
        figures = (
            Figure(group, "one batch", "s", "less"),
            Figure(group, "from the acknowledgement to the end of the batch", "s", "less"),
            Figure(group, "CPU for a batch", "s", "less"),
        )
        return self._warmed("small-batch", figures, self._stream, rivals(LAMINA), LAMINA, "streaming")

    def writing(self, broker: str, *, is_once: bool) -> Trial:
        count = self._count(WRITTEN_ROWS)
        group = f"{count / 1e6:.3g} M rows to {SHOWN[broker]}, {PARTITIONS} partitions, values of {VALUE_BYTES} B"
        how = "ours exactly once, theirs at least once" if is_once else "all at least once"
        name = f"{broker}-write-once" if is_once else f"{broker}-write"
        run, warm_up = partial(self._write, count, is_once), partial(self._write_each_way, count)
        return self._warmed(name, _figures(group, how), run, rivals(broker), broker, "writing", warm_up)

    def _warmed(
        self,
        name: str,
        figures: tuple[Figure, ...],
        run: Callable[[Subject, str], Values],
        who: Sequence[str],
        broker: str,
        api: str,
        warm_up: Callable[[Subject, str], Values] | None = None,
    ) -> Trial:
        share = self.share if broker == LAMINA else self.share / 3
        return Trial(
            name,
            figures,
            run,
            {one: name_of(one, broker) for one in who},
            api,
            WARM_UP_SECONDS * share,
            warm_up,
            most_rounds=ROUNDS,
            least_warm_up_seconds=LEAST_WARM_UP_SECONDS * share,
        )

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
        check_answer(query, found["answer"], found["rows"], log, is_topic=spark.source != EmptySource.name())
        return _values(log.records, found["seconds"], usage)

    def _read_afresh(self, log: Log, subject: Subject, topic: str) -> Values:
        spark = cast(SparkSubject, subject)
        self.topics.name_of(subject, log)
        spark.session.stop()
        spark.session.start()
        with Usage(subject.process_ids) as usage:
            self._read(log, *QUERIES["noop"], subject, topic)
        return (usage.peak_bytes / 1e6,)

    def _read_all(self, codec: str, subject: Subject, topic: str) -> Values:
        """Every query once, over a smaller topic."""
        log = replace(WARM_UP_LOG, records=self._count(WARM_UP_LOG.records), codec=codec)
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
        options = {"kafka.bootstrap.servers": subject.bootstrap, "topic": topic, **spark.sink_options}
        if is_once and spark.source != "kafka":
            options |= {"queryId": topic, "batchId": "0"}
        rows = str(self._rows(count))
        with Usage(subject.process_ids) as usage:
            found = spark.session.ask("write", source=spark.source, options=options, rows=rows)
        _await_written(subject, topic, count)
        delete_topic(subject.bootstrap, topic)
        return _values(count, found["seconds"], usage)

    def _write_each_way(self, count: int, subject: Subject, topic: str) -> Values:
        at_least_once = self._write(count, False, subject, topic)
        if cast(SparkSubject, subject).source == "kafka":
            return at_least_once
        once = self._write(count, True, subject, f"{topic}-once")
        return tuple(map(fmean, zip(at_least_once, once, strict=True)))

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


def rivals(broker: str) -> tuple[str, ...]:
    """Where segment files do not matter."""
    return (OFFICIAL, NEWER, TUNED, OURS) if broker == LAMINA else (OFFICIAL, NEWER, OURS)


def _figures(group: str, variant: str) -> tuple[Figure, ...]:
    return (
        Figure(group, "speed", SPEED_UNIT, "more", variant),
        Figure(group, "CPU for a million records", "s", "less", variant),
    )


def _values(records: int, seconds: float, usage: Usage) -> Values:
    return records / seconds / 1e6, usage.cpu_seconds / records * 1e6


def _await_written(subject: Subject, topic: str, count: int) -> None:
    """Brokers write the markers of a transaction after they have said that it is committed."""
    deadline = time.monotonic() + CALL_SECONDS
    while (there := sum(end_offset(subject.bootstrap, topic, one) for one in range(PARTITIONS))) < count:
        if time.monotonic() > deadline:
            raise WrongAnswer(f"{count} rows were written, and {there} records are in {topic}")
        time.sleep(_LOOK_SECONDS)


def check_answer(query: str, answer: Any, rows: int, log: Log, *, is_topic: bool = True) -> None:
    """A topic has one record more, of its own from when it was made, without a key and in partition 0
    (``create_topic``); the empty source has none."""
    more, each = int(is_topic), log.records // log.partitions
    # Offsets of a topic's partition begin at 0; those of the empty source begin again with each of its batches.
    last_offset = each if is_topic else min(each, EMPTY_SOURCE_ROWS) - 1
    expected = {
        "count": [log.records + more],
        "sum of the values' lengths": [(log.records + more) * VALUE_BYTES],
        "all columns to noop": None,
        "offset and key": [log.records * KEY_BYTES, last_offset],
    }[query]
    if answer != expected or rows != log.records + more:
        raise WrongAnswer(
            f"{query} gave {answer} of {rows} rows, not {expected} of {log.records + more}, of a topic of "
            f"{log.records} records"
        )


def shown(log: Log, broker: str) -> str:
    """Where it is read from, in words."""
    codec = "" if log.codec == "none" else f", {log.codec}"
    size = f"{log.records / 1e6:.3g} M records, {log.partitions} partitions, values of {log.value_bytes} B"
    return f"{size}{codec}, from {SHOWN[broker]}"
