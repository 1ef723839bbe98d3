"""Putting the result of a pass in place: what is checked, and what happens meanwhile."""

from dataclasses import replace
from pathlib import Path

import pytest

from lamina.cleaning.contract import Manifest
from lamina.cleaning.gather import discard
from lamina.cleaning.install import Refused
from lamina.log.steps import run_steps
from lamina.settings.log_config import LONG_MAX
from tests.cleaning.small_passes import a_compacted_log, install, planned, steps
from tests.log.building import expire, truncate_log

CLEANED = [b"a=9", b"b=10", b"c=11", b"a=12"]
BEFORE = [b"%c=%d" % (b"abc"[number % 3], number) for number in range(13)]


def test_a_pass_leaves_the_latest_of_each_key_in_fewer_segments(tmp_path: Path) -> None:
    builder = a_compacted_log(tmp_path)
    taken, manifest = planned(builder.log)
    install(builder.log, taken, manifest)
    discard(taken.plan, builder.disk)
    assert builder.texts() == CLEANED
    assert builder.bases() == [0, 6, 12]
    for clean in (True, False):
        builder.reopen(clean=clean)
        assert builder.texts() == CLEANED
        assert not [name for name in builder.names() if name.endswith((".cleaned", ".swap"))]


def test_a_new_segment_begins_where_its_first_source_did_and_the_log_start_stays(tmp_path: Path) -> None:
    """Facts 43 and 45: even where nothing is left of it."""
    builder = a_compacted_log(tmp_path)
    install(builder.log, *planned(builder.log))
    assert builder.log.segments[0].size_bytes == 0
    assert builder.log.log_start_offset == 0
    assert [segment.next_offset for segment in builder.log.segments][:2] == [6, 12]


def test_new_files_have_the_age_of_the_last_source_of_their_group(tmp_path: Path) -> None:
    """Fact 47."""
    builder = a_compacted_log(tmp_path)
    list(builder.log.segments)[1].modified_ms = 1_600_000_000_000
    install(builder.log, *planned(builder.log))
    assert builder.file(0, ".log").stat().st_mtime == 1_600_000_000


def test_appends_and_rolls_between_the_steps_are_normal(tmp_path: Path) -> None:
    builder = a_compacted_log(tmp_path)
    taken, manifest = planned(builder.log)
    written = []
    for number, step in enumerate(steps(builder.log, taken, manifest)):
        builder.append(b"z%d=new" % number)
        written.append(b"z%d=new" % number)
        if number % 2:
            builder.log.roll(builder.now_ms)
        step()
    assert builder.texts() == [*CLEANED, *written]


def test_a_range_out_on_lease_stays_readable(tmp_path: Path) -> None:
    builder = a_compacted_log(tmp_path)
    lease = builder.log.read(4, 10_000)
    assert lease is not None
    before = lease.read()
    install(builder.log, *planned(builder.log))
    assert lease.read() == before
    lease.give_back()


@pytest.mark.parametrize("group_size", [1, 2, 4])
def test_a_prefix_that_was_deleted_meanwhile_is_skipped(tmp_path: Path, group_size: int) -> None:
    """Fact 80."""
    builder = a_compacted_log(tmp_path)
    taken, manifest = planned(builder.log, group_size=group_size)
    builder.log.advance_log_start(7)
    assert len(expire(builder.log, builder.now_ms, builder.log.log_end_offset)) == 2
    install(builder.log, taken, manifest)
    assert builder.texts() == CLEANED
    assert builder.log.log_start_offset == 7
    paths = builder.log.take_due_paths(LONG_MAX)
    assert len(paths) == len(set(paths))


def test_a_log_that_was_cut_meanwhile_is_left_alone(tmp_path: Path) -> None:
    builder = a_compacted_log(tmp_path)
    taken, manifest = planned(builder.log)
    truncate_log(builder.log, 10, builder.now_ms)
    with pytest.raises(Refused, match=r"segment 9 of topic-0 was (cut|replaced) meanwhile") as caught:
        install(builder.log, taken, manifest)
    assert caught.value.is_stale
    assert builder.texts() == BEFORE[:10]


def test_a_log_whose_segments_were_replaced_meanwhile_is_left_alone(tmp_path: Path) -> None:
    builder = a_compacted_log(tmp_path)
    taken, manifest = planned(builder.log)
    old = list(builder.log.segments)[1]
    kept = [bytearray(data) for header, data in builder.batches() if 3 <= header.base_offset < 5]
    run_steps(builder.log.replace([builder.rewrite([old], kept)], [old], builder.now_ms))
    with pytest.raises(Refused, match="segment 3 of topic-0 was replaced meanwhile"):
        install(builder.log, taken, manifest)
    assert builder.texts() == BEFORE[:5] + BEFORE[6:]


def test_a_log_that_is_no_longer_compacted_is_left_alone(tmp_path: Path) -> None:
    builder = a_compacted_log(tmp_path)
    taken, manifest = planned(builder.log)
    builder.log.configure(replace(builder.log.config, compact=False))
    with pytest.raises(Refused, match=r"cleanup\.policy changed") as caught:
        install(builder.log, taken, manifest)
    assert caught.value.is_stale
    assert builder.texts() == BEFORE


def test_a_policy_that_changes_between_two_groups_ends_the_pass_there(tmp_path: Path) -> None:
    """Facts 44 and 81: what is in place stays, what was being put in place is gone at once."""
    builder = a_compacted_log(tmp_path)
    taken, manifest = planned(builder.log)

    def install_while_the_policy_changes() -> None:
        for step in steps(builder.log, taken, manifest):
            step()
            if builder.bases()[:2] == [0, 6]:
                builder.log.configure(replace(builder.log.config, compact=False))

    with pytest.raises(Refused):
        install_while_the_policy_changes()
    assert not [name for name in builder.names() if name.endswith((".cleaned", ".swap"))]
    assert builder.texts() == BEFORE[6:]
    builder.reopen(clean=False)
    assert builder.texts() == BEFORE[6:]


def test_the_result_of_another_topic_of_the_same_name_is_not_installed(tmp_path: Path) -> None:
    builder = a_compacted_log(tmp_path)
    taken, manifest = planned(builder.log)
    with pytest.raises(Refused, match="another topic of the same name") as caught:
        install(builder.log, taken, manifest, topic_id=bytes(16))
    assert caught.value.is_stale
    assert builder.texts() == BEFORE


def test_nobody_installs_what_another_plan_made(tmp_path: Path) -> None:
    builder = a_compacted_log(tmp_path)
    taken, _ = planned(builder.log, "p1")
    _, other = planned(builder.log, "p2")
    with pytest.raises(Refused, match="the job answered for plan p2, not for p1"):
        install(builder.log, taken, other)
    assert builder.texts() == BEFORE


def _damage(path: Path, kind: str) -> None:
    data = path.read_bytes()
    if kind == "shorter":
        path.write_bytes(data[:-1])
    elif kind == "other":
        path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    else:
        path.unlink()


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [("shorter", "the job wrote"), ("other", "its checksum is another one"), ("gone", "the job did not leave")],
)
def test_files_that_are_not_what_the_job_wrote_are_not_installed(tmp_path: Path, kind: str, sentence: str) -> None:
    builder = a_compacted_log(tmp_path)
    taken, manifest = planned(builder.log)
    _damage(Path(taken.plan.pass_folder, manifest.groups[1].files[0].name), kind)
    with pytest.raises(Refused, match=sentence) as caught:
        install(builder.log, taken, manifest)
    assert not caught.value.is_stale
    assert builder.texts() == BEFORE


def _bad(manifest: Manifest, name: str) -> Manifest:
    first, last = manifest.groups
    outside = replace(last.files[0], name="../x")
    return replace(
        manifest,
        **{
            "end": {"end_offset": 11},
            "left out": {"groups": (first,)},
            "order": {"groups": (last, first)},
            "other sources": {"groups": (replace(first, sources=(0, 6)), last)},
            "no sources": {"groups": (replace(first, sources=()), last)},
            "other end": {"groups": (replace(first, next_base_offset=7), last)},
            "no index": {"groups": (first, replace(last, files=last.files[:1]))},
            "outside": {"groups": (first, replace(last, files=(outside, *last.files[1:])))},
        }[name],  # type: ignore[arg-type]
    )


@pytest.mark.parametrize(
    "name", ["end", "left out", "order", "other sources", "no sources", "other end", "no index", "outside"]
)
def test_a_manifest_that_cannot_be_the_plans_is_refused(tmp_path: Path, name: str) -> None:
    builder = a_compacted_log(tmp_path)
    taken, manifest = planned(builder.log)
    with pytest.raises(Refused):
        install(builder.log, taken, _bad(manifest, name))
    assert builder.texts() == BEFORE
    assert not [found for found in builder.names() if found.endswith(".cleaned")]
