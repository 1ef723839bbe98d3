"""A real Kafka with listeners of every security protocol, and what clients of it need.

Owns its settings, its users and its certificates. ANONYMOUS on the plain listener and `admin` may do everything;
`alice` may do what a test allows her.
"""

from __future__ import annotations

import base64
import json
import time
from pathlib import Path

from lamina.cluster.ports import free_port
from lamina.peer.call import MessageCall
from lamina.peer.target import Controller
from lamina.security.scram_credential import ScramMechanism, salted_password
from tests.peer.clients import client
from tests.peer.loops import SkippingLoop, run
from tests.peers.kafka import Kafka
from tests.tls.certificates import LONG_AGO, Authority

USERS = {"admin": "admin secret", "alice": "alice; secret"}
SESSION_MS = 4000
_SECURITY = "org.apache.kafka.common.security"
_ALTER_USER_SCRAM_CREDENTIALS = 51
_ITERATIONS = 8192


class SecureKafka(Kafka):
    def __init__(self, root: Path) -> None:
        root.mkdir(parents=True, exist_ok=True)
        self.authority = Authority()
        self.ca = self.authority.pem(root / "ca.pem")
        self.ports = {name: free_port() for name in ("PLAINTEXT", "SSL", "MUTUAL", "SASL_PLAINTEXT", "SASL_SSL", "OLD")}
        controller = free_port()
        listeners = [f"{name}://127.0.0.1:{port}" for name, port in self.ports.items()]
        protocols = {name: name for name in self.ports} | {"MUTUAL": "SSL", "OLD": "SSL", "CONTROLLER": "PLAINTEXT"}
        identity = self.authority.issue("127.0.0.1", "localhost", name="broker").pem(root / "broker.pem")
        expired = self.authority.issue("127.0.0.1", until=LONG_AGO).pem(root / "expired.pem")
        users = " ".join(f'user_{name}="{password}"' for name, password in USERS.items())
        settings = {
            "listeners": ",".join([*listeners, f"CONTROLLER://127.0.0.1:{controller}"]),
            "advertised.listeners": ",".join(listeners),
            "listener.security.protocol.map": ",".join(f"{name}:{one}" for name, one in protocols.items()),
            "inter.broker.listener.name": "PLAINTEXT",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(identity),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.ca),
            "listener.name.mutual.ssl.client.auth": "required",
            "listener.name.old.ssl.keystore.location": str(expired),
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
            "listener.name.sasl_ssl.sasl.enabled.mechanisms": "SCRAM-SHA-512",
            "listener.name.sasl_plaintext.connections.max.reauth.ms": str(SESSION_MS),
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:admin;User:ANONYMOUS",
        }
        for listener in ("sasl_plaintext", "sasl_ssl"):
            prefix = f"listener.name.{listener}"
            settings[f"{prefix}.plain.sasl.jaas.config"] = f"{_SECURITY}.plain.PlainLoginModule required {users};"
            for mechanism in ("scram-sha-256", "scram-sha-512"):
                settings[f"{prefix}.{mechanism}.sasl.jaas.config"] = f"{_SECURITY}.scram.ScramLoginModule required;"
            settings[f"{prefix}.oauthbearer.sasl.jaas.config"] = (
                f"{_SECURITY}.oauthbearer.OAuthBearerLoginModule required;"
            )
        super().__init__(root, settings, controller_port=controller)
        self._port = self.ports["PLAINTEXT"]

    def address(self, listener: str) -> str:
        return f"127.0.0.1:{self.ports[listener]}"

    def properties(self, listener: str, mechanism: str = "SCRAM-SHA-512", user: str = "alice") -> dict[str, str]:
        """Of a client that is let in."""
        protocol = {"MUTUAL": "SSL", "OLD": "SSL"}.get(listener, listener)
        given = {"bootstrap.servers": self.address(listener), "security.protocol": protocol}
        if protocol.endswith("SSL"):
            given |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(self.ca)}
        if listener == "MUTUAL":
            identity = self.authority.issue(f"{user}.example", name=user).pkcs12(self.root / f"{user}.p12", "opens it")
            given |= {"ssl.keystore.location": str(identity), "ssl.keystore.password": "opens it"}
        if protocol.startswith("SASL"):
            module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
            options = f'username="{user}" password="{USERS.get(user, "none")}"'
            given |= {"sasl.mechanism": mechanism, "sasl.jaas.config": f"{_SECURITY}.{module} required {options};"}
        if mechanism == "OAUTHBEARER":
            token = self.root / f"{user}.token"
            token.write_text(unsecured_token(user))
            given["sasl.jaas.config"] = f"{_SECURITY}.oauthbearer.OAuthBearerLoginModule required;"
            given["sasl.oauthbearer.token.endpoint.url"] = f"file://{token}"
        return given

    def make_users(self) -> None:
        """Their SCRAM credentials; they are usable a moment later, which a first login waits for."""
        salt = b"salt of every user"

        def upsertion(name: str, password: str, mechanism: ScramMechanism) -> dict[str, object]:
            salted = salted_password(mechanism.digest, password, salt, _ITERATIONS)
            given = {"name": name, "mechanism": int(mechanism), "iterations": _ITERATIONS, "salt": salt}
            return {**given, "salted_password": salted}

        async def scenario(_: SkippingLoop) -> None:
            async with client(self.address("PLAINTEXT")) as cluster:
                for mechanism in ScramMechanism:
                    upsertions = [upsertion(name, password, mechanism) for name, password in USERS.items()]
                    call = MessageCall(_ALTER_USER_SCRAM_CREDENTIALS, range(1), deletions=[], upsertions=upsertions)
                    response = await cluster.request(Controller(), call)
                    assert [one.error_code for one in response.results] == [0] * len(USERS)

        run(scenario)


def unsecured_token(user: str, seconds: int = 3600) -> str:
    """What Kafka takes where nobody has told it whose tokens it trusts (S45)."""
    now = int(time.time())
    claims = {"sub": user, "iat": now, "exp": now + seconds}
    parts = (
        base64.urlsafe_b64encode(json.dumps(one).encode()).decode().rstrip("=") for one in ({"alg": "none"}, claims)
    )
    return ".".join(parts) + "."
