"""Everything a client may say before, during and after its login, and what it is told (S30-S38)."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from lamina.broker.counters import LoginOutcome
from lamina.wire.api_keys import API_VERSIONS, METADATA, SASL_AUTHENTICATE, SASL_HANDSHAKE
from lamina.wire.building import build_request
from tests.broker.login.logging_in import LISTENER, MECHANISM_NAMES, PASSWORDS, LoginClient, SaslBroker
from tests.broker.raw import METADATA_VERSION, metadata_request

RIGHT = b"\0alice\0" + PASSWORDS["alice"].encode()
WRONG = b"\0alice\0wrong"
NAMES = {"client_software_name": "raw", "client_software_version": "1"}
ABOUT_A_TOPIC = {
    "topics": [{"name": "any", "topic_id": None}],
    "allow_auto_topic_creation": False,
    "include_topic_authorized_operations": False,
}
EVERY = pytest.mark.parametrize("mechanism", MECHANISM_NAMES)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SaslBroker]:
    running = SaslBroker(tmp_path_factory.mktemp("sasl"), {}).start()
    yield running
    running.stop()


@pytest.fixture
def client(broker: SaslBroker) -> Iterator[LoginClient]:
    with LoginClient(broker) as one:
        yield one


def is_served(client: LoginClient) -> bool:
    return bool(client.ask(metadata_request(create=False)).brokers)


def is_served_anew(broker: SaslBroker) -> bool:
    with LoginClient(broker) as client:
        return client.log_in("PLAIN").error_code == 0 and is_served(client)


def test_no_door_shows_a_password(broker: SaslBroker) -> None:
    """S86"""
    shown = repr(broker.started.listening._doors)
    assert LISTENER in shown
    assert not any(password in shown for password in PASSWORDS.values())


# Before (S30)


def test_a_client_asks_for_versions_then_logs_in(client: LoginClient) -> None:
    keys = {api.api_key for api in client.versions().api_keys}
    assert {SASL_HANDSHAKE, SASL_AUTHENTICATE, METADATA, API_VERSIONS} <= keys, "all are told"
    assert client.log_in("PLAIN").error_code == 0
    assert is_served(client)


def test_versions_are_told_once(client: LoginClient) -> None:
    assert client.versions().error_code == 0
    client.begin(build_request(API_VERSIONS, 2, {}))
    assert client.is_closed()


def test_versions_that_were_refused_do_not_count(client: LoginClient) -> None:
    unknown = bytearray(client.encoded(build_request(API_VERSIONS, 4, NAMES)))
    unknown[6:8] = (99).to_bytes(2, "big")
    client.send(bytes(unknown))
    assert client.answer(API_VERSIONS, 0).error_code == 35
    assert client.versions(software="no/name").error_code == 42
    assert client.versions().error_code == 0
    assert client.log_in("PLAIN").error_code == 0


def test_who_has_not_logged_in_is_served_nothing(client: LoginClient) -> None:
    client.begin(metadata_request(create=False))
    assert client.is_closed()


def test_messages_of_a_login_need_a_handshake(client: LoginClient) -> None:
    client.begin(build_request(SASL_AUTHENTICATE, 2, {"auth_bytes": RIGHT}))
    assert client.is_closed()


@pytest.mark.parametrize(
    "data",
    [
        b"\x00\x00\x00\x02hi",
        b"\x00\x00\x00\x00",
        b"\x00\x00\x00\x0a" + bytes(10),
        b"\xff\xff\xff\xff",
        b"\x00\x11\x00\x05\x00\x00\x00\x01",
        b"GET / HTTP/1.1\r\n",
        (524_289).to_bytes(4, "big"),
    ],
)
def test_what_is_no_request_ends_the_connection(client: LoginClient, data: bytes) -> None:
    """S30, S84"""
    client.send(data)
    assert client.is_closed()


def test_a_handshake_in_an_unknown_version_ends_the_connection(client: LoginClient) -> None:
    request = bytearray(client.encoded(build_request(SASL_HANDSHAKE, 1, {"mechanism": "PLAIN"})))
    request[6:8] = (2).to_bytes(2, "big")
    client.send(bytes(request))
    assert client.is_closed()


@EVERY
@pytest.mark.parametrize("version", [0, 1])
def test_a_message_that_is_longer_than_any_is_refused_unread(
    broker: SaslBroker, caplog: pytest.LogCaptureFixture, mechanism: str, version: int
) -> None:
    """A frame may be half a megabyte, and to take that apart would hold up everybody else."""
    message = b"\0alice\0" + bytes(5000)
    with LoginClient(broker) as client, caplog.at_level("INFO"):
        client.handshake(mechanism, version)
        if version == 0:
            client.send(len(message).to_bytes(4, "big") + message)
        else:
            assert client.authenticate(message).error_code == 58
        assert client.is_closed()
    assert "its message has 5007 bytes, and none needs more than 4096" in caplog.text


def test_who_has_logged_in_is_served_whatever_strangers_announce(broker: SaslBroker) -> None:
    """A few bytes are enough to hold the memory of half a megabyte."""
    listening = broker.started.listening
    with ExitStack() as stack:
        strangers = [stack.enter_context(LoginClient(broker)) for _ in range(4)]
        for one in strangers:
            one.send((524_288).to_bytes(4, "big"))
        while not listening.strangers_admission.held_bytes:
            is_served_anew(broker)
            strangers[0].send(b"\0")
        assert listening.admission.held_bytes == 0
        client = stack.enter_context(LoginClient(broker))
        assert client.log_in("PLAIN").error_code == 0
        topic = {"name": "n" * 30_000, "topic_id": None}
        large = build_request(METADATA, METADATA_VERSION, {**ABOUT_A_TOPIC, "topics": [topic] * 20})
        assert client.ask(large).brokers


def test_a_login_in_a_frame_of_many_tags_ends_the_connection(client: LoginClient) -> None:
    client.handshake("PLAIN")
    request = client.encoded(build_request(SASL_AUTHENTICATE, 2, {"auth_bytes": RIGHT}))
    tags = b"\xb0\xcc\x0b" + b"\x63\x00" * 190_000
    client.send((len(request) - 5 + len(tags)).to_bytes(4, "big") + request[4:-1] + tags)
    assert client.is_closed()


# The handshake (S31)


@pytest.mark.parametrize("version", [0, 1])
def test_an_unknown_mechanism_is_answered_with_those_there_are(client: LoginClient, version: int) -> None:
    answer = client.handshake("GSSAPI", version)
    assert answer.error_code == 33
    assert answer.mechanisms == MECHANISM_NAMES
    assert client.is_closed()


@pytest.mark.parametrize("version", [0, 1])
def test_the_handshake_tells_the_mechanisms(client: LoginClient, version: int) -> None:
    answer = client.handshake("PLAIN", version)
    assert (answer.error_code, answer.mechanisms) == (0, MECHANISM_NAMES)


def test_another_request_within_a_login_is_refused_and_ends_it(client: LoginClient) -> None:
    client.handshake("PLAIN")
    request = build_request(METADATA, METADATA_VERSION, ABOUT_A_TOPIC)
    assert client.ask(request).topics[0].error_code == 34
    assert client.is_closed()


def test_another_handshake_within_a_login_is_refused_and_ends_it(client: LoginClient) -> None:
    client.handshake("PLAIN")
    assert client.handshake("PLAIN").error_code == 34
    assert client.is_closed()


def test_versions_within_a_login_are_refused_and_end_it(client: LoginClient) -> None:
    client.handshake("PLAIN")
    assert client.versions().error_code == 34
    assert client.is_closed()


def test_an_unknown_version_of_the_login_ends_it(client: LoginClient) -> None:
    client.handshake("PLAIN")
    request = bytearray(client.encoded(build_request(SASL_AUTHENTICATE, 1, {"auth_bytes": RIGHT})))
    request[6:8] = (9).to_bytes(2, "big")
    client.send(bytes(request))
    assert client.is_closed()


# Version 0: messages as they are (S32)


def test_after_version_0_messages_come_as_they_are(client: LoginClient) -> None:
    client.handshake("PLAIN", 0)
    assert client.bare(RIGHT) == b""
    assert is_served(client)


def test_after_version_0_a_failed_login_ends_the_connection(client: LoginClient) -> None:
    client.handshake("PLAIN", 0)
    client.send(len(WRONG).to_bytes(4, "big") + WRONG)
    assert client.is_closed()


# The login (S33, S34, S38, S42)


@EVERY
@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_success(client: LoginClient, mechanism: str, version: int) -> None:
    if mechanism == "PLAIN":
        client.handshake(mechanism)
        answer = client.authenticate(RIGHT, version)
    else:
        answer = client.log_in(mechanism)
    assert answer.error_code == 0
    assert answer.error_message == ""
    assert is_served(client)


@EVERY
@pytest.mark.parametrize(("user", "password"), [("alice", "wrong"), ("nobody", "alice-secret"), ("Alice", "x")])
def test_a_wrong_password_and_an_unknown_user_are_told_the_same(
    client: LoginClient, mechanism: str, user: str, password: str
) -> None:
    answer = client.log_in(mechanism, user, password)
    assert answer.error_code == 58
    assert answer.auth_bytes == b""
    assert answer.error_message == (
        "Authentication failed: Invalid username or password"
        if mechanism == "PLAIN"
        else f"Authentication failed: the credentials are invalid ({mechanism})"
    )
    assert client.is_closed()


def test_a_login_has_a_principal(broker: SaslBroker, client: LoginClient) -> None:
    assert client.log_in("SCRAM-SHA-512", "bob", PASSWORDS["bob"]).error_code == 0
    served = [one for one in broker.started.listening.connections if one.peer == client.peer]
    assert [one.principal for one in served] == ["User:bob"]


def test_a_deleted_user_logs_in_no_more(tmp_path: Path) -> None:
    broker = SaslBroker(tmp_path, {}).start()
    try:
        with LoginClient(broker) as before, LoginClient(broker) as after:
            assert before.log_in("SCRAM-SHA-256").error_code == 0
            broker.set_users({"alice": {}})
            assert after.log_in("SCRAM-SHA-256").error_code == 58
            assert is_served(before), "who is in stays in (S91)"
    finally:
        broker.stop()


def test_requests_that_follow_the_login_at_once_are_served(client: LoginClient) -> None:
    """The limit of a login holds no more, though the bytes came together."""
    client.handshake("PLAIN")
    login = client.encoded(build_request(SASL_AUTHENTICATE, 2, {"auth_bytes": RIGHT}))
    client.send(login + client.encoded(metadata_request(create=False)))
    assert client.answer(SASL_AUTHENTICATE, 2).error_code == 0
    assert client.answer(METADATA, METADATA_VERSION).brokers


def test_after_a_failure_nothing_is_read(client: LoginClient) -> None:
    """S33: a second attempt that came along is not made."""
    client.handshake("PLAIN")
    wrong = client.encoded(build_request(SASL_AUTHENTICATE, 2, {"auth_bytes": WRONG}))
    right = client.encoded(build_request(SASL_AUTHENTICATE, 2, {"auth_bytes": RIGHT}))
    client.send(wrong + right)
    assert client.answer(SASL_AUTHENTICATE, 2).error_code == 58
    assert client.is_closed()


# Afterwards, and where there is no login (S35)


def test_after_the_login_another_is_refused_and_the_connection_goes_on(client: LoginClient) -> None:
    assert client.log_in("PLAIN").error_code == 0
    answer = client.handshake("PLAIN")
    assert (answer.error_code, answer.mechanisms) == (34, ())
    refused = client.authenticate(RIGHT)
    assert refused.error_code == 34
    assert refused.error_message
    assert is_served(client)


def test_a_listener_without_sasl_has_no_login(broker: SaslBroker) -> None:
    class Plain:
        connect = staticmethod(broker.connect_plain)

    with LoginClient(Plain()) as client:
        answer = client.handshake("PLAIN")
        assert (answer.error_code, answer.mechanisms) == (34, ())
        assert client.authenticate(RIGHT).error_code == 34
        assert is_served(client)


# Logging in again (S36, S37)


@pytest.fixture(scope="module")
def forgetful(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SaslBroker]:
    """Its logins hold for an hour, those by SCRAM-SHA-256 for a minute."""
    settings = {
        "connections.max.reauth.ms": "7200000",
        "listener.name.sasl_plaintext.connections.max.reauth.ms": "3600000",
        "listener.name.sasl_plaintext.scram-sha-256.connections.max.reauth.ms": "60000",
    }
    running = SaslBroker(tmp_path_factory.mktemp("forgetful"), settings).start()
    yield running
    running.stop()


def test_the_lifetime_of_a_login_is_told(forgetful: SaslBroker) -> None:
    with LoginClient(forgetful) as client:
        assert client.log_in("PLAIN").session_lifetime.total_seconds() == 3600
    with LoginClient(forgetful) as client:
        assert client.log_in("SCRAM-SHA-256").session_lifetime.total_seconds() == 60


def test_a_client_logs_in_again(forgetful: SaslBroker) -> None:
    with LoginClient(forgetful) as client:
        assert client.log_in("PLAIN").error_code == 0
        assert is_served(client)
        again = client.log_in("PLAIN")
        assert (again.error_code, again.session_lifetime.total_seconds()) == (0, 3600)
        assert is_served(client)


def test_not_twice_in_a_second(forgetful: SaslBroker) -> None:
    with LoginClient(forgetful) as client:
        assert client.log_in("PLAIN").error_code == 0
        assert client.log_in("PLAIN").error_code == 0
        assert client.handshake("PLAIN").error_code == 34
        assert is_served(client)


def test_who_does_not_log_in_again_is_closed_at_the_next_request(forgetful: SaslBroker) -> None:
    with LoginClient(forgetful) as client:
        assert client.log_in("SCRAM-SHA-256").error_code == 0
        forgetful.pass_ms(60_000)
        client.begin(metadata_request(create=False))
        assert client.is_closed()
    count = forgetful.parts.counters.logins[LISTENER, "SCRAM-SHA-256", LoginOutcome.EXPIRED]
    assert count == 1


def test_the_bare_messages_of_version_0_expire_too(forgetful: SaslBroker) -> None:
    """S36"""
    with LoginClient(forgetful) as client:
        client.handshake("PLAIN", 0)
        assert client.bare(RIGHT) == b""
        assert is_served(client)
        forgetful.pass_ms(3_600_000)
        client.begin(metadata_request(create=False))
        assert client.is_closed()


def test_who_has_expired_can_still_log_in_again(forgetful: SaslBroker) -> None:
    with LoginClient(forgetful) as client:
        assert client.log_in("SCRAM-SHA-256").error_code == 0
        forgetful.pass_ms(60_000)
        assert client.log_in("SCRAM-SHA-256").error_code == 0


def test_the_mechanism_stays(forgetful: SaslBroker) -> None:
    with LoginClient(forgetful) as client:
        assert client.log_in("PLAIN").error_code == 0
        assert client.handshake("SCRAM-SHA-512").error_code == 0
        assert client.is_closed()


def test_the_user_stays(forgetful: SaslBroker) -> None:
    with LoginClient(forgetful) as client:
        assert client.log_in("PLAIN").error_code == 0
        answer = client.log_in("PLAIN", "bob", PASSWORDS["bob"])
        assert answer.error_code == 58
        assert "cannot change" in answer.error_message
        assert client.is_closed()


def test_a_wrong_password_ends_what_had_logged_in(forgetful: SaslBroker) -> None:
    with LoginClient(forgetful) as client:
        assert client.log_in("PLAIN").error_code == 0
        assert client.log_in("PLAIN", "alice", "wrong").error_code == 58
        assert client.is_closed()


# Strangers (S85)


def test_silent_strangers_hold_up_nobody(tmp_path: Path) -> None:
    broker = SaslBroker(tmp_path, {"lamina.max.unauthenticated.connections": "20"}).start()
    try:
        with ExitStack() as opened:
            known = opened.enter_context(LoginClient(broker))
            assert known.log_in("PLAIN").error_code == 0
            silent = [opened.enter_context(LoginClient(broker)) for _ in range(100)]
            for one in silent:
                one.send(b"\x00\x00\x00\xff begun and never ended")
            assert all(one.is_closed() for one in silent[:80]), "the oldest go"
            late = opened.enter_context(LoginClient(broker))
            assert late.log_in("SCRAM-SHA-512").error_code == 0
            assert is_served(known)
            assert is_served(late)
            assert len(broker.started.listening.connections) <= 22
    finally:
        broker.stop()


# Counted


def test_logins_are_counted(tmp_path: Path) -> None:
    broker = SaslBroker(tmp_path, {"connections.max.reauth.ms": "3600000"}).start()
    try:
        with LoginClient(broker) as client:
            client.log_in("PLAIN")
            client.log_in("PLAIN")
        with LoginClient(broker) as client:
            client.log_in("SCRAM-SHA-256", "alice", "wrong")
        with LoginClient(broker) as client:
            client.handshake("NONSENSE")
        assert dict(broker.parts.counters.logins) == {
            (LISTENER, "PLAIN", LoginOutcome.SUCCESS): 1,
            (LISTENER, "PLAIN", LoginOutcome.REAUTHENTICATION_SUCCESS): 1,
            (LISTENER, "SCRAM-SHA-256", LoginOutcome.FAILURE): 1,
            (LISTENER, "none", LoginOutcome.FAILURE): 1,
        }
    finally:
        broker.stop()
