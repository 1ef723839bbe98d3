"""A real broker whose passes are slow enough to be hit, and where a pass is, as its files tell."""

import json
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from tests.broker.admin.asking import ask, bearer, get
from tests.broker.network.test_limits import set_on_broker
from tests.broker.process import BrokerProcess
from tests.broker.raw import RawClient
from tests.broker.test_compaction import make_topic, read_all
from tests.pipeline.engines import wait_until

KEYS = 10_000
SLOWLY = 300_000
"""Bytes a second: a pass that takes longer than the throttle's first look is then made to wait for seconds."""
_THROTTLE = "log.cleaner.io.max.bytes.per.second"


class CompactedTopic:
    """A topic that is compacted when it is asked for and not before; knows what is in it."""

    def __init__(self, broker: BrokerProcess, name: str = "t", *log_dirs: Path) -> None:
        self.broker = broker
        self.name = name
        self._log_dirs = log_dirs or (broker.log_dir,)
        self.latest: dict[bytes, bytes | None] = {}
        self._written = 0
        make_topic(broker, name, min_cleanable_dirty_ratio="1")

    @property
    def directory(self) -> Path:
        (found,) = (path for place in self._log_dirs if (path := place / f"{self.name}-0").exists())
        return found

    def write(self, records: int = KEYS) -> None:
        """Every key once; all of it is acknowledged."""
        producer = Producer({"bootstrap.servers": self.broker.address, "linger.ms": 5, "batch.size": 8000})

        def delivered(error: object, message: Any) -> None:
            assert error is None, error
            self.latest[message.key()] = message.value()

        for _ in range(records):
            self._written += 1
            key, value = b"key-%d" % (self._written % KEYS), b"%d-" % self._written + b"x" * 100
            producer.produce(self.name, key=key, value=value, on_delivery=delivered)
            producer.poll(0)
        assert producer.flush(60) == 0

    def throttle(self, bytes_per_second: int | None) -> None:
        with RawClient(self.broker) as client:
            set_on_broker(client, _THROTTLE, str(bytes_per_second or 1 << 60))

    def compact(self) -> None:
        """Ask for a pass over all that is there."""
        token = (self.broker.data_dir / "admin.token").read_text().strip()
        told = ask(
            self.broker, f"/v1/topics/{self.name}/compact", "POST", json.dumps({"roll": True}).encode(), bearer(token)
        )
        assert told.status in (200, 202), told

    def passes(self, outcome: str) -> int:
        return int(get(self.broker, "/v1/cleaner")["passes"][outcome])

    def row(self) -> dict[str, Any]:
        (row,) = get(self.broker, f"/v1/cleaner?topic={self.name}")["partitions"]
        found: dict[str, Any] = row
        return found

    def compact_now(self) -> None:
        """One more pass, which succeeds."""
        before = self.passes("cleaned")
        self.compact()
        wait_until(lambda: self.passes("cleaned") > before)

    def check(self) -> None:
        """Nothing that was acknowledged is lost, and nothing is left of any pass."""
        assert read_all(self.broker, self.name) == self.latest
        left = [path.name for path in self.directory.iterdir() if path.name.endswith((".cleaned", ".swap"))]
        assert left + list(self.directory.glob(".lamina-pass-*")) == []


def is_rewriting(partition: Path) -> bool:
    """There is a file with the name of an attempt."""
    return any(partition.glob(".lamina-pass-*/*.a*.log"))


def first_inode(partition: Path) -> int:
    """The file of the first segment: another one, or none, as soon as the first group goes in place."""
    try:
        return min(partition.glob("*.log")).stat().st_ino
    except FileNotFoundError:
        return 0
