"""What a task knows of itself, and what it tells the driver.

Owns the words in which Spark says which query, which batch and which attempt this is.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from pyspark import TaskContext
from pyspark.sql.datasource import WriterCommitMessage

from lamina.producing.decisions import BatchName, Slot
from lamina.producing.task_writing import Attempt

_QUERY, _BATCH = "sql.streaming.queryId", "streaming.sql.batchId"


@dataclass(frozen=True)
class TaskWritten(WriterCommitMessage):
    """Of an attempt that has succeeded."""

    name: BatchName | None = None
    """``None`` where rows are written at least once."""
    attempt: Attempt = Attempt()  # noqa: RUF009 - immutable


def this_task() -> TaskContext:
    context = TaskContext.get()
    assert context is not None, "only tasks write"
    return context


def slot_of_this_task() -> Slot:
    return Slot(this_task().partitionId(), this_task().attemptNumber())


def batch_of_this_task(query: str | None) -> BatchName:
    """Under the query's own id, unless it was given a name."""
    told_query, batch = this_task().getLocalProperty(_QUERY), this_task().getLocalProperty(_BATCH)
    assert told_query is not None, "a task of a stream knows its query"
    assert batch is not None, "a task of a stream knows its batch"
    return BatchName(query or told_query, int(batch), f"stream {told_query}")


def writer_of_this_task(topic: str | None) -> str:
    """Which of several writes that are no streams, as far as tasks can tell. `foreachBatch` does them for a stream."""
    target = "topics of the column topic" if topic is None else f"topic {topic}"
    stream = this_task().getLocalProperty(_QUERY)
    return target if stream is None else f"{target} in stream {stream}"


def attempts_told(messages: Iterable[WriterCommitMessage | None]) -> list[Attempt]:
    """By those that have succeeded."""
    return [message.attempt for message in messages if isinstance(message, TaskWritten)]


def batch_told(messages: Iterable[WriterCommitMessage | None]) -> BatchName | None:
    """``None`` where no attempt has succeeded."""
    return next((message.name for message in messages if isinstance(message, TaskWritten)), None)
