import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuzz import corpus
from lamina.store import sqlite
from lamina.store.interface import Check, Create, Delete, Entry, Operation, Set, StoreConflict, StoreError
from lamina.store.sqlite import SqliteStore
from tests.store.processes import running, temporary_store


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "metadata.db")


@pytest.fixture
def store(path: str) -> Iterator[SqliteStore]:
    with closing(SqliteStore(path)) as opened:
        yield opened


def test_what_was_written_is_there_after_a_restart(path: str) -> None:
    with closing(SqliteStore(path)) as store:
        store.transact([Create("/a", b"1"), Create("/b", b"2"), Create("/c", b"3")])
        store.transact([Set("/a", b"one", 0), Delete("/b", 0)])
    with closing(SqliteStore(path)) as store:
        assert store.get("/a") == Entry(b"one", 1)
        assert store.get("/b") is None
        assert store.get("/c") == Entry(b"3", 0)


def test_only_its_owner_reads_the_file_s89(path: str) -> None:
    """And the log beside it: what is kept of passwords is in both."""
    with closing(SqliteStore(path)) as store:
        store.transact([Create("/a", b"1")])
        files = list(Path(path).parent.glob("metadata.db*"))
        assert len(files) > 1
        assert {file.stat().st_mode & 0o777 for file in files} == {0o600}


def test_below_a_path_are_its_children_and_theirs_but_not_itself_nor_its_neighbours(store: SqliteStore) -> None:
    paths = ["/t", "/t/a", "/t/b", "/t/b/c", "/t-1/x", "/t0", "/tt/x", "/T/a", "/t/ü"]
    store.transact([Create(path, path.encode()) for path in paths])
    assert list(store.below("/t")) == ["/t/a", "/t/b", "/t/b/c", "/t/ü"]
    assert store.below("/t")["/t/b/c"] == Entry(b"/t/b/c", 0)
    assert store.below("/none") == {}
    assert store.children("/t") == ["a", "b", "ü"]
    assert store.children("/none") == []
    assert list(store.get_many(["/tt/x", "/none", "/t"])) == ["/tt/x", "/t"]


def test_a_check_changes_nothing_and_nobody_hears_of_it(store: SqliteStore) -> None:
    heard: list[None] = []
    store.transact([Create("/a", b"1")])
    store.watch("/a", lambda: heard.append(None))
    store.transact([Check("/a", 0), Create("/b", b"2")])
    assert store.get("/a") == Entry(b"1", 0)
    assert store.get("/b") == Entry(b"2", 0)
    assert heard == []


@pytest.mark.parametrize(
    ("operation", "sentence"),
    [
        (Create("/a", b"x"), "/a in .* has version 1, where no such entry was expected"),
        (Set("/a", b"x", 0), "/a in .* has version 1, where version 0 was expected"),
        (Set("/none", b"x", 0), "/none in .* is not there"),
        (Delete("/a", 2), "/a in .* has version 1, where version 2 was expected"),
        (Delete("/none", 0), "/none in .* is not there"),
        (Check("/a", 0), "/a in .* has version 1, where version 0 was expected"),
        (Check("/none", 0), "/none in .* is not there"),
    ],
)
def test_one_operation_that_finds_another_version_stops_all(
    store: SqliteStore, operation: Operation, sentence: str
) -> None:
    store.transact([Create("/a", b"1")])
    store.transact([Set("/a", b"2", 0)])
    with pytest.raises(StoreConflict, match=sentence) as caught:
        store.transact([Create("/first", b""), operation, Create("/last", b"")])
    assert caught.value.path == operation.path
    assert store.get("/a") == Entry(b"2", 1)
    assert store.get("/first") is None
    store.transact([Create("/first", b"")])


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["create", "set", "delete"]), st.integers(0, 2))))
def test_a_store_is_a_dictionary_with_versions(steps: list[tuple[str, str, int]]) -> None:
    expected: dict[str, Entry] = {}
    with temporary_store() as store:
        for number, (name, kind, version) in enumerate(steps):
            path, value = f"/x/{name}", str(number).encode()
            before = expected.get(path)
            operation: Operation = Create(path, value)
            if kind != "create":
                operation = Set(path, value, version) if kind == "set" else Delete(path, version)
            fits = before is None if kind == "create" else before is not None and before.version == version
            if not fits:
                with pytest.raises(StoreConflict):
                    store.transact([operation])
                continue
            store.transact([operation])
            if kind == "delete":
                del expected[path]
            else:
                expected[path] = Entry(value, 0 if before is None else version + 1)
        assert store.below("/x") == expected


def test_threads_take_turns(store: SqliteStore) -> None:
    def write(number: int) -> Entry | None:
        path = f"/t/{number}"
        store.transact([Create(path, b"1"), Create(f"{path}/x", b"2")])
        assert store.below(path) == {f"{path}/x": Entry(b"2", 0)}
        return store.get(path)

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(write, range(100))) == [Entry(b"1", 0)] * 100
    assert len(store.below("/t")) == 200


def test_an_ephemeral_entry_goes_with_the_store_that_made_it(path: str) -> None:
    with closing(SqliteStore(path)) as store:
        store.transact([Create("/brokers/0", b"", is_ephemeral=True), Create("/kept", b"")])
        assert store.get("/brokers/0") == Entry(b"", 0)
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("SELECT path FROM entries").fetchall() == [("/kept",)]
        database.execute("INSERT INTO entries VALUES ('/brokers/1', x'', 0, 1)")
        database.commit()
    with closing(SqliteStore(path)) as store:
        assert store.get("/brokers/1") is None, "its maker died without closing"
        assert store.get("/kept") == Entry(b"", 0)


def test_a_watcher_hears_of_changes_at_its_path_and_below_once_they_happened(store: SqliteStore) -> None:
    heard: list[int] = []
    store.watch("/topics", lambda: heard.append(len(store.below("/topics"))))
    store.transact([Create("/topics/a", b""), Create("/topics/b", b"")])
    store.transact([Create("/topics", b"")])
    store.transact([Create("/topics2", b""), Create("/other/topics", b"")])
    with pytest.raises(StoreConflict):
        store.transact([Create("/topics/c", b""), Delete("/none", 0)])
    assert heard == [2, 2]


def test_a_transaction_waits_for_the_disk(store: SqliteStore) -> None:
    assert store._pragma("journal_mode") == "wal"
    assert store._pragma("synchronous") == "2"


def test_a_store_in_use_is_refused_with_a_sentence(path: str, store: SqliteStore) -> None:
    with pytest.raises(StoreError, match=r"^.*/metadata\.db is in use by another process: stop that one first$"):
        SqliteStore(path)


def test_a_store_in_use_by_another_process_is_refused(path: str) -> None:
    with running("tests.store.write_until_killed", path) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "0\n"
        with pytest.raises(StoreError, match="is in use by another process"):
            SqliteStore(path)


def test_a_newer_schema_is_refused_and_left_alone(path: str) -> None:
    SqliteStore(path).close()
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA user_version = 9")
    before = Path(path).read_bytes()
    with pytest.raises(StoreError, match=r"was written by a newer Lamina: it has schema version 9, and .* up to 1$"):
        SqliteStore(path)
    assert Path(path).read_bytes() == before


NEXT_STEP = ("ALTER TABLE entries ADD COLUMN note TEXT", "UPDATE entries SET note = 'upgraded'")


def test_an_older_schema_is_upgraded_with_its_entries(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(SqliteStore(path)) as store:
        store.transact([Create("/a", b"1")])
    monkeypatch.setattr(sqlite, "SCHEMA_STEPS", (*sqlite.SCHEMA_STEPS, NEXT_STEP))
    for _ in range(2):
        with closing(SqliteStore(path)) as store:
            assert store.get("/a") == Entry(b"1", 0)
            assert store._pragma("user_version") == "2"
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("SELECT note FROM entries").fetchall() == [("upgraded",)]


def test_an_upgrade_that_fails_leaves_the_older_schema(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(SqliteStore(path)) as store:
        store.transact([Create("/a", b"1")])
    with monkeypatch.context() as patch:
        patch.setattr(sqlite, "SCHEMA_STEPS", (*sqlite.SCHEMA_STEPS, (*NEXT_STEP, "NONSENSE")))
        with pytest.raises(StoreError, match="NONSENSE"):
            SqliteStore(path)
    with closing(SqliteStore(path)) as store:
        assert store.get("/a") == Entry(b"1", 0)
        assert store._pragma("user_version") == "1"


def test_another_programs_database_is_refused_and_left_alone(path: str) -> None:
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE theirs (x)")
    before = Path(path).read_bytes()
    with pytest.raises(StoreError, match="is another program's database"):
        SqliteStore(path)
    assert Path(path).read_bytes() == before


def test_a_file_that_is_no_database_is_refused_with_a_sentence(path: str) -> None:
    Path(path).write_bytes(b"not a database at all, but long enough to look at " * 20)
    with pytest.raises(StoreError, match=r"^.*/metadata\.db is damaged: file is not a database$"):
        SqliteStore(path)


def test_a_damaged_page_is_found_on_opening(path: str) -> None:
    with closing(SqliteStore(path)) as store:
        store.transact([Create(f"/{number}", bytes(200)) for number in range(200)])
    data = bytearray(Path(path).read_bytes())
    for page in range(4096, len(data), 4096):
        data[page : page + 64] = b"\xff" * 64
    Path(path).write_bytes(data)
    with pytest.raises(StoreError, match="is damaged"):
        SqliteStore(path)


def test_a_schema_that_is_not_text_is_damage(path: str) -> None:
    SqliteStore(path).close()
    data = Path(path).read_bytes()
    assert data.count(b"tableentries") == data.count(b"CREATE TABLE entries") == 1
    damaged = data.replace(b"tableentries", b"table\xd1ntries").replace(
        b"CREATE TABLE entries", b"CREATE TABLE ((((((("
    )
    Path(path).write_bytes(damaged)
    with pytest.raises(StoreError, match=r"metadata\.db is damaged: "):
        SqliteStore(path)


def test_a_file_that_sqlite_finds_too_large_for_the_memory_is_refused_with_a_sentence(path: str) -> None:
    Path(path).write_bytes((corpus.ROOT / "store_files" / "found-absurd-numbers").read_bytes())
    with pytest.raises(StoreError, match=r"metadata\.db is damaged, or larger than this machine's memory$"):
        SqliteStore(path)


def test_a_place_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"none/metadata\.db cannot be used: unable to open database file"):
        SqliteStore(str(tmp_path / "none" / "metadata.db"))
