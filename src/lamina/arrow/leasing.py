"""A lease of the files of a range: asked of its leader, renewed while they are read, and given back.

Owns that a lease is given back once, and that whoever is killed stops renewing it. Must not know what is read.
"""

import asyncio
from contextlib import suppress

from lamina.arrow.prefetching import RangeToFetch
from lamina.arrow.properties import ClientProperties
from lamina.errors import KafkaError, ResourceNotFound
from lamina.log.files import Disk
from lamina.peer.cluster import ClusterClient
from lamina.peer.lending import Lent, check_kept, keep_lease, lend_segments, lent
from lamina.peer.target import Broker, Leader

_RENEWALS = 3
"""In the time that a lease holds: one or two may be lost."""


class Leased:
    """To be used on one event loop; made by `lease_files`."""

    def __init__(self, cluster: ClusterClient, files: Lent) -> None:
        self.files = files
        self._cluster = cluster
        self._renewing = None if files.lease_id is None else asyncio.create_task(self._renew())

    async def give_back(self) -> None:
        """A broker that cannot be told ends the lease by itself."""
        if self._renewing is None or self.files.lease_id is None:
            return
        self._renewing.cancel()
        await asyncio.gather(self._renewing, return_exceptions=True)
        with suppress(KafkaError):
            await self._cluster.send_once(Broker(self.files.node_id), keep_lease(self.files.lease_id, is_over=True))

    async def _renew(self) -> None:
        assert self.files.lease_id is not None
        while True:
            await asyncio.sleep(self.files.lease_ms / 1000 / _RENEWALS)
            try:
                call = keep_lease(self.files.lease_id, is_over=False)
                check_kept(await self._cluster.send_once(Broker(self.files.node_id), call))
            except ResourceNotFound:
                # What is open stays readable; the reader finds no next file, and asks anew.
                return
            except KafkaError:
                continue


async def lease_files(cluster: ClusterClient, properties: ClientProperties, asked: RangeToFetch, at: int) -> Leased:
    """Files for what is left of a range from ``at`` on, or for a part of it. Raises `KafkaError`."""
    call = lend_segments(
        asked.topic,
        asked.topic_id,
        asked.partition,
        at,
        asked.end,
        isolation_level=properties.isolation_level,
        boot_id=Disk().boot_id(),
    )
    return Leased(cluster, lent(await cluster.request(Leader(asked.topic, asked.partition), call)))
