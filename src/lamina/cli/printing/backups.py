"""What two commands tell in JSON of a backup: of a broker's, and of a cluster's. Must not know how one is made."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lamina.log.backup.directory import TakenPartition
    from lamina.log.backup.manifest import Manifest


def partition_facts(one: "TakenPartition") -> dict[str, Any]:
    return {
        "type": "partition",
        "topic": one.topic,
        "partition": one.partition,
        "log_start_offset": one.log_start_offset,
        "end_offset": one.end_offset,
        "segments": len(one.segments),
        "size_bytes": one.size_bytes,
    }


def summary_facts(target: str, manifest: "Manifest") -> dict[str, Any]:
    return {
        "type": "summary",
        "target": target,
        "cluster_id": manifest.cluster_id,
        "started_ms": manifest.started_ms,
        "ended_ms": manifest.ended_ms,
        "partitions": len(manifest.partitions),
        "size_bytes": sum(one.size_bytes for one in manifest.partitions),
    }
