"""The aborted-transaction index: vector V7, round trips and damage; formats.md §2.3."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.log.files import Disk
from lamina.log.transaction_index import AbortedTransaction, TransactionIndex, pack_aborted, unpack_aborted

V7 = bytes.fromhex("000000000000000000010000000000000008000000000000000a000000000000000b")

int64 = st.integers(-(2**63), 2**63 - 1)
entries = st.builds(AbortedTransaction, int64, int64, int64, int64)


def test_vector_v7_both_ways() -> None:
    entry = AbortedTransaction(1, 8, 10, 11)
    assert pack_aborted(entry) == V7
    assert unpack_aborted(V7) == [entry]


@given(st.lists(entries, max_size=10))
def test_what_is_packed_is_unpacked(expected: list[AbortedTransaction]) -> None:
    assert unpack_aborted(b"".join(map(pack_aborted, expected))) == expected


@given(st.binary(max_size=120))
def test_malformed_input_is_a_value_error(data: bytes) -> None:
    try:
        assert b"".join(map(pack_aborted, unpack_aborted(data))) == data
    except ValueError as error:
        assert "transaction index" in str(error)


def an_index(path: Path, *, exists: bool = False) -> TransactionIndex:
    return TransactionIndex(Disk(), str(path / "txnindex"), exists=exists)


def test_the_file_is_made_at_the_first_abort(tmp_path: Path) -> None:
    index = an_index(tmp_path)
    assert not index.exists
    assert not (tmp_path / "txnindex").exists()
    index.append(AbortedTransaction(1, 8, 10, 11))
    assert index.exists
    assert (tmp_path / "txnindex").read_bytes() == V7
    index.close()


def test_entries_are_read_when_asked_for(tmp_path: Path) -> None:
    (tmp_path / "txnindex").write_bytes(V7 + V7)
    assert an_index(tmp_path, exists=True).entries() == [AbortedTransaction(1, 8, 10, 11)] * 2


def test_truncating_forgets_markers_at_or_above_the_offset(tmp_path: Path) -> None:
    index = an_index(tmp_path)
    for marker in (10, 20, 30):
        index.append(AbortedTransaction(1, marker - 5, marker, marker + 1))
    index.truncate_to(20)
    assert [entry.last_offset for entry in index.entries()] == [10]
    assert (tmp_path / "txnindex").stat().st_size == 34
    index.append(AbortedTransaction(1, 20, 25, 26))
    index.close()
    assert [entry.last_offset for entry in an_index(tmp_path, exists=True).entries()] == [10, 25]


def test_an_index_without_entries_leaves_no_file(tmp_path: Path) -> None:
    index = an_index(tmp_path)
    index.append(AbortedTransaction(1, 8, 10, 11))
    index.truncate_to(0)
    assert not index.exists
    assert not (tmp_path / "txnindex").exists()
    index.append(AbortedTransaction(1, 8, 10, 11))
    assert (tmp_path / "txnindex").read_bytes() == V7
    index.close()


def test_clearing_asks_no_questions_of_a_file_that_is_nonsense(tmp_path: Path) -> None:
    (tmp_path / "txnindex").write_bytes(b"nonsense")
    index = an_index(tmp_path, exists=True)
    with pytest.raises(ValueError, match="ends inside an entry"):
        index.entries()
    index.clear()
    assert index.entries() == []
    assert not (tmp_path / "txnindex").exists()
