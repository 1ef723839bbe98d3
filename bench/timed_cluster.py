"""Three brokers on this machine whose loops are timed, and what can be seen of them from outside.

Owns the processes, a connection to each broker, and when something was first seen on each. Every broker is asked by
itself: no client library chooses for us. Must not know what is measured.
"""

from __future__ import annotations

import socket
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from kazoo.client import KazooClient

from bench.callbacks import Callback, take_report
from lamina.cluster.local_cluster import LocalCluster
from lamina.wire.building import build_request
from tests.broker.raw import RawClient, metadata_request

BROKERS = (1, 2, 3)
SETTINGS = {"lamina.spark.master": "none", "auto.create.topics.enable": "false"}
WAIT_SECONDS = 120
_POLL_SECONDS = 0.004
_ANSWER_SECONDS = 30
_CALLBACKS_SHOWN = 3


@dataclass(frozen=True, slots=True)
class _Address:
    host: str
    port: int

    def connect(self) -> socket.socket:
        return socket.create_connection((self.host, self.port), _ANSWER_SECONDS)


class TimedCluster:
    def __init__(self, directory: Path) -> None:
        self._reports = directory / "reports"
        self._reports.mkdir()
        self.local = LocalCluster(directory / "cluster", program_of=self._program)
        self._clients: dict[int, RawClient] = {}
        self._threads = ThreadPoolExecutor(len(BROKERS))

    def __enter__(self) -> TimedCluster:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        self._threads.shutdown()
        self.disconnect()
        self.local.kill()

    # Processes

    def _program(self, broker_id: int) -> Sequence[str]:
        return (sys.executable, "-m", "bench.timed_loop", str(self._report(broker_id)))

    def _report(self, broker_id: int) -> Path:
        return self._reports / f"broker-{broker_id}.json"

    def up(self) -> float:
        """Returns when the brokers were started, all at once; ZooKeeper ran by then."""
        steps: list[float] = []
        self.local.up(len(BROKERS), 0, SETTINGS, lambda _: steps.append(time.monotonic()))
        _, brokers_started, *_ = steps
        return brokers_started

    def process_ids(self) -> dict[int, int]:
        """Of the brokers that clients can connect to."""
        return {one.id: one.started.pid for one in self.local.brokers() if one.started is not None}

    def longest_callbacks(self) -> list[Callback]:
        """Of all brokers since they were asked last, the longest first."""
        every = [
            Callback(one.cpu_ms, f"broker {broker_id}: {one.name}")
            for broker_id, process_id in self.process_ids().items()
            for one in take_report(process_id, self._report(broker_id))
        ]
        return sorted(every, reverse=True)[:_CALLBACKS_SHOWN]

    # Asking one broker

    def ask(self, broker_id: int, api_key: int, version: int, **facts: Any) -> Any:
        return self.ask_with(broker_id, build_request(api_key, version, facts))

    def ask_with(self, broker_id: int, request: Any) -> Any:
        return self._client(broker_id).ask(request)

    def metadata(self, broker_id: int, *names: str) -> Any:
        return self.ask_with(broker_id, metadata_request(*names, create=False))

    def _client(self, broker_id: int) -> RawClient:
        client = self._clients.get(broker_id)
        if client is None:
            (status,) = (one for one in self.local.brokers() if one.id == broker_id)
            host, port = status.address.rsplit(":", 1)
            client = self._clients[broker_id] = RawClient(_Address(host, int(port)))
        return client

    def disconnect(self, *broker_ids: int) -> None:
        """From these brokers, or from all."""
        for broker_id in broker_ids or tuple(self._clients):
            client = self._clients.pop(broker_id, None)
            if client is not None:
                client.socket.close()

    # Waiting

    def when_seen(self, holds: Callable[[int], bool], broker_ids: Iterable[int] = BROKERS) -> float:
        """When the last of these brokers was first seen so; ``holds`` asks one of them."""
        return max(self._threads.map(lambda broker_id: _when(lambda: holds(broker_id)), broker_ids))

    def when_topics(
        self, names: Iterable[str], is_so: Callable[[Any], bool], broker_ids: Iterable[int] = BROKERS
    ) -> float:
        """When every partition of the topics was so on the last of these brokers.

        One topic is asked for after the other, so that the question itself costs a broker little.
        """
        names = list(names)

        def when(broker_id: int) -> float:
            return max(_when(lambda name=name: self._is_topic(broker_id, name, is_so)) for name in names)  # type: ignore[misc]

        return max(self._threads.map(when, broker_ids))

    def _is_topic(self, broker_id: int, name: str, is_so: Callable[[Any], bool]) -> bool:
        (topic,) = self.metadata(broker_id, name).topics
        return not topic.error_code and all(map(is_so, topic.partitions))


class SessionEnd:
    """When the registration of a broker goes away in ZooKeeper."""

    def __init__(self, zookeeper: str, broker_id: int) -> None:
        self._client = KazooClient(zookeeper)
        self._path = f"/brokers/ids/{broker_id}"
        self._is_gone = threading.Event()
        self._at = 0.0

    def __enter__(self) -> SessionEnd:
        self._client.start()
        self._client.exists(self._path, watch=self._changed)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        self._client.stop()
        self._client.close()

    def _changed(self, event: Any) -> None:
        if event.type == "DELETED":
            self._at = time.monotonic()
            self._is_gone.set()

    def wait(self) -> float:
        if not self._is_gone.wait(WAIT_SECONDS):
            raise TimeoutError(f"{self._path} was still there after {WAIT_SECONDS} s")
        return self._at


def _when(holds: Callable[[], bool]) -> float:
    deadline = time.monotonic() + WAIT_SECONDS
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError(f"a broker was not as it should be within {WAIT_SECONDS} s")
        time.sleep(_POLL_SECONDS)
    return time.monotonic()
