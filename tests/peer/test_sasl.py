"""Logging in: what each mechanism says, what is told where a login is refused, and logging in again."""

import asyncio
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from lamina.errors import (
    ErrorCode,
    IllegalSaslState,
    KafkaError,
    NetworkError,
    SaslAuthenticationFailed,
    UnsupportedSaslMechanism,
)
from lamina.peer.connection import Connection
from lamina.peer.connector import Connector, PlainConnector, is_refused, open_connection
from lamina.peer.limits import Limits
from lamina.peer.sasl import SaslConnector
from lamina.peer.security import connectors
from lamina.peer.security_properties import Login, parse_security
from lamina.security.scram import ScramServer
from lamina.security.scram_credential import MECHANISMS, ScramCredential, credential_from, salted_password
from tests.peer.loops import SkippingLoop, run
from tests.peer.scripted import FIND_COORDINATOR, OFFERED, Answer, Facts, ScriptedBroker, versions_facts
from tests.peer.test_connection import find, found

API_VERSIONS, SASL_HANDSHAKE, SASL_AUTHENTICATE = 18, 17, 36
WITH_LOGINS = {**OFFERED, SASL_HANDSHAKE: 1, SASL_AUTHENTICATE: 2}
PASSWORD = "open, sesame = please"
SALT = b"salt"
JAAS = "org.apache.kafka.common.security.{} required {};"
AS_ALICE = f'username="alice" password="{PASSWORD}"'


def properties(mechanism: str, module: str = "scram.ScramLoginModule", options: str = AS_ALICE) -> dict[str, str]:
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": JAAS.format(module, options),
    }


def connector_of(given: Mapping[str, str]) -> Connector:
    return connectors(parse_security(given), lambda: "clientnonce")("test")


def logins(authenticate: Callable[[bytes], Facts], mechanisms: tuple[str, ...] = ()) -> dict[int, Answer]:
    """The script of a broker that goes by what ``authenticate`` says to the bytes of each step."""

    def handshake(request: Any) -> Facts:
        error = ErrorCode.UNSUPPORTED_SASL_MECHANISM if mechanisms else ErrorCode.NONE
        return {"error_code": error, "mechanisms": mechanisms}

    return {
        API_VERSIONS: lambda _: {"api_keys": versions_facts(WITH_LOGINS)},
        SASL_HANDSHAKE: handshake,
        SASL_AUTHENTICATE: lambda request: {"error_message": "", **authenticate(bytes(request.auth_bytes))},
        FIND_COORDINATOR: found,
    }


def accepted(data: bytes = b"", lifetime_ms: int = 0) -> Facts:
    return {"auth_bytes": data, "session_lifetime": timedelta(milliseconds=lifetime_ms)}


def refused(text: str) -> Facts:
    return {"auth_bytes": b"", "error_code": ErrorCode.SASL_AUTHENTICATION_FAILED, "error_message": text}


def ask(script: Mapping[int, Answer], given: Mapping[str, str]) -> list[int]:
    """What a broker was asked by a client that logs in and finds a coordinator."""

    async def scenario(_: SkippingLoop) -> list[int]:
        async with ScriptedBroker(script) as broker:
            connection = await open_connection(connector_of(given), broker.address, Limits())
            assert (await connection.request(find("mine"))).coordinators[0].key == "mine"
            connection.close()
            return broker.keys()

    return run(scenario)


def test_plain_tells_the_name_and_the_password() -> None:
    """S38. The versions are asked for once."""
    told: list[bytes] = []

    def authenticate(data: bytes) -> Facts:
        told.append(data)
        return accepted()

    keys = ask(logins(authenticate), properties("PLAIN", "plain.PlainLoginModule"))
    assert keys == [API_VERSIONS, SASL_HANDSHAKE, SASL_AUTHENTICATE, FIND_COORDINATOR]
    assert told == [b"\0alice\0" + PASSWORD.encode()]


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_scram_shows_that_both_know_the_password(mechanism: str) -> None:
    """S41, S42"""
    server = scram_server(mechanism, credential_of(mechanism, PASSWORD))
    keys = ask(logins(lambda data: accepted(server.respond(data))), properties(mechanism))
    assert keys == [API_VERSIONS, SASL_HANDSHAKE, SASL_AUTHENTICATE, SASL_AUTHENTICATE, FIND_COORDINATOR]
    assert server.is_complete


def test_a_broker_that_does_not_know_the_password_is_not_believed() -> None:
    """The server's signature is checked: whoever lets everybody in is no broker of this user (S41)."""
    mechanism = "SCRAM-SHA-256"
    server = scram_server(mechanism, credential_of(mechanism, PASSWORD))
    false_signature = b"v=" + b"A" * 43 + b"="
    with pytest.raises(SaslAuthenticationFailed, match=r"the server does not know the user's keys"):
        ask(
            logins(lambda data: accepted(server.respond(data) if data.startswith(b"n") else false_signature)),
            properties(mechanism),
        )


def test_iterations_without_bound_are_not_computed() -> None:
    """S88"""

    def endless(data: bytes) -> Facts:
        nonce = data.rpartition(b"r=")[2]
        return accepted(b"r=" + nonce + b"more,s=c2FsdA==,i=100000000")

    with pytest.raises(SaslAuthenticationFailed, match=r"asks for 100000000 iterations"):
        ask(logins(endless), properties("SCRAM-SHA-512"))


def credential_of(mechanism: str, password: str) -> ScramCredential:
    digest = MECHANISMS[mechanism].digest
    return credential_from(digest, salted_password(digest, password, SALT, 4096), SALT, 4096)


def scram_server(mechanism: str, credential: ScramCredential) -> ScramServer:
    return ScramServer(MECHANISMS[mechanism], {"alice": credential}.get, b"secret", "servernonce")


def oauth(token: Path) -> dict[str, str]:
    module = "oauthbearer.OAuthBearerLoginModule"
    return {**properties("OAUTHBEARER", module, ""), "sasl.oauthbearer.token.endpoint.url": f"file://{token}"}


def test_a_token_is_read_from_its_file(tmp_path: Path) -> None:
    """S45"""
    token = tmp_path / "token"
    token.write_text("a.b.c\n")
    told: list[bytes] = []

    def authenticate(data: bytes) -> Facts:
        told.append(data)
        return accepted()

    ask(logins(authenticate), oauth(token))
    assert told == [b"n,,\x01auth=Bearer a.b.c\x01\x01"]


def test_a_token_may_come_from_a_callable() -> None:
    told: list[bytes] = []

    def authenticate(data: bytes) -> Facts:
        told.append(data)
        return accepted()

    async def scenario(_: SkippingLoop) -> None:
        login = Login("OAUTHBEARER")
        connector = SaslConnector(PlainConnector("test"), login, lambda: "", token=lambda: "d.e.f")
        async with ScriptedBroker(logins(authenticate)) as broker:
            (await open_connection(connector, broker.address, Limits())).close()

    run(scenario)
    assert told == [b"n,,\x01auth=Bearer d.e.f\x01\x01"]


def test_a_port_where_nobody_listens_is_told_from_a_login_that_is_refused() -> None:
    """By this a dead process is known (`is_refused`), and no living one is taken for dead."""

    async def scenario(_: SkippingLoop) -> tuple[bool, bool]:
        connector = connector_of(properties("SCRAM-SHA-256"))
        async with ScriptedBroker(logins(lambda _: refused("Authentication failed"))) as broker:
            address = broker.address
            while_alive = await is_refused(connector, address, Limits())
        return while_alive, await is_refused(connector, address, Limits())

    assert run(scenario) == (False, True)


def test_a_token_that_is_refused(tmp_path: Path) -> None:
    """S45: the broker's JSON has to be answered, and then it says what is wrong."""
    token = tmp_path / "token"
    token.write_text("a.b.c")
    answers = {
        b"n": accepted(b'{"status":"invalid_token"}'),
        b"\x01": refused('{"status":"invalid_token"}'),
    }
    with pytest.raises(SaslAuthenticationFailed, match=r"does not accept this login: .*invalid_token") as raised:
        ask(logins(lambda data: answers[data[:1]]), oauth(token))
    assert "a.b.c" not in str(raised.value)


@pytest.mark.parametrize("content", [None, "", "two words"])
def test_a_file_without_a_token(tmp_path: Path, content: str | None) -> None:
    token = tmp_path / "token"
    if content is not None:
        token.write_text(content)
    with pytest.raises(SaslAuthenticationFailed, match=r"token") as raised:
        ask(logins(lambda _: accepted()), oauth(token))
    assert "two words" not in str(raised.value)


def test_a_login_that_is_refused_is_told_in_the_brokers_words() -> None:
    script = logins(lambda _: refused("Authentication failed: Invalid username or password"))
    with pytest.raises(SaslAuthenticationFailed, match=r"does not accept this login: .*Invalid username") as raised:
        ask(script, properties("PLAIN", "plain.PlainLoginModule"))
    assert PASSWORD not in str(raised.value)


def test_no_mechanism_in_common() -> None:
    """S31; no other one is tried: it might tell the password."""
    script = logins(lambda _: accepted(), mechanisms=("PLAIN", "OAUTHBEARER"))
    with pytest.raises(UnsupportedSaslMechanism, match=r"no logins by SCRAM-SHA-256, only by PLAIN, OAUTHBEARER"):
        ask(script, properties("SCRAM-SHA-256"))


def test_a_listener_without_logins() -> None:
    """S35"""
    script = logins(lambda _: accepted())
    script[SASL_HANDSHAKE] = lambda _: {"error_code": ErrorCode.ILLEGAL_SASL_STATE, "mechanisms": ()}
    with pytest.raises(IllegalSaslState, match=r"has no logins; set security\.protocol"):
        ask(script, properties("SCRAM-SHA-256"))


def test_a_client_without_a_login_is_told_what_it_lacks() -> None:
    """S30: anything but versions and a handshake ends the connection, without an answer."""

    async def scenario(_: SkippingLoop) -> None:
        async with ScriptedBroker(logins(lambda _: accepted())) as broker:
            connection = await open_connection(connector_of({}), broker.address, Limits())
            broker.script[FIND_COORDINATOR] = lambda _: broker.hang_up()
            await connection.request(find("mine"))

    with pytest.raises(NetworkError, match=r"before it served anything.*a login, set security\.protocol"):
        run(scenario)


def test_a_session_is_renewed_before_it_ends_and_only_when_it_is_used() -> None:
    """S36, S37: requests that come meanwhile wait, and are served after the login."""
    lifetime_seconds = 100

    async def scenario(loop: SkippingLoop) -> None:
        server = Logins(lifetime_seconds * 1000)
        async with ScriptedBroker(logins(server.authenticate)) as broker:
            connection = await open_connection(connector_of(properties("SCRAM-SHA-256")), broker.address, Limits())
            loop.skip(lifetime_seconds / 2)
            await connection.request(find("early"))
            assert server.logins == 1
            loop.skip(lifetime_seconds * 3)
            responses = await asyncio.gather(*(connection.request(find(str(number))) for number in range(20)))
            assert [response.coordinators[0].key for response in responses] == [str(number) for number in range(20)]
            assert server.logins == 2
            assert broker.connections == 1
            keys = broker.keys()
            again = keys.index(SASL_HANDSHAKE, 2)
            assert keys[again : again + 3] == [SASL_HANDSHAKE, SASL_AUTHENTICATE, SASL_AUTHENTICATE]
            connection.close()

    run(scenario)


def test_a_login_that_is_refused_the_second_time_ends_the_connection() -> None:
    async def scenario(loop: SkippingLoop) -> Connection:
        server = Logins(1000)
        async with ScriptedBroker(logins(server.authenticate)) as broker:
            connection = await open_connection(connector_of(properties("SCRAM-SHA-256")), broker.address, Limits())
            loop.skip(1)
            server.is_refusing = True
            asked = [connection.request(find(str(number))) for number in range(3)]
            for result in await asyncio.gather(*asked, return_exceptions=True):
                assert isinstance(result, SaslAuthenticationFailed)
            assert not connection.is_usable
            with pytest.raises(KafkaError):
                await connection.request(find("more"))
            return connection

    run(scenario)


class Logins:
    """A broker's side of as many logins as come."""

    def __init__(self, lifetime_ms: int) -> None:
        self.logins = 0
        self.is_refusing = False
        self._lifetime_ms = lifetime_ms
        self._credential = credential_of("SCRAM-SHA-256", PASSWORD)
        self._server: ScramServer | None = None

    def authenticate(self, data: bytes) -> Facts:
        if self.is_refusing:
            return refused("Authentication failed")
        if self._server is None:
            self._server = scram_server("SCRAM-SHA-256", self._credential)
            return accepted(self._server.respond(data))
        server, self._server = self._server, None
        final = server.respond(data)
        self.logins += 1
        return accepted(final, self._lifetime_ms)
