"""How brokers log in to each other, and what stops the start because they could not (S2, S3)."""

import pytest

from lamina.settings.definition import SettingError
from lamina.settings.inter_broker_login import InterBrokerLogin, inter_broker_login
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
