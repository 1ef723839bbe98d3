"""Files that a broker lends are read in place of Fetch, with the same rows; where they are not seen, Fetch is used."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lamina.arrow
from lamina.arrow import DataLoss, ReadError, segment_files, sourcing
from lamina.arrow.prefetching import Prefetch, RangeToFetch, ReadFiles
from lamina.arrow.properties import ClientProperties
from lamina.arrow.reading import read_range
from lamina.arrow.segment_files import NotSeen, lent_chunks
from lamina.broker.partitions.read_leases import LEASE_MS, MOST_SEGMENTS
from lamina.errors import CorruptMessage
from lamina.log.files import Disk
from lamina.log.lending import find_ranges, link_files
from lamina.log.names import READING_FOLDER
from lamina.peer.cluster import ClusterClient
from lamina.peer.lending import Lent, LentSegment
from lamina.records.batch import walk
from lamina.records.columns.arrow import record_batches
from tests.arrow.topics import client, create, delete, make_compacted, numbered, produce, transact
from tests.broker.process import BrokerProcess, eventually
from tests.broker.test_compaction import QUICKLY
from tests.log.building import a_log
from tests.records.columns.test_arrow import logs, plain_rows

Start = Callable[..., BrokerProcess]
COLUMNS = ("partition", "offset", "key", "value", "timestamp", "headers")
COMMITTED = {"isolation.level": "read_committed"}


def rows(broker: BrokerProcess, topic: str, *columns: str, files: str = "require", **given: Any) -> list[Any]:
    reader = lamina.arrow.read(topic, columns or COLUMNS, bootstrap_servers=broker.address, read_files=files, **given)
    return [tuple(row.values()) for row in reader.read_all().to_pylist()]


def leases(broker: BrokerProcess) -> list[Path]:
    return list((broker.log_dir / READING_FOLDER).glob("*"))


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_files_have_the_rows_that_fetch_gives(broker: BrokerProcess, topic: str, codec: str) -> None:
    create(broker.address, topic, 2, {"internal.segment.bytes": "2000"})
    headers = [("origin", b"test"), ("none", None)]
    for partition in range(2):
        config: dict[str, str | int] = {"compression.type": codec, "batch.num.messages": 7}
        produce(broker.address, topic, numbered(100), partition=partition, config=config, headers=headers)
    found = rows(broker, topic)
    assert found == rows(broker, topic, files="never")
    assert len(found) == 200
    assert rows(broker, topic, "offset", start=13, end=88, partitions=[1]) == [(offset,) for offset in range(13, 88)]
    eventually(lambda: not leases(broker))


def test_many_segments_are_lent_one_lease_after_the_other(broker: BrokerProcess, topic: str) -> None:
    create(broker.address, topic, config={"internal.segment.bytes": "300"})
    produce(broker.address, topic, numbered(200), config={"batch.num.messages": 3})
    assert rows(broker, topic, "offset") == [(offset,) for offset in range(200)]


def test_aborted_transactions_are_left_out_of_committed_reads(
    broker: BrokerProcess, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(broker.address, topic, config={"internal.segment.bytes": "2000"})
    for round_ in range(3):
        transact(broker.address, topic, [b"no %d" % round_] * 50, commits=False)
        transact(broker.address, topic, [b"yes %d" % round_] * 50, commits=True)
    wanted = [(b"yes %d" % round_,) for round_ in range(3) for _ in range(50)]
    assert rows(broker, topic, "value", properties=COMMITTED) == wanted
    monkeypatch.setattr(segment_files, "WINDOW_BYTES", 100)
    assert rows(broker, topic, "value", properties=COMMITTED) == wanted
    assert len(rows(broker, topic, "value")) == 300


def test_a_compacted_topic_is_read_over_its_gaps(own_broker: Start) -> None:
    broker = own_broker(*QUICKLY)
    make_compacted(broker.address, broker.log_dir, "t")
    found = rows(broker, "t", "key", "offset", "value")
    assert len(found) < 600
    latest = {key: (offset, value) for key, offset, value in found}
    assert latest == {b"k%02d" % key: (29 * 50 + key, b"29" * 20) for key in range(50)}


def test_a_batch_larger_than_a_window_comes_whole(broker: BrokerProcess, topic: str) -> None:
    create(broker.address, topic)
    large = bytes(range(256)) * 3000
    produce(broker.address, topic, [(b"k", large), (b"l", b"v")])
    asked = RangeToFetch(topic, 0, 0, 2, read_files=ReadFiles.REQUIRE)
    batches = read_range(client(broker.address), asked, ["value"], 1024)
    assert [row["value"] for batch in batches for row in batch.to_pylist()] == [large, b"v"]


def test_what_is_deleted_while_it_is_read_is_read_as_far_as_it_was_lent(own_broker: Start) -> None:
    broker = own_broker()
    config = {"internal.segment.bytes": "20000", "file.delete.delay.ms": "0"}
    create(broker.address, "t", config=config)
    produce(broker.address, "t", numbered(20_000), config={"batch.num.messages": 100})
    asked = RangeToFetch("t", 0, 0, 20_000, read_files=ReadFiles.REQUIRE)
    batches = read_range(client(broker.address, {"default.api.timeout.ms": "500"}), asked, ["offset"], 1024)
    found = next(batches).column("offset").to_pylist()
    lent = {path.name: path.stat().st_size for path in leases(broker)[0].iterdir()}
    assert len(lent) == MOST_SEGMENTS
    delete(broker.address, "t")
    eventually(lambda: not list(broker.log_dir.glob("t-0*")))
    with pytest.raises(DataLoss):
        found.extend(one for batch in batches for one in batch.column("offset").to_pylist())
    assert found == list(range(len(found)))
    assert len(found) > int(max(lent)[:20])
    eventually(lambda: not leases(broker))


READER = """
import sys, time
from lamina.arrow.prefetching import RangeToFetch, ReadFiles
from lamina.arrow.properties import parse_properties
from lamina.arrow.reading import read_range
client = parse_properties({"bootstrap.servers": sys.argv[1]})
batches = read_range(client, RangeToFetch("t", 0, 0, 10, read_files=ReadFiles.REQUIRE), ["offset"])
print(next(batches).num_rows, flush=True)
time.sleep(600)
"""


@pytest.mark.long
def test_a_reader_that_is_killed_has_given_its_lease_back_soon(own_broker: Start) -> None:
    broker = own_broker()
    create(broker.address, "t")
    produce(broker.address, "t", numbered(10))
    with subprocess.Popen([sys.executable, "-c", READER, broker.address], stdout=subprocess.PIPE) as reader:
        assert reader.stdout is not None
        assert reader.stdout.readline() == b"10\n"
        held_until = time.monotonic() + LEASE_MS / 1000 * 1.5
        eventually(lambda: time.monotonic() > held_until, seconds=60)
        assert len(leases(broker)) == 1, "it is renewed"
        reader.kill()
    eventually(lambda: not leases(broker), seconds=60)


def test_a_broker_that_restarts_in_the_middle_lends_again(own_broker: Start) -> None:
    broker = own_broker()
    broker.keep_port()
    create(broker.address, "t", config={"internal.segment.bytes": "2000"})
    produce(broker.address, "t", numbered(2000), config={"batch.num.messages": 10})
    asked = RangeToFetch("t", 0, 0, 2000, read_files=ReadFiles.REQUIRE)
    batches = read_range(client(broker.address), asked, ["offset"], 1024)
    found = next(batches).column("offset").to_pylist()
    broker.kill()
    broker.start()
    assert not leases(broker), "what was lent before is not known any more"
    found += [one for batch in batches for one in batch.column("offset").to_pylist()]
    assert found == list(range(2000))


# Where files are not to be had


def refuse(path: str, *_: object, **__: object) -> int:
    raise FileNotFoundError(2, "No such file or directory", path)


def other_inode(file: int) -> os.stat_result:
    status = os.stat(file)
    return os.stat_result((status.st_mode, status.st_ino + 1, *status[2:]))


def cut(file: int) -> os.stat_result:
    status = os.stat(file)
    return os.stat_result((*status[:6], 1, *status[7:]))


@pytest.mark.parametrize(
    ("name", "instead", "sentence"),
    [
        ("open", refuse, r"cannot be opened here: No such file or directory"),
        ("fstat", other_inode, r"is another file here than on the broker's machine"),
        ("fstat", cut, r"has 1 bytes here, and \d+ were lent"),
    ],
    ids=["not there", "another file", "not whole"],
)
def test_files_that_are_not_seen_are_fetched_unless_they_are_required(
    broker: BrokerProcess,
    topic: str,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    instead: Callable[..., object],
    sentence: str,
) -> None:
    create(broker.address, topic)
    produce(broker.address, topic, numbered(10))
    monkeypatch.setattr(segment_files, "os", SimpleNamespace(**{**vars(os), name: instead}))
    assert rows(broker, topic, "offset", files="auto") == [(offset,) for offset in range(10)]
    with pytest.raises(ReadError, match=f"^the files of {topic}-0 cannot be read: .*{sentence}; with readFiles=auto"):
        rows(broker, topic, "offset")
    eventually(lambda: not leases(broker))


def test_a_folder_that_is_no_leases_is_not_opened(broker: BrokerProcess, topic: str) -> None:
    """A broker is not believed: it could name any file of this machine."""
    lent = Lent(1, uuid4(), 1000, "/etc", 9, [LentSegment(0, 0, 9, 1)], [])
    for folder in ("/etc", f"/{READING_FOLDER}/{uuid4().hex}", f"/etc/{lent.lease_id}"):
        with pytest.raises(NotSeen, match="is not a folder of a lease"):
            next(lent_chunks(lent._replace(folder=folder), RangeToFetch("t", 0, 0, 9), 0, is_committed_only=False))


def test_a_broker_that_lends_nothing_is_fetched_from_unless_files_are_required(own_broker: Start) -> None:
    broker = own_broker("--set", "lamina.read.leases.max=0")
    create(broker.address, "t")
    produce(broker.address, "t", numbered(10))
    assert rows(broker, "t", "offset", files="auto") == [(offset,) for offset in range(10)]
    with pytest.raises(ReadError, match=r"^the files of t-0 cannot be read: .*lamina.read.leases.max is 0"):
        rows(broker, "t", "offset")


def test_another_machine_reads_what_is_flushed_from_files_and_fetches_the_rest(
    broker: BrokerProcess, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(broker.address, topic, config={"internal.segment.bytes": "2000"})
    produce(broker.address, topic, numbered(200), config={"batch.num.messages": 10})
    monkeypatch.setattr(Disk, "boot_id", lambda _: "another")
    fetched: list[int] = []

    class Counted(Prefetch):
        def __init__(self, cluster: ClusterClient, properties: ClientProperties, asked: RangeToFetch) -> None:
            fetched.append(asked.start)
            super().__init__(cluster, properties, asked)

    monkeypatch.setattr(sourcing, "Prefetch", Counted)

    def is_read_from_files_first() -> bool:
        fetched.clear()
        assert rows(broker, topic, "offset") == [(offset,) for offset in range(200)]
        return fetched[0] > 0

    eventually(is_read_from_files_first)
    assert fetched[0] < 200


def test_the_mode_is_one_of_three(broker: BrokerProcess, topic: str) -> None:
    create(broker.address, topic)
    with pytest.raises(ReadError, match=r"^read_files: 'maybe' is none of auto, never, require"):
        rows(broker, topic, files="maybe")


# Damage


def read(lent: Lent, asked: RangeToFetch, column: str, window_bytes: int) -> Iterator[int]:
    for chunk in lent_chunks(lent, asked, asked.start, is_committed_only=False, window_bytes=window_bytes):
        for batch in record_batches(
            chunk.records,
            columns=[column],
            start_offset=chunk.start,
            end_offset=asked.end,
            aborted=None,
            max_batch_bytes=1024,
            name=chunk.name,
            first_position=chunk.position,
        ):
            yield from batch.column(column).to_pylist()


def segments(broker: BrokerProcess, topic: str) -> list[Path]:
    return sorted(broker.log_dir.glob(f"{topic}-0/*.log"))


def overwrite(path: Path, position: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(position)
        file.write(data)


@pytest.mark.parametrize(
    ("at", "data", "sentence"),
    [
        (70, b"\xff", "CRC"),
        (16, b"\x07", "magic 7"),
        (8, b"\x7f\xff\xff\xff", "runs past the file's end"),
        (0, b"\0" * 8, "begins at offset 0, below the"),
    ],
    ids=["a record", "magic", "length", "offset"],
)
@pytest.mark.parametrize("window_bytes", [64, 700, 1 << 20])
def test_a_corrupt_segment_is_one_sentence_with_file_and_position(
    tmp_path: Path, at: int, data: bytes, sentence: str, window_bytes: int
) -> None:
    builder = a_log(tmp_path, segment_bytes=1000)
    builder.append_batches(30)
    ranges = find_ranges(builder.log, 0, 30, 30, 16)
    lease_id = uuid4()
    folder = tmp_path / READING_FOLDER / lease_id.hex
    files = [LentSegment(*file) for file in link_files(builder.disk, str(folder), ranges)]
    second = files[1]
    header = next(walk((folder / f"{second.base_offset:020d}.log").read_bytes()))[1]
    position = 2 * header.size_bytes
    overwrite(folder / f"{second.base_offset:020d}.log", position + at, data)
    lent = Lent(1, lease_id, 1000, str(folder), 30, files, [])
    wanted = (
        f"^{tmp_path}/topic-0/{second.base_offset:020d}.log is damaged at position {position}, "
        f"offset {second.base_offset + 2}: .*{sentence}"
    )
    found: list[int] = []
    with pytest.raises(CorruptMessage, match=wanted) as raised:
        found.extend(read(lent, RangeToFetch("topic", 0, 0, 30), "offset", window_bytes))
    assert "\n" not in str(raised.value)
    assert found == list(range(len(found)))
    assert second.base_offset <= len(found) <= second.base_offset + 2


@given(logs(), st.integers(61, 2000), st.data())
def test_windows_of_any_size_give_the_records_of_the_plain_reader(
    tmp_path_factory: pytest.TempPathFactory, data: bytearray, window_bytes: int, choices: st.DataObject
) -> None:
    lease_id = uuid4()
    folder = tmp_path_factory.getbasetemp() / READING_FOLDER / lease_id.hex
    folder.mkdir(parents=True)
    path = folder / f"{0:020d}.log"
    path.write_bytes(data)
    ends = [header.next_offset for _, header in walk(bytes(data))]
    start, end = sorted(choices.draw(st.sampled_from([0, *ends])) for _ in range(2))
    lent = Lent(1, lease_id, 1000, str(folder), end, [LentSegment(0, 0, len(data), path.stat().st_ino)], [])
    found = list(read(lent, RangeToFetch("topic", 0, start, end), "offset", window_bytes))
    assert found == [row["offset"] for row in plain_rows(data, (start, end))]


def test_positions_are_those_in_the_file(tmp_path: Path) -> None:
    builder = a_log(tmp_path, segment_bytes=1000)
    builder.append_batches(30)
    lease_id = uuid4()
    folder = tmp_path / READING_FOLDER / lease_id.hex
    files = [
        LentSegment(*file) for file in link_files(builder.disk, str(folder), find_ranges(builder.log, 3, 30, 30, 16))
    ]
    lent = Lent(1, lease_id, 1000, str(folder), 30, files, [])
    found = list(read(lent, RangeToFetch("topic", 0, 3, 30), "batch_position", 100))
    wanted = [position for segment in builder.log.segments for position, _ in segment.headers(0, segment.size_bytes)]
    assert found == wanted[3:]
