"""The connections to the brokers of one cluster: made when first needed, shared, made again after they ended.

Owns them by address. Everybody who needs the same one while it is being made waits for the same attempt. Must not know
which broker has which address.
"""

import asyncio
from collections.abc import Iterable

from lamina.errors import KafkaError, NetworkError
from lamina.peer.addresses import Address
from lamina.peer.connection import Connection
from lamina.peer.connector import Connector, open_connection
from lamina.peer.limits import Limits
from lamina.peer.retries import is_retriable


class ConnectionPool:
    def __init__(self, connector: Connector, limits: Limits) -> None:
        self._connector = connector
        self._limits = limits
        self._opened: dict[Address, asyncio.Task[Connection]] = {}
        self.has_connected = False
        """Whether any was ever made."""

    def is_connected(self, address: Address) -> bool:
        """Whether a connection to it is open, as far as this end knows."""
        opened = self._opened.get(address)
        return opened is not None and opened.done() and _is_usable(opened)

    async def to(self, address: Address) -> Connection:
        """Raises `KafkaError` when it cannot be made."""
        opened = self._opened.get(address)
        if opened is None or (opened.done() and not _is_usable(opened)):
            opening = open_connection(self._connector, address, self._limits)
            opened = self._opened[address] = asyncio.create_task(opening)
            opened.add_done_callback(_look_at)
        try:
            # A caller that gives up leaves the attempt to the others, and to the next.
            connection = await asyncio.shield(opened)
        except asyncio.CancelledError:
            caller = asyncio.current_task()
            if opened.cancelled() and caller is not None and not caller.cancelling():
                raise NetworkError(f"the connection to {address} was closed") from None
            raise
        self.has_connected = True
        return connection

    async def to_any(self, addresses: Iterable[Address]) -> Connection:
        """One that is there already, else the first that can be made. Raises the reasons of all as one error."""
        tried = list(dict.fromkeys(addresses))
        for address in tried:
            if self.is_connected(address):
                return self._opened[address].result()
        errors: list[KafkaError] = []
        for address in tried:
            try:
                return await self.to(address)
            except KafkaError as error:
                errors.append(error)
        if len(errors) == 1:
            raise errors[0]
        reasons = "; ".join(str(error) for error in errors)
        worth_retrying = [error for error in errors if is_retriable(error)]
        kind = NetworkError if worth_retrying or not errors else type(errors[0])
        raise kind(f"no broker answers: {reasons}")

    async def close(self) -> None:
        opened = list(self._opened.values())
        self._opened.clear()
        for task in opened:
            if task.done() and _is_usable(task):
                task.result().close()
            else:
                task.cancel()
        await asyncio.gather(*opened, return_exceptions=True)


def _is_usable(opened: "asyncio.Task[Connection]") -> bool:
    return not opened.cancelled() and opened.exception() is None and opened.result().is_usable


def _look_at(opened: "asyncio.Task[Connection]") -> None:
    """An attempt that failed when no caller waited any more need not be in asyncio's log."""
    if not opened.cancelled():
        opened.exception()
