"""A setting of one listener protects that listener, or stops the start."""

import pytest

from lamina.settings.definition import SettingError
from lamina.settings.resolve import resolve_broker

MEMBER = {
    "zookeeper.connect": "zk:2181",
    "listeners": "CLIENTS://10.0.0.1:9092",
    "listener.security.protocol.map": "CLIENTS:PLAINTEXT",
}
TWO = {
    "listeners": "CLIENTS://10.0.0.1:9092,BROKERS://10.0.0.1:9093",
    "listener.security.protocol.map": "CLIENTS:PLAINTEXT,BROKERS:PLAINTEXT",
}


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (
            {**TWO, "listener.name.broker.ssl.client.auth": "required"},
            "listener.name.broker.ssl.client.auth: there is no listener BROKER; CLIENTS and BROKERS are. "
            "Correct it or take it out.",
        ),
        (
            {**MEMBER, "listener.name.broker.ssl.client.auth": "required"},
            "listener.name.broker.ssl.client.auth: there is no listener BROKER; CLIENTS and BROKERS are. "
            "Correct it or take it out.",
        ),
        (
            {"listener.name.brokers.plain.sasl.jaas.config": "hunter2"},
            "listener.name.brokers.plain.sasl.jaas.config: there is no listener BROKERS; PLAINTEXT is. "
            "Correct it or take it out.",
        ),
        (
            {**TWO, "listener.name.BROKERS.ssl.client.auth": "required"},
            "listener.name.BROKERS.ssl.client.auth: must name the listener in small letters, listener.name.brokers",
        ),
        (
            {"listener.name.plain\ntext.ssl.client.auth": "required"},
            r"'listener.name.plain\ntext.ssl.client.auth': there is no listener 'plain\ntext'; PLAINTEXT is. "
            "Correct it or take it out.",
        ),
    ],
)
@pytest.mark.parametrize("source", ["file", "flags", "sets"])
def test_a_setting_for_a_listener_that_does_not_exist_stops_the_start(
    given: dict[str, str], sentence: str, source: str
) -> None:
    with pytest.raises(SettingError) as caught:
        resolve_broker(**{source: given})
    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    "given",
    [
        {**TWO, "listener.name.brokers.ssl.client.auth": "required"},
        {**MEMBER, "listener.name.brokers.ssl.client.auth": "required"},
        {"listener.name.admin.ssl.client.auth": "required"},
        {"controller.listener.names": "Controller", "listener.name.controller.ssl.client.auth": "required"},
        {"listener.name.gone.ssl.client.auth": "none"},
        {
            "listeners": "a.b://:9092",
            "listener.security.protocol.map": "a.b:PLAINTEXT",
            "listener.name.a.b.connections.max.reauth.ms": "1",
        },
    ],
)
def test_a_setting_for_a_listener_that_exists_or_that_asks_for_nothing_does_not(given: dict[str, str]) -> None:
    assert resolve_broker(file=given).warnings == ()


def test_a_stored_setting_of_a_listener_that_is_gone_does_not() -> None:
    resolve_broker(dynamic_broker={"listener.name.gone.ssl.keystore.location": "/k.p12"})
