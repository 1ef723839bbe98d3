"""Checkpoints as Spark's own Kafka source leaves them (Source: HDFSMetadataLog, KafkaSourceInitialOffsetWriter)."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from uuid import uuid4

_CONF = {"spark.sql.shuffle.partitions": "1"}


def write_official_checkpoint(directory: Path, ends: Sequence[Mapping[str, Mapping[str, int]]]) -> None:
    """Of a query whose batches have ended there; each is in the commit log."""
    for name in ("offsets", "commits", "sources/0"):
        (directory / name).mkdir(parents=True)
    (directory / "metadata").write_text(json.dumps({"id": str(uuid4())}))
    beginning = {topic: dict.fromkeys(partitions, 0) for topic, partitions in ends[0].items()}
    (directory / "sources/0/0").write_bytes(b"\0v1\n" + _compact(beginning).encode())
    for batch, end in enumerate(ends):
        about = {"batchWatermarkMs": 0, "batchTimestampMs": 1_700_000_000_000 + batch, "conf": _CONF}
        (directory / f"offsets/{batch}").write_text(f"v1\n{_compact(about)}\n{_compact(end)}")
        (directory / f"commits/{batch}").write_text('v1\n{"nextBatchWatermarkMs":0}')


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))
