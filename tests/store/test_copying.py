"""Copying a store's file beside the broker that writes to it."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lamina.store.copying import WAL, copy_store
from lamina.store.interface import Create, Set, StoreError
from lamina.store.producer_ids import ProducerIds
from lamina.store.sqlite import SqliteStore


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    """Two entries that every transaction changes together."""
    opened = SqliteStore(str(tmp_path / "source.db"))
    opened.transact([Create("/a", b"0"), Create("/b", b"0")])
    yield opened
    opened.close()


def write_both(store: SqliteStore, number: int, size_bytes: int = 1) -> None:
    versions = [entry.version for path in ("/a", "/b") if (entry := store.get(path)) is not None]
    value = b"%d " % number + bytes(size_bytes)
    store.transact([Set("/a", value, versions[0]), Set("/b", value, versions[1])])


def copied(tmp_path: Path, between: Callable[[], None] = lambda: None) -> tuple[bytes, bytes]:
    target = tmp_path / "target.db"
    copy_store(str(tmp_path / "source.db"), str(target), between)
    assert not Path(f"{target}{WAL}").exists()
    with_target = SqliteStore(str(target))
    try:
        entries = [with_target.get(path) for path in ("/a", "/b")]
        assert entries[0] is not None
        assert entries[1] is not None
        return entries[0].value, entries[1].value
    finally:
        with_target.close()


def test_only_its_owner_reads_a_copy_s89(tmp_path: Path, store: SqliteStore) -> None:
    write_both(store, 1)
    copied(tmp_path)
    assert (tmp_path / "target.db").stat().st_mode & 0o777 == 0o600


def test_a_store_that_is_open_is_copied_with_all_that_was_committed(tmp_path: Path, store: SqliteStore) -> None:
    write_both(store, 7)
    files = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    a, b = copied(tmp_path)
    assert a == b == b"7 \0"
    assert {name: (tmp_path / name).read_bytes() for name in files} == files


@pytest.mark.parametrize("size_bytes", [10, 100_000, 5_000_000])
def test_what_is_written_while_it_is_copied_is_there_as_a_whole_or_not_at_all(
    tmp_path: Path, store: SqliteStore, size_bytes: int
) -> None:
    """The larger ones make SQLite write the log back into the file, and begin it again, between the two copies."""
    calls = 0

    def write() -> None:
        nonlocal calls
        calls += 1
        if calls <= 9:
            write_both(store, calls, size_bytes)

    a, b = copied(tmp_path, write)
    assert a == b
    assert int(a.split()[0]) in range(calls + 1)


def test_a_store_that_never_holds_still_is_refused(
    tmp_path: Path, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lamina.store.copying.TRIES", 3)

    def begin_the_log_again() -> None:
        write_both(store, 1, 5_000_000)
        write_both(store, 2)

    with pytest.raises(StoreError, match="changed too often"):
        copied(tmp_path, begin_the_log_again)


def test_a_store_that_stops_or_starts_meanwhile(tmp_path: Path, store: SqliteStore) -> None:
    actions = iter([store.close, lambda: store.__init__(str(tmp_path / "source.db"))])  # type: ignore[misc]
    write_both(store, 3)
    assert copied(tmp_path, lambda: next(actions, lambda: None)()) == (b"3 \0", b"3 \0")


def test_after_a_crash_the_source_is_left_as_it_is(tmp_path: Path, store: SqliteStore) -> None:
    write_both(store, 4)
    crashed = tmp_path / "crashed"
    crashed.mkdir()
    for name in ("source.db", "source.db-wal"):
        (crashed / name).write_bytes((tmp_path / name).read_bytes())
    files = {path.name: path.read_bytes() for path in crashed.iterdir()}
    assert copied(crashed) == (b"4 \0", b"4 \0")
    assert {name: (crashed / name).read_bytes() for name in files} == files


def test_a_store_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be copied: No such file"):
        copy_store(str(tmp_path / "none.db"), str(tmp_path / "target.db"))


def test_ids_are_skipped_upwards_only(store: SqliteStore) -> None:
    ids = ProducerIds(store)
    assert ids.next_id() == 0
    ids.skip_to(2500)
    assert ids.next_block() == range(2500, 3500)
    ids.skip_to(100)
    assert ids.next_id() == 3500
    ids.skip_to(4000)
    assert ids.next_id() == 4000
