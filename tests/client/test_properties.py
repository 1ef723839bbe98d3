"""Kafka's client properties in librdkafka's words."""

import pytest

from lamina.client.errors import ClientError
from lamina.client.properties import translate


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


@pytest.mark.parametrize("module", ["plain.PlainLoginModule", "scram.ScramLoginModule"])
def test_a_login_of_java_becomes_a_name_and_a_password(module: str) -> None:
    text = f'org.apache.kafka.common.security.{module} required username="ann" password="it\\"s; secret";'
    assert translate({"sasl.jaas.config": text, "sasl.mechanism": "PLAIN"}) == {
        "sasl.username": "ann",
        "sasl.password": 'it"s; secret',
        "sasl.mechanisms": "PLAIN",
    }


@pytest.mark.parametrize(
    "text", ["com.sun.security.auth.module.Krb5LoginModule required;", "x.PlainLoginModule required username=a;"]
)
def test_another_login_is_refused(text: str) -> None:
    with pytest.raises(ClientError, match=r"sasl\.jaas\.config"):
        translate({"sasl.jaas.config": text})


def test_pem_stores_are_translated() -> None:
    given = {
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": "/ca.pem",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": "/me.pem",
        "ssl.key.password": "secret",
        "ssl.endpoint.identification.algorithm": "",
    }
    assert translate(given) == {
        "ssl.ca.location": "/ca.pem",
        "ssl.certificate.location": "/me.pem",
        "ssl.key.location": "/me.pem",
        "ssl.key.password": "secret",
        "ssl.endpoint.identification.algorithm": "none",
    }


def test_a_pkcs12_keystore_is_taken() -> None:
    given = {"ssl.keystore.type": "PKCS12", "ssl.keystore.location": "/me.p12", "ssl.keystore.password": "secret"}
    assert translate(given) == {"ssl.keystore.location": "/me.p12", "ssl.keystore.password": "secret"}


@pytest.mark.parametrize("name", ["ssl.truststore.location", "ssl.keystore.location"])
def test_a_java_keystore_is_refused_with_what_to_do(name: str) -> None:
    with pytest.raises(ClientError, match=rf"{name}.*keytool"):
        translate({name: "/store.jks"})
