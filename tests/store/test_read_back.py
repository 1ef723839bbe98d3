"""What is there after a transaction whose answer was lost."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.store.interface import Check, Create, Delete, Entry, Operation, Set
from lamina.store.read_back import Outcome, outcome
from tests.store.memory_zookeeper import MemoryZooKeeper

OWN = 7
OTHER = 8


@pytest.mark.parametrize(
    ("operations", "found", "expected"),
    [
        ([Create("/a", b"1")], None, Outcome.NOT_HAPPENED),
        ([Create("/a", b"1")], Entry(b"1", 0), Outcome.HAPPENED),
        ([Create("/a", b"1")], Entry(b"2", 0), Outcome.UNKNOWN),
        ([Create("/a", b"1")], Entry(b"1", 1), Outcome.UNKNOWN),
        ([Create("/a", b"1", is_ephemeral=True)], Entry(b"1", 0, owner=OWN), Outcome.HAPPENED),
        ([Create("/a", b"1", is_ephemeral=True)], Entry(b"1", 0, owner=OTHER), Outcome.UNKNOWN),
        ([Set("/a", b"1", 4)], Entry(b"0", 4), Outcome.NOT_HAPPENED),
        ([Set("/a", b"1", 4)], Entry(b"1", 5), Outcome.HAPPENED),
        ([Set("/a", b"1", 4)], Entry(b"2", 5), Outcome.UNKNOWN),
        ([Set("/a", b"1", 4), Set("/a", b"2", 5)], Entry(b"2", 6), Outcome.HAPPENED),
        ([Delete("/a", 4)], None, Outcome.HAPPENED),
        ([Delete("/a", 4)], Entry(b"", 4), Outcome.NOT_HAPPENED),
        ([Delete("/a", 4)], Entry(b"", 0), Outcome.UNKNOWN),
        ([Delete("/a", 0), Create("/a", b"1", is_ephemeral=True)], Entry(b"1", 0, owner=OWN), Outcome.HAPPENED),
        ([Delete("/a", 0), Create("/a", b"1", is_ephemeral=True)], Entry(b"1", 0, owner=OTHER), Outcome.NOT_HAPPENED),
        ([Check("/a", 3)], Entry(b"", 3), Outcome.NOT_HAPPENED),
    ],
)
def test_one_path(operations: list[Operation], found: Entry | None, expected: Outcome) -> None:
    assert outcome(operations, {} if found is None else {"/a": found}, OWN) is expected


def test_one_path_that_is_not_as_the_others_leaves_nothing_known() -> None:
    operations = [Set("/a", b"1", 0), Set("/b", b"1", 0)]
    assert outcome(operations, {"/a": Entry(b"1", 1), "/b": Entry(b"0", 0)}, OWN) is Outcome.UNKNOWN
    assert outcome(operations, {"/a": Entry(b"1", 1), "/b": Entry(b"1", 1)}, OWN) is Outcome.HAPPENED


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["put", "remove"])), min_size=1, max_size=8))
def test_a_transaction_by_itself_is_always_known(steps: list[tuple[str, str]]) -> None:
    """Whatever it does to whichever paths, unless it leaves everything as it was."""
    zookeeper = MemoryZooKeeper()
    store = zookeeper.connect()
    store.transact([Create("/a", b"old"), Create("/b", b"old")])
    store.transact([Set("/b", b"old", 0)])
    versions: dict[str, int | None] = {"/a": 0, "/b": 1, "/c": None}
    operations: list[Operation] = []
    for number, (name, kind) in enumerate(steps):
        path, value = f"/{name}", b"%d" % number
        version = versions[path]
        if kind == "put":
            operations.append(Create(path, value) if version is None else Set(path, value, version))
            versions[path] = 0 if version is None else version + 1
        elif version is not None:
            operations.append(Delete(path, version))
            versions[path] = None
    if {path: version for path, version in versions.items() if version is not None} == {"/a": 0, "/b": 1}:
        return
    assert outcome(operations, store.below(""), store.session_id) is Outcome.NOT_HAPPENED
    store.transact(operations)
    assert outcome(operations, store.below(""), store.session_id) is Outcome.HAPPENED
