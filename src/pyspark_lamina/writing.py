"""``df.write.format("lamina")``: rows to topics, at least once, or once by the name of the write.

Owns what a write that is no stream does in tasks and on the driver. Must not know how rows get to brokers.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from lamina.clocks import SYSTEM_CLOCKS
from lamina.producing.batch_ending import abort, commit
from lamina.producing.columns import check_columns
from lamina.producing.decisions import BatchName
from lamina.producing.errors import WriteError
from lamina.producing.task_writing import write_at_least_once, write_once
from pyspark_lamina.sentences import in_one_sentence
from pyspark_lamina.sink_options import SinkOptions
from pyspark_lamina.tasks import TaskWritten, attempts_told, batch_told, slot_of_this_task, writer_of_this_task


class BatchWriter(DataSourceArrowWriter):
    """Pickled to the tasks; the driver's own is asked to commit, or to abort."""

    def __init__(self, options: SinkOptions, columns: Sequence[tuple[str, str]], *, overwrite: bool) -> None:
        if overwrite:
            raise WriteError('a topic cannot be overwritten: write with mode("append")')
        check_columns(columns, options.settings.topic)
        self._settings = options.settings
        self._name = None
        if options.is_exactly_once and options.query is not None and options.batch is not None:
            self._name = BatchName(options.query, options.batch)

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        with in_one_sentence():
            now_ms = SYSTEM_CLOCKS.now_ms
            if self._name is None:
                write_at_least_once(self._settings, iterator, now_ms)
                return TaskWritten()
            name = self._name._replace(writer=writer_of_this_task(self._settings.topic))
            attempt = write_once(self._settings, name, slot_of_this_task(), iterator, now_ms)
            return TaskWritten(name, attempt)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        if (name := batch_told(messages)) is not None:
            with in_one_sentence():
                commit(self._settings, name, attempts_told(messages), SYSTEM_CLOCKS.now_ms)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        if self._name is not None:
            with in_one_sentence():
                abort(self._settings, self._name, attempts_told(messages), SYSTEM_CLOCKS.now_ms)
