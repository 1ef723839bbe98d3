import pytest

from lamina.settings.broker import BROKER_ID, LOG_DIRS, NODE_ID
from lamina.settings.definition import SettingError
from lamina.settings.log import (
    LOG_FLUSH_INTERVAL_MS,
    LOG_RETENTION_BYTES,
    LOG_RETENTION_MS,
    LOG_ROLL_JITTER_MS,
    LOG_ROLL_MS,
    MESSAGE_MAX_BYTES,
)
from lamina.settings.resolve import resolve_broker
from lamina.settings.values import Source, Synonym

HOUR_MS = 3_600_000


def test_set_wins_over_flag_over_file_over_default() -> None:
    name = "log.retention.bytes"
    assert resolve_broker()[LOG_RETENTION_BYTES] == -1
    assert resolve_broker(file={name: "1"})[LOG_RETENTION_BYTES] == 1
    assert resolve_broker(file={name: "1"}, flags={name: "2"})[LOG_RETENTION_BYTES] == 2
    assert resolve_broker(file={name: "1"}, flags={name: "2"}, sets={name: "3"})[LOG_RETENTION_BYTES] == 3


def test_a_running_broker_wins_over_all_running_brokers_over_everything_static() -> None:
    name = "message.max.bytes"
    settings = resolve_broker(sets={name: "1"}, dynamic_default={name: "2"})
    assert settings[MESSAGE_MAX_BYTES] == 2
    settings = resolve_broker(sets={name: "1"}, dynamic_default={name: "2"}, dynamic_broker={name: "3"})
    assert settings[MESSAGE_MAX_BYTES] == 3


def test_milliseconds_win_over_minutes_over_hours() -> None:
    file = {"log.retention.hours": "1"}
    assert resolve_broker(file=file)[LOG_RETENTION_MS] == HOUR_MS
    file["log.retention.minutes"] = "2"
    assert resolve_broker(file=file)[LOG_RETENTION_MS] == 120_000
    file["log.retention.ms"] = "3"
    assert resolve_broker(file=file)[LOG_RETENTION_MS] == 3


def test_the_other_pairs_fall_back_as_in_kafka() -> None:
    settings = resolve_broker(
        file={
            "log.roll.hours": "2",
            "log.roll.jitter.hours": "1",
            "log.flush.scheduler.interval.ms": "5",
            "log.dir": "/a",
            "broker.id": "7",
        }
    )
    assert settings[LOG_ROLL_MS] == 2 * HOUR_MS
    assert settings[LOG_ROLL_JITTER_MS] == HOUR_MS
    assert settings[LOG_FLUSH_INTERVAL_MS] == 5
    assert settings[LOG_DIRS] == ("/a",)
    assert settings[NODE_ID] == 7
    settings = resolve_broker(
        file={"log.roll.ms": "1", "log.roll.hours": "2", "log.dirs": "/b,/c", "log.dir": "/a", "node.id": "3"}
    )
    assert settings[LOG_ROLL_MS] == 1
    assert settings[LOG_DIRS] == ("/b", "/c")
    assert settings[NODE_ID] == 3


def test_a_stronger_source_wins_even_with_a_weaker_name() -> None:
    settings = resolve_broker(file={"log.retention.ms": "5"}, sets={"log.retention.hours": "1"})
    assert settings[LOG_RETENTION_MS] == HOUR_MS


def test_every_value_carries_its_source_and_its_synonyms_in_order() -> None:
    settings = resolve_broker(
        file={"log.retention.hours": "1", "log.retention.minutes": "9"},
        dynamic_default={"log.retention.ms": "5"},
    )
    resolved = settings.resolved(LOG_RETENTION_MS)
    assert resolved is not None
    assert (resolved.value, resolved.source) == (5, Source.DYNAMIC_DEFAULT)
    assert resolved.synonyms == (
        Synonym("log.retention.ms", "5", Source.DYNAMIC_DEFAULT),
        Synonym("log.retention.minutes", "9", Source.FILE),
        Synonym("log.retention.hours", "1", Source.FILE),
        Synonym("log.retention.hours", "168", Source.DEFAULT),
    )


def test_a_setting_without_value_and_default_is_none_when_asked_politely() -> None:
    assert resolve_broker().get(BROKER_ID) is None
    assert resolve_broker(file={"broker.id": "2"}).get(BROKER_ID) == 2
    with pytest.raises(LookupError, match=r"broker\.id has no value and no default"):
        resolve_broker()[BROKER_ID]


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("log.segment.bytes", "12", "log.segment.bytes = 12: must be at least 1048576 (1 MiB)"),
        (
            "log.segment.bytes",
            "2147483648",
            "log.segment.bytes = 2147483648: must be a whole number of 32 bits",
        ),
        ("log.retention.ms", "0", "log.retention.ms = 0: must be at least 1, or -1 for no limit"),
        (
            "log.retention.hours",
            "0",
            "log.retention.hours = 0: then log.retention.ms = 0, but must be at least 1, or -1 for no limit",
        ),
        (
            "log.flush.scheduler.interval.ms",
            "-1",
            "log.flush.scheduler.interval.ms = -1: then log.flush.interval.ms = -1, but must be at least 0",
        ),
        ("broker.id", "-2", "broker.id = -2: then node.id = -2, but must be at least -1"),
        ("log.dirs", "", "log.dirs = (empty): must be a list of one or more directories, each named once"),
        ("log.dirs", "/a,/a", "log.dirs = /a,/a: must be a list of one or more directories, each named once"),
        ("log.preallocate", "yes", "log.preallocate = yes: must be true or false"),
        ("log.cleanup.policy", "purge", "log.cleanup.policy = purge: must be a list of compact or delete"),
        (
            "log.message.timestamp.type",
            "logappendtime",
            "log.message.timestamp.type = logappendtime: must be CreateTime or LogAppendTime; "
            "did you mean LogAppendTime?",
        ),
    ],
)
def test_an_impossible_value_stops_with_one_sentence(name: str, text: str, sentence: str) -> None:
    with pytest.raises(SettingError) as caught:
        resolve_broker(file={name: text})
    assert str(caught.value) == sentence


def test_an_impossible_value_stops_even_where_another_source_wins() -> None:
    with pytest.raises(SettingError, match=r"log\.segment\.bytes = 12"):
        resolve_broker(file={"log.segment.bytes": "12"}, sets={"log.segment.bytes": "2000000"})


def test_zero_hours_do_not_matter_under_milliseconds() -> None:
    settings = resolve_broker(file={"log.retention.hours": "0", "log.retention.ms": "1"})
    assert settings[LOG_RETENTION_MS] == 1


def test_an_unknown_name_warns_with_the_nearest() -> None:
    settings = resolve_broker(file={"log.retention.hour": "1", "segment.ms": "1", "qqqqqqqq": ""})
    assert settings.warnings == (
        "log.retention.hour: unknown, did you mean log.retention.hours?",
        "segment.ms: unknown, did you mean log.roll.ms?",
        "qqqqqqqq: unknown",
    )


def test_an_unknown_name_with_control_characters_warns_in_one_line() -> None:
    assert list(resolve_broker(file={"qqq\n\0qqq": "1"}).warnings) == [r"'qqq\n\x00qqq': unknown"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("security.protocol", "SSL"),
        ("security.inter.broker.protocl", "SSL"),
        ("sals.enabled.mechanisms.ssl", "x"),
        ("authorizer.class", "x"),
        ("super.user.principals", "User:admin"),
        ("kafka.super.users", "User:admin"),
        ("listener.name.external.plain.jaas.config", "hunter2"),
        ("listener.name.external.nonsense", "x"),
        ("tls.keystore", "x"),
    ],
)
def test_an_unknown_name_that_sounds_like_security_stops_and_its_value_is_not_shown(name: str, text: str) -> None:
    with pytest.raises(SettingError, match=rf"^{name}: unknown.* It sounds like security, ") as caught:
        resolve_broker(sets={name: text})
    assert f" {text}" not in str(caught.value).removeprefix(name)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("supr.users", "super.users"),
        ("ssl_client_auth", "ssl.client.auth"),
        ("listener.name.clients.ssl.client.auht", "listener.name.clients.ssl.client.auth"),
        ("listener.name.clients.plain.sasl.jaas.confg", "listener.name.clients.plain.sasl.jaas.config"),
        ("sasl.enabled.mechanism", "sasl.enabled.mechanisms"),
        ("listener.name.clients.sasl.enabled.mechanism", "listener.name.clients.sasl.enabled.mechanisms"),
    ],
)
def test_a_misspelled_name_of_security_stops_with_what_was_meant(name: str, meant: str) -> None:
    with pytest.raises(SettingError, match=rf"^{name}: .*did you mean {meant}\?"):
        resolve_broker(sets={name: "hunter2"})


def test_what_kafka_has_and_lamina_has_not_is_no_misspelling() -> None:
    for name in ("sasl.kerberos.service.name", "sasl.login.class", "delegation.token.secret.key"):
        with pytest.raises(SettingError) as caught:
            resolve_broker(sets={name: "x"})
        assert "did you mean" not in str(caught.value)


@pytest.mark.parametrize(("name", "text"), [("security.protocol", "PLAINTEXT"), ("tls.enabled", "false"), ("auth", "")])
def test_an_unknown_name_that_asks_for_no_security_only_warns(name: str, text: str) -> None:
    assert resolve_broker(sets={name: text}).warnings[0].startswith(f"{name}: unknown")


def test_an_ignored_name_warns_once_with_the_reason() -> None:
    settings = resolve_broker(file={"process.roles": "broker"}, sets={"process.roles": "broker"})
    assert settings.warnings == ("process.roles: ignored, Lamina has no KRaft quorum",)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("principal.builder.class", "example.Principals"),
        ("ssl.engine.factory.class", "example.Factory"),
        ("sasl.kerberos.service.name", "kafka"),
        ("sasl.login.class", "example.Login"),
        ("zookeeper.ssl.cipher.suites", "TLS_AES_128_GCM_SHA256"),
        ("listener.name.external.ssl.engine.factory.class", "example.Factory"),
        ("remote.log.storage.system.enable", "true"),
        ("create.topic.policy.class.name", "example.Policy"),
        ("config.providers", "file"),
    ],
)
def test_a_refused_name_stops_and_its_value_is_not_shown(name: str, text: str) -> None:
    with pytest.raises(SettingError) as caught:
        resolve_broker(file={name: text})
    assert str(caught.value).startswith(f"{name}: refused, Lamina ")
    assert text not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("authorizer.class.name", ""),
        (
            "principal.builder.class",
            "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder",
        ),
        ("ssl.engine.factory.class", ""),
        ("security.inter.broker.protocol", "PLAINTEXT"),
        ("zookeeper.ssl.cipher.suites", ""),
        ("connections.max.reauth.ms", " 0 "),
        ("remote.log.storage.system.enable", "false"),
    ],
)
def test_a_refused_name_that_asks_for_nothing_is_let_through(name: str, text: str) -> None:
    assert resolve_broker(file={name: text}).warnings == ()


def test_a_read_only_setting_cannot_change_while_the_broker_runs() -> None:
    with pytest.raises(SettingError, match=r"log.dirs: cannot change while the broker runs"):
        resolve_broker(dynamic_broker={"log.dirs": "/a"})
    with pytest.raises(SettingError, match=r"log.roll.hours: cannot change while the broker runs"):
        resolve_broker(dynamic_default={"log.roll.hours": "1"})


def test_listeners_cannot_change_while_the_broker_runs_because_sockets_are_bound_once() -> None:
    with pytest.raises(SettingError, match="listeners: cannot change while the broker runs"):
        resolve_broker(dynamic_broker={"listeners": "PLAINTEXT://:1"})
