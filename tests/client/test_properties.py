"""Kafka's client properties in librdkafka's words."""

from base64 import urlsafe_b64encode
from pathlib import Path

import pytest

from lamina.client.errors import ClientError
from lamina.client.properties import translate
from tests.tls.certificates import PASSWORD, Authority


def test_names_that_both_know_stay_as_they_are() -> None:
    same = {"security.protocol": "SASL_SSL", "client.id": "me", "compression.type": "zstd"}
    assert translate(same) == same


def test_what_only_a_java_client_has_is_left_out() -> None:
    java = {
        "key.serializer": "x",
        "value.deserializer": "y",
        "value.deserializer.encoding": "UTF-8",
        "metrics.recording.level": "INFO",
        "metric.reporters": "z",
        "default.api.timeout.ms": "60000",
        "buffer.memory": "1",
    }
    assert translate(java) == {}


@pytest.mark.parametrize(
    ("module", "mechanism"), [("plain.PlainLoginModule", "PLAIN"), ("scram.ScramLoginModule", "SCRAM-SHA-512")]
)
def test_a_login_of_java_becomes_a_name_and_a_password(module: str, mechanism: str) -> None:
    text = f'org.apache.kafka.common.security.{module} required username="ann" password="it\\"s; secret";'
    login = {"security.protocol": "SASL_SSL", "sasl.jaas.config": text, "sasl.mechanism": mechanism}
    assert translate(login) == {
        "security.protocol": "SASL_SSL",
        "sasl.username": "ann",
        "sasl.password": 'it"s; secret',
        "sasl.mechanisms": mechanism,
    }


def test_a_token_in_a_file_is_given_when_librdkafka_asks(tmp_path: Path) -> None:
    """Until it ends by its own words; librdkafka asks again before that."""
    file = tmp_path / "token"
    given = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.jaas.config": "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;",
        "sasl.oauthbearer.token.endpoint.url": f"file://{file}",
    }
    translated = translate(given)
    assert set(translated) == {"security.protocol", "sasl.mechanisms", "oauth_cb"}
    token = "x." + urlsafe_b64encode(b'{"exp": 1900000000}').decode().rstrip("=") + ".y"
    file.write_text(f"{token}\n")
    assert translated["oauth_cb"]("") == (token, 1_900_000_000)
    file.write_text("opaque")
    assert translated["oauth_cb"]("")[0] == "opaque"


@pytest.mark.parametrize(
    "text", ["com.sun.security.auth.module.Krb5LoginModule required;", "x.PlainLoginModule required username=a;"]
)
def test_another_login_is_refused(text: str) -> None:
    with pytest.raises(ClientError, match=r"sasl\.jaas\.config"):
        translate({"security.protocol": "SASL_SSL", "sasl.jaas.config": text, "sasl.mechanism": "PLAIN"})


def test_pem_stores_are_translated() -> None:
    given = {
        "security.protocol": "SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": "/ca.pem",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": "/me.pem",
        "ssl.key.password": "secret",
        "ssl.endpoint.identification.algorithm": "",
    }
    assert translate(given) == {
        "security.protocol": "SSL",
        "ssl.ca.location": "/ca.pem",
        "ssl.certificate.location": "/me.pem",
        "ssl.key.location": "/me.pem",
        "ssl.key.password": "secret",
        "ssl.endpoint.identification.algorithm": "none",
    }


def test_pkcs12_is_opened(tmp_path: Path) -> None:
    authority = Authority()
    identity = authority.issue("alice.example")
    translated = translate(
        {
            "security.protocol": "SSL",
            "ssl.keystore.location": str(identity.pkcs12(tmp_path / "me.p12")),
            "ssl.keystore.password": PASSWORD,
            "ssl.truststore.location": str(authority.pkcs12(tmp_path / "ca.p12")),
            "ssl.truststore.password": PASSWORD,
        }
    )
    assert translated == {
        "security.protocol": "SSL",
        "ssl.ca.pem": authority.certificates,
        "ssl.certificate.pem": identity.chain,
        "ssl.key.pem": identity.key(),
    }


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("ssl.truststore.locaton", "ssl.truststore.location"),
        ("ssl.keystore.passwrd", "ssl.keystore.password"),
    ],
)
def test_a_misspelled_store_is_not_left_out(name: str, meant: str) -> None:
    with pytest.raises(ClientError, match=rf"^{name} is not understood here; did you mean {meant}\?"):
        translate({"security.protocol": "SSL", name: "x"})


@pytest.mark.parametrize("name", ["truststore", "keystore"])
def test_a_java_keystore_is_refused_with_what_to_do(tmp_path: Path, name: str) -> None:
    store = tmp_path / "store.jks"
    store.write_bytes(bytes.fromhex("feedfeed"))
    with pytest.raises(ClientError, match=rf"ssl.{name}.location.*keytool"):
        translate(
            {
                "security.protocol": "SSL",
                f"ssl.{name}.location": str(store),
                f"ssl.{name}.password": "secret",
            }
        )


@pytest.mark.parametrize(
    ("given", "better"),
    [
        ({"ssl.ca.location": "/ca.pem"}, "PLAINTEXT; set security.protocol to SSL or SASL_SSL"),
        ({"sasl.username": "ann"}, "PLAINTEXT; set security.protocol to SASL_PLAINTEXT or SASL_SSL"),
        (
            {"sasl.username": "ann", "security.protocol": "PLAINTEXT"},
            "PLAINTEXT; set security.protocol to SASL_PLAINTEXT or SASL_SSL",
        ),
        (
            {"sasl.username": "ann", "security.protocol": "ssl"},
            "SSL; set security.protocol to SASL_PLAINTEXT or SASL_SSL",
        ),
    ],
)
def test_security_that_the_protocol_does_not_use_is_refused(given: dict[str, str], better: str) -> None:
    with pytest.raises(ClientError) as raised:
        translate(given)
    assert str(raised.value) == f"{next(iter(given))} has no meaning with security.protocol={better}"


def test_whom_to_trust_may_stand_beside_a_protocol_that_is_said_to_be_without_tls() -> None:
    """The admin listener may have TLS where the brokers' have none."""
    given = {"security.protocol": "PLAINTEXT", "ssl.ca.location": "/ca.pem"}
    assert translate(given) == given
