"""The end of a range: what a leader that gives nothing may mean. Brokers are scripted, and time is skipped."""

import asyncio
from collections.abc import Iterable, Iterator
from itertools import chain, count, islice, repeat
from typing import Any
from uuid import UUID

import pytest

from lamina.arrow.errors import DataLoss
from lamina.arrow.prefetching import RangeToFetch, fetch_range
from lamina.arrow.properties import parse_properties
from lamina.errors import RequestTimedOut
from lamina.peer.cluster import ClusterClient
from lamina.peer.connector import PlainConnector
from lamina.records.record import Record, build_batch
from tests.peer.clients import batch_of
from tests.peer.loops import SkippingLoop, run
from tests.peer.scripted import (
    API_VERSIONS,
    FETCH,
    LIST_OFFSETS,
    METADATA,
    OFFERED,
    Facts,
    ScriptedBroker,
    versions_facts,
)

TOPIC_ID = UUID(int=7)
THREE = bytes(batch_of(b"a", b"b", b"c"))
ASKED = RangeToFetch("t", 0, 0, 3, poll_timeout_ms=60_000)


class Leader(ScriptedBroker):
    """Of partition 0 of any topic, which ends at offset 3; `local_start` is where its own disk begins."""

    def __init__(self, answers: Iterator[Facts], local_start: int | None) -> None:
        super().__init__({METADATA: self._metadata, LIST_OFFSETS: self._list, FETCH: lambda _: next(answers)})
        self._local_start = local_start
        if local_start is None:
            offered = versions_facts({**OFFERED, LIST_OFFSETS: 7})
            self.script[API_VERSIONS] = lambda _: {"api_keys": offered}

    def _metadata(self, request: Any) -> Facts:
        partition = {"partition_index": 0, "leader_id": 1, "leader_epoch": 5, "isr_nodes": [1]}
        topics = [{"name": one.name, "topic_id": TOPIC_ID, "partitions": [partition]} for one in request.topics]
        endpoint = {"node_id": 1, "host": self.address.host, "port": self.address.port}
        return {"brokers": [endpoint], "controller_id": 1, "topics": topics}

    def _list(self, request: Any) -> Facts:
        (topic,) = request.topics
        (asked,) = topic.partitions
        assert asked.timestamp == -4
        return {"topics": [{"name": topic.name, "partitions": [{"partition_index": 0, "offset": self._local_start}]}]}


def given(records: bytes = b"", high_watermark: int = 3) -> Facts:
    partition = {"high_watermark": high_watermark, "last_stable_offset": high_watermark, "records": records or None}
    return {"responses": [{"topic": "t", "topic_id": TOPIC_ID, "partitions": [partition]}]}


def read(answers: Iterable[Facts], local_start: int | None, asked: RangeToFetch = ASKED) -> list[int]:
    """Where the chunks begin."""

    async def scenario(loop: SkippingLoop) -> list[int]:
        async with Leader(iter(answers), local_start) as broker:
            properties = parse_properties({"bootstrap.servers": str(broker.address), "fetch.max.wait.ms": "0"})
            async with ClusterClient((broker.address,), PlainConnector("t"), lambda: 0.5, properties.limits) as cluster:

                async def starts() -> list[int]:
                    return [chunk.start async for chunk in fetch_range(cluster, properties, asked)]

                return await loop.skip_until(asyncio.ensure_future(starts()))

    return run(scenario)


@pytest.mark.parametrize("local_start", [100, None], ids=["tiered", "brokers that cannot say"])
def test_a_leader_that_is_slow_to_have_records_loses_none(local_start: int | None) -> None:
    assert read(chain(repeat(given(), 20), [given(THREE)]), local_start) == [0]


def test_nothing_is_left_where_the_leader_has_nothing_on_its_own_disk() -> None:
    assert read([given(), given()], local_start=0) == []


@pytest.mark.parametrize("is_tolerant", [False, True])
def test_a_leader_that_never_gives_what_it_has_is_an_error_after_a_while(is_tolerant: bool) -> None:
    asked = RangeToFetch("t", 0, 0, 3, poll_timeout_ms=60_000, tolerates_loss=is_tolerant)
    with pytest.raises(
        RequestTimedOut, match=r"^t-0 gave nothing at offset 0 for 60000 ms, though it ends at offset 3"
    ):
        read(repeat(given()), 100, asked)


def growing(gone_in: int) -> Iterator[Facts]:
    """Of a producer that is faster than the reader: each response has three offsets, and nine more have come.

    In so many responses the second of them is compacted away.
    """
    for number in count():
        records = [Record(3 * number + delta, 0, b"k", b"v") for delta in range(3)]
        kept = [records[0], records[2]] if number < gone_in else records
        yield given(bytes(build_batch(kept)), high_watermark=9 * (number + 1))


@pytest.mark.parametrize(
    ("gone_in", "last"),
    [
        (0, 6),  # Nothing is missing up to where the log ended at the first look.
        (1, 24),  # Something is: what takes its place lies before where the log ends at the second look, at offset 27.
        (3, 24),
        (4, 78),  # The second look, at offset 9, was in vain, too: the third one is at offset 27.
    ],
)
def test_a_table_without_an_end_is_over_though_its_producer_is_faster(gone_in: int, last: int) -> None:
    asked = RangeToFetch("t", 0, 0, 3, goes_on=True)
    assert read(islice(growing(gone_in), 100), 0, asked)[-1] == last


def test_a_log_that_never_gets_to_the_end_is_data_loss_after_a_while() -> None:
    with pytest.raises(DataLoss, match=r"^data loss: t-0 ends at offset 2, and 3 was asked for"):
        read(repeat(given(high_watermark=2)), 0)
