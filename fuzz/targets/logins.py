"""What is said on a listener with SASL, message by message: nobody is served or let in who does not know a password.

The broker is made once and serves all runs.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

from fuzz.choices import Choices
from lamina.broker.login.sasl_door import SaslDoors
from lamina.broker.requests.request import ANONYMOUS, CloseConnection
from lamina.clocks import SYSTEM_CLOCKS
from lamina.image.changes import set_scram_credentials
from lamina.security.scram_credential import ScramMechanism
from lamina.settings.resolve import resolve_broker
from lamina.wire.api_keys import API_VERSIONS, METADATA, SASL_AUTHENTICATE, SASL_HANDSHAKE
from lamina.wire.building import build_request
from lamina.wire.codec import SIZE_BYTES, encode_request
from lamina.wire.headers import start_request
from lamina.wire.primitives import MalformedRequest
from tests.broker.in_process import InProcessBroker
from tests.broker.login.logging_in import SETTINGS, credential

PASSWORD = "the password of alice"
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "GSSAPI")
HANDSHAKE, AUTHENTICATE, BARE, VERSIONS, OTHER = KINDS = range(5)
_MOST_MESSAGES = 6


@dataclass(eq=False)
class _Client:
    """A connection, as a login sees it."""

    id: int = 0
    peer: str = "a fuzzer"
    host: str = "127.0.0.1"
    listener_name: str = "SASL_PLAINTEXT"
    principal: str = ANONYMOUS
    client_software: str = ""
    refused: list[str] = field(default_factory=list)

    def when_gone(self, told: Callable[[], None]) -> None:
        """It stays."""

    def limit_frames(self, max_bytes: int, setting: str) -> None:
        """There are no frames here."""

    def share_memory(self) -> None:
        """Here none is counted."""

    def refuse(self, reason: str) -> None:
        self.refused.append(reason)

    refuse_after_response = refuse


@cache
def _served() -> tuple[InProcessBroker, SaslDoors]:
    broker = InProcessBroker(Path(mkdtemp(prefix="lamina-fuzz-")), {})
    users = {"alice": {mechanism: credential(mechanism, PASSWORD) for mechanism in ScramMechanism}}
    broker.change(lambda image: set_scram_credentials(image, users))
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    jaas = f'{module} required user_alice="{PASSWORD}";'
    settings = resolve_broker(file={**SETTINGS, "listener.name.sasl_plaintext.plain.sasl.jaas.config": jaas})
    parts = broker.parts
    doors = SaslDoors(
        settings,
        parts.metadata,
        b"a secret of the cluster",
        parts.router,
        parts.counters,
        parts.threads,
        SYSTEM_CLOCKS,
        broker._loop,
    )
    return broker, doors


def one(data: bytes) -> None:
    broker, doors = _served()
    choices = Choices(data)
    service, client = doors.by_listener["SASL_PLAINTEXT"].service(), _Client()
    for _ in range(_MOST_MESSAGES):
        if choices.is_over or client.refused or client.principal != ANONYMOUS:
            break
        try:
            _, served = service.serve(client, memoryview(_message(choices)))
            if isinstance(served, Awaitable):
                broker._loop.run_until_complete(_answered(served))
        except (MalformedRequest, CloseConnection):
            break
    assert broker.parts.counters.unexpected.total() == 0
    assert client.principal == ANONYMOUS or PASSWORD.encode() in data


async def _answered(served: Awaitable[object]) -> None:
    await served


def _message(choices: Choices) -> bytearray:
    """A frame without its size."""
    kind = choices.one_of(KINDS)
    if kind == HANDSHAKE:
        version = choices.number() % 2
        mechanism = choices.one_of(MECHANISMS)
        return encode_request(build_request(SASL_HANDSHAKE, version, {"mechanism": mechanism}), 1, "")[SIZE_BYTES:]
    if kind == AUTHENTICATE:
        version, token = choices.number() % 3, choices.take(choices.number(2))
        return encode_request(build_request(SASL_AUTHENTICATE, version, {"auth_bytes": token}), 1, "")[SIZE_BYTES:]
    if kind == VERSIONS:
        return encode_request(build_request(API_VERSIONS, 0, {}), 1, "")[SIZE_BYTES:]
    body = choices.take(choices.number(2))
    return start_request(METADATA, 9, 1, "")[SIZE_BYTES:] + body if kind == OTHER else bytearray(body)
