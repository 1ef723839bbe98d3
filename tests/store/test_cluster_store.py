"""What a store that several brokers share promises, shown on the one in memory and on a real ZooKeeper."""

import threading

import pytest

from lamina.store.interface import (
    Check,
    Create,
    Delete,
    Entry,
    Operation,
    SessionLost,
    Set,
    StoreConflict,
    StoreError,
)
from tests.store.ensembles import Ensemble, MemoryEnsemble, wait_until


def test_entries_have_versions_zxids_and_owners(ensemble: Ensemble) -> None:
    store = ensemble.connect()
    store.transact([Create("/a", b"1"), Create("/a/b", b"2", is_ephemeral=True)])
    store.transact([Set("/a", b"one", 0)])
    store.transact([Create("/c", b"")])
    a, b, c = (store.get(path) for path in ("/a", "/a/b", "/c"))
    assert a is not None
    assert b is not None
    assert c is not None
    assert (a.value, a.version, a.owner) == (b"one", 1, 0)
    assert (b.value, b.version, b.owner) == (b"2", 0, store.session_id)
    assert a.created_zxid == b.created_zxid < c.created_zxid


def test_children_are_right_below_and_below_is_everything(ensemble: Ensemble) -> None:
    store = ensemble.connect()
    paths = ["/t", "/t/b", "/t/a", "/t/b/c", "/t/b/c/d", "/t0", "/tt"]
    store.transact([Create(path, path.encode()) for path in paths])
    assert store.children("/t") == ["a", "b"]
    assert store.children("/none") == []
    assert {path: entry.value for path, entry in store.below("/t").items()} == {
        path: path.encode() for path in ["/t/a", "/t/b", "/t/b/c", "/t/b/c/d"]
    }
    assert list(store.get_many(["/tt", "/none", "/t/a"])) == ["/tt", "/t/a"]
    assert store.below("/none") == {}


def test_more_entries_than_go_at_once_are_read(ensemble: Ensemble) -> None:
    store = ensemble.connect()
    store.transact([Create("/t", b""), *(Create(f"/t/{number}", b"%d" % number) for number in range(1200))])
    found = store.below("/t")
    assert len(found) == 1200
    assert all(entry.value.decode() == path[3:] for path, entry in found.items())


@pytest.mark.parametrize(
    ("operation", "path"),
    [
        (Create("/a", b"x"), "/a"),
        (Create("/none/x", b"x"), "/none/x"),
        (Set("/a", b"x", 0), "/a"),
        (Set("/none", b"x", 0), "/none"),
        (Delete("/a", 2), "/a"),
        (Delete("/none", 0), "/none"),
        (Delete("/a", 1), "/a"),
        (Check("/a", 0), "/a"),
        (Check("/none", 0), "/none"),
    ],
)
def test_one_operation_that_is_not_as_expected_stops_all_and_is_named(
    ensemble: Ensemble, operation: Operation, path: str
) -> None:
    store = ensemble.connect()
    store.transact([Create("/a", b"1"), Create("/a/below", b"")])
    store.transact([Set("/a", b"2", 0), Check("/a/below", 0)])
    with pytest.raises(StoreConflict) as caught:
        store.transact([Create("/first", b""), operation, Create("/last", b"")])
    assert caught.value.path == path
    assert store.get("/first") is None
    found = store.get("/a")
    assert found is not None
    assert (found.value, found.version) == (b"2", 1)


def test_operations_on_one_path_follow_each_other(ensemble: Ensemble) -> None:
    store = ensemble.connect()
    store.transact([Create("/a", b"1"), Set("/a", b"2", 0), Set("/a", b"3", 1)])
    store.transact([Delete("/a", 2), Create("/a", b"4"), Check("/a", 0)])
    found = store.get("/a")
    assert found is not None
    assert (found.value, found.version) == (b"4", 0)


def test_nothing_is_below_an_ephemeral_entry(ensemble: Ensemble) -> None:
    store = ensemble.connect()
    store.transact([Create("/e", b"", is_ephemeral=True)])
    with pytest.raises(StoreError):
        store.transact([Create("/e/x", b"")])


def test_an_ephemeral_entry_goes_with_the_store_that_made_it(ensemble: Ensemble) -> None:
    first, second = ensemble.connect(), ensemble.connect()
    assert first.session_id != second.session_id
    first.transact([Create("/e", b"", is_ephemeral=True), Create("/kept", b"")])
    assert second.get("/e") == first.get("/e")
    first.close()
    assert second.get("/e") is None
    assert second.get("/kept") is not None
    with pytest.raises(StoreError):
        first.get("/kept")


def test_after_an_expiry_the_store_goes_on_in_a_new_session_without_its_ephemeral_entries(ensemble: Ensemble) -> None:
    store, other = ensemble.connect(), ensemble.connect()
    store.transact([Create("/e", b"", is_ephemeral=True)])
    old = store.session_id
    ensemble.expire(store)
    assert other.get("/e") is None
    if isinstance(ensemble, MemoryEnsemble):
        with pytest.raises(SessionLost):
            store.sync()
    assert store.sync() not in (0, old)
    assert store.get("/e") is None
    store.transact([Create("/e", b"", is_ephemeral=True)])
    found = other.get("/e")
    assert found is not None
    assert found.owner == store.session_id


def test_a_watcher_is_called_for_its_path_and_right_below_by_whomever(ensemble: Ensemble) -> None:
    store, other = ensemble.connect(), ensemble.connect()
    other.transact([Create("/w", b"")])
    calls = threading.Semaphore(0)
    store.watch("/w", calls.release)
    operations: list[Operation] = [
        Create("/w/a", b"", is_ephemeral=True),
        Set("/w", b"x", 0),
        Delete("/w/a", 0),
        Delete("/w", 1),
        Create("/w", b""),
        Create("/w/b", b""),
    ]
    for operation in operations:
        _let_the_watch_be_set(store)
        while calls.acquire(blocking=False):
            pass
        other.transact([operation])
        ensemble.deliver()
        assert calls.acquire(timeout=20), operation


def test_a_watcher_is_called_after_the_session_was_lost(ensemble: Ensemble) -> None:
    store = ensemble.connect()
    calls = threading.Semaphore(0)
    store.watch("/w", calls.release)
    _let_the_watch_be_set(store)
    while calls.acquire(blocking=False):
        pass
    ensemble.expire(store)
    ensemble.deliver()
    assert calls.acquire(timeout=20)


def _let_the_watch_be_set(store: object) -> None:
    """A real one sets it on a thread of its own."""
    watches = getattr(store, "_watches", None)
    if watches is not None:
        wait_until(lambda: not watches._due and not watches._unset)


def test_an_empty_value_and_a_large_one_are_kept(ensemble: Ensemble) -> None:
    store = ensemble.connect()
    store.transact([Create("/empty", b""), Create("/large", bytes(400_000))])
    empty, large = store.get("/empty"), store.get("/large")
    assert isinstance(empty, Entry)
    assert isinstance(large, Entry)
    assert (empty.value, len(large.value)) == (b"", 400_000)
