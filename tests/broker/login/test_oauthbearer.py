"""Logins by token, with signatures and, for tests, without (S36, S45, S46)."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jwt
import pytest

from tests.broker.login.logging_in import OWN_TOKENS, LoginClient, SaslBroker
from tests.broker.process import eventually
from tests.broker.raw import metadata_request
from tests.security.tokens import Issuer, key_set

ISSUER, NEWER = Issuer("first"), Issuer("newer")
TOLD = b'{"status": "invalid_token"}'


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("issuer") / "keys.json"
    file.write_bytes(key_set(ISSUER))
    return file


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory, keys: Path) -> Iterator[SaslBroker]:
    settings = {
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "listener.name.sasl_plaintext.oauthbearer.sasl.server.callback.handler.class": (
            "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"
        ),
        "sasl.oauthbearer.jwks.endpoint.url": keys.as_uri(),
        "listener.name.sasl_plaintext.oauthbearer.sasl.oauthbearer.expected.audience": "kafka",
    }
    running = SaslBroker(tmp_path_factory.mktemp("broker"), settings).start()
    with_keys = lambda: _is_let_in(running, token())  # noqa: E731
    eventually(with_keys)
    yield running
    running.stop()


def token(issuer: Issuer = ISSUER, **claims: Any) -> str:
    now = int(time.time())
    return issuer.token(says={"iat": now, "exp": now + 3600, "aud": "kafka"}, **claims)


def log_in(client: LoginClient, bearer: str, authorization_id: str = "") -> Any:
    client.handshake("OAUTHBEARER")
    header = f"a={authorization_id}" if authorization_id else ""
    return client.authenticate(f"n,{header},\x01auth=Bearer {bearer}\x01\x01".encode())


def _is_let_in(broker: SaslBroker, bearer: str) -> bool:
    with LoginClient(broker) as client:
        answer = log_in(client, bearer)
        assert answer.error_code == 0
        if answer.auth_bytes:
            assert answer.auth_bytes == TOLD
            told = client.authenticate(b"\x01")
            assert (told.error_code, told.error_message) == (58, TOLD.decode())
            assert client.is_closed()
            return False
        assert client.ask(metadata_request(create=False)).brokers
        return True


def test_who_has_a_token_is_let_in_until_it_expires(broker: SaslBroker) -> None:
    with LoginClient(broker) as client:
        answer = log_in(client, token(exp=int(time.time()) + 600))
        assert (answer.error_code, answer.auth_bytes) == (0, b"")
        assert 590 < answer.session_lifetime.total_seconds() <= 600
        served = [one.principal for one in broker.started.listening.connections if one.peer == client.peer]
        assert served == ["User:alice"]


@pytest.mark.parametrize(
    "bearer",
    [
        token(exp=1_600_000_000),
        token(aud="another"),
        token(Issuer("first")),
        token(Issuer("unknown")),
        jwt.encode({"sub": "alice", "iat": 1, "exp": 2**40, "aud": "kafka"}, "", "none"),
        "nonsense",
    ],
    ids=["expired", "audience", "foreign", "unknown", "unsigned", "nonsense"],
)
def test_who_has_none_that_is_valid_is_told_in_two_steps(broker: SaslBroker, bearer: str) -> None:
    assert not _is_let_in(broker, bearer)


def test_nobody_logs_in_as_somebody_else(broker: SaslBroker) -> None:
    with LoginClient(broker) as client:
        assert log_in(client, token(), "admin").error_code == 58
        assert client.is_closed()
    with LoginClient(broker) as client:
        assert log_in(client, token(), "alice").error_code == 0


def test_a_token_within_the_skew_lets_in_for_no_time(broker: SaslBroker) -> None:
    """S36: it is told 0, and dies at the next request."""
    with LoginClient(broker) as client:
        answer = log_in(client, token(exp=int(time.time()) - 5))
        assert (answer.error_code, answer.session_lifetime.total_seconds()) == (0, 0)
        client.begin(metadata_request(create=False))
        assert client.is_closed()


def test_a_newer_token_keeps_a_connection(broker: SaslBroker) -> None:
    with LoginClient(broker) as client:
        assert log_in(client, token(exp=int(time.time()) - 5)).error_code == 0
        assert log_in(client, token()).error_code == 0
        assert client.ask(metadata_request(create=False)).brokers


def test_a_new_key_is_fetched_when_a_token_names_it(tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    file.write_bytes(key_set(ISSUER))
    settings = {"sasl.enabled.mechanisms": "OAUTHBEARER", "sasl.oauthbearer.jwks.endpoint.url": file.as_uri()}
    broker = SaslBroker(tmp_path / "broker", settings).start()
    try:
        eventually(lambda: _is_let_in(broker, token()))
        file.write_bytes(key_set(ISSUER, NEWER))
        eventually(lambda: _is_let_in(broker, token(NEWER)))
    finally:
        broker.stop()


def test_without_signatures_everybody_is_whom_he_says(tmp_path: Path) -> None:
    broker = SaslBroker(tmp_path, {"sasl.enabled.mechanisms": "OAUTHBEARER", **OWN_TOKENS}).start()
    try:
        assert _is_let_in(broker, jwt.encode({"sub": "anybody", "exp": 2**40}, "", "none"))
        assert not _is_let_in(broker, jwt.encode({"sub": "anybody", "exp": 1}, "", "none"))
        assert not _is_let_in(broker, token())
    finally:
        broker.stop()
