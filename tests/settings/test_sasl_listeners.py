"""SASL's settings for one listener: what holds, and what stops the start (S1-S3, S33, S39, S87)."""

from typing import Any

import pytest

from lamina.security.token_claims import TokenRules
from lamina.settings.definition import SettingError
from lamina.settings.listeners import listeners
from lamina.settings.oauthbearer import KeySource, OAuthBearer
from lamina.settings.resolve import resolve_broker
from lamina.settings.sasl_listeners import SaslListener, sasl_listener

MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
PLAIN_JAAS = (
    f'{MODULE} required username="admin" password="admin-secret" user_admin="admin-secret" user_alice="secret";'
)
VALIDATOR = "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"
LISTENER = {"listeners": "CLIENTS://127.0.0.1:0", "listener.security.protocol.map": "CLIENTS:SASL_PLAINTEXT"}
PLAIN = {
    **LISTENER,
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.clients.plain.sasl.jaas.config": PLAIN_JAAS,
}


def read(**more: str) -> SaslListener:
    settings = resolve_broker(file={**PLAIN, **{name.replace("__", "."): text for name, text in more.items()}})
    found = sasl_listener(settings, listeners(settings)[0])
    assert found is not None
    return found


def refused(file: dict[str, str]) -> str:
    with pytest.raises(SettingError) as caught:
        resolve_broker(file=file)
    assert "secret" not in str(caught.value)
    return str(caught.value)


def test_a_listener_without_sasl_has_none() -> None:
    settings = resolve_broker()
    assert sasl_listener(settings, listeners(settings)[0]) is None


def test_kafkas_defaults() -> None:
    listener = read()
    assert listener.max_receive_bytes == 524_288
    assert listener.failed_delay_ms == 100
    assert listener.mechanisms["PLAIN"].max_reauth_ms == 0


def test_plain_users_are_those_of_the_jaas_entry() -> None:
    assert read().mechanisms["PLAIN"].passwords == {"admin": "admin-secret", "alice": "secret"}


def test_mechanisms_keep_the_order_in_which_clients_are_told_of_them() -> None:
    listener = read(sasl__enabled__mechanisms="SCRAM-SHA-512, PLAIN,SCRAM-SHA-256")
    assert list(listener.mechanisms) == ["SCRAM-SHA-512", "PLAIN", "SCRAM-SHA-256"]


def test_a_listener_has_mechanisms_of_its_own() -> None:
    file = {**PLAIN, "listener.name.clients.sasl.enabled.mechanisms": "SCRAM-SHA-256"}
    settings = resolve_broker(file=file)
    assert list((sasl_listener(settings, listeners(settings)[0]) or read()).mechanisms) == ["SCRAM-SHA-256"]


@pytest.mark.parametrize(
    ("file", "expected_ms"),
    [
        ({"connections.max.reauth.ms": "1"}, 1),
        ({"connections.max.reauth.ms": "1", "listener.name.clients.connections.max.reauth.ms": "2"}, 2),
        (
            {
                "listener.name.clients.connections.max.reauth.ms": "2",
                "listener.name.clients.plain.connections.max.reauth.ms": "3",
            },
            3,
        ),
        ({"listener.name.clients.scram-sha-256.connections.max.reauth.ms": "3"}, 0),
        (
            {
                "listeners": "CLIENTS://127.0.0.1:0,PLAINTEXT://127.0.0.1:0",
                "listener.security.protocol.map": "CLIENTS:SASL_PLAINTEXT,PLAINTEXT:PLAINTEXT",
                "listener.name.plaintext.connections.max.reauth.ms": "3",
            },
            0,
        ),
    ],
)
def test_the_nearest_value_holds(file: dict[str, str], expected_ms: int) -> None:
    """S2"""
    settings = resolve_broker(file={**PLAIN, **file})
    listener = sasl_listener(settings, listeners(settings)[0])
    assert listener is not None
    assert listener.mechanisms["PLAIN"].max_reauth_ms == expected_ms


def test_a_jaas_config_without_listener_and_mechanism_is_ignored_with_a_warning() -> None:
    """S2"""
    settings = resolve_broker(file={**PLAIN, "sasl.jaas.config": "anything secret"})
    assert settings.warnings == (
        "sasl.jaas.config: ignored, a broker reads it as listener.name.NAME.MECHANISM.sasl.jaas.config",
    )


@pytest.mark.parametrize(
    ("file", "sentence"),
    [
        (LISTENER, "listener CLIENTS: SASL_PLAINTEXT needs sasl.enabled.mechanisms"),
        ({**PLAIN, "sasl.enabled.mechanisms": "GSSAPI"}, "sasl.enabled.mechanisms = GSSAPI: Lamina has PLAIN, SCRAM"),
        ({**PLAIN, "sasl.enabled.mechanisms": "plain"}, "sasl.enabled.mechanisms = plain: Lamina has PLAIN"),
        (
            {**LISTENER, "sasl.enabled.mechanisms": "PLAIN"},
            "listener CLIENTS: PLAIN has no users: give them in listener",
        ),
        (
            {**PLAIN, "listener.name.clients.plain.sasl.jaas.config": f'{MODULE} required user_a="secret"'},
            "listener.name.clients.plain.sasl.jaas.config: must end with a semicolon",
        ),
        (
            {**PLAIN, "listener.name.clients.plain.sasl.jaas.config": f'{SCRAM_MODULE} required user_a="secret";'},
            f"listener.name.clients.plain.sasl.jaas.config: must be an entry of {MODULE}",
        ),
        (
            {**PLAIN, "connection.failed.authentication.delay.ms": "1000", "connections.max.idle.ms": "1000"},
            "connection.failed.authentication.delay.ms = 1000: must be less than connections.max.idle.ms, 1000",
        ),
        (
            {**PLAIN, "listener.name.clients.plain.sasl.server.callback.handler.class": "org.example.Secret"},
            "listener.name.clients.plain.sasl.server.callback.handler.class = org.example.Secret: must be org",
        ),
        (
            {**PLAIN, "listener.name.clients.plain.sasl.server.callback.handler.class": VALIDATOR},
            "listener.name.clients.plain.sasl.server.callback.handler.class: Lamina runs no Java classes; it",
        ),
        ({**PLAIN, "sasl.kerberos.service.name": "kafka"}, "sasl.kerberos.service.name: refused, Lamina has no GSSAPI"),
    ],
)
def test_a_listener_that_nobody_could_log_in_to_stops_the_start(file: dict[str, str], sentence: str) -> None:
    assert refused(file).startswith(sentence)


def test_scram_needs_no_entry() -> None:
    """Kafka does not start without; there is nothing in it that a broker would read."""
    settings = resolve_broker(file={**LISTENER, "sasl.enabled.mechanisms": "SCRAM-SHA-256"})
    assert settings.warnings == ()


TOKENS = {**LISTENER, "sasl.enabled.mechanisms": "OAUTHBEARER"}


@pytest.mark.parametrize(
    ("file", "sentence"),
    [
        ({}, "listener CLIENTS: OAUTHBEARER needs sasl.oauthbearer.jwks.endpoint.url"),
        (
            {"listener.name.clients.oauthbearer.sasl.server.callback.handler.class": VALIDATOR},
            "listener CLIENTS: OAUTHBEARER needs sasl.oauthbearer.jwks.endpoint.url",
        ),
        (
            {"sasl.oauthbearer.jwks.endpoint.url": "ftp://host/keys"},
            "listener CLIENTS: sasl.oauthbearer.jwks.endpoint.url = ftp://host/keys: must be an address of https",
        ),
        ({"sasl.oauthbearer.jwks.endpoint.url": "https:///keys"}, "listener CLIENTS: sasl.oauthbearer.jwks"),
    ],
)
def test_tokens_that_anybody_could_make_stop_the_start(file: dict[str, str], sentence: str) -> None:
    """S45, S81"""
    with pytest.raises(SettingError) as caught:
        resolve_broker(file={**TOKENS, **file})
    assert str(caught.value).startswith(sentence)


def test_tokens_are_checked_by_kafkas_settings_the_nearest_first() -> None:
    """S46"""
    prefix = "listener.name.clients.oauthbearer.sasl.oauthbearer"
    file = {
        **TOKENS,
        "sasl.oauthbearer.jwks.endpoint.url": "https://issuer.example/keys",
        "sasl.oauthbearer.expected.audience": "anybody",
        f"{prefix}.expected.audience": "kafka, lamina",
        f"{prefix}.expected.issuer": "https://issuer.example",
        f"{prefix}.sub.claim.name": "email",
        "listener.name.clients.sasl.oauthbearer.clock.skew.seconds": "5",
        "listener.name.clients.oauthbearer.sasl.server.callback.handler.class": VALIDATOR,
    }
    settings = resolve_broker(file=file)
    found = sasl_listener(settings, listeners(settings)[0])
    assert settings.warnings == ()
    assert found is not None
    tokens = found.mechanisms["OAUTHBEARER"].tokens
    assert tokens is not None
    assert tokens.rules == TokenRules(
        user_claim="email", audiences=("kafka", "lamina"), issuer="https://issuer.example", skew_ms=5000
    )
    assert tokens.keys == KeySource("https://issuer.example/keys", 3_600_000, 100, 10_000)


def test_tokens_without_signatures_are_for_tests_and_warned_of() -> None:
    module = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
    options = 'unsecuredValidatorPrincipalClaimName="name" unsecuredValidatorRequiredScope="a b"'
    jaas = f'{module} required {options} unsecuredValidatorAllowableClockSkewMs="3000";'
    file = {
        **TOKENS,
        "lamina.sasl.oauthbearer.unsecured.tokens": "true",
        "listener.name.clients.oauthbearer.sasl.jaas.config": jaas,
    }
    settings = resolve_broker(file=file)
    (warning,) = settings.warnings
    assert warning.startswith("listener CLIENTS: OAUTHBEARER takes tokens without signatures")
    found = sasl_listener(settings, listeners(settings)[0])
    assert found is not None
    assert found.mechanisms["OAUTHBEARER"].tokens == OAuthBearer(
        TokenRules("name", required_scopes=frozenset({"a", "b"}), skew_ms=3000, needs_issued_at=False), None
    )


@pytest.mark.parametrize(
    ("url", "is_warned_of"),
    [
        ("http://keys.example/keys", True),
        ("HTTP://keys.example/keys", True),
        ("http://127.0.0.1:8080/keys", False),
        ("http://localhost/keys", False),
        ("https://keys.example/keys", False),
        ("file:///keys", False),
    ],
)
def test_keys_that_anybody_on_the_way_can_change_are_warned_of(url: str, *, is_warned_of: bool) -> None:
    settings = resolve_broker(file={**TOKENS, "sasl.oauthbearer.jwks.endpoint.url": url})
    told = [one for one in settings.warnings if "whoever is on the way to them can put in his own" in one]
    assert bool(told) == is_warned_of


@pytest.mark.parametrize(
    "name",
    ["sasl.enabled.mechanisms", "sasl.jaas.config", "connections.max.reauth.ms", "sasl.server.max.receive.size"],
)
def test_none_of_it_changes_while_the_broker_runs(name: str) -> None:
    """S7: where Kafka answers NONE and does nothing, the change is refused."""
    for full in (name, f"listener.name.clients.{name}", f"listener.name.clients.plain.{name}"):
        with pytest.raises(SettingError):
            resolve_broker(file=PLAIN, dynamic_broker={full: "1"})


def test_a_password_that_everybody_can_see_is_warned_of() -> None:
    """S87"""
    away = {"listeners": "CLIENTS://0.0.0.0:9092", "advertised.listeners": "CLIENTS://kafka.example.org:9092"}
    assert resolve_broker(file=PLAIN).warnings == ()
    (warning,) = resolve_broker(file={**PLAIN, **away}).warnings
    assert warning.startswith("listener CLIENTS: without TLS whoever sees its traffic can read it")


def test_no_representation_shows_a_password() -> None:
    shown: Any = read()
    assert "secret" not in repr(shown)
