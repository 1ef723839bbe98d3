"""A broker with an authorizer and logins by PLAIN, Kafka's or Lamina's, that is asked by raw requests of its users."""

from __future__ import annotations

import socket
import time
from typing import Any, cast

from lamina.cluster.ports import free_port
from lamina.settings.authorization import STANDARD_AUTHORIZER
from lamina.wire.versions import request_schema
from tests.broker.group_members import wait_until
from tests.broker.in_process import CONSUMER, InProcessBroker, build
from tests.broker.raw import Closed, RawClient, batch_of
from tests.broker.requests.authorization.world import ALICE, DESCRIBE_ACLS, EVERY, ROOT, World

PASSWORDS = {ROOT: "root-secret", ALICE: "alice-secret"}
SASL_HANDSHAKE, SASL_AUTHENTICATE, FIND, CREATE_TOPICS = 17, 36, 10, 19
WAIT_SECONDS = 15
_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
CLOSED = "the connection was closed"


def secured_settings(plain_port: int, login_port: int, *more_listeners: str) -> dict[str, str]:
    users = " ".join(f'user_{name.removeprefix("User:")}="{password}"' for name, password in PASSWORDS.items())
    listeners = (f"PLAINTEXT://127.0.0.1:{plain_port}", f"SASL_PLAINTEXT://127.0.0.1:{login_port}", *more_listeners)
    return {
        "listeners": ",".join(listeners),
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": f"{_PLAIN} required {users};",
        "authorizer.class.name": STANDARD_AUTHORIZER,
        "super.users": f"{ROOT};User:ANONYMOUS",
    }


class RemoteBroker:
    """In the place of one in process: requests of ``principal``, who has logged in."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.principal = ROOT
        self._clients: dict[str, RawClient] = {}
        self.ask(CREATE_TOPICS, 7, topics=[topic("t", 2), topic("other")], timeout=WAIT_SECONDS * 1000)
        for key_type, key in ((0, "g"), (1, "x")):
            wait_until(lambda key_type=key_type, key=key: self.ask(FIND, 3, key=key, key_type=key_type).error_code == 0)  # type: ignore[misc]

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self._port), WAIT_SECONDS)

    def close(self) -> None:
        for client in self._clients.values():
            client.socket.close()

    def ask(self, api_key: int, api_version: int, **facts: Any) -> Any:
        """The answer, or ``CLOSED``."""
        if self.principal not in self._clients:
            self._clients[self.principal] = self._logged_in()
        schema = request_schema(api_key, api_version)
        try:
            return self._clients[self.principal].ask(build(schema, CONSUMER | {"timeout": 30_000} | facts))
        except (Closed, TimeoutError):
            self._clients.pop(self.principal).socket.close()
            return CLOSED

    def _logged_in(self) -> RawClient:
        client = RawClient(self)
        client.ask(build(request_schema(SASL_HANDSHAKE, 1), {"mechanism": "PLAIN"}))
        name, password = self.principal.removeprefix("User:"), PASSWORDS[self.principal]
        token = f"\0{name}\0{password}".encode()
        answer = client.ask(build(request_schema(SASL_AUTHENTICATE, 2), {"auth_bytes": token}))
        assert answer.error_code == 0, answer.error_message
        return client

    def batch(self) -> bytes:
        return batch_of((b"k", b"v"), now_ms=int(time.time() * 1000))


class RemoteWorld(World):
    """Rules hold a moment later."""

    def __init__(self, broker: RemoteBroker) -> None:
        super().__init__(cast(InProcessBroker, broker))
        self.remote = broker

    def _make(self, rules: Any, *others: Any) -> None:
        before = self._count()
        super()._make(rules, *others)
        wait_until(lambda: self._count() == before + len(rules))

    def forget(self) -> None:
        super().forget()
        wait_until(lambda: self._count() == 0)

    def _count(self) -> int:
        answer = self.ask(DESCRIBE_ACLS, 3, user=ROOT, **EVERY)
        return sum(len(resource.acls) for resource in answer.resources)


def topic(name: str, partitions: int = 1) -> dict[str, Any]:
    return {"name": name, "num_partitions": partitions, "replication_factor": 1}


def two_ports() -> tuple[int, int]:
    return free_port(), free_port()
