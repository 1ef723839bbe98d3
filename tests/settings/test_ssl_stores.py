"""TLS of a listener from Kafka's settings: what holds, and what stops the start (S1, S2, S4, S10, S11)."""

from typing import Any

import pytest

from lamina.settings.definition import SettingError
from lamina.settings.listeners import Listener
from lamina.settings.resolve import resolve_broker
from lamina.settings.ssl_stores import KeyStoreSource, SslSettings, TrustStoreSource, listener_ssl

SECURE = Listener("SECURE", "SSL", "127.0.0.1", 9093)
WITH_LOGIN = Listener("SECURE", "SASL_SSL", "127.0.0.1", 9093)
OPENED = {"listeners": "SECURE://127.0.0.1:0", "listener.security.protocol.map": "SECURE:PLAINTEXT"}
FILES = {"ssl.keystore.location": "/k.p12", "ssl.keystore.password": "hunter2"}


def of(given: dict[str, str], listener: Listener = SECURE) -> SslSettings | None:
    return listener_ssl(resolve_broker(file={**OPENED, **given}), listener)


def test_a_listener_without_tls_has_none() -> None:
    assert of(FILES, Listener("P", "PLAINTEXT", "", 1)) is None


def test_kafkas_defaults_hold() -> None:
    assert of(FILES) == SslSettings(
        key_store=KeyStoreSource("JKS", "/k.p12", "hunter2"),
        trust_store=None,
        protocols=("TLSv1.2", "TLSv1.3"),
        cipher_suites=(),
        client_auth="none",
        principal_mapping_rules="DEFAULT",
        allows_dn_changes=False,
        allows_san_changes=False,
        checks_host_names=True,
    )


def test_what_is_given_to_one_listener_beats_what_is_given_to_all() -> None:
    prefix = "listener.name.secure."
    own = {
        f"{prefix}ssl.keystore.type": "pem",
        f"{prefix}ssl.keystore.location": "/own.pem",
        f"{prefix}ssl.keystore.password": "",
        f"{prefix}ssl.client.auth": "required",
        "ssl.truststore.location": "/ca.p12",
        "ssl.client.auth": "none",
    }
    found = of({**FILES, **own})
    assert found is not None
    assert found.key_store == KeyStoreSource("PEM", "/own.pem")
    assert found.trust_store == TrustStoreSource("JKS", "/ca.p12")
    assert found.client_auth == "required"


def test_client_auth_of_all_listeners_does_not_count_where_there_is_a_login() -> None:
    """S4."""
    given = {**FILES, "ssl.truststore.location": "/ca.p12", "ssl.client.auth": "required"}
    found = of(given, WITH_LOGIN)
    assert found is not None
    assert found.client_auth == "none"
    found = of({**given, "listener.name.secure.ssl.client.auth": "requested"}, WITH_LOGIN)
    assert found is not None
    assert found.client_auth == "requested"


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({}, "SSL needs a certificate and its private key: give ssl.keystore.location"),
        ({"ssl.keystore.key": "k"}, "ssl.keystore.key: needs ssl.keystore.certificate.chain"),
        ({"ssl.keystore.certificate.chain": "c"}, "ssl.keystore.certificate.chain: needs ssl.keystore.key"),
        (
            {"ssl.keystore.key": "k", "ssl.keystore.certificate.chain": "c"},
            "ssl.keystore.key: needs ssl.keystore.type=PEM",
        ),
        (
            {
                "ssl.keystore.key": "k",
                "ssl.keystore.certificate.chain": "c",
                "ssl.keystore.type": "PEM",
                "ssl.keystore.location": "/k",
            },
            "give it or ssl.keystore.location, not both",
        ),
        ({**FILES, "ssl.keystore.type": "PEM"}, "ssl.keystore.password: a store of type PEM has no password"),
        ({"ssl.keystore.password": "hunter2"}, "there is no ssl.keystore.location that it opens"),
        ({"ssl.keystore.location": "/k"}, "ssl.keystore.location: needs ssl.keystore.password"),
        ({**FILES, "ssl.truststore.certificates": "c"}, "ssl.truststore.certificates: needs ssl.truststore.type=PEM"),
        (
            {
                **FILES,
                "ssl.truststore.certificates": "c",
                "ssl.truststore.type": "PEM",
                "ssl.truststore.location": "/t",
            },
            "give it or ssl.truststore.location, not both",
        ),
        ({**FILES, "ssl.truststore.password": "x"}, "there is no ssl.truststore.location that it opens"),
        ({**FILES, "ssl.client.auth": "requested"}, "ssl.client.auth = requested: needs ssl.truststore.location"),
        ({**FILES, "ssl.principal.mapping.rules": "x"}, "ssl.principal.mapping.rules: must be a comma-separated list"),
        ({**FILES, "ssl.enabled.protocols": ""}, "ssl.enabled.protocols = (empty): must name at least one"),
    ],
)
def test_what_does_not_go_together_stops_the_start(given: dict[str, str], sentence: str) -> None:
    with pytest.raises(SettingError) as caught:
        of(given)
    assert str(caught.value).startswith("listener SECURE: ")
    assert sentence in str(caught.value)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value", "must_be"),
    [
        ("ssl.enabled.protocols", "TLSv1.1", "must be a list of TLSv1.2 or TLSv1.3"),
        ("ssl.keystore.type", "BKS", "must be PEM, PKCS12 or JKS"),
        ("ssl.client.auth", "yes", "must be none, requested or required"),
        ("listener.name.secure.ssl.truststore.type", "BKS", "must be PEM, PKCS12 or JKS"),
    ],
)
def test_values_that_cannot_be(name: str, value: str, must_be: str) -> None:
    with pytest.raises(SettingError, match=must_be):
        of({**FILES, name: value})


def test_no_secret_is_in_a_repr() -> None:
    source = KeyStoreSource("PEM", None, "s1", "s2", "s3", "s4")
    assert "s1" not in repr(source)
    assert "s2" not in repr((source, TrustStoreSource("PEM", None, "s2", "s2")))


def test_only_one_listener_of_one_broker_can_be_changed_while_it_runs() -> None:
    """S5."""
    name = "listener.name.secure.ssl.keystore.location"
    assert of_dynamic({name: "/new.p12"}).of_listener(_location(), "SECURE") == "/new.p12"
    for given in ({"dynamic_default": {name: "/n"}}, {"dynamic_broker": {"ssl.keystore.location": "/n"}}):
        with pytest.raises(SettingError, match="can only change on one broker and for one listener"):
            resolve_broker(**given)
    with pytest.raises(SettingError, match="cannot change while the broker runs"):
        resolve_broker(dynamic_broker={"listener.name.secure.ssl.client.auth": "none"})


def of_dynamic(given: dict[str, str]) -> Any:
    return resolve_broker(dynamic_broker=given)


def _location() -> Any:
    from lamina.settings.ssl import SSL_KEYSTORE_LOCATION

    return SSL_KEYSTORE_LOCATION
