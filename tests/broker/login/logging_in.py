"""A broker with a listener whose clients log in, and a client that does so word by word."""

import asyncio
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lamina.clocks import SYSTEM_CLOCKS, Clocks
from lamina.image.changes import set_scram_credentials
from lamina.image.image import Image
from lamina.security.scram import ScramClient
from lamina.security.scram_credential import (
    LEAST_ITERATIONS,
    MECHANISMS,
    ScramCredential,
    ScramMechanism,
    credential_from,
    salted_password,
)
from lamina.wire.api_keys import API_VERSIONS, SASL_AUTHENTICATE, SASL_HANDSHAKE
from lamina.wire.building import build_request
from tests.broker.in_thread import BrokerInThread
from tests.broker.raw import RawClient

LISTENER = "SASL_PLAINTEXT"
PREFIX = f"listener.name.{LISTENER.lower()}"
PASSWORDS = {"alice": "alice-secret", "bob": "bob-secret"}
PLAIN_USERS = " ".join(f'user_{user}="{password}"' for user, password in PASSWORDS.items())
PLAIN_JAAS = f"org.apache.kafka.common.security.plain.PlainLoginModule required {PLAIN_USERS};"
MECHANISM_NAMES = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
SETTINGS = {
    "listeners": f"{LISTENER}://127.0.0.1:0,PLAINTEXT://127.0.0.1:0",
    "lamina.admin.listeners": "",
    "lamina.spark.master": "none",
    "sasl.enabled.mechanisms": ",".join(MECHANISM_NAMES),
    f"{PREFIX}.plain.sasl.jaas.config": PLAIN_JAAS,
    "connection.failed.authentication.delay.ms": "0",
}
OWN_TOKENS = {"lamina.sasl.oauthbearer.unsecured.tokens": "true"}
"""Tokens without a signature."""
SALT = b"of the tests"


class SaslBroker(BrokerInThread):
    """On a thread of this process, with Alice and Bob as users of every mechanism, and clocks that a test sets on."""

    def __init__(self, directory: Path, settings: Mapping[str, str]) -> None:
        self.ahead_ns = 0
        self.clocks = Clocks(
            lambda: SYSTEM_CLOCKS.wall_ns() + self.ahead_ns, lambda: SYSTEM_CLOCKS.monotonic_ns() + self.ahead_ns
        )
        super().__init__(directory, asyncio.new_event_loop, **{**SETTINGS, **settings})

    def start(self) -> "SaslBroker":
        super().start()
        self.set_users(USERS)
        return self

    def pass_ms(self, milliseconds: int) -> None:
        self.ahead_ns += milliseconds * 1_000_000

    def set_users(self, users: Mapping[str, Mapping[ScramMechanism, ScramCredential]]) -> None:
        async def change(image: Image) -> Image:
            return set_scram_credentials(image, users)

        self.run(self.parts.metadata.change(change))

    def port(self, listener: str) -> int:
        return next(one.port for one in self.started.bound if one.listener.name == listener)

    def connect_plain(self) -> socket.socket:
        """By the listener without SASL."""
        return socket.create_connection(("127.0.0.1", self.port("PLAINTEXT")), timeout=30)


def credential(mechanism: ScramMechanism, password: str) -> ScramCredential:
    salted = salted_password(mechanism.digest, password, SALT, LEAST_ITERATIONS)
    return credential_from(mechanism.digest, salted, SALT, LEAST_ITERATIONS)


USERS = {
    user: {mechanism: credential(mechanism, password) for mechanism in ScramMechanism}
    for user, password in PASSWORDS.items()
}


class LoginClient(RawClient):
    def versions(self, version: int = 4, software: str = "raw") -> Any:
        request = {"client_software_name": software, "client_software_version": "1"} if version >= 3 else {}
        return self.ask(build_request(API_VERSIONS, version, request))

    def handshake(self, mechanism: str, version: int = 1) -> Any:
        return self.ask(build_request(SASL_HANDSHAKE, version, {"mechanism": mechanism}))

    def authenticate(self, message: bytes, version: int = 2) -> Any:
        return self.ask(build_request(SASL_AUTHENTICATE, version, {"auth_bytes": message}))

    def bare(self, message: bytes) -> bytes:
        """As after version 0 of the handshake."""
        self.send(len(message).to_bytes(4, "big") + message)
        return self.receive_frame()

    def log_in(self, mechanism: str, user: str = "alice", password: str = PASSWORDS["alice"]) -> Any:
        """The last answer of a login: the first error, or the success."""
        answer = self.handshake(mechanism)
        assert answer.error_code == 0, answer
        if mechanism == "PLAIN":
            return self.authenticate(f"\0{user}\0{password}".encode())
        number = MECHANISMS[mechanism]
        client = ScramClient(number, user, "nonce")
        first = self.authenticate(client.first())
        if first.error_code:
            return first
        salt, iterations = client.challenge(first.auth_bytes)
        final = self.authenticate(client.final(salted_password(number.digest, password, salt, iterations)))
        if not final.error_code:
            client.verify(final.auth_bytes)
        return final
