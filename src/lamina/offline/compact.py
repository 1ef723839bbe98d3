"""Compacting a data directory that no broker uses, Lamina's or Kafka's, with the same code as a running broker's.

Owns which logs of it are cleaned, under its lock. Of Lamina's directory the settings of topics are known; of Kafka's
they lie in its cluster's metadata, so they have to be given, and nothing above the checkpointed high watermark is taken
for committed: another replica may not have it. Raises :class:`OfflineError` with one sentence. Must not print.
"""

import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from uuid import uuid4

from lamina.broker.cleaner.blockers import find_blockers, why_nothing_is_cleanable
from lamina.broker.cleaner.candidates import inspect_log
from lamina.cleaning.contract import Manifest, Plan
from lamina.cleaning.engine_messages import Answer, Failure
from lamina.cleaning.failures import NotEnoughFreeSpace
from lamina.cleaning.gather import PassLimits, PassRange, discard, prepare, take
from lamina.cleaning.install import Refused, installing
from lamina.clocks import SYSTEM_CLOCKS, Clocks
from lamina.compaction.eligibility import Cleanable
from lamina.errors import StorageError
from lamina.image.image import ConfigResource, ResourceType
from lamina.log.directory import DirectoryError, LogDirectory
from lamina.log.files import Disk
from lamina.log.identity import IdentityError, read_meta_properties, read_topic_id
from lamina.log.partition_log import PartitionLog
from lamina.settings.cleaner_limits import cleaner_limits
from lamina.settings.definition import SettingError
from lamina.settings.log_config import LONG_MAX, LogConfig
from lamina.settings.resolve import resolve_broker
from lamina.settings.topic_config import check_overrides, topic_config
from lamina.storage import METADATA_DB, StartError, open_storage
from lamina.topic_partition import TopicPartition

Clean = Callable[[Plan], Answer]
"""Does one plan."""


class OfflineError(Exception):
    """Why a directory cannot be compacted, in one sentence."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What is to be cleaned, and how."""

    topics: frozenset[str] = frozenset()
    """All compacted ones if it is empty."""
    partition: int | None = None
    overrides: Mapping[str, str] | None = None
    """Settings of the topics, where the directory does not tell them."""
    dry_run: bool = False
    roll: bool = False


@dataclass(frozen=True, slots=True)
class Result:
    """What became of one partition; without a manifest ``reason`` says why nothing did."""

    topic: str
    partition: int
    manifest: Manifest | None
    reason: str | None
    is_failure: bool = False
    held_back: tuple[str, ...] = ()
    """Why what remained could not go."""


@dataclass(frozen=True, slots=True)
class _Opened:
    directories: list[LogDirectory]
    configs: dict[str, LogConfig]
    """Of the topics that are to be compacted."""
    is_replicated: bool
    """Whether other brokers have replicas, so that only what is below the high watermark is committed."""


def compact_directory(path: str, wish: Wish, clean: Clean, clocks: Clocks = SYSTEM_CLOCKS) -> Iterator[Result]:
    """One result for each partition, as it is done."""
    path = os.path.realpath(path)
    with _open(path, wish) as opened:
        for directory in opened.directories:
            for key in directory.partitions():
                if key[0] in opened.configs and wish.partition in (None, key[1]):
                    yield _compact(directory, key, opened, wish, clean, clocks.now_ms())


@contextmanager
def _open(path: str, wish: Wish) -> Iterator[_Opened]:
    if not os.path.isdir(path):
        raise OfflineError(f"{path} is not a directory")
    data_directory = next(
        (one for one in (path, os.path.dirname(path)) if os.path.exists(os.path.join(one, METADATA_DB))), None
    )
    opening = _open_kafkas(path, wish) if data_directory is None else _open_laminas(data_directory, wish)
    try:
        with opening as opened:
            yield opened
    except (StartError, DirectoryError, IdentityError, StorageError) as error:
        raise OfflineError(str(error)) from error


@contextmanager
def _open_laminas(data_directory: str, wish: Wish) -> Iterator[_Opened]:
    if wish.overrides:
        raise OfflineError(f"{data_directory} knows the settings of its topics: --set is for directories of Kafka")
    logs = os.path.join(data_directory, "logs")
    identity = read_meta_properties(Disk(), logs)
    given = {"lamina.data.dir": data_directory}
    if identity is not None and identity.node_id is not None:
        given["node.id"] = str(identity.node_id)
    settings = resolve_broker(sets=given)
    storage = open_storage(settings)
    try:
        image = storage.metadata.image
        topics = {name for name, topic in image.topics.items() if not topic.is_being_deleted}
        partitions = {key for directory in storage.directories for key in directory.partitions() if key[0] in topics}
        _check_names(wish, partitions, data_directory)
        configs = {
            name: topic_config(settings, image.configs_of(ConfigResource(ResourceType.TOPIC, name)))
            for name in wish.topics or topics
        }
        for name in wish.topics:
            if not configs[name].compact:
                raise OfflineError(f"the cleanup.policy of {name} does not compact")
        compacted = {name: config for name, config in configs.items() if config.compact}
        yield _Opened(storage.directories, compacted, is_replicated=False)
    finally:
        storage.close()


@contextmanager
def _open_kafkas(path: str, wish: Wish) -> Iterator[_Opened]:
    identity = read_meta_properties(Disk(), path)
    if identity is None:
        raise OfflineError(f"{path} is no log directory: it has no meta.properties")
    config = _given_config(path, wish)
    directory = LogDirectory.open(path, node_id=identity.node_id or 0, cluster_id=identity.cluster_id)
    try:
        _check_names(wish, set(directory.partitions()), path)
        yield _Opened([directory], dict.fromkeys(wish.topics, config), is_replicated=True)
    finally:
        directory.close()


def _given_config(path: str, wish: Wish) -> LogConfig:
    overrides = wish.overrides or {}
    if not wish.topics or "cleanup.policy" not in overrides:
        raise OfflineError(
            f"{path} does not say how its topics are set up: name those to compact and give their settings, as in "
            f"lamina compact --dir {path} TOPIC --set cleanup.policy=compact --set delete.retention.ms=86400000"
        )
    try:
        check_overrides(overrides)
        config = topic_config(resolve_broker(), overrides)
    except SettingError as error:
        raise OfflineError(f"--set {error}") from error
    if not config.compact:
        raise OfflineError(f"cleanup.policy={overrides['cleanup.policy']} does not compact")
    return config


def _check_names(wish: Wish, known: set[TopicPartition], path: str) -> None:
    for name in sorted(wish.topics - {topic for topic, _ in known}):
        raise OfflineError(f"{path} has no topic {name}")
    found = {index for topic, index in known if not wish.topics or topic in wish.topics}
    if wish.partition is not None and wish.partition not in found:
        raise OfflineError(
            f"{path} has no partition {wish.partition} of {', '.join(sorted(wish.topics)) or 'any topic'}"
        )


def _compact(
    directory: LogDirectory, key: TopicPartition, opened: _Opened, wish: Wish, clean: Clean, now_ms: int
) -> Result:
    log = directory.logs.get(key) or directory.open_partition(*key, opened.configs[key[0]], now_ms)
    if wish.roll and not wish.dry_run and log.segments.active.size_bytes:
        log.roll(now_ms)
    stable = _last_stable_offset(directory, log, is_replicated=opened.is_replicated)
    _, cleanable = inspect_log(log, stable, directory.offset_checkpoints.cleaner_offsets.get(key), now_ms)
    held_back = _held_back(log, cleanable, stable, now_ms)
    if not cleanable.cleanable_bytes:
        return Result(*key, None, why_nothing_is_cleanable(cleanable, held_back), held_back=held_back)
    limits = cleaner_limits(resolve_broker())
    taken = take(
        log,
        read_topic_id(directory.disk, log.path) or bytes(16),
        PassRange(cleanable.first_dirty_offset, cleanable.first_uncleanable_offset),
        PassLimits(limits.memory_bytes, None),
        plan_id=uuid4().hex,
        hash_key=secrets.token_bytes(16),
        now_ms=now_ms,
    )
    try:
        answer = clean(prepare(taken))
        if isinstance(answer, Failure):
            return Result(*key, None, answer.reason, is_failure=True)
        if not wish.dry_run:
            for step in installing(log, taken.plan.topic_id, taken, answer, now_ms):
                step()
            _finish(directory, log, key, answer)
        return Result(*key, answer, None, held_back=held_back)
    except (NotEnoughFreeSpace, Refused, OSError) as error:
        return Result(*key, None, str(error), is_failure=True)
    finally:
        discard(taken.plan, taken.disk)


def _held_back(log: PartitionLog, cleanable: Cleanable, last_stable_offset: int, now_ms: int) -> tuple[str, ...]:
    sentences = [blocker.sentence for blocker in find_blockers(log, cleanable, now_ms)]
    unstable = log.producers.first_unstable_offset()
    if last_stable_offset < min(log.segments.active.base_offset, log.log_end_offset if unstable is None else unstable):
        sentences.insert(
            0,
            f"what comes from offset {last_stable_offset} on was above the high watermark when Kafka stopped: another "
            f"replica may know better",
        )
    return tuple(sentences)


def _finish(directory: LogDirectory, log: PartitionLog, key: TopicPartition, manifest: Manifest) -> None:
    """Write the checkpoint, which also lists partitions that are not open here, and remove the old files: they have no
    readers."""
    existing = set(directory.partitions())
    directory.write_checkpoints(directory.offset_checkpoints.of_cleaner_offsets({key: manifest.end_offset}, existing))
    for path in log.take_due_paths(LONG_MAX):
        directory.disk.unlink(path)


def _last_stable_offset(directory: LogDirectory, log: PartitionLog, *, is_replicated: bool) -> int:
    high_watermark = log.checkpointed_high_watermark if is_replicated else log.log_end_offset
    log.producers.high_watermark_moved(high_watermark)
    unstable = log.producers.first_unstable_offset()
    return high_watermark if unstable is None else min(high_watermark, unstable)
