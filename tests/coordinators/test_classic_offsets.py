"""What a classic group says about offsets: who may commit, what may be deleted, what grows old."""

import pytest

from lamina.coordinators.decision import Decision
from lamina.coordinators.offsets import Expiry
from lamina.errors import (
    FencedInstanceId,
    IllegalGeneration,
    KafkaError,
    NonEmptyGroup,
    RebalanceInProgress,
    UnknownMemberId,
)
from tests.coordinators.classic_world import SESSION_MS, World

NOBODY: tuple[str, int, str | None] = ("", -1, None)


def refused(
    world: World, who: tuple[str, int, str | None], *, is_transactional: bool = False
) -> type[KafkaError] | None:
    try:
        world.group.check_commit(*who, is_transactional=is_transactional)
    except KafkaError as error:
        return type(error)
    return None


def test_whoever_is_no_member_commits_in_an_empty_group_only() -> None:
    world = World()
    assert refused(world, NOBODY) is None
    assert refused(world, ("somebody", -1, None)) is None
    world.form("a")
    assert refused(world, NOBODY) is UnknownMemberId


def test_a_commit_in_an_empty_group_with_a_generation_is_refused() -> None:
    assert refused(World(), ("a", 0, None)) is UnknownMemberId


def test_a_member_commits_in_its_generation() -> None:
    world = World()
    world.form("a")
    assert refused(world, ("a", 1, None)) is None
    assert refused(world, ("a", 0, None)) is IllegalGeneration
    assert refused(world, ("a", -1, None)) is IllegalGeneration
    assert refused(world, ("b", 0, None)) is UnknownMemberId
    assert refused(world, ("", 1, None)) is UnknownMemberId


def test_a_static_member_that_was_replaced_does_not_commit() -> None:
    world = World()
    world.form_static("i")
    world.ask_to_join(gets="i-2", instance="i")
    assert refused(world, ("i-1", 1, "i")) is FencedInstanceId
    assert refused(world, ("i-2", 1, "i")) is None
    assert refused(world, ("i-2", 1, "other")) is UnknownMemberId
    assert refused(world, ("", -1, "i")) is FencedInstanceId


def test_members_commit_until_the_next_generation_begins() -> None:
    world = World()
    world.form("a", "b")
    world.ask_to_join("a")
    assert refused(world, ("b", 1, None)) is None
    world.ask_to_join("b")
    assert world.state == "CompletingRebalance"
    assert refused(world, ("b", 1, None)) is IllegalGeneration
    assert refused(world, ("b", 2, None)) is RebalanceInProgress


def test_transactions_commit_whatever_state_the_group_is_in() -> None:
    world = World()
    world.join_all("a")
    assert refused(world, ("a", 1, None), is_transactional=True) is None
    assert refused(world, NOBODY, is_transactional=True) is None
    assert refused(world, ("a", 7, None), is_transactional=True) is IllegalGeneration
    assert refused(world, ("b", 1, None), is_transactional=True) is UnknownMemberId


def commit(world: World, member_id: str) -> None:
    member = world.group.check_commit(member_id, world.group.generation, None, is_transactional=False)
    assert member is not None
    decision = Decision()  # type: ignore[var-annotated]
    world.group.committed(member, world.now, decision)
    world.carry_out(decision)


def test_a_commit_keeps_a_member_in() -> None:
    world = World()
    world.form("a", "b")
    world.pass_time(SESSION_MS - 1)
    commit(world, "a")
    commit(world, "b")
    world.ask_to_join("a")
    world.pass_time(SESSION_MS - 1)
    commit(world, "b")
    world.pass_time(SESSION_MS - 1)
    assert world.ids == ["a", "b"]


def test_offsets_without_a_group_grow_old_from_their_own_commit() -> None:
    assert World().group.expiry() == Expiry()


def test_offsets_of_an_empty_group_grow_old_from_when_it_became_so() -> None:
    world = World()
    world.form("a")
    world.leave(("a", None))
    emptied_ms = world.now.wall_ms
    world.pass_time(1_000)
    assert world.group.expiry() == Expiry(since_ms=emptied_ms)
    world.load()
    assert world.group.expiry() == Expiry(since_ms=emptied_ms)


def test_offsets_of_an_empty_group_of_old_grow_old_from_their_own_commit() -> None:
    world = World()
    world.form("a")
    world.leave(("a", None))
    stored = world.group.stored
    assert stored is not None
    world.log.append(stored._replace(state_timestamp_ms=-1))
    world.load()
    assert world.group.expiry() == Expiry()


def test_offsets_of_topics_that_a_stable_group_reads_do_not_grow_old() -> None:
    world = World()
    world.ask_to_join(gets="a")
    assert world.group.expiry() is None
    world.join_all()
    assert world.group.expiry() is None
    world.assign()
    assert world.group.expiry() == Expiry(kept_topics=frozenset({"t"}))


@pytest.mark.parametrize(
    "how", [{"protocol_type": "connect"}, {"protocols": (("range", b"?"),)}], ids=["type", "bytes"]
)
def test_offsets_do_not_grow_old_while_it_is_not_known_what_members_read(how: dict[str, object]) -> None:
    world = World()
    world.form("a", **how)
    assert world.group.expiry() is None


def test_a_consumer_group_reads_what_it_is_subscribed_to() -> None:
    world = World()
    world.form("a")
    world.group.check_offset_delete()
    assert world.group.is_subscribed_to("t")
    assert not world.group.is_subscribed_to("other")
    world.leave(("a", None))
    assert not world.group.is_subscribed_to("t")


def test_a_consumer_group_that_cannot_be_understood_may_read_anything() -> None:
    world = World()
    world.form("a", protocols=(("range", b"?"),))
    assert world.group.is_subscribed_to("t")


def test_offsets_of_a_group_of_another_type_are_deleted_only_when_it_is_empty() -> None:
    world = World()
    world.form("a", protocol_type="connect")
    with pytest.raises(NonEmptyGroup):
        world.group.check_offset_delete()
    world.leave(("a", None))
    world.group.check_offset_delete()
    assert not world.group.is_subscribed_to("t")
