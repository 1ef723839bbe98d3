"""``df.writeStream.format("lamina")``: each batch of a query to topics, once, or at least once.

Owns what a stream does in tasks and on the driver. The driver asks a writer that was made anew to commit: what it knows
of the query, it knows from the tasks. PySpark makes a writer for each plan, too, with nothing but options and columns:
so what an earlier run left open is found when the first batch ends, not when the query starts. Must not know how rows
get to brokers.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage

from lamina.clocks import SYSTEM_CLOCKS
from lamina.producing.batch_ending import abort, commit
from lamina.producing.columns import check_columns
from lamina.producing.task_writing import write_at_least_once, write_once
from pyspark_lamina.sentences import in_one_sentence
from pyspark_lamina.sink_options import SinkOptions
from pyspark_lamina.tasks import TaskWritten, attempts_told, batch_of_this_task, batch_told, slot_of_this_task


class StreamWriter(DataSourceStreamArrowWriter):
    def __init__(self, options: SinkOptions, columns: Sequence[tuple[str, str]]) -> None:
        check_columns(columns, options.settings.topic)
        self._options = options

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        settings = self._options.settings
        with in_one_sentence():
            now_ms = SYSTEM_CLOCKS.now_ms
            if not self._options.is_exactly_once:
                write_at_least_once(settings, iterator, now_ms)
                return TaskWritten()
            name = batch_of_this_task(self._options.query)
            attempt = write_once(settings, name, slot_of_this_task(), iterator, now_ms)
            return TaskWritten(name, attempt)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        if (name := batch_told(messages)) is not None:
            with in_one_sentence():
                commit(self._options.settings, name, attempts_told(messages), SYSTEM_CLOCKS.now_ms)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        if (name := batch_told(messages)) is not None:
            with in_one_sentence():
                abort(self._options.settings, name, attempts_told(messages), SYSTEM_CLOCKS.now_ms)
