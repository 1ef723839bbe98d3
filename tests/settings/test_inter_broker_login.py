"""How brokers log in to each other, and what stops the start because they could not (S2, S3)."""

import pytest

from lamina.settings.authorization import STANDARD_AUTHORIZER
from lamina.settings.definition import SettingError
from lamina.settings.inter_broker_login import InterBrokerLogin, broker_principals, inter_broker_login
from lamina.settings.resolve import resolve_broker

MODULE = "org.apache.kafka.common.security"
PLAIN_ENTRY = "listener.name.inside.plain.sasl.jaas.config"
SCRAM_ENTRY = "listener.name.inside.scram-sha-512.sasl.jaas.config"
SECRET = "of brokers"
FILE = {
    "zookeeper.connect": "zk:2181",
    "listeners": "INSIDE://10.0.0.1:9093",
    "listener.security.protocol.map": "INSIDE:SASL_PLAINTEXT",
    "inter.broker.listener.name": "INSIDE",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    PLAIN_ENTRY: f'{MODULE}.plain.PlainLoginModule required username=b password="{SECRET}" user_b="{SECRET}";',
    SCRAM_ENTRY: f'{MODULE}.scram.ScramLoginModule required username=b password="{SECRET}";',
}


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_the_name_and_password_are_those_of_the_mechanisms_entry(mechanism: str) -> None:
    login = inter_broker_login(resolve_broker(file={**FILE, "sasl.mechanism.inter.broker.protocol": mechanism}))
    assert login == InterBrokerLogin(mechanism, "b", SECRET)
    assert SECRET not in repr(login)


def test_a_broker_alone_needs_none() -> None:
    alone = {name: value for name, value in FILE.items() if "inter" not in name and "zoo" not in name}
    assert inter_broker_login(resolve_broker(file=alone)) is None


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"sasl.mechanism.inter.broker.protocol": None}, "need sasl.mechanism.inter.broker.protocol to log in"),
        ({"sasl.mechanism.inter.broker.protocol": "GSSAPI"}, "= GSSAPI: brokers log in to each other by PLAIN, SCRAM"),
        ({"sasl.enabled.mechanisms": "SCRAM-SHA-512"}, "= PLAIN: must be one of sasl.enabled.mechanisms"),
        (
            {PLAIN_ENTRY: f'{MODULE}.plain.PlainLoginModule required user_b="{SECRET}";'},
            f"{PLAIN_ENTRY}: needs username and password",
        ),
        (
            {PLAIN_ENTRY: f'{MODULE}.plain.PlainLoginModule required username=b password="{SECRET}" user_b="x";'},
            f"{PLAIN_ENTRY}: no other broker would take this login: it needs user_b",
        ),
    ],
)
def test_what_stops_the_start(given: dict[str, str | None], sentence: str) -> None:
    file = {name: value for name, value in {**FILE, **given}.items() if value is not None}
    with pytest.raises(SettingError, match=sentence) as raised:
        resolve_broker(file=file)
    assert SECRET not in str(raised.value)


# Who is a broker where no access rules say it

WITH_CERTIFICATES = {
    "zookeeper.connect": "zk:2181",
    "listeners": "INSIDE://10.0.0.1:9093",
    "listener.security.protocol.map": "INSIDE:SSL",
    "inter.broker.listener.name": "INSIDE",
    "ssl.keystore.type": "PEM",
    "ssl.keystore.location": "broker.pem",
    "ssl.truststore.type": "PEM",
    "ssl.truststore.location": "ca.pem",
    "ssl.client.auth": "required",
}


def test_a_broker_is_who_logs_in_as_this_one_and_a_super_user() -> None:
    assert broker_principals(resolve_broker(file=FILE)) == frozenset({"User:b"})
    above = resolve_broker(file=FILE | {"super.users": "User:c;User:CN=d,O=e"})
    assert broker_principals(above) == frozenset({"User:b", "User:c", "User:CN=d,O=e"})


def test_where_certificates_are_asked_for_those_of_brokers_have_to_be_named() -> None:
    with pytest.raises(SettingError, match=r"INSIDE: ssl.client.auth = required: .*name the principals of brokers"):
        resolve_broker(file=WITH_CERTIFICATES)
    named = resolve_broker(file=WITH_CERTIFICATES | {"super.users": "User:CN=broker-1;User:CN=broker-2"})
    assert broker_principals(named) == frozenset({"User:CN=broker-1", "User:CN=broker-2"})


@pytest.mark.parametrize(
    "file",
    [
        {**FILE, "authorizer.class.name": STANDARD_AUTHORIZER},
        {**WITH_CERTIFICATES, "authorizer.class.name": STANDARD_AUTHORIZER},
        {**WITH_CERTIFICATES, "ssl.client.auth": "none"},
        {"zookeeper.connect": "zk:2181", "listeners": "PLAINTEXT://10.0.0.1:9092"},
        {name: value for name, value in WITH_CERTIFICATES.items() if "inter" not in name and "zoo" not in name},
    ],
)
def test_access_rules_say_it_or_nobody_can(file: dict[str, str]) -> None:
    assert broker_principals(resolve_broker(file=file)) is None
