"""A broker with a listener for each security protocol, and the properties of a client that each of them lets in."""

from collections.abc import Callable
from pathlib import Path

from tests.broker.process import BrokerProcess
from tests.tls.certificates import Authority

SECURITY = "org.apache.kafka.common.security"
PASSWORD = "of alice; secret"
PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
Start = Callable[..., BrokerProcess]


class SecureBroker:
    """A listener for each protocol; SSL wants a certificate."""

    def __init__(self, start: Start, directory: Path) -> None:
        self.authority = Authority()
        self.ca = self.authority.pem(directory / "ca.pem")
        self._alice = self.authority.issue("alice.example", name="alice").pem(directory / "alice.pem")
        own = self.authority.issue("127.0.0.1", name="broker").pem(directory / "broker.pem")
        users = f'{SECURITY}.plain.PlainLoginModule required user_alice="{PASSWORD}";'
        settings = {
            "listeners": ",".join(f"{protocol}://127.0.0.1:0" for protocol in PROTOCOLS),
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(own),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.ca),
            "ssl.client.auth": "required",
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.sasl_plaintext.plain.sasl.jaas.config": users,
            "listener.name.sasl_ssl.plain.sasl.jaas.config": users,
            "listener.name.sasl_ssl.connections.max.reauth.ms": "1500",
        }
        self.process = start(*(part for name, value in settings.items() for part in ("--set", f"{name}={value}")))

    def address(self, protocol: str) -> str:
        return str(self.process.facts["listening"][PROTOCOLS.index(protocol)]["address"])

    def properties(self, protocol: str) -> dict[str, str]:
        given = {"security.protocol": protocol}
        if protocol.endswith("SSL"):
            given |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(self.ca)}
        if protocol == "SSL":
            given |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(self._alice)}
        if protocol.startswith("SASL"):
            entry = f'{SECURITY}.plain.PlainLoginModule required username=alice password="{PASSWORD}";'
            given |= {"sasl.mechanism": "PLAIN", "sasl.jaas.config": entry}
        return given
