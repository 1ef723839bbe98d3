"""How soon an access rule holds on every broker of a cluster: ``python -m bench.acl_delay``.

Three brokers and a ZooKeeper on this machine, and a user with a connection to each of them that stays open. A rule is
added at one broker, and later removed at the next: each connection asks every few milliseconds whether it holds.
"""

from __future__ import annotations

import socket
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic

from lamina.client.access_rules import AccessRules, exactly
from lamina.client.cluster import Cluster
from lamina.cluster.ports import free_port
from lamina.cluster.zookeeper_server import ZooKeeperServer
from lamina.errors import ErrorCode
from lamina.security.acl_filters import Acl, new_acl
from lamina.security.acls import Operation, PatternType, Permission, ResourceType
from lamina.settings.authorization import STANDARD_AUTHORIZER
from tests.broker.login.logging_in import PASSWORDS, PLAIN_JAAS, LoginClient
from tests.broker.process import BrokerProcess
from tests.broker.raw import metadata_request

BROKERS = (1, 2, 3)
ROUNDS = 50
TOPIC, USER = "orders", "alice"
AT_MOST_MS = 1000
_POLL_SECONDS = 0.002
_WAIT_SECONDS = 30.0
_SETTINGS = {
    "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
    "inter.broker.listener.name": "PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": PLAIN_JAAS,
    "authorizer.class.name": STANDARD_AUTHORIZER,
    "super.users": "User:ANONYMOUS",
    "lamina.admin.listeners": "",
    "lamina.spark.master": "none",
}


class Watcher:
    """One user's open connection to one broker."""

    def __init__(self, broker: BrokerProcess) -> None:
        host, _, port = str(broker.facts["listening"][1]["address"]).rpartition(":")
        self._client = LoginClient(_Address(host, int(port)))
        answer = self._client.log_in("PLAIN", USER, PASSWORDS[USER])
        assert answer.error_code == 0, answer

    def when(self, is_allowed: bool, watching: threading.Barrier) -> float:
        """As soon as it is so, by the monotonic clock."""
        deadline = time.monotonic() + _WAIT_SECONDS
        watching.wait()
        while self._is_allowed() is not is_allowed:
            if time.monotonic() > deadline:
                raise RuntimeError(f"a rule did not hold within {_WAIT_SECONDS:g} s")
            time.sleep(_POLL_SECONDS)
        return time.monotonic()

    def _is_allowed(self) -> bool:
        (topic,) = self._client.ask(metadata_request(TOPIC, create=False)).topics
        return bool(topic.error_code != ErrorCode.TOPIC_AUTHORIZATION_FAILED)

    def close(self) -> None:
        self._client.socket.close()


class _Address:
    def __init__(self, host: str, port: int) -> None:
        self._broker = (host, port)

    def connect(self) -> socket.socket:
        return socket.create_connection(self._broker, _WAIT_SECONDS)


@contextmanager
def cluster(directory: Path) -> Iterator[list[BrokerProcess]]:
    zookeeper = ZooKeeperServer(str(directory / "zookeeper"), free_port(), "java")
    with zookeeper, ExitStack() as stack:
        brokers = []
        for node_id in BROKERS:
            given = {**_SETTINGS, "node.id": str(node_id), "zookeeper.connect": f"{zookeeper.address}/acls"}
            sets = [part for name, value in given.items() for part in ("--set", f"{name}={value}")]
            brokers.append(stack.enter_context(BrokerProcess(directory / f"broker-{node_id}", *sets)))
        yield brokers


def rounds(brokers: Sequence[BrokerProcess]) -> Iterator[tuple[float, float]]:
    """Of each change: how long after it was asked for, and after its answer, the last broker goes by it."""
    watchers = [Watcher(broker) for broker in brokers]
    rules = [AccessRules(Cluster(broker.address)) for broker in brokers]
    acl = _rule()
    with ThreadPoolExecutor(len(watchers)) as threads:
        for number in range(2 * ROUNDS):
            is_added = number % 2 == 0
            watching = threading.Barrier(len(watchers) + 1)
            seen = [threads.submit(watcher.when, is_added, watching) for watcher in watchers]
            watching.wait()
            asked = time.monotonic()
            if is_added:
                rules[number % len(rules)].add([acl])
            else:
                rules[number % len(rules)].remove([exactly(acl)])
            answered = time.monotonic()
            last = max(one.result() for one in seen)
            yield (last - asked) * 1000, (last - answered) * 1000
    for watcher in watchers:
        watcher.close()


def _rule() -> Acl:
    return new_acl(
        ResourceType.TOPIC, TOPIC, PatternType.LITERAL, f"User:{USER}", "*", Operation.DESCRIBE, Permission.ALLOW
    )


def main() -> None:
    with tempfile.TemporaryDirectory() as directory, cluster(Path(directory)) as brokers:
        admin = AdminClient({"bootstrap.servers": brokers[0].address, "log_level": 0})
        admin.create_topics([NewTopic(TOPIC, 1, len(BROKERS))])[TOPIC].result(_WAIT_SECONDS)
        taken = list(rounds(brokers))
    for what, index in (("asked for", 0), ("answered", 1)):
        times = sorted(one[index] for one in taken)
        sys.stdout.write(
            f"{len(times)} changes hold on all {len(BROKERS)} brokers after they were {what}: median "
            f"{statistics.median(times):.1f} ms, longest {times[-1]:.1f} ms (at most {AT_MOST_MS})\n"
        )


if __name__ == "__main__":
    main()
