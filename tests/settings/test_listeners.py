import pytest

from lamina.settings.definition import SettingError
from lamina.settings.listeners import (
    Listener,
    admin_listeners,
    advertised_admin_listeners,
    advertised_listeners,
    broker_listener_name,
    listeners,
)
from lamina.settings.resolve import resolve_broker


def test_a_broker_listens_for_this_machine_alone_by_default() -> None:
    assert listeners(resolve_broker()) == (Listener("PLAINTEXT", "PLAINTEXT", "127.0.0.1", 9092),)


def test_names_stand_for_protocols_and_hosts_may_be_ipv6() -> None:
    settings = resolve_broker(
        file={
            "listeners": "internal://[::1]:9092, EXTERNAL://0.0.0.0:0",
            "advertised.listeners": "EXTERNAL://kafka.example.org:19092",
            "listener.security.protocol.map": "INTERNAL:PLAINTEXT,external:plaintext",
        }
    )
    assert listeners(settings) == (
        Listener("INTERNAL", "PLAINTEXT", "::1", 9092),
        Listener("EXTERNAL", "PLAINTEXT", "0.0.0.0", 0),
    )
    assert advertised_listeners(settings) == (Listener("EXTERNAL", "PLAINTEXT", "kafka.example.org", 19092),)


def test_a_controllers_listener_is_left_out_whatever_its_protocol() -> None:
    settings = resolve_broker(
        file={
            "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CONTROLLER:SASL_SSL,PLAINTEXT:PLAINTEXT",
        }
    )
    assert [listener.name for listener in listeners(settings)] == ["PLAINTEXT"]


@pytest.mark.parametrize("protocol", ["SSL", "SASL_PLAINTEXT", "SASL_SSL"])
def test_a_listener_that_should_be_secure_is_never_opened_plain(protocol: str) -> None:
    """By its name, and by the map."""
    with pytest.raises(SettingError, match=f"{protocol} needs "):
        resolve_broker(file={"listeners": f"{protocol}://:9092"})
    with pytest.raises(SettingError, match=f"{protocol} needs "):
        resolve_broker(file={"listeners": "X://:9092", "listener.security.protocol.map": f"X:{protocol}"})


@pytest.mark.parametrize(
    ("file", "sentence"),
    [
        ({"listeners": "9092"}, "listeners = 9092: must have the form NAME://host:port"),
        ({"listeners": "PLAINTEXT://:65536"}, "a port up to 65535"),
        ({"listeners": "PLAINTEXT://a\nb:1"}, r"listeners = 'PLAINTEXT://a\nb:1': must have the form"),
        ({"listeners": ""}, "listeners: must name at least one listener"),
        ({"listeners": "PLAINTEXT://:1,plaintext://:2"}, "must name each listener once"),
        ({"listeners": "FOO://:1"}, "FOO has no protocol in listener.security.protocol.map"),
        ({"listener.security.protocol.map": "FOO"}, "must be NAME:PROTOCOL, one of PLAINTEXT"),
        ({"advertised.listeners": "PLAINTEXT://0.0.0.0:1"}, "no client can connect to 0.0.0.0"),
        ({"listeners": "PLAINTEXT://0.0.0.0:1"}, "no client can connect to 0.0.0.0: set advertised.listeners"),
        ({"listeners": "PLAINTEXT://[::]:1"}, "no client can connect to ::: set advertised.listeners"),
        (
            {
                "advertised.listeners": "X://a:1",
                "listener.security.protocol.map": "X:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            },
            "advertised.listeners = X: must be one of the names in listeners",
        ),
    ],
)
def test_an_impossible_listener_stops_the_start(file: dict[str, str], sentence: str) -> None:
    with pytest.raises(SettingError) as caught:
        resolve_broker(file=file)
    assert sentence in str(caught.value)


def test_the_admin_listener_is_for_this_machine_alone_by_default() -> None:
    assert admin_listeners(resolve_broker()) == (Listener("ADMIN", "HTTP", "127.0.0.1", 9644),)
    assert advertised_admin_listeners(resolve_broker()) == ()


def test_admin_listeners_have_hosts_and_ports_and_may_be_none() -> None:
    settings = resolve_broker(file={"lamina.admin.listeners": "localhost:0, [::1]:1, :2, http://10.0.0.1:3"})
    assert [(one.host, one.port) for one in admin_listeners(settings)] == [
        ("localhost", 0),
        ("::1", 1),
        ("", 2),
        ("10.0.0.1", 3),
    ]
    assert [one.address for one in admin_listeners(settings)] == ["localhost:0", "[::1]:1", "localhost:2", "10.0.0.1:3"]
    assert [one.is_for_this_machine for one in admin_listeners(settings)] == [True, True, False, False]
    assert admin_listeners(resolve_broker(file={"lamina.admin.listeners": ""})) == ()


@pytest.mark.parametrize("given", ["9644", "host", "host:", "host:70000", "::1:9644", "ftp://host:1", "host:1/path"])
def test_an_admin_listener_of_another_form_is_refused(given: str) -> None:
    with pytest.raises(SettingError, match=r"lamina\.admin\.listeners = .*: must have the form host:port"):
        resolve_broker(file={"lamina.admin.listeners": given})


@pytest.mark.parametrize("given", [":9644", "host:0", "0.0.0.0:1", "[::]:1"])
def test_tools_are_not_sent_where_nobody_can_go(given: str) -> None:
    with pytest.raises(SettingError, match="must name a host and a port"):
        resolve_broker(file={"lamina.admin.advertised.listeners": given})


# Between brokers


def test_a_member_of_a_cluster_opens_a_listener_for_brokers_of_its_own() -> None:
    settings = resolve_broker(sets={"zookeeper.connect": "zk:2181", "listeners": "PLAINTEXT://10.0.0.1:9092"})
    assert [(one.name, one.host, one.port) for one in listeners(settings)] == [
        ("PLAINTEXT", "10.0.0.1", 9092),
        ("BROKERS", "10.0.0.1", 0),
    ]
    assert broker_listener_name(settings) == "BROKERS"
    assert [one.name for one in advertised_listeners(settings)] == ["PLAINTEXT", "BROKERS"]


def test_brokers_are_told_the_advertised_host_too() -> None:
    sets = {"zookeeper.connect": "zk:2181", "advertised.listeners": "PLAINTEXT://broker-1.example.com:9092"}
    told = advertised_listeners(resolve_broker(sets=sets))
    assert [(one.name, one.host, one.port) for one in told] == [
        ("PLAINTEXT", "broker-1.example.com", 9092),
        ("BROKERS", "broker-1.example.com", 0),
    ]


def test_brokers_may_share_a_listener_with_clients_if_the_settings_say_so() -> None:
    sets = {"zookeeper.connect": "zk:2181", "inter.broker.listener.name": "PLAINTEXT"}
    settings = resolve_broker(sets=sets)
    assert [one.name for one in listeners(settings)] == ["PLAINTEXT"]
    assert broker_listener_name(settings) == "PLAINTEXT"
    with pytest.raises(SettingError, match="must be one of those in listeners"):
        listeners(resolve_broker(sets={**sets, "inter.broker.listener.name": "OTHER"}))


WITH_TLS = {
    "zookeeper.connect": "zk:2181",
    "listeners": "PLAINTEXT://10.0.0.1:9092,SSL://10.0.0.1:9093",
    "ssl.keystore.type": "PEM",
    "ssl.keystore.location": "own.pem",
}


def test_the_protocol_between_brokers_is_the_name_of_their_listener() -> None:
    """S3"""
    settings = resolve_broker(file={**WITH_TLS, "security.inter.broker.protocol": "SSL"})
    assert [one.name for one in listeners(settings)] == ["PLAINTEXT", "SSL"]
    assert broker_listener_name(settings) == "SSL"


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({}, "listeners = SSL: with SSL, brokers would have one without it: name their listener in inter.broker"),
        (
            {"security.inter.broker.protocol": "SSL", "inter.broker.listener.name": "SSL"},
            "security.inter.broker.protocol = SSL: give it or inter.broker.listener.name, not both",
        ),
        (
            {"security.inter.broker.protocol": "SASL_SSL"},
            "security.inter.broker.protocol = SASL_SSL: must be one of those in listeners",
        ),
    ],
)
def test_no_way_around_tls_is_opened_between_brokers(given: dict[str, str], sentence: str) -> None:
    """S3, S87"""
    with pytest.raises(SettingError, match=sentence):
        resolve_broker(file={**WITH_TLS, **given})


def test_a_broker_without_a_cluster_opens_none_for_others() -> None:
    settings = resolve_broker(sets={"inter.broker.listener.name": "ANY"})
    assert [one.name for one in listeners(settings)] == ["PLAINTEXT"]
    assert broker_listener_name(settings) is None
