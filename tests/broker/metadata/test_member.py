"""A member's registration and its lease, without a cluster around it."""

import asyncio
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from lamina.broker.metadata.change_stream import ChangeStream
from lamina.broker.metadata.controller_election import ControllerElection
from lamina.broker.metadata.member import Member
from lamina.broker.partitions.cluster import Cluster, OwnCluster
from lamina.image.image import Broker, Image
from lamina.store.registration import Registration
from tests.image.steps import CLUSTER_ID

OLD, NEW = 1, 2
"""The epochs of two registrations of one broker."""


class _Following:
    is_ready = is_stop_unanswered = False

    def __init__(self) -> None:
        self.image = Image(CLUSTER_ID)
        self._changed = asyncio.Condition()

    async def wait_until(self, holds: Any) -> None:
        async with self._changed:
            await self._changed.wait_for(lambda: holds(self.image))

    def tell(self) -> None: ...

    async def taken_in(self, epoch: int) -> None:
        self.image = Image(CLUSTER_ID, brokers={1: Broker(1, {}, None, epoch)})
        async with self._changed:
            self._changed.notify_all()


class _Thread:
    """Work is done at once; who waits for it goes on when the test says so."""

    def __init__(self) -> None:
        self.done = asyncio.Event()

    async def run(self, work: Any) -> Any:
        result = work()
        await self.done.wait()
        return result


class _Membership:
    def __init__(self, sessions: Sequence[int]) -> None:
        """Each registration is made in the next of these sessions."""
        self.session_id = 0
        self._sessions = sessions
        self._epoch = 0

    def try_register(self, _: Any) -> int:
        self.session_id = self._sessions[self._epoch]
        self._epoch += 1
        return self._epoch

    def mark_ready(self, _: Any) -> None: ...


def test_what_was_decided_in_a_tenure_that_has_ended_holds_until_more_is_followed() -> None:
    """Else a rule that was taken away would hold again, where its change waits for a slow disk when the tenure ends."""

    async def scenario() -> list[int]:
        images = [Image(CLUSTER_ID, controller_epoch=number) for number in range(3)]
        stream, thread, following = ChangeStream(3, images[0]), _Thread(), SimpleNamespace()
        thread.done.set()
        parts: Any = (1, asyncio.get_running_loop(), thread, SimpleNamespace(resign=lambda _: None))
        others: Any = (*(None,) * 9, lambda: None)
        election = ControllerElection(*parts, *others)
        members: Any = (Cluster(1, 1000, OwnCluster()), parts[1], thread, None, None, election, following)
        rest: Any = (None,) * 4
        member, seen = Member(*members, *rest), list[int]()

        def see(position: tuple[int, int], image: Image) -> None:
            following.position, following.decided = position, image
            seen.append(member.decided.controller_epoch)

        controller: Any = SimpleNamespace(stream=stream, tenure=None)
        election.controller = controller
        stream.append(images[1], b"")
        see((3, 0), images[0])
        election._resigned()
        see((3, 0), images[0])
        see((3, 1), images[1])
        see((4, 0), images[2])
        return seen

    assert asyncio.run(scenario()) == [1, 1, 1, 2]


@pytest.mark.parametrize("sessions", [(5, 6), (5, 5)], ids=["another session", "the same one"])
def test_a_lease_is_of_the_roles_of_its_own_registration(sessions: Sequence[int]) -> None:
    """One that is taken in when its registration is gone leads nothing: others may. Its session may live."""

    async def scenario() -> list[int]:
        held: list[int] = []
        following, thread = _Following(), _Thread()
        session = SimpleNamespace(hold=held.append)

        async def check_cluster() -> None:
            await thread.run(lambda: None)

        election = SimpleNamespace(session_lost=lambda: None, check_cluster=check_cluster)
        cluster = Cluster(1, 1000, OwnCluster())
        parts: Any = (cluster, asyncio.get_running_loop(), thread, _Membership(sessions), session, election, following)
        others: Any = (None,) * 4
        member = Member(*parts, *others)
        member._registration = Registration((), None, "0.1", True, ("dir-1",), 1234)
        thread.done.set()
        await member._register(0)
        thread.done.clear()
        again = asyncio.ensure_future(member._register_again())
        await asyncio.sleep(0)
        await following.taken_in(OLD)
        await asyncio.sleep(0.01)
        assert held == [0]
        thread.done.set()
        await again
        await following.taken_in(NEW)
        await asyncio.sleep(0.01)
        return held

    assert asyncio.run(scenario()) == [0, sessions[1]]
