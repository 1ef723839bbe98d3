"""Brokers that speak to each other with TLS and logins, as processes of their own over a real ZooKeeper."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from lamina.cluster.zookeeper_server import ZooKeeperServer
from tests.broker.process import BrokerProcess, eventually
from tests.cli.running import run_process
from tests.tls.certificates import Authority

SECONDS = 60
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"


def members(directory: Path, zookeeper: str, settings: Mapping[str, str], authority: Authority) -> list[BrokerProcess]:
    """Each has a certificate of its own."""
    brokers = []
    for node_id in (1, 2, 3):
        own = authority.issue("127.0.0.1", name=f"broker-{node_id}").pem(directory / f"broker-{node_id}.pem")
        given = {
            "node.id": str(node_id),
            "zookeeper.connect": zookeeper,
            "lamina.admin.listeners": "",
            "offsets.topic.replication.factor": "3",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(own),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(directory / "ca.pem"),
            **settings,
        }
        sets = [part for name, value in given.items() for part in ("--set", f"{name}={value}")]
        brokers.append(BrokerProcess(directory / f"data-{node_id}", *sets))
    return brokers


@contextmanager
def running(brokers: list[BrokerProcess]) -> Iterator[str]:
    """Where clients connect to them."""
    with ExitStack() as stack:
        for broker in brokers:
            stack.enter_context(broker)
        yield ",".join(broker.address for broker in brokers)


def check_that_they_are_a_cluster(bootstrap: str) -> None:
    """Each replica of a topic is in sync, so each of them fetches; the requests of a client reach the controller."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    admin.create_topics([NewTopic("kept", 3, 3)])["kept"].result(SECONDS)
    await_in_sync(admin)
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "log_level": 0})
    failed: list[object] = []
    for number in range(30):
        producer.produce("kept", str(number), partition=number % 3, on_delivery=lambda error, _: failed.append(error))
    assert producer.flush(SECONDS) == 0
    assert failed == [None] * 30


def await_in_sync(admin: AdminClient) -> None:
    def is_in_sync() -> bool:
        found = admin.list_topics("kept", SECONDS).topics["kept"].partitions.values()
        return len(found) == 3 and all(len(one.isrs) == 3 for one in found)

    eventually(is_in_sync)


BETWEEN = {
    "mutual-tls": {
        "listeners": "PLAINTEXT://127.0.0.1:0,BROKERS://127.0.0.1:0",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,BROKERS:SSL",
        "inter.broker.listener.name": "BROKERS",
        "listener.name.brokers.ssl.client.auth": "required",
        "listener.name.brokers.ssl.principal.mapping.rules": "RULE:^.*CN=([^,]+).*$/$1/",
        "super.users": "User:broker-1;User:broker-2;User:broker-3",
    },
    "tls-by-protocol": {
        "listeners": "PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0",
        "security.inter.broker.protocol": "SSL",
    },
    "logins-over-tls": {
        "listeners": "PLAINTEXT://127.0.0.1:0,BROKERS://127.0.0.1:0",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,BROKERS:SASL_SSL",
        "inter.broker.listener.name": "BROKERS",
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "connections.max.reauth.ms": "2000",
        "listener.name.brokers.plain.sasl.jaas.config": (
            f'{PLAIN} username="broker" password="of brokers" user_broker="of brokers" user_alice="of alice";'
        ),
    },
}


@pytest.mark.parametrize("settings", BETWEEN.values(), ids=list(BETWEEN))
def test_a_cluster_whose_brokers_have_tls_or_logins_between_them(
    tmp_path: Path, zookeeper: ZooKeeperServer, settings: dict[str, str], request: pytest.FixtureRequest
) -> None:
    """S3; with sessions that end after two seconds, so that logins are renewed meanwhile."""
    authority = Authority()
    authority.pem(tmp_path / "ca.pem")
    name = str(request.node.callspec.id)
    brokers = members(tmp_path, f"{zookeeper.address}/secure-{name}", settings, authority)
    with running(brokers) as bootstrap:
        check_that_they_are_a_cluster(bootstrap)
        brokers[0].stop()
        brokers[0].start()
        await_in_sync(AdminClient({"bootstrap.servers": brokers[1].address, "log_level": 0}))
    for broker in brokers:
        assert not [line for line in broker.log if "Traceback" in line or "of brokers" in line]


def test_brokers_log_in_by_scram_as_a_user_that_was_made_at_the_first_of_them(
    tmp_path: Path, zookeeper: ZooKeeperServer
) -> None:
    """As docs/security.md has it: the first broker decides alone, and needs no login to itself."""
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:0,BROKERS://127.0.0.1:0",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,BROKERS:SASL_SSL",
        "inter.broker.listener.name": "BROKERS",
        "sasl.enabled.mechanisms": "SCRAM-SHA-512",
        "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
        "listener.name.brokers.scram-sha-512.sasl.jaas.config": (
            'org.apache.kafka.common.security.scram.ScramLoginModule required username="broker" password="of brokers";'
        ),
    }
    authority = Authority()
    authority.pem(tmp_path / "ca.pem")
    brokers = members(tmp_path, f"{zookeeper.address}/secure-scram", settings, authority)
    with brokers[0]:
        made = run_process(*("users", "set", "broker", "--bootstrap-server", brokers[0].address), sent="of brokers\n")
        assert made.out == "broker can log in by SCRAM-SHA-512.\n", made.err
        with running(brokers[1:]):
            check_that_they_are_a_cluster(",".join(broker.address for broker in brokers))
    with running(brokers) as bootstrap:
        await_in_sync(AdminClient({"bootstrap.servers": bootstrap, "log_level": 0}))
    for broker in brokers:
        assert not [line for line in broker.log if "Traceback" in line or "of brokers" in line]
