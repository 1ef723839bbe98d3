import pytest

from lamina.settings.definition import SettingError
from lamina.settings.resolve import resolve_broker
from lamina.settings.zookeeper_options import (
    Tls,
    ZooKeeperOptions,
    given_id,
    parse_connect,
    zookeeper_options,
)


def test_without_zookeeper_a_broker_is_a_cluster_by_itself() -> None:
    assert zookeeper_options(resolve_broker(file={"zookeeper.session.timeout.ms": "9000"})) is None
    assert zookeeper_options(resolve_broker(file={"zookeeper.connect": ""})) is None


def test_the_connection_is_waited_for_as_long_as_the_session_lasts_unless_it_is_said() -> None:
    given = {"zookeeper.connect": "a:1", "zookeeper.session.timeout.ms": "9000"}
    assert zookeeper_options(resolve_broker(file=given)) == ZooKeeperOptions(("a:1",), "", 9000, 9000)
    given["zookeeper.connection.timeout.ms"] = "100"
    assert zookeeper_options(resolve_broker(file=given)) == ZooKeeperOptions(("a:1",), "", 9000, 100)


@pytest.mark.parametrize(
    ("text", "hosts", "chroot"),
    [
        ("localhost", ("localhost:2181",), ""),
        ("a:1, b:2,c", ("a:1", "b:2", "c:2181"), ""),
        ("a:1,b:2/kafka/one", ("a:1", "b:2"), "/kafka/one"),
        ("a:1/", ("a:1",), ""),
        ("[::1]:2181/x", ("[::1]:2181",), "/x"),
    ],
)
def test_servers_and_chroot(text: str, hosts: tuple[str, ...], chroot: str) -> None:
    assert parse_connect(text) == (hosts, chroot)


@pytest.mark.parametrize("text", ["a:1,,b:2", "a:x", "a:65536", ":1", "/x", "a b:1", "a:1/x//y", "a:1/../x", "a:1/ä"])
def test_what_is_no_list_of_servers_is_one_sentence(text: str) -> None:
    with pytest.raises(SettingError, match=r"^zookeeper\.connect = .*: (must have the form|/.* cannot be a path)"):
        parse_connect(text)


def test_credentials_are_needed_to_set_acls_and_are_not_shown() -> None:
    given = {"zookeeper.connect": "a:1", "zookeeper.set.acl": "true"}
    with pytest.raises(
        SettingError, match=r"^zookeeper\.set\.acl = true: needs credentials, lamina\.zookeeper\.digest$"
    ):
        zookeeper_options(resolve_broker(file=given))
    with pytest.raises(SettingError) as caught:
        zookeeper_options(resolve_broker(file={**given, "lamina.zookeeper.digest": "secret"}))
    assert "secret" not in str(caught.value)
    options = zookeeper_options(resolve_broker(file={**given, "lamina.zookeeper.digest": "lamina:a:b"}))
    assert options is not None
    assert (options.digest, options.sets_acl) == ("lamina:a:b", True)


def test_files_for_tls_are_taken_only_where_it_is_asked_for() -> None:
    given = {
        "zookeeper.connect": "a:1",
        "zookeeper.ssl.truststore.location": "/ca.pem",
        "zookeeper.ssl.keystore.location": "/own.pem",
        "zookeeper.ssl.keystore.password": "x",
    }
    options = zookeeper_options(resolve_broker(file=given))
    assert options is not None
    assert options.tls is None
    options = zookeeper_options(resolve_broker(file={**given, "zookeeper.ssl.client.enable": "true"}))
    assert options is not None
    assert options.tls == Tls("/ca.pem", "/own.pem", "x", checks_hostname=True)
    given |= {"zookeeper.ssl.client.enable": "true", "zookeeper.ssl.endpoint.identification.algorithm": ""}
    options = zookeeper_options(resolve_broker(file=given))
    assert options is not None
    assert options.tls is not None
    assert not options.tls.checks_hostname


@pytest.mark.parametrize("store", ["keystore", "truststore"])
def test_javas_formats_are_refused(store: str) -> None:
    with pytest.raises(SettingError, match=rf"^zookeeper\.ssl\.{store}\.type = JKS: must be PEM"):
        resolve_broker(file={f"zookeeper.ssl.{store}.type": "JKS"})


def test_an_id_is_given_or_left_to_zookeeper_r67() -> None:
    def given(**file: str) -> int | None:
        return given_id(resolve_broker(file={name.replace("_", "."): text for name, text in file.items()}))

    assert given() is None
    assert given(broker_id="-1") is None
    assert given(node_id="3") == 3
    assert given(broker_id="3") == 3
    with pytest.raises(SettingError, match=r"^node.id: a member of a cluster needs an id of its own"):
        given(broker_id_generation_enable="false")
    with pytest.raises(SettingError, match=r"^node.id = 1001: must not be above reserved.broker.max.id, which is 1000"):
        given(node_id="1001")
    assert given(node_id="1001", reserved_broker_max_id="2000") == 1001
    assert given(node_id="1001", broker_id_generation_enable="false") == 1001
