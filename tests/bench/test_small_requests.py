"""Requests laid out by hand, and where a real broker's answers tell errors."""

import socket
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bench.librdkafka import create_topic, end_offset
from bench.small_requests import (
    FETCHED_BYTES,
    SmallRequest,
    WrongAnswer,
    checked_error_at,
    fetch_request,
    metadata_request,
    one_record_batch,
    produce_frame,
    produce_head,
    produce_request,
    receive_answer,
)
from bench.source_log import MEBIBYTE, Log, SourceLogs
from lamina.records.batch import check_crc, read_header
from tests.peers.lamina import Lamina

TOPIC = "topic"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lamina]:
    """One that makes no topic by itself, with one topic that holds one record."""
    settings = {"auto.create.topics.enable": "false", "lamina.spark.master": "none"}
    with Lamina(tmp_path_factory.mktemp("broker"), settings) as running:
        create_topic(running.bootstrap, TOPIC, first_value_bytes=FETCHED_BYTES)
        yield running
        running.stop()


def address(broker: Lamina) -> tuple[str, int]:
    host, port = broker.bootstrap.rsplit(":", 1)
    return host, int(port)


def test_a_batch_is_one_that_the_log_takes() -> None:
    batch = one_record_batch(b"v" * 100, 1_700_000_000_000)
    header = read_header(batch)
    check_crc(batch, 0, header)
    assert (header.base_offset, header.record_count, header.max_timestamp) == (0, 1, 1_700_000_000_000)


def test_a_frame_is_its_head_and_its_batch() -> None:
    batch = one_record_batch(b"v", 0)
    frame = produce_frame("topic", 3, batch)
    assert frame == produce_head("topic", 3, len(batch)) + batch
    assert struct.unpack_from(">i", frame)[0] == len(frame) - 4


@pytest.mark.parametrize("new_request", [produce_request, fetch_request, metadata_request])
def test_a_broker_tells_an_error_where_it_is_looked_for(
    broker: Lamina, new_request: Callable[[str], SmallRequest]
) -> None:
    checked_error_at(address(broker), new_request(TOPIC))
    with pytest.raises(WrongAnswer, match="error 3"):
        checked_error_at(address(broker), new_request("absent"))


def test_a_fetch_that_brings_no_record_is_noticed(broker: Lamina) -> None:
    request = fetch_request(TOPIC)
    demanding = SmallRequest(request.frame, request.error_at, least_answer_bytes=1 << 20)
    with pytest.raises(WrongAnswer, match="not what was asked for"):
        checked_error_at(address(broker), demanding)


def test_an_answer_that_comes_in_pieces_is_put_together() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.settimeout(10)
        theirs.sendall(b"\0\0\0\x04ab")
        theirs.sendall(b"cd\0\0")
        assert receive_answer(ours) == b"\0\0\0\x04abcd"
        theirs.close()
        with pytest.raises(WrongAnswer, match="closed"):
            receive_answer(ours)


def test_a_source_log_reaches_a_broker_whole_and_in_its_codec(broker: Lamina, tmp_path: Path) -> None:
    sources = SourceLogs(tmp_path / "source")
    log = Log(3_000, 100, 50, segment_bytes=MEBIBYTE, codec="lz4")
    for topic in ("first", "second"):
        sources.send(log, broker, topic)
        assert end_offset(broker.bootstrap, topic) == 3_000
    first, second = (
        [path.read_bytes() for path in sorted((broker.data_directory / "logs" / f"{topic}-0").glob("*.log"))]
        for topic in ("first", "second")
    )
    assert first == second
