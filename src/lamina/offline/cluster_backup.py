"""A backup of a whole cluster, taken over its listeners while it runs: each partition once, from its leader.

Nothing is asked of brokers that a consumer would not ask. Why the result can be restored whatever happens meanwhile:

- **Only committed records are taken**, below the high watermark, byte for byte: no change of leaders takes them back.
- **The offsets of groups come first**, and how far the other partitions are taken is decided after that: no group has
  read further than its topics reach in the backup.
- **A log that is cleaned** is taken up to its end at the moment when it is read to the end: a record that was cleaned
  away under the reader's eyes has a newer one with its key in what follows.
- **The state of transactions comes last.** A transaction that is open in what was taken of a partition is either still
  open there, and is ended by the coordinator that loads that state; or it has ended meanwhile, and then the partition
  is taken further, up to the marker. No partition shows a part of a transaction. But they are not read at one moment:
  what ended meanwhile may be in some of them and not in others.
- **The metadata is read again in the end**: it has the leader epochs of all that was taken, and producer ids above all.
  Topics that are not in it any more were deleted, and go from the backup.

Must not know how it is shown.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from lamina import __version__
from lamina.clocks import SYSTEM_CLOCKS, Clocks
from lamina.errors import KafkaError, OffsetOutOfRange, RequestTimedOut
from lamina.image.features import SUPPORTED, why_unsupported
from lamina.image.image import ConfigResource, Image, ResourceType
from lamina.image.topic import CONSUMER_OFFSETS, TRANSACTION_STATE
from lamina.log.backup import MANIFEST
from lamina.log.backup.copier import BackupError, Copier
from lamina.log.backup.directory import LOGS, checkpoint_contents
from lamina.log.backup.fetched_log import FetchedLog
from lamina.log.backup.manifest import ClusterFacts, Manifest, dump_manifest
from lamina.log.checkpoints import write_offsets
from lamina.log.clean_shutdown import NO_BROKER_EPOCH
from lamina.log.files import Disk
from lamina.log.names import partition_directory
from lamina.offline.backup_target import PARTIAL, BackupRefused, check_target, claimed
from lamina.offline.taken_transactions import TakenTransactions
from lamina.peer.call import MessageCall
from lamina.peer.cluster import ClusterClient
from lamina.peer.listing import EARLIEST, LATEST
from lamina.peer.target import AnyBroker
from lamina.records.batch import walk
from lamina.storage import METADATA_DB
from lamina.store.interface import ClusterStore, StoreError
from lamina.store.metadata import MetadataStore
from lamina.store.producer_ids import LastBlock, ProducerIds
from lamina.store.sqlite import SqliteStore
from lamina.store.znodes import ZnodeMetadata
from lamina.topic_partition import TopicPartition
from lamina.wire.api_keys import DESCRIBE_CONFIGS

Advance = Callable[[int, int], None]
"""Told how many offsets are behind, and of how many."""

_AT_ONCE = 4
"""Partitions that are taken at the same time."""
_FETCH_BYTES = 8 * 1024 * 1024
_TRIES = 5
"""For a log whose start passes the reader by."""
_EMPTY_TRIES = 50
_SEGMENT_BYTES = 1024 * 1024 * 1024
"""Where a topic says nothing else."""
_NOBODY = -1
_POLICY = "cleanup.policy"


@dataclass(frozen=True, slots=True)
class ClusterBackup:
    """A backup that was made, and what is not in it."""

    target: str
    manifest: Manifest
    deleted: list[str]
    """Topics that were deleted meanwhile."""
    missing: dict[str, str]
    """Partitions that could not be read, and why."""


async def take_cluster_backup(
    peers: ClusterClient,
    store: ClusterStore,
    target: str,
    disk: Disk,
    advance: Advance,
    clocks: Clocks = SYSTEM_CLOCKS,
) -> ClusterBackup:
    """Make the backup. Raises :class:`BackupError`; what is then left of it was removed."""
    target = disk.absolute(target)
    check_target(disk, target)
    with claimed(disk, target) as claim:
        try:
            backup = await _Taking(peers, store, target, disk, advance, clocks).run()
        except StoreError as error:
            raise BackupError(str(error)) from error
        claim.complete()
    return backup


class _Taking:
    """A backup under way."""

    def __init__(
        self,
        peers: ClusterClient,
        store: ClusterStore,
        target: str,
        disk: Disk,
        advance: Advance,
        clocks: Clocks,
    ) -> None:
        self._clocks = clocks
        self._peers = peers
        self._store = store
        self._target = target
        self._copier = Copier(disk, target + PARTIAL, may_link=False)
        self._advance = advance
        self._done = self._planned = 0
        self._logs: dict[TopicPartition, FetchedLog] = {}
        self._high_watermarks: dict[TopicPartition, int] = {}
        self._missing: dict[TopicPartition, str] = {}
        self._cleaned: frozenset[str] = frozenset()

    async def run(self) -> ClusterBackup:
        started_ms = self._clocks.now_ms()
        image = self._read_metadata()
        await self._check_brokers(image.cluster_id)
        self._copier.make_dir(LOGS)
        every = [
            (topic.name, index)
            for topic in image.topics.values()
            if not topic.is_being_deleted
            for index, partition in enumerate(topic.partitions)
        ]
        offsets = [key for key in every if key[0] == CONSUMER_OFFSETS]
        transactions = [key for key in every if key[0] == TRANSACTION_STATE]
        others = [key for key in every if key[0] not in (CONSUMER_OFFSETS, TRANSACTION_STATE)]
        self._cleaned = await _cleaned_topics(self._peers, {name for name, _ in every})
        await self._each(offsets, lambda key: self._take(image, key))
        await self._each(others, self._plan)
        await self._each(others, lambda key: self._take(image, key))
        await self._each(transactions, lambda key: self._take(image, key))
        await self._end_transactions(image, transactions)
        for log in self._logs.values():
            log.close()
        return self._complete(image, started_ms)

    def _read_metadata(self) -> Image:
        """As the store has it now: a server may be behind the others."""
        self._store.sync()
        image = ZnodeMetadata(self._store).load()
        unsupported = why_unsupported(image.features, SUPPORTED)
        if unsupported is not None:
            raise BackupError(unsupported)
        return image

    async def _check_brokers(self, cluster_id: str) -> None:
        """Records of one cluster under the metadata of another one would be a backup of neither."""
        told = await self._peers.cluster_id()
        if told != cluster_id:
            raise BackupRefused(
                f"the brokers belong to cluster {told}, and ZooKeeper holds cluster {cluster_id}: "
                "name a broker of that one with --bootstrap-server"
            )

    async def _each(self, keys: Iterable[TopicPartition], work: Callable[[TopicPartition], Awaitable[None]]) -> None:
        """Some at a time. A partition that cannot be read is missing, and the others are taken all the same."""
        waiting = iter(list(keys))

        async def work_on() -> None:
            for key in waiting:
                if key in self._missing:
                    continue
                try:
                    await work(key)
                except KafkaError as error:
                    self._missing[key] = str(error)
                    self._logs.pop(key, None)
                    self._copier.remove_tree(f"{LOGS}/{partition_directory(*key)}")

        await asyncio.gather(*(work_on() for _ in range(_AT_ONCE)))

    # One partition

    async def _plan(self, key: TopicPartition) -> None:
        """How far it is taken."""
        end = await self._peers.list_offset(*key, LATEST)
        start = await self._peers.list_offset(*key, EARLIEST)
        self._high_watermarks[key] = end.offset
        self._planned += max(0, end.offset - start.offset)

    async def _take(self, image: Image, key: TopicPartition) -> None:
        topic = image.topics[key[0]]
        configs = image.configs_of(ConfigResource(ResourceType.TOPIC, topic.name))
        segment_bytes = int(configs.get("segment.bytes", _SEGMENT_BYTES))
        for attempt in range(_TRIES):
            start = await self._peers.list_offset(*key, EARLIEST)
            log = FetchedLog(self._copier, key, topic.id, start.offset, segment_bytes)
            self._logs[key] = log
            is_cleaned = topic.is_internal or topic.name in self._cleaned
            try:
                await self._fetch(log, None if is_cleaned else self._high_watermarks[key])
            except OffsetOutOfRange:
                if attempt == _TRIES - 1:
                    raise
                continue
            finally:
                log.close()
            return

    async def _fetch(self, log: FetchedLog, until: int | None) -> None:
        """Read on up to an offset, or to the end as it is when it is reached."""
        empty = 0
        while until is None or log.next_offset < until:
            fetched = await self._peers.fetch(
                *log.key, log.next_offset, max_bytes=_FETCH_BYTES, max_wait_ms=100 if empty else 0
            )
            end, before = fetched.high_watermark, log.next_offset
            log.append(fetched.records, end if until is None else until)
            self._high_watermarks[log.key] = max(end, log.next_offset)
            self._done += log.next_offset - before
            self._advance(self._done, max(self._planned, self._done))
            if until is None and log.next_offset >= end:
                return
            empty = 0 if log.next_offset > before else empty + 1
            if empty == _EMPTY_TRIES:
                raise RequestTimedOut(f"its leader sends nothing from offset {before} on")

    # Transactions

    async def _end_transactions(self, image: Image, states: Iterable[TopicPartition]) -> None:
        """Take partitions further, up to the ends of transactions that have ended since they were taken."""
        taken = TakenTransactions(self._copier.disk)
        for key in states:
            if key in self._logs:
                taken.read(f"{self._copier.root}/{LOGS}/{partition_directory(*key)}")

        async def end(key: TopicPartition) -> None:
            log = self._logs[key]
            while ended := taken.ended(key, log.open_transactions):
                until = await self._ends_of(log, ended)
                if until is None:
                    return
                await self._fetch(log, until)

        await self._each([key for key in list(self._logs) if key[0] != TRANSACTION_STATE], end)

    async def _ends_of(self, log: FetchedLog, producer_ids: frozenset[int]) -> int | None:
        """The offset behind the first marker of one of these producers, if there is any below the high watermark."""
        offset = log.next_offset
        while True:
            fetched = await self._peers.fetch(*log.key, offset, max_bytes=_FETCH_BYTES, max_wait_ms=0)
            before = offset
            for _, header in walk(fetched.records):
                if header.is_control and header.producer_id in producer_ids and header.base_offset >= before:
                    return header.next_offset
                offset = max(offset, header.next_offset)
            if offset == before or offset >= fetched.high_watermark:
                return None

    # The end

    def _complete(self, image: Image, started_ms: int) -> ClusterBackup:
        after = self._read_metadata()
        deleted = [
            name
            for name, topic in image.topics.items()
            if topic.is_being_deleted
            or (now := after.topics.get(name)) is None
            or now.id != topic.id
            or now.is_being_deleted
        ]
        for key in [key for key in self._logs if key[0] in deleted]:
            del self._logs[key]
            self._copier.remove_tree(f"{LOGS}/{partition_directory(*key)}")
        missing = {key: why for key, why in self._missing.items() if key[0] not in deleted}
        taken = [log.finish(self._high_watermarks[key]) for key, log in sorted(self._logs.items())]
        kept = _kept(image, after, frozenset(deleted), self._logs)
        self._write_metadata(kept)
        self._copier.count(METADATA_DB)
        for name, offsets in checkpoint_contents(taken).items():
            write_offsets(self._copier.disk, f"{self._copier.root}/{LOGS}/{name}", offsets)
            self._copier.count(f"{LOGS}/{name}")
        manifest = Manifest(
            __version__,
            kept.cluster_id,
            _NOBODY,
            started_ms,
            self._clocks.now_ms(),
            False,
            NO_BROKER_EPOCH,
            [],
            taken,
            dict(self._copier.files),
            ClusterFacts(after.controller_epoch, tuple(sorted(missing))),
        )
        self._copier.write(MANIFEST, dump_manifest(manifest))
        self._copier.sync_dir(LOGS)
        named = {partition_directory(*key): why for key, why in sorted(missing.items())}
        return ClusterBackup(self._target, manifest, sorted(set(deleted)), named)

    def _write_metadata(self, image: Image) -> None:
        database = SqliteStore(f"{self._copier.root}/{METADATA_DB}")
        try:
            MetadataStore(database, image.cluster_id).save(image)
            # After everything else was taken: no log holds an id that is given again.
            ProducerIds(database).skip_to(ProducerIds(self._store, LastBlock(_NOBODY)).next_id())
        finally:
            database.close()


async def _cleaned_topics(peers: ClusterClient, names: Iterable[str]) -> frozenset[str]:
    """Those from whose middle records may go: they, or the cluster's default, say so."""
    asked = [
        {"resource_type": ResourceType.TOPIC, "resource_name": name, "configuration_keys": [_POLICY]}
        for name in sorted(names)
    ]
    answer = await peers.request(AnyBroker(), MessageCall(DESCRIBE_CONFIGS, range(1, 5), resources=asked))
    return frozenset(
        one.resource_name
        for one in answer.results
        if any(config.name == _POLICY and config.value != "delete" for config in one.configs)
    )


def _kept(image: Image, after: Image, deleted: frozenset[str], logs: Mapping[TopicPartition, FetchedLog]) -> Image:
    """The metadata as it is now, of the topics and partitions that there were when the backup began."""
    topics = {}
    for name, topic in image.topics.items():
        if name not in deleted:
            now = after.topics[name]
            partitions = tuple(
                replace(
                    partition,
                    leader_epoch=max(partition.leader_epoch, logs[name, index].latest_epoch)
                    if (name, index) in logs
                    else partition.leader_epoch,
                    replicas=partition.target,
                    adding=(),
                    removing=(),
                )
                for index, partition in enumerate(now.partitions[: len(topic.partitions)])
            )
            topics[name] = replace(now, partitions=partitions)
    configs = {
        resource: values
        for resource, values in after.configs.items()
        if resource.type is not ResourceType.TOPIC or resource.name in topics
    }
    return Image(
        after.cluster_id,
        topics=topics,
        topic_names={topic.id: topic.name for topic in topics.values()},
        configs=configs,
        features=after.features,
        acls=after.acls,
        scram_credentials=after.scram_credentials,
        quotas=after.quotas,
    )
