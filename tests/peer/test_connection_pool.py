"""Connections that are shared while they are made: who gives up, and who is told that the pool is closed."""

import asyncio

import pytest

from lamina.errors import NetworkError
from lamina.peer.addresses import Address
from lamina.peer.connection import Connection
from lamina.peer.connection_pool import ConnectionPool
from lamina.peer.limits import Limits

ADDRESS = Address("nowhere.test", 9092)


class NeverConnects:
    async def connect(self, address: Address, limits: Limits) -> Connection:
        await asyncio.Event().wait()
        raise AssertionError


async def waiting_for(pool: ConnectionPool) -> "asyncio.Task[Connection]":
    task = asyncio.create_task(pool.to(ADDRESS))
    for _ in range(3):
        await asyncio.sleep(0)
    return task


def test_who_waits_when_the_pool_is_closed_is_told_so() -> None:
    async def scenario() -> None:
        pool = ConnectionPool(NeverConnects(), Limits())
        task = await waiting_for(pool)
        await pool.close()
        with pytest.raises(NetworkError, match="was closed"):
            await task

    asyncio.run(scenario())


def test_who_is_cancelled_when_the_pool_is_closed_ends() -> None:
    """A task that took the one for the other would go on for ever."""

    async def scenario() -> None:
        pool = ConnectionPool(NeverConnects(), Limits())
        task = await waiting_for(pool)
        closing = asyncio.create_task(pool.close())
        await asyncio.sleep(0)
        task.cancel()
        await closing
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(scenario())
