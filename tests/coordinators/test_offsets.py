"""Committed offsets: what a reader sees, transactions, expiry."""

import gc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.coordinators.group_requests import CommittedPartition, FetchedOffset
from lamina.coordinators.offsets import AT_A_TIME, Expiry, Offsets
from lamina.coordinators.records.group_codec import encode_record
from lamina.coordinators.records.group_records import GroupRecord, OffsetKey, OffsetValue
from lamina.errors import OffsetMetadataTooLarge, UnstableOffsetCommit

DAY_MS = 24 * 60 * 60 * 1000


def committed(offset: int, topic: str = "t", partition: int = 0, metadata: str | None = "") -> CommittedPartition:
    return CommittedPartition(topic, partition, offset, 5, metadata)


def commit(
    offsets: Offsets, *partitions: CommittedPartition, now_ms: int = 1000, producer_id: int | None = None
) -> None:
    records, _ = offsets.commit("g", partitions, now_ms, 4096)
    replay(offsets, records, producer_id)


def replay(offsets: Offsets, records: list[GroupRecord], producer_id: int | None = None) -> None:
    for key, value in records:
        assert isinstance(key, OffsetKey)
        assert value is None or isinstance(value, OffsetValue)
        offsets.replay(key, value, producer_id)


def fetch(offsets: Offsets, *, require_stable: bool = False, topic: str = "t", partition: int = 0) -> FetchedOffset:
    (found,) = offsets.fetch("g", [(topic, partition)], require_stable=require_stable)
    return found


def test_what_was_committed_last_is_fetched() -> None:
    offsets = Offsets()
    commit(offsets, committed(7, metadata="note"))
    assert fetch(offsets) == FetchedOffset("t", 0, 7, 5, "note")
    commit(offsets, committed(3))
    assert fetch(offsets).offset == 3, "an offset may go back"


def test_what_was_never_committed_is_minus_one_without_an_error() -> None:
    assert fetch(Offsets()) == FetchedOffset("t", 0, -1, -1, "")


def test_all_means_all_in_order() -> None:
    offsets = Offsets()
    commit(offsets, committed(1, "b"), committed(2, "a", 1), committed(3, "a", 0))
    assert [(one.topic, one.partition) for one in offsets.fetch("g", None, require_stable=False)] == [
        ("a", 0),
        ("a", 1),
        ("b", 0),
    ]
    assert offsets.fetch("other", None, require_stable=False) == ()


@pytest.mark.parametrize("metadata", ["x" * 11, "ü" * 6])
def test_metadata_beyond_its_limit_in_bytes_is_refused_for_that_partition_alone(metadata: str) -> None:
    records, errors = Offsets().commit("g", [committed(1, metadata=metadata), committed(2, "u")], 1000, 10)
    assert [type(error) for error in errors] == [OffsetMetadataTooLarge, type(None)]
    assert [record.key for record in records] == [OffsetKey("g", "u", 0)]


def test_metadata_that_no_record_can_hold_is_refused_whatever_is_allowed() -> None:
    texts = ["x" * 32_767, "x" * 32_768]
    records, errors = Offsets().commit("g", [committed(1, metadata=text) for text in texts], 1000, 100_000)
    assert [type(error) for error in errors] == [type(None), OffsetMetadataTooLarge]
    encode_record(records[0])


def test_null_metadata_is_stored_as_none() -> None:
    offsets = Offsets()
    commit(offsets, committed(1, metadata=None))
    assert fetch(offsets).metadata == ""


def test_a_transactions_offsets_are_seen_only_after_it_was_committed() -> None:
    offsets = Offsets()
    commit(offsets, committed(1))
    commit(offsets, committed(9), producer_id=40)
    assert fetch(offsets).offset == 1
    assert isinstance(fetch(offsets, require_stable=True).error, UnstableOffsetCommit)
    offsets.end_transaction(40, is_committed=True)
    assert fetch(offsets, require_stable=True) == FetchedOffset("t", 0, 9, 5, "")


def test_a_transactions_offsets_are_gone_after_it_was_aborted() -> None:
    offsets = Offsets()
    commit(offsets, committed(9), producer_id=40)
    assert offsets.has_any("g")
    offsets.end_transaction(40, is_committed=False)
    assert fetch(offsets, require_stable=True).offset == -1
    assert not offsets.has_any("g")


def test_the_end_of_another_transaction_changes_nothing() -> None:
    offsets = Offsets()
    commit(offsets, committed(9), producer_id=40)
    offsets.end_transaction(41, is_committed=True)
    assert isinstance(fetch(offsets, require_stable=True).error, UnstableOffsetCommit)


def test_an_offset_stays_unstable_until_the_last_of_two_transactions_is_over() -> None:
    offsets = Offsets()
    commit(offsets, committed(1), producer_id=40)
    commit(offsets, committed(2), producer_id=41)
    offsets.end_transaction(40, is_committed=True)
    assert isinstance(fetch(offsets, require_stable=True).error, UnstableOffsetCommit)
    assert fetch(offsets).offset == 1
    offsets.end_transaction(41, is_committed=False)
    assert fetch(offsets, require_stable=True).offset == 1


def test_a_commit_outside_the_transaction_stays_if_it_came_later() -> None:
    offsets = Offsets()
    commit(offsets, committed(9), producer_id=40)
    commit(offsets, committed(12))
    assert isinstance(fetch(offsets, require_stable=True).error, UnstableOffsetCommit)
    offsets.end_transaction(40, is_committed=True)
    assert fetch(offsets, require_stable=True).offset == 12


def test_of_two_transactions_the_later_record_wins_in_whatever_order_they_end() -> None:
    offsets = Offsets()
    commit(offsets, committed(1), producer_id=40)
    commit(offsets, committed(2), producer_id=41)
    offsets.end_transaction(41, is_committed=True)
    offsets.end_transaction(40, is_committed=True)
    assert fetch(offsets).offset == 2


def test_deleting_takes_what_open_transactions_would_commit() -> None:
    offsets = Offsets()
    commit(offsets, committed(1), committed(2, "u"), committed(3, "v"), producer_id=40)
    replay(offsets, offsets.delete("g", [("t", 0)]))
    replay(offsets, offsets.delete_stored(offsets.of_topics(frozenset({"u"}))))
    assert [one.topic for one in offsets.fetch("g", None, require_stable=True)] == ["v"]
    replay(offsets, offsets.delete_all("g")[0])
    offsets.end_transaction(40, is_committed=True)
    assert not offsets.has_any("g")


def test_all_with_require_stable_names_what_only_a_transaction_has() -> None:
    offsets = Offsets()
    commit(offsets, committed(1), producer_id=40)
    (found,) = offsets.fetch("g", None, require_stable=True)
    assert isinstance(found.error, UnstableOffsetCommit)


def test_deleting_removes_what_is_there_and_nothing_else() -> None:
    offsets = Offsets()
    commit(offsets, committed(1), committed(2, "u"))
    replay(offsets, offsets.delete("g", [("t", 0), ("t", 99), ("v", 0)]))
    assert [one.topic for one in offsets.fetch("g", None, require_stable=False)] == ["u"]
    replay(offsets, offsets.delete_all("g")[0])
    assert not offsets.has_any("g")


def test_a_deleted_topic_takes_its_offsets_along() -> None:
    offsets = Offsets()
    commit(offsets, committed(1), committed(2, "u"))
    replay(offsets, offsets.delete_stored(offsets.of_topics(frozenset({"t"}))))
    assert [one.topic for one in offsets.fetch("g", None, require_stable=False)] == ["u"]


def test_what_is_committed_for_another_topic_of_the_name_stays() -> None:
    offsets = Offsets()
    commit(offsets, committed(1), committed(2, "u"))
    gone = offsets.of_topics(frozenset({"t", "u"}))
    commit(offsets, committed(1))
    replay(offsets, offsets.delete_stored(gone))
    assert [one.topic for one in offsets.fetch("g", None, require_stable=False)] == ["t"]
    replay(offsets, offsets.delete_stored(gone))


def many(topic: str = "t") -> list[CommittedPartition]:
    return [CommittedPartition(topic, partition, 1, -1, "") for partition in range(AT_A_TIME + 1)]


def test_of_many_offsets_some_are_deleted_at_a_time() -> None:
    offsets = Offsets()
    commit(offsets, *many())
    records, has_more = offsets.delete_all("g")
    assert (len(records), has_more) == (AT_A_TIME, True)
    replay(offsets, records)
    records, has_more = offsets.delete_all("g")
    assert (len(records), has_more) == (1, False)


def test_of_many_offsets_some_expire_at_a_time() -> None:
    offsets = Offsets()
    commit(offsets, *many())
    gone = offsets.expired("g", Expiry(), 2 * DAY_MS, DAY_MS)
    assert len(gone) == AT_A_TIME
    replay(offsets, gone)
    assert len(offsets.expired("g", Expiry(), 2 * DAY_MS, DAY_MS)) == 1


def test_offsets_expire_by_their_commit() -> None:
    offsets = Offsets()
    commit(offsets, committed(1), now_ms=0)
    assert not offsets.expired("g", Expiry(), DAY_MS - 1, DAY_MS)
    assert offsets.expired("g", Expiry(), DAY_MS, DAY_MS) == [GroupRecord(OffsetKey("g", "t", 0), None)]


def test_offsets_of_a_group_that_was_left_expire_from_then_on() -> None:
    offsets = Offsets()
    commit(offsets, committed(1), now_ms=0)
    assert not offsets.expired("g", Expiry(since_ms=DAY_MS), DAY_MS + 1, DAY_MS)
    assert offsets.expired("g", Expiry(since_ms=DAY_MS), 2 * DAY_MS, DAY_MS)


def test_offsets_of_topics_that_are_read_do_not_expire() -> None:
    offsets = Offsets()
    commit(offsets, committed(1), committed(2, "u"), now_ms=0)
    gone = offsets.expired("g", Expiry(kept_topics=frozenset({"t"})), 9 * DAY_MS, DAY_MS)
    assert [record.key for record in gone] == [OffsetKey("g", "u", 0)]


def test_an_expiry_of_its_own_wins() -> None:
    offsets = Offsets()
    records, _ = offsets.commit("g", [committed(1)], 1000, 4096, retention_ms=500)
    replay(offsets, records)
    assert not offsets.expired("g", Expiry(), 1499, DAY_MS)
    assert offsets.expired("g", Expiry(since_ms=0), 1500, DAY_MS)


def test_an_offset_of_an_open_transaction_does_not_expire() -> None:
    offsets = Offsets()
    commit(offsets, committed(1), now_ms=0)
    commit(offsets, committed(2), producer_id=40)
    assert not offsets.expired("g", Expiry(), 9 * DAY_MS, DAY_MS)


steps = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.sampled_from("gh"), st.sampled_from("tu"), st.none() | st.integers(0, 9)),
        st.tuples(st.just("txn"), st.sampled_from("gh"), st.sampled_from("tu"), st.integers(0, 2)),
        st.tuples(st.just("end"), st.booleans(), st.just(""), st.integers(0, 2)),
    ),
    max_size=30,
)


@given(steps)
def test_any_history_gives_what_a_plain_dictionary_says(history: list[tuple[str, object, str, int | None]]) -> None:
    offsets = Offsets()
    plain: dict[tuple[str, str], int] = {}
    pending: dict[int, dict[tuple[str, str], int]] = {}
    for number, (kind, first, topic, third) in enumerate(history):
        if kind == "end":
            assert isinstance(first, bool)
            assert third is not None
            offsets.end_transaction(third, is_committed=first)
            ended = pending.pop(third, {})
            if first:
                plain |= {key: max(offset, plain.get(key, -1)) for key, offset in ended.items()}
            continue
        assert isinstance(first, str)
        key = OffsetKey(first, topic, 0)
        if kind == "put" and third is None:
            offsets.replay(key, None, None)
            for store in (plain, *pending.values()):
                store.pop((first, topic), None)
        else:
            producer_id = third if kind == "txn" else None
            offsets.replay(key, OffsetValue(number, -1, "", 0), producer_id)
            (plain if producer_id is None else pending.setdefault(producer_id, {}))[first, topic] = number
    open_now = {key for keys in pending.values() for key in keys}
    for group in "gh":
        assert offsets.has_any(group) == any(g == group for g, _ in [*plain, *open_now])
        for topic in "tu":
            (found,) = offsets.fetch(group, [(topic, 0)], require_stable=True)
            assert (found.error is not None) == ((group, topic) in open_now)
            (found,) = offsets.fetch(group, [(topic, 0)], require_stable=False)
            assert found.offset == plain.get((group, topic), -1)


def test_the_garbage_collector_does_not_look_through_what_is_committed() -> None:
    offsets = Offsets()
    commit(offsets, *(committed(1, partition=partition) for partition in range(10)))
    gc.collect()
    group = offsets._committed["g"]
    assert not gc.is_tracked(group), "a million offsets cost a collection nothing"
