"""A member's registration and its lease, without a cluster around it."""

import asyncio
from types import SimpleNamespace
from typing import Any

from lamina.broker.metadata.member import Member
from lamina.broker.partitions.cluster import Cluster, OwnCluster
from lamina.image.image import Broker, Image
from lamina.store.registration import Registration
from tests.image.steps import CLUSTER_ID

OLD, NEW = 1, 2
"""Two registrations of one broker: in each its epoch is also the number of its session."""


class _Following:
    is_ready = is_stop_unanswered = False

    def __init__(self) -> None:
        self.image = Image(CLUSTER_ID)
        self._changed = asyncio.Condition()

    async def wait_until(self, holds: Any) -> None:
        async with self._changed:
            await self._changed.wait_for(lambda: holds(self.image))

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
    session_id = 0

    def try_register(self, _: Any) -> int:
        self.session_id += 1
        return self.session_id

    def mark_ready(self, _: Any) -> None: ...


def test_a_lease_is_of_the_session_of_its_own_registration() -> None:
    """One that was taken in while its session was lost must not hold the next one, in which others may lead."""

    async def scenario() -> list[int]:
        held: list[int] = []
        following, thread = _Following(), _Thread()
        session = SimpleNamespace(hold=held.append)
        nobody: Any = None
        cluster = Cluster(1, 1000, OwnCluster())
        parts: Any = (cluster, asyncio.get_running_loop(), thread, _Membership(), session, nobody, following)
        others: Any = (nobody,) * 4
        member = Member(*parts, *others)
        member._registration = Registration((), None, "0.1", True, ("dir-1",), 1234)
        thread.done.set()
        await member._register(0)
        thread.done.clear()
        again = asyncio.ensure_future(member._register(0))
        await asyncio.sleep(0)
        await following.taken_in(OLD)
        await asyncio.sleep(0.01)
        assert NEW not in held
        thread.done.set()
        await again
        await following.taken_in(NEW)
        await asyncio.sleep(0.01)
        return held

    assert asyncio.run(scenario()) == [OLD, NEW]
