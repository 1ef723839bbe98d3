"""A changed byte anywhere is noticed, or is shown here to change nothing that anybody reads."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lamina.log.verify.findings import Severity
from lamina.records.batch import HEADER_BYTES, walk
from tests.examples import examples
from tests.log.verify.sample import files_of, findings, flip, make_directory


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every test puts back what it changed."""
    return make_directory(tmp_path_factory.mktemp("sample"))


def unnoticed(directory: Path, path: Path, positions: Iterator[int] | range, mask: int) -> list[int]:
    """The positions whose change raises no error in the file itself."""
    whole = path.read_bytes()
    missed = []
    for position in positions:
        flip(path, position, mask)
        if not any(finding.severity is Severity.ERROR for finding in findings(directory)):
            missed.append(position)
        path.write_bytes(whole)
    return missed


def test_an_untouched_directory_is_fine(directory: Path) -> None:
    assert findings(directory) == []


@pytest.mark.parametrize("mask", [0x01, 0x80])
def test_every_byte_of_every_batch_header_counts(directory: Path, mask: int) -> None:
    """Base offset and leader epoch lie outside the CRC (formats.md §2.2) and are checked on their own."""
    first, *_, last = files_of(directory, "orders-0/*.log")
    for path in (first, last):
        starts = [position for position, _ in walk(path.read_bytes())]
        positions = (start + at for start in starts for at in range(HEADER_BYTES))
        assert unnoticed(directory, path, positions, mask) == []


def test_bytes_of_records_count(directory: Path) -> None:
    path = files_of(directory, "orders-0/*.log")[0]
    assert unnoticed(directory, path, range(HEADER_BYTES, path.stat().st_size, 5), 0x04) == []


@pytest.mark.parametrize("pattern", ["orders-0/*.txnindex", "orders-0/*.snapshot"])
def test_every_byte_of_transaction_indexes_and_snapshots_counts(directory: Path, pattern: str) -> None:
    for path in files_of(directory, pattern):
        assert unnoticed(directory, path, range(path.stat().st_size), 0x01) == []
        assert unnoticed(directory, path, range(path.stat().st_size), 0x80) == []


@pytest.mark.parametrize(("pattern", "entry_bytes"), [("orders-0/*.index", 8), ("orders-0/*.timeindex", 12)])
def test_every_byte_of_a_sparse_index_counts_but_for_an_offset_inside_the_same_batch(
    directory: Path, pattern: str, entry_bytes: int
) -> None:
    """The lowest byte of a relative offset may still name the batch it named: every lookup goes the same way."""
    lowest_of_offset = 3 if entry_bytes == 8 else 11
    for path in files_of(directory, pattern):
        missed = unnoticed(directory, path, range(path.stat().st_size), 0x01)
        assert {position % entry_bytes for position in missed} <= {lowest_of_offset}
        assert unnoticed(directory, path, range(path.stat().st_size), 0x80) == []


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("recovery-point-offset-checkpoint", b"orders 0 42", b"orders 0 41"),
        ("recovery-point-offset-checkpoint", b"orders 0 42", b"orders 1 42"),
        ("replication-offset-checkpoint", b"orders 0 42", b"orders 0 43"),
        ("replication-offset-checkpoint", b"0\n2\n", b"1\n2\n"),
        ("replication-offset-checkpoint", b"0\n2\n", b"0\n3\n"),
        ("log-start-offset-checkpoint", b"0\n0\n", b"0\n1\norders 0 43\n"),
        ("log-start-offset-checkpoint", b"0\n0\n", b"0\n1\norders 0 -1\n"),
        ("meta.properties", b"version=1", b"version=7"),
        ("meta.properties", b"node.id=1", b"node.id=x"),
        ("meta.properties", b"node.id=1", b""),
        ("orders-0/leader-epoch-checkpoint", b"1 28", b"1 27"),
        ("orders-0/leader-epoch-checkpoint", b"1 28", b"2 28"),
        ("orders-0/leader-epoch-checkpoint", b"1 28", b"1 0"),
        ("orders-0/partition.metadata", b"version: 0", b"version: 1"),
        ("orders-0/partition.metadata", b"AAEC", b"AAED"),
    ],
)
def test_a_changed_line_is_noticed(directory: Path, name: str, old: bytes, new: bytes) -> None:
    path = directory / name
    whole = path.read_bytes()
    assert old in whole
    path.write_bytes(whole.replace(old, new))
    try:
        assert any(finding.severity is Severity.ERROR for finding in findings(directory))
    finally:
        path.write_bytes(whole)


@pytest.mark.parametrize("pattern", ["orders-0/*.log", "orders-0/*.index", "orders-0/*.timeindex"])
def test_a_file_cut_by_a_byte_is_noticed(directory: Path, pattern: str) -> None:
    for path in files_of(directory, pattern):
        whole = path.read_bytes()
        path.write_bytes(whole[:-1])
        assert {finding.path for finding in findings(directory)} >= {str(path)}
        path.write_bytes(whole)


NAMES = [
    "orders-0/00000000000000000014.log",
    "orders-0/00000000000000000014.index",
    "orders-0/00000000000000000014.timeindex",
    "orders-0/00000000000000000014.txnindex",
    "orders-0/00000000000000000014.snapshot",
    "orders-0/leader-epoch-checkpoint",
    "orders-0/partition.metadata",
    "recovery-point-offset-checkpoint",
    "cleaner-offset-checkpoint",
    "meta.properties",
    ".kafka_cleanshutdown",
]
CONTENTS = st.one_of(
    st.binary(max_size=200),
    st.text("0123456789- \n", max_size=40).map(str.encode),
    st.sampled_from([b"0\n1\norders 0 --5\n", b"0\n1\norders 0 " + b"9" * 5000 + b"\n", b"[" * 100_000]),
    st.sampled_from([b"version=1\ncluster.id=x\nnode.id=--1\n", b"0\n1\n--5 1\n"]),
)


@given(name=st.sampled_from(NAMES), content=CONTENTS)
@settings(max_examples=examples(150), deadline=None)
def test_no_content_of_any_file_stops_the_check(directory: Path, name: str, content: bytes) -> None:
    path = directory / name
    whole = path.read_bytes() if path.exists() else None
    path.write_bytes(content)
    try:
        assert all(finding.what and finding.advice for finding in findings(directory))
    finally:
        path.unlink()
        if whole is not None:
            path.write_bytes(whole)
