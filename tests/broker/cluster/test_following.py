"""What a broker makes of a controller's answers that cannot be right."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from lamina.broker.metadata.applied import Applied
from lamina.broker.metadata.change_stream import ChangeStream, Told
from lamina.broker.metadata.follow_messages import FollowRequest, FollowResponse
from lamina.broker.metadata.member import Member
from lamina.errors import NotController
from lamina.image.image import Image
from lamina.log.directory import LogDirectory
from tests.broker.cluster.conftest import NewMembers

JUNK = (b"", b"null", b"[" * 100_000, b'{"brokers": 7}', b'{"partitions": [["unknown", 0, []]]}', b"\xff\xfe")


def test_a_change_that_cannot_be_read_is_followed_by_the_whole_image(
    new_members: NewMembers, monkeypatch: pytest.MonkeyPatch
) -> None:
    members = new_members()
    for node_id in (1, 2):
        members.start(node_id)
    assert members.controller().id == 1
    since, junk = ChangeStream.since, list(JUNK)

    def tampered(stream: ChangeStream, controller_epoch: int, version: int) -> Told:
        told = since(stream, controller_epoch, version)
        return told._replace(lines=[junk.pop() for _ in told.lines]) if junk and told.lines else told

    monkeypatch.setattr(ChangeStream, "since", tampered)
    members.create(1, "t", [[2, 1]])
    members.run_until(lambda: members.leads(2, "t") and not junk)
    assert members.up[1].fatal == members.up[2].fatal == []


def test_an_older_controller_is_not_believed(new_members: NewMembers) -> None:
    """R57: whoever was paused and does not know that another is elected."""
    members = new_members()
    members.start(1)
    members.stop(1)
    process = members.start(1)
    following = process.parts.member_parts.following  # type: ignore[union-attr]
    image = following.decided
    assert image.controller_epoch == 2
    assert not members.finish(following._take(FollowResponse(1, 99, True, [b"{}"])))
    assert following.decided is image


def test_a_change_is_applied_to_its_end_though_the_question_that_brought_it_is_given_up(
    new_members: NewMembers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While roles are taken, something new to report may find no controller: half of a change is never resumed."""
    members = new_members()
    for node_id in (1, 2):
        members.start(node_id)
    assert members.controller().id == 1
    parts = members.up[2].parts
    assert parts.member_parts is not None
    following, apply = parts.member_parts.following, parts.publisher.apply
    ask = following._ask
    interrupted: list[Image] = []

    async def refused(asked: FollowRequest) -> FollowResponse:
        raise NotController("another controller was elected meanwhile")

    async def slowly(old: Image | None, new: Image, opened: Callable[[int, int], None] | None = None) -> Applied:
        if "t" in new.topics and not interrupted:
            interrupted.append(new)
            following._ask = refused
            following.tell()
            for _ in range(20):
                await asyncio.sleep(0)
            following._ask = ask
        return await apply(old, new, opened)

    monkeypatch.setattr(parts.publisher, "apply", slowly)
    members.create(1, "t", [[2, 1]])
    members.run_until(lambda: members.leads(2, "t"))
    assert interrupted


def test_a_change_is_applied_to_its_end_before_logs_are_closed(
    new_members: NewMembers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be making or opening logs: they would be left out of what is flushed, and the broker end with an error."""
    members = new_members()
    for node_id in (1, 2):
        members.start(node_id)
    assert members.controller().id == 1
    parts = members.up[2].parts
    apply, close = parts.publisher.apply, LogDirectory.close
    goes_on, order = asyncio.Event(), []

    async def slowly(old: Image | None, new: Image, opened: Callable[[int, int], None] | None = None) -> Applied:
        order.append("began")
        await goes_on.wait()
        applied = await apply(old, new, opened)
        order.append("applied")
        return applied

    def noted(directory: LogDirectory, *args: Any, **named: Any) -> None:
        order.append("closed")
        close(directory, *args, **named)

    async def do_not_wait(*_: Any) -> None:
        """The leaders of this broker do not move away: it does not get as far as to apply that."""

    monkeypatch.setattr(parts.publisher, "apply", slowly)
    monkeypatch.setattr(LogDirectory, "close", noted)
    monkeypatch.setattr(Member, "drain", do_not_wait)
    creating = members.loop.create_task(members.begin_create(1, "t", [[2, 1]]))
    members.run_until(lambda: order == ["began"])
    members.loop.call_later(0.05, goes_on.set)
    members.stop(2)
    assert order[:3] == ["began", "applied", "closed"]
    members.run_until(creating.done)
