"""The ways between the parties of a cluster, and what a test does to them: cut in one direction or in both, slow, late.

Owns the state of each direction. What is sent over a cut link waits and arrives when it is whole again, as TCP sends it
again; the end of a stream waits too. Lives on one event loop. Must not know sockets.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterable

Party = str
"""``broker-1``, ``zookeeper``, ``clients``."""
CLIENTS, ZOOKEEPER = "clients", "zookeeper"


class Link:
    """From one party to another."""

    def __init__(self) -> None:
        self.delay_seconds = 0.0
        self.carried_bytes = 0
        self.waiting_bytes = 0
        """Read from the sender, and not passed on yet."""
        self._whole = asyncio.Event()
        self._whole.set()

    @property
    def is_cut(self) -> bool:
        return not self._whole.is_set()

    def cut(self) -> None:
        self._whole.clear()

    def heal(self) -> None:
        self._whole.set()
        self.delay_seconds = 0.0

    async def crossed(self) -> None:
        """Until something that was sent may arrive."""
        await self._whole.wait()


class Links:
    def __init__(self) -> None:
        self._links: dict[tuple[Party, Party], Link] = defaultdict(Link)
        self._held_api: int | None = None
        self._released = asyncio.Event()
        self.held_requests = 0

    def between(self, sender: Party, receiver: Party) -> Link:
        return self._links[sender, receiver]

    def cut(self, senders: Iterable[Party], receivers: Iterable[Party]) -> None:
        """In this direction only."""
        receivers = list(receivers)
        for sender in senders:
            for receiver in receivers:
                self.between(sender, receiver).cut()

    def delay(self, senders: Iterable[Party], receivers: Iterable[Party], seconds: float) -> None:
        receivers = list(receivers)
        for sender in senders:
            for receiver in receivers:
                self.between(sender, receiver).delay_seconds = seconds

    def heal(self) -> None:
        for link in self._links.values():
            link.heal()

    # One kind of request

    def hold(self, api_key: int) -> None:
        """From now on: clients' requests of this kind, and all that follow them on their connections."""
        self._held_api = api_key
        self._released.clear()

    def let_pass(self) -> None:
        """Later requests of this kind; those that are held stay so."""
        self._held_api = None

    def release(self) -> None:
        """Those that are held arrive."""
        self.let_pass()
        self._released.set()

    async def passed(self, api_key: int) -> None:
        """Until a client's request may go on."""
        if api_key == self._held_api:
            self.held_requests += 1
            await self._released.wait()
