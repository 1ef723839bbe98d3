"""Passes over logs made by hand: one fact each, and what a pass tells about itself."""

import errno
import os
import pickle
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from crc32c import crc32c

from lamina.cleaning.clean_log import clean_log
from lamina.cleaning.contract import Manifest, Plan, dump, load
from lamina.cleaning.failures import CorruptLog, EngineMissing, NotEnoughFreeSpace, SourceLost, TooManyKeys
from lamina.cleaning.header_scan import scan_headers
from lamina.cleaning.job import run_plan
from lamina.compaction.retain import NEVER_MS
from lamina.log.entries import OpenMaps
from lamina.log.files import Disk, File
from lamina.log.index_pair import IndexRebuilds, IndexShape
from lamina.log.positions import find
from lamina.log.segment import Segment as LogSegment
from lamina.records.batch import HEADER_BYTES, Codec, read_header
from lamina.records.record import Record, build_batch, read_records
from tests.cleaning.passes import install, plan_of, run_pass
from tests.compaction.model import LIMIT_BYTES, Segment
from tests.compaction.story import START_MS, Story

DAY_MS = 86_400_000


def run(
    directory: Path,
    story: Story,
    *,
    first_dirty: int = 0,
    retention: int = DAY_MS,
    forgotten: bool = True,
    **changes: object,
) -> tuple[Manifest, list[Segment]]:
    """One pass, put in place."""
    gone = frozenset(story.writers) if forgotten else frozenset()
    plan = plan_of(directory, story, story.pass_at(first_dirty, retention, gone), **changes)
    manifest, new = run_pass(plan)
    install(story, plan, new)
    return manifest, new


def records(segments: list[Segment]) -> list[Record]:
    return [
        record
        for segment in segments
        for batch in segment.batches
        for record in read_records(batch, 0, read_header(batch), LIMIT_BYTES)
    ]


def offsets(segments: list[Segment]) -> list[int]:
    return [record.offset for record in records(segments)]


def test_fact_50_data_whose_abort_marker_lies_in_the_active_segment_supersedes_nothing(tmp_path: Path) -> None:
    story = Story()
    story.write([(b"k", b"committed")])
    story.write([(b"k", b"aborted")], producer=11, transactional=True)
    story.roll()
    story.end(11, commit=False)
    assert [len(segment.aborts) for segment in story.segments] == [0, 1]
    _, new = run(tmp_path, story)
    assert [record.value for record in records(new)] == [b"committed"]


def test_fact_102_five_records_of_two_keys_with_the_first_two_clean_leave_two(tmp_path: Path) -> None:
    story = Story()
    for key in (b"0", b"1", b"0", b"1", b"0"):
        story.write([(key, b"v")])
    story.roll()
    manifest, new = run(tmp_path, story, first_dirty=2)
    assert manifest.end_offset == 5
    assert (manifest.before.records, manifest.after.records, manifest.dropped.without_key) == (5, 2, 0)
    assert offsets(new) == [3, 4]


def test_fact_34_a_key_with_the_bytes_of_a_marker_is_a_key_like_any_other(tmp_path: Path) -> None:
    story = Story()
    story.write([(b"\x00\x00\x00\x01", b"v")], producer=11, transactional=True)
    story.end(11, commit=True)
    story.roll()
    _, new = run(tmp_path, story)
    assert offsets(new) == [0, 1]


def test_fact_34_clean_records_do_not_supersede_each_other(tmp_path: Path) -> None:
    story = Story()
    story.write([(b"a", b"1")])
    story.write([(b"a", b"2")])
    story.roll()
    story.write([(b"b", b"3")])
    story.roll()
    _, new = run(tmp_path, story, first_dirty=2)
    assert offsets(new) == [0, 1, 2]


def test_fact_41_the_clean_section_is_rewritten_too(tmp_path: Path) -> None:
    story = Story()
    story.write([(b"a", b"1"), (b"b", b"2")])
    story.roll()
    story.write([(b"a", b"3")])
    story.roll()
    _, new = run(tmp_path, story, first_dirty=2)
    assert offsets(new) == [1, 2]


def test_fact_43_and_45_a_group_of_which_nothing_is_left_keeps_its_name_and_is_empty(tmp_path: Path) -> None:
    story = Story()
    story.skip(5)
    story.segments[0].base_offset = 5
    story.write([(b"a", b"1")])
    story.roll()
    story.write([(b"a", b"2")])
    story.roll()
    manifest, new = run(tmp_path, story, segment_bytes=1)
    assert (new[0].base_offset, new[0].data) == (5, b"")
    assert [(file.extension, file.size_bytes) for file in manifest.groups[0].files] == [
        (".log", 0),
        (".index", 0),
        (".timeindex", 0),
    ]


def test_fact_47_every_file_gets_the_time_of_the_last_source_of_its_group(tmp_path: Path) -> None:
    story = Story()
    for key in (b"a", b"b", b"c"):
        story.write([(key, b"v")])
        story.roll()
    plan = plan_of(tmp_path, story, story.pass_at(0, 0, frozenset()))
    manifest, _ = run_pass(plan)
    (group,) = manifest.groups
    assert group.sources == (0, 1, 2)
    assert group.modified_ms == plan.segments[2].modified_ms
    for file in group.files:
        path = f"{plan.pass_folder}/{file.name}"
        assert Disk().modified_ms(path) == plan.segments[2].modified_ms
        assert os.stat(path).st_size == file.size_bytes


def test_fact_47_the_indexes_of_a_cleaned_segment_are_believed_as_they_are(tmp_path: Path) -> None:
    story = Story()
    for number in range(60):
        story.now_ms += 10
        story.write([(b"k%d" % (number % 40), b"v" * 30), (b"other", b"v")])
    story.roll()
    plan = plan_of(tmp_path, story, story.pass_at(0, 0, frozenset()), index_interval_bytes=300)
    manifest, (new,) = run_pass(plan)
    (group,) = manifest.groups
    for file in group.files:
        (tmp_path / f"{0:020d}{file.extension}").write_bytes((Path(plan.pass_folder) / file.name).read_bytes())
    before = {path.name: path.read_bytes() for path in tmp_path.glob("*index")}
    shape = IndexShape(plan.segment_index_bytes, plan.index_interval_bytes, OpenMaps(), IndexRebuilds())
    segment = LogSegment.load(
        Disk(), str(tmp_path), 0, shape, size_bytes=len(new.data), modified_ms=0, has_aborted=False
    )
    for record in records([new]):
        found = find(segment, record.offset)
        assert found is not None
        assert found[1].base_offset <= record.offset <= found[1].last_offset
    assert segment.largest_timestamp().timestamp == max(record.timestamp for record in records([new]))
    segment.rebuild_indexes()
    segment.close()
    assert {path.name: path.read_bytes() for path in tmp_path.glob("*index")} == before


def test_fact_49_a_batch_larger_than_every_buffer_is_cleaned(tmp_path: Path) -> None:
    story = Story()
    story.write([(b"a", b"1"), (b"b", b"x" * 9_000_000), (b"c", b"2")])
    story.write([(b"a", b"3")])
    story.roll()
    _, new = run(tmp_path, story)
    assert offsets(new) == [1, 2, 3]


def test_fact_63_an_empty_value_is_no_tombstone(tmp_path: Path) -> None:
    story = Story()
    story.write([(b"a", b"")])
    story.roll()
    manifest, new = run(tmp_path, story, retention=0)
    assert manifest.horizons.set_now == 0
    assert offsets(new) == [0]


@pytest.mark.parametrize("codec", list(Codec))
def test_fact_65_a_batch_that_keeps_everything_is_copied_byte_for_byte(tmp_path: Path, codec: Codec) -> None:
    story = Story()
    story.write([(b"a", b"1"), (b"b", b"2")], codec=codec)
    story.roll()
    before = story.segments[0].data
    _, (new,) = run(tmp_path, story)
    assert new.data == before


@pytest.mark.parametrize("codec", list(Codec))
def test_facts_66_to_68_a_tombstone_gets_a_horizon_and_goes_when_it_has_come(tmp_path: Path, codec: Codec) -> None:
    story = Story()
    story.write([(b"a", b"1"), (b"b", None), (b"c", b"3")], codec=codec, timestamp_step=7)
    story.write([(b"z", b"last")])
    story.roll()
    before = records(story.segments)
    manifest, new = run(tmp_path, story, retention=1000)
    header = read_header(new[0].batches[0])
    assert header.delete_horizon_ms == header.base_timestamp == START_MS + 1000
    assert header.codec_id == codec
    assert records(new) == before
    assert (manifest.horizons.set_now, manifest.horizons.earliest_ms) == (1, START_MS + 1000)
    for now, left, expired in ((START_MS + 999, [0, 1, 2, 3], 0), (START_MS + 1000, [0, 2, 3], 1)):
        story.now_ms = now
        manifest, new = run(tmp_path, story, retention=5)
        assert offsets(new) == left
        assert manifest.dropped.expired_tombstones == expired
        assert (
            read_header(new[0].batches[0]).delete_horizon_ms == START_MS + 1000
        )  # never changed, even when they are gone


def test_fact_68_a_tombstone_survives_its_first_pass_even_without_retention(tmp_path: Path) -> None:
    story = Story()
    story.write([(b"a", None)])
    story.write([(b"z", b"last")])
    story.roll()
    assert offsets(run(tmp_path, story, retention=0)[1]) == [0, 1]
    assert offsets(run(tmp_path, story, retention=0)[1]) == [1]


def test_fact_69_a_marker_goes_in_the_third_pass(tmp_path: Path) -> None:
    story = Story()
    story.write([(b"a", b"1")], producer=11, transactional=True)
    story.end(11, commit=False)
    story.write([(b"z", b"last")])
    story.roll()
    seen = []
    for _ in range(3):
        manifest, new = run(tmp_path, story, retention=0)
        seen.append((offsets(new), manifest.horizons.set_now, [segment.aborts != [] for segment in new]))
    assert seen == [([1, 2], 0, [True]), ([1, 2], 1, [False]), ([2], 0, [False])]


def test_fact_70_a_rebuilt_batch_keeps_its_place_and_its_producer(tmp_path: Path) -> None:
    story = Story()
    story.write([(b"a", b"1"), (b"b", b"2"), (b"a", b"3")], producer=11, timestamp_step=10, has_headers=True)
    story.write([(b"b", b"4")])
    story.roll()
    before = read_header(story.segments[0].batches[0])
    _, (new,) = run(tmp_path, story)
    after = read_header(new.batches[0])
    assert after == before._replace(
        length=after.length, crc=after.crc, record_count=1, base_timestamp=START_MS + 20, max_timestamp=START_MS + 20
    )
    assert records([new])[0] == Record(2, START_MS + 20, b"a", b"3", ((b"h", b"1"), (b"", None)))


def test_fact_70_log_append_time_stays(tmp_path: Path) -> None:
    story = Story()
    story.write([(b"a", b"1"), (b"b", b"2"), (b"a", b"3")], log_append_time=True, timestamp_step=10)
    story.roll()
    before = read_header(story.segments[0].batches[0])
    _, (new,) = run(tmp_path, story)
    after = read_header(new.batches[0])
    assert (after.attributes, after.max_timestamp) == (before.attributes, before.max_timestamp)
    assert {record.timestamp for record in records([new])} == {START_MS + 3}


def test_fact_72_a_batch_that_grows_beyond_the_largest_message_is_written_and_counted(tmp_path: Path) -> None:
    story = Story()
    story.write([(b"%d" % number, None) for number in range(50)])
    story.roll()
    before = len(story.segments[0].data)
    manifest, (new,) = run(tmp_path, story, max_message_bytes=before)
    assert len(new.data) > before
    assert manifest.oversized_batches == 1


def test_fact_73_a_protected_batch_without_records_is_a_header_of_61_bytes(tmp_path: Path) -> None:
    story = Story()
    story.write([(b"a", b"1"), (b"b", b"2")], producer=11, codec=Codec.ZSTD)
    story.write([(b"a", b"3"), (b"b", b"4")])
    story.roll()
    before = read_header(story.segments[0].batches[0])
    manifest, (new,) = run(tmp_path, story, forgotten=False)
    header = read_header(new.batches[0])
    assert len(new.batches[0]) == HEADER_BYTES
    assert header == before._replace(
        length=HEADER_BYTES - 12, crc=header.crc, attributes=0, base_timestamp=-1, record_count=0
    )
    assert manifest.after.header_only_batches == 1
    assert run(tmp_path, story, forgotten=False)[1][0].batches[0] == new.batches[0]


def test_a_horizon_beyond_all_times_is_the_last_one(tmp_path: Path) -> None:
    story = Story()
    story.write([(b"a", None)])
    story.roll()
    _, (new,) = run(tmp_path, story, retention=2**63 - 1)
    assert read_header(new.batches[0]).delete_horizon_ms == NEVER_MS
    assert records([new]) == [Record(0, START_MS, b"a", None)]


def test_a_plan_that_wants_only_what_has_expired_leaves_other_groups_alone(tmp_path: Path) -> None:
    story = Story()
    for key in (b"a", b"b"):
        story.write([(key, b"1")])
        story.roll()
    story.write([(b"c", None)])
    story.write([(b"d", b"2")])
    story.roll()
    run(tmp_path, story, retention=10, segment_bytes=1)
    story.now_ms += 10
    end = story.first_uncleanable_offset
    plan = plan_of(tmp_path, story, story.pass_at(end, 10, frozenset()), segment_bytes=1, only_expired=True)
    manifest, new = run_pass(plan)
    assert [group.base_offset for group in manifest.groups] == [2]
    assert offsets(new) == [3]
    assert manifest.before.records == 2


def test_the_figures_of_a_pass_add_up(tmp_path: Path) -> None:
    story = Story()
    story.write([(b"a", b"1"), (None, b"x"), (b"b", None), (b"a", b"2")])
    story.write([(b"a", b"3"), (b"c", b"4")], producer=11, transactional=True)
    story.end(11, commit=False)
    story.write([(b"z", b"last")])
    story.roll()
    manifest, new = run(tmp_path, story, retention=1000)
    dropped = manifest.dropped
    lost = dropped.superseded + dropped.expired_tombstones + dropped.without_key + dropped.aborted
    assert manifest.before.records - lost - dropped.expired_markers == manifest.after.records == len(records(new))
    assert (dropped.superseded, dropped.without_key, dropped.aborted) == (1, 1, 2)
    assert (manifest.keys, manifest.after.tombstones, manifest.after.markers) == (3, 1, 1)
    assert manifest.after.bytes == sum(len(segment.data) for segment in new)
    assert load(Manifest, dump(manifest)) == manifest


# What goes wrong


def a_plan(directory: Path, **changes: object) -> Plan:
    story = Story()
    story.write([(b"k%d" % number, b"v" * 20) for number in range(50)])
    story.write([(b"z", b"1")])
    story.roll()
    return plan_of(directory, story, story.pass_at(0, 0, frozenset()), **changes)


def outputs(plan: Plan) -> list[str]:
    return sorted(set(os.listdir(plan.pass_folder)) - {segment.log_name for segment in plan.segments})


def spoil(plan: Plan, position: int, data: bytes) -> None:
    path = Path(plan.pass_folder) / plan.segments[0].log_name
    content = bytearray(path.read_bytes())
    content[position : position + len(data)] = data
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("position", "data", "said"),
    [
        (70, b"\xff", "CRC"),
        (16, b"\x01", "magic 1"),
        (8, b"\x7f\xff\xff\xff", "runs past the file's end"),
        (8, b"\x00\x00\x00\x00", "too few for a header"),
        (0, b"\xff", "offset"),
    ],
)
def test_a_bad_batch_fails_the_pass_and_is_named(tmp_path: Path, position: int, data: bytes, said: str) -> None:
    plan = a_plan(tmp_path)
    spoil(plan, position, data)
    with pytest.raises(CorruptLog, match=said) as caught:
        run_pass(plan)
    assert (caught.value.position, caught.value.offset) == (0, 0)
    assert caught.value.path == f"{plan.directory}/{0:020d}.log"
    assert outputs(plan) == []
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_records_that_lie_under_a_right_crc_fail_the_pass(tmp_path: Path) -> None:
    story = Story()
    good = build_batch([Record(0, START_MS, b"a", b"1"), Record(1, START_MS, b"b", b"2")])
    bad = bytearray(good)
    bad[HEADER_BYTES] += 2  # the first record's length
    bad[17:21] = crc32c(bytes(bad[21:])).to_bytes(4, "big")
    story.segments[0].batches.append(bytes(bad))
    story.next_offset = 2
    story.roll()
    plan = plan_of(tmp_path, story, story.pass_at(0, 0, frozenset()))
    with pytest.raises(CorruptLog, match="record 0 claims 9 bytes, its fields take 8"):
        run_pass(plan)
    assert outputs(plan) == []


def test_offsets_beyond_the_segment_fail_the_pass(tmp_path: Path) -> None:
    plan = a_plan(tmp_path)
    short = replace(plan, segments=(replace(plan.segments[0], next_base_offset=50),))
    with pytest.raises(CorruptLog, match="reach beyond 49"):
        run_pass(short)


def test_a_source_that_is_gone_is_not_taken_for_an_empty_one(tmp_path: Path) -> None:
    plan = a_plan(tmp_path)
    os.unlink(f"{plan.pass_folder}/{plan.segments[0].log_name}")
    with pytest.raises(SourceLost, match="is gone"):
        run_pass(plan)


def test_a_source_of_another_size_fails_the_pass(tmp_path: Path) -> None:
    plan = a_plan(tmp_path)
    with open(f"{plan.pass_folder}/{plan.segments[0].log_name}", "ab") as file:
        file.write(b"x")
    with pytest.raises(SourceLost, match="the plan says"):
        run_pass(plan)


def test_keys_beyond_the_memory_limit_are_refused_and_nothing_is_left(tmp_path: Path) -> None:
    plan = a_plan(tmp_path, memory_limit_bytes=10)
    with pytest.raises(TooManyKeys, match="10 bytes"):
        clean_log(plan, "0", has_shuffle=True)
    assert outputs(plan) == []


def test_a_full_disk_fails_the_pass_and_its_room_is_given_back(tmp_path: Path) -> None:
    class FullFile(File):
        def pwrite(self, data: bytes | bytearray | memoryview, position: int) -> int:
            raise OSError(errno.ENOSPC, "no space left on device", self.path)

    class FullDisk(Disk):
        def open(self, path: str, *, write: bool = False, create: bool = False) -> File:
            file = super().open(path, write=write, create=create)
            return FullFile(path, file.fd) if create else file

    plan = a_plan(tmp_path)
    with pytest.raises(OSError, match="no space left"):
        run_pass(plan, disk=FullDisk())
    assert outputs(plan) == []


def test_a_disk_that_fills_up_meanwhile_fails_the_pass_before_others_find_it_full(tmp_path: Path) -> None:
    class FillingDisk(Disk):
        def free_bytes(self, path: str) -> int:
            return 1000

    plan = a_plan(tmp_path, keep_free_bytes=999)
    with pytest.raises(NotEnoughFreeSpace, match=r"1000 bytes are free, and 999 must stay free"):
        run_pass(plan, disk=FillingDisk())
    assert outputs(plan) == []


def test_a_machine_without_the_engine_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lamina.cleaning.clean_log", None)
    with pytest.raises(EngineMissing, match=r"lamina\[spark\]"):
        run_plan(a_plan(tmp_path), "0")


def test_a_plan_runs_by_name(tmp_path: Path) -> None:
    assert run_plan(a_plan(tmp_path), "7", threads=2).attempt == "7"


def test_a_throttled_plan_ends_and_says_how_long_it_waited(tmp_path: Path) -> None:
    manifest, _ = run_pass(a_plan(tmp_path, throttle_bytes_per_second=1e12))
    assert manifest.seconds.throttled == 0


def test_a_meter_that_raises_ends_the_pass_and_nothing_is_left(tmp_path: Path) -> None:
    class Enough(Exception):
        pass

    plan = a_plan(tmp_path)
    for calls in range(4):
        left = [calls]

        def meter(_size_bytes: int, left: list[int] = left) -> None:
            left[0] -= 1
            if left[0] < 0:
                raise Enough

        with pytest.raises(Enough):
            run_pass(plan, meter=meter)
        assert outputs(plan) == []


def test_of_a_batch_that_has_to_be_judged_some_tens_of_bytes_are_held(tmp_path: Path) -> None:
    """A log may be made of small transactions alone."""
    story = Story()
    for number in range(500):
        story.write([(b"%d" % number, b"v")], producer=7, transactional=True)
        story.end(7, commit=True)
    story.roll()
    plan = plan_of(tmp_path, story, story.pass_at(0, DAY_MS, frozenset()))
    scan = scan_headers(plan, 0)
    assert scan.batch_count == 1000
    assert len(pickle.dumps(scan)) < 48 * 1000
