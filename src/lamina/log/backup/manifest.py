"""``backup.json``: what is in a backup.

Owns the format and its version. Fields may be added; a change of meaning is a new version, and a newer one is
refused. Must not know how a backup is made.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lamina.log.backup import MANIFEST
from lamina.log.backup.copier import BackupError, BackupFile
from lamina.log.backup.directory import TakenPartition
from lamina.log.backup.partition import TakenSegment
from lamina.log.files import Disk, read_file
from lamina.topic_partition import TopicPartition

VERSION = 2
_OF_A_CLUSTER = 2
"""The first version that knows backups of clusters. Those of a broker by itself are written as before."""


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """What a backup of a cluster knows beside its metadata."""

    controller_epoch: int
    missing: tuple[TopicPartition, ...]
    """Partitions that had no leader: their records are not in the backup."""


@dataclass(frozen=True, slots=True)
class Manifest:
    lamina_version: str
    cluster_id: str
    node_id: int
    started_ms: int
    ended_ms: int
    is_clean: bool
    """Whether the broker was stopped cleanly, so that the restored one has nothing to recover."""
    broker_epoch: int
    directory_ids: list[str | None]
    """Of the log directories, in order."""
    partitions: list[TakenPartition]
    files: Mapping[str, BackupFile]
    cluster: ClusterFacts | None = None
    """``None`` for the backup of one broker that is a cluster by itself."""


def dump_manifest(manifest: Manifest) -> bytes:
    value: dict[str, Any] = {
        "version": 1 if manifest.cluster is None else _OF_A_CLUSTER,
        "lamina_version": manifest.lamina_version,
        "cluster_id": manifest.cluster_id,
        "node_id": manifest.node_id,
        "started_ms": manifest.started_ms,
        "ended_ms": manifest.ended_ms,
        "clean_shutdown": manifest.is_clean,
        "broker_epoch": manifest.broker_epoch,
        "log_dirs": [{"directory_id": directory_id} for directory_id in manifest.directory_ids],
        "partitions": [
            {
                "topic": one.topic,
                "partition": one.partition,
                "topic_id": one.topic_id.hex(),
                "log_dir": one.directory,
                "log_start_offset": one.log_start_offset,
                "end_offset": one.end_offset,
                "recovery_point": one.recovery_point,
                "high_watermark": one.high_watermark,
                "cleaner_offset": one.cleaner_offset,
                "damage": one.damage,
                "segments": [
                    {"base_offset": each.base_offset, "size_bytes": each.size_bytes, "linked": each.is_linked}
                    for each in one.segments
                ],
            }
            for one in manifest.partitions
        ],
        "files": [
            {"path": file.path, "size_bytes": file.size_bytes, "modified_ms": file.modified_ms, "crc32c": file.crc}
            for file in manifest.files.values()
        ],
    }
    if manifest.cluster is not None:
        value["cluster"] = {
            "controller_epoch": manifest.cluster.controller_epoch,
            "missing": [[topic, partition] for topic, partition in manifest.cluster.missing],
        }
    return json.dumps(value, indent=1).encode() + b"\n"


def read_manifest(disk: Disk, backup: str) -> Manifest:
    """Raises :class:`BackupError` with one sentence for what is no backup, or one of a newer Lamina."""
    path = f"{backup}/{MANIFEST}"
    try:
        data = read_file(disk, path)
    except (FileNotFoundError, NotADirectoryError):
        raise BackupError(f"{backup} is not a backup: it has no {MANIFEST}") from None
    try:
        value = json.loads(data)
        version = value["version"]
        if isinstance(version, int) and version > VERSION:
            raise BackupError(
                f"{backup} was made by a newer Lamina ({value.get('lamina_version')}): "
                f"it has version {version}, and this one knows versions up to {VERSION}"
            )
        return _load(value)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise BackupError(f"{path} cannot be read: {error!r}") from None


def _load(value: Any) -> Manifest:
    files = [
        BackupFile(
            _below(each["path"]),
            int(each["size_bytes"]),
            int(each["modified_ms"]),
            None if each["crc32c"] is None else int(each["crc32c"]),
        )
        for each in value["files"]
    ]
    return Manifest(
        str(value["lamina_version"]),
        str(value["cluster_id"]),
        int(value["node_id"]),
        int(value["started_ms"]),
        int(value["ended_ms"]),
        bool(value["clean_shutdown"]),
        int(value["broker_epoch"]),
        [each["directory_id"] for each in value["log_dirs"]],
        [_load_partition(each) for each in value["partitions"]],
        {file.path: file for file in files},
        _load_cluster(value.get("cluster")),
    )


def _load_cluster(value: Any) -> ClusterFacts | None:
    if value is None:
        return None
    missing = tuple((str(topic), int(partition)) for topic, partition in value["missing"])
    return ClusterFacts(int(value["controller_epoch"]), missing)


def _below(path: Any) -> str:
    """A path that leads nowhere else."""
    if not isinstance(path, str) or path.startswith("/") or not {"", ".", ".."}.isdisjoint(path.split("/")):
        raise ValueError(f"{path!r} is not a path in the backup")
    return path


def _load_partition(value: Any) -> TakenPartition:
    return TakenPartition(
        str(value["topic"]),
        int(value["partition"]),
        bytes.fromhex(value["topic_id"]),
        int(value["log_dir"]),
        [TakenSegment(int(s["base_offset"]), int(s["size_bytes"]), bool(s["linked"])) for s in value["segments"]],
        int(value["log_start_offset"]),
        int(value["end_offset"]),
        int(value["recovery_point"]),
        None if value["high_watermark"] is None else int(value["high_watermark"]),
        None if value["cleaner_offset"] is None else int(value["cleaner_offset"]),
        value["damage"],
    )
