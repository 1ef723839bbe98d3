"""How a broker connects to others over TLS, and that it follows what its files hold (S6)."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from lamina.broker.replication.broker_connectors import BrokerConnectors
from lamina.clocks import SYSTEM_CLOCKS
from lamina.errors import InvalidRequest, KafkaError
from lamina.peer.addresses import Address
from lamina.peer.limits import Limits
from lamina.settings.resolve import resolve_broker
from lamina.settings.values import BrokerSettings
from lamina.storage import StartError
from tests.broker.tls import TlsBroker
from tests.tls.certificates import Authority

AUTHORITY, OTHER = Authority(), Authority()


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TlsBroker]:
    own = AUTHORITY.issue("127.0.0.1", name="broker")
    running = TlsBroker(tmp_path_factory.mktemp("broker"), AUTHORITY, own).start()
    yield running
    running.stop()


def settings_in(directory: Path) -> BrokerSettings:
    return resolve_broker(
        file={
            "node.id": "1",
            "zookeeper.connect": "127.0.0.1:1",
            "listeners": "SSL://127.0.0.1:9093",
            "security.inter.broker.protocol": "SSL",
            "ssl.client.auth": "required",
            "super.users": "User:CN=me",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(directory / "own.pem"),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(directory / "ca.pem"),
        }
    )


def write(directory: Path, signing: Authority, trusted: Authority) -> None:
    signing.issue("127.0.0.1", name="me").pem(directory / "own.pem")
    trusted.pem(directory / "ca.pem")


def connects(connectors: BrokerConnectors, broker: TlsBroker) -> bool:
    connector = connectors("test")

    async def connect() -> bool:
        try:
            connection = await connector.connect(Address("127.0.0.1", broker.port("MUTUAL")), Limits())
        except KafkaError:
            return False
        connection.close()
        return True

    return asyncio.run(connect())


def test_connections_that_are_made_later_have_what_the_files_hold_now(tmp_path: Path, broker: TlsBroker) -> None:
    write(tmp_path, OTHER, OTHER)
    settings = settings_in(tmp_path)
    connectors = BrokerConnectors(settings, SYSTEM_CLOCKS)
    assert not connects(connectors, broker)
    write(tmp_path, AUTHORITY, AUTHORITY)
    asyncio.run(connectors.refresh(settings))
    assert connects(connectors, broker)


def test_a_broker_that_does_not_trust_its_own_certificate_does_not_start(tmp_path: Path) -> None:
    write(tmp_path, OTHER, AUTHORITY)
    with pytest.raises(StartError, match=r"^listener SSL: its truststore does not trust its own certificate: "):
        BrokerConnectors(settings_in(tmp_path), SYSTEM_CLOCKS)


def test_what_would_shut_brokers_out_is_refused_and_not_taken(
    tmp_path: Path, broker: TlsBroker, caplog: pytest.LogCaptureFixture
) -> None:
    write(tmp_path, AUTHORITY, AUTHORITY)
    settings = settings_in(tmp_path)
    connectors = BrokerConnectors(settings, SYSTEM_CLOCKS)
    write(tmp_path, OTHER, AUTHORITY)
    with pytest.raises(InvalidRequest, match="does not trust its own certificate"):
        asyncio.run(connectors.check(settings))
    asyncio.run(connectors.refresh(settings))
    asyncio.run(connectors.refresh(settings))
    assert len(caplog.records) == 1
    assert connects(connectors, broker)
