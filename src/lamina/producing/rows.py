"""Rows in Arrow columns to record batches: which row goes where, and each batch's place.

Owns sequences, and the size of batches. Rows keep their order within a partition. Where rows without keys go first is
drawn for each topic, with randomness that is handed in: a task has often less than a batch of them, and the tasks of a
query would all fill the same partition. Must not know brokers.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa

from lamina.peer.transacting import Producer
from lamina.producing.errors import WriteError
from lamina.producing.producer import Batch
from lamina.producing.properties import BatchFormat
from lamina.records.batch import (
    MAGIC,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    TRANSACTIONAL_BIT,
    BatchHeader,
    Codec,
    add_to_sequence,
)
from lamina.records.codecs import compress
from lamina.records.columns import encoding as e
from lamina.records.record import seal_batch
from lamina.topic_partition import TopicPartition

HEADERS: Final = pa.list_(pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))
_BUFFERS: Final = {"key": (e.KEY_ENDS, e.KEY_BITS, e.KEYS), "value": (e.VALUE_ENDS, e.VALUE_BITS, e.VALUES)}


class RowEncoder:
    """For one producer, or without one."""

    def __init__(
        self,
        topic: str | None,
        batch_format: BatchFormat,
        producer: Producer | None,
        now_ms: Callable[[], int],
        random: Callable[[], float],
        *,
        is_transactional: bool = False,
    ) -> None:
        self._topic = topic
        self._format = batch_format
        self._producer = producer
        self._now_ms = now_ms
        self._random = random
        self._attributes = batch_format.codec | TRANSACTIONAL_BIT * is_transactional
        self._sequences: dict[TopicPartition, int] = {}
        self._sticky: dict[str, Any] = {}
        self._out = np.empty(batch_format.batch_bytes, np.uint8)

    def topics(self, rows: pa.Table) -> list[str]:
        """The topics that these rows go to."""
        if self._topic is not None:
            return [self._topic]
        names = rows.column("topic").unique().to_pylist()
        if None in names:
            raise WriteError("a row has no topic: the column topic is null there, and the option topic is not set")
        return list(names)

    def encode(self, rows: pa.Table, partition_counts: dict[str, int]) -> Iterator[Batch]:
        """Batches in the order of their sequences, for topics that have so many partitions."""
        topics = self.topics(rows)
        for topic in topics:
            mine = rows if len(topics) == 1 else rows.filter(pa.compute.equal(rows.column("topic"), topic))
            yield from self._encode_topic(topic, mine, partition_counts[topic])

    def _encode_topic(self, topic: str, rows: pa.Table, partitions: int) -> Iterator[Batch]:
        columns = _Columns(rows)
        assigned = np.empty(rows.num_rows, np.int32)
        sticky = self._sticky.get(topic)
        if sticky is None:
            sticky = self._sticky[topic] = np.zeros(e.STICKY_COLUMNS, np.int64)
            sticky[e.STICKY_PARTITION] = int(self._random() * partitions)
        bad = e.assign_partitions(columns.addresses, partitions, self._format.batch_bytes, sticky, assigned)
        if bad >= 0:
            wanted = rows.column("partition")[bad].as_py()
            there = "1 partition" if partitions == 1 else f"{partitions} partitions"
            raise WriteError(f"a row asks for partition {wanted} of topic {topic}, which has {there}, counted from 0")
        order = np.argsort(assigned, kind="stable").astype(np.int32)
        bounds = np.searchsorted(assigned[order], np.arange(partitions + 1))
        for partition in range(partitions):
            mine = order[bounds[partition] : bounds[partition + 1]]
            if len(mine):
                yield from self._encode_partition(topic, partition, columns, mine)

    def _encode_partition(self, topic: str, partition: int, columns: "_Columns", order: e.Rows) -> Iterator[Batch]:
        first = 0
        while first < len(order):
            following, size = e.encode_rows(columns.addresses, order, first, self._out, self._format.batch_bytes)
            out = self._out
            if following == first:
                out = np.empty(size, np.uint8)
                following, size = e.encode_rows(columns.addresses, order[: first + 1], first, out, size)
            yield self._batch(topic, partition, following - first, out[:size].data)
            first = following

    def _batch(self, topic: str, partition: int, count: int, records: memoryview) -> Batch:
        key = (topic, partition)
        sequence = NO_SEQUENCE
        if self._producer is not None:
            sequence = self._sequences.get(key, 0)
            self._sequences[key] = add_to_sequence(sequence, count)
        now_ms = self._now_ms()
        header = BatchHeader(
            base_offset=0,
            length=0,
            leader_epoch=NO_LEADER_EPOCH,
            magic=MAGIC,
            crc=0,
            attributes=self._attributes,
            last_offset_delta=count - 1,
            base_timestamp=now_ms,
            max_timestamp=now_ms,
            producer_id=NO_PRODUCER_ID if self._producer is None else self._producer.id,
            producer_epoch=NO_PRODUCER_EPOCH if self._producer is None else self._producer.epoch,
            base_sequence=sequence,
            record_count=count,
        )
        codec = self._format.codec
        payload = records if codec is Codec.NONE else compress(codec, records, self._format.level)
        return Batch(topic, partition, count, seal_batch(header, payload))


class _Columns:
    """The addresses of some rows' columns, and the arrays that hold the memory."""

    def __init__(self, rows: pa.Table) -> None:
        self.addresses = np.zeros(e.BUFFERS, np.int64)
        self._held: list[pa.Array] = []
        for name in ("key", "value"):
            if name in rows.column_names:
                self._put_binary(_whole(rows.column(name), pa.binary()), *_BUFFERS[name])
        if "headers" in rows.column_names:
            self._put_headers(_whole(rows.column("headers"), HEADERS))
        if "partition" in rows.column_names:
            array = self._hold(_whole(rows.column("partition"), pa.int32()))
            bits, numbers = array.buffers()
            self._put(e.PARTITIONS, numbers)
            self._put(e.PARTITION_BITS, bits if array.null_count else None)

    def _put_headers(self, lists: pa.Array) -> None:
        self._hold(lists)
        bits, ends = lists.buffers()[:2]
        self._put(e.LIST_ENDS, ends)
        self._put(e.LIST_BITS, bits if lists.null_count else None)
        structs = lists.values
        keys = _at_zero(structs.field(0))
        if keys.null_count or structs.null_count:
            raise WriteError("a row has a header without a key")
        self._put_binary(keys.cast(pa.binary()), e.HEADER_KEY_ENDS, None, e.HEADER_KEYS)
        values = _at_zero(structs.field(1))
        self._put_binary(values, e.HEADER_VALUE_ENDS, e.HEADER_VALUE_BITS, e.HEADER_VALUES)

    def _put_binary(self, array: pa.Array, ends_at: int, bits_at: int | None, data_at: int) -> None:
        bits, ends, data = self._hold(array).buffers()
        self._put(ends_at, ends)
        self._put(data_at, data)
        if bits_at is not None and array.null_count:
            self._put(bits_at, bits)

    def _put(self, at: int, buffer: Any) -> None:
        self.addresses[at] = 0 if buffer is None else buffer.address

    def _hold(self, array: pa.Array) -> pa.Array:
        self._held.append(array)
        return array


def _whole(column: pa.ChunkedArray, kind: pa.DataType) -> pa.Array:
    """One array that begins where its buffers begin."""
    array = column.combine_chunks()
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks) if array.num_chunks != 1 else array.chunk(0)
    return _at_zero(array if array.type == kind else array.cast(kind))


def _at_zero(array: pa.Array) -> pa.Array:
    return array if array.offset == 0 else pa.concat_arrays([array, array.slice(0, 0)])
