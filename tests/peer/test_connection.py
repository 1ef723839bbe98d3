"""One connection: order, bounds, time limits, and its end."""

import asyncio
import socket
from typing import Any

import pytest

from lamina.errors import KafkaError, MalformedResponse, NetworkError, RequestTimedOut, UnsupportedVersion
from lamina.peer import connector
from lamina.peer.addresses import Address
from lamina.peer.call import MessageCall
from lamina.peer.connection import Connection
from lamina.peer.connector import PlainConnector, is_refused, open_connection
from lamina.peer.limits import Limits
from tests.client.servers import a_server_that_says
from tests.peer.loops import SkippingLoop, run
from tests.peer.responses import response_frame
from tests.peer.scripted import API_VERSIONS, FIND_COORDINATOR, OFFERED, Facts, ScriptedBroker, versions_facts

LIMITS = Limits()
UNSUPPORTED_VERSION = 35


def find(key: str, wait_ms: int = 0) -> MessageCall:
    return MessageCall(FIND_COORDINATOR, range(4, 7), wait_ms=wait_ms, key_type=0, coordinator_keys=[key])


def found(request: Any) -> Facts:
    return {"coordinators": [{"key": key} for key in request.coordinator_keys]}


async def connect(address: Address, limits: Limits = LIMITS) -> Connection:
    return await open_connection(PlainConnector("test"), address, limits)


def test_pipelined_requests_each_get_their_own_response() -> None:
    async def scenario(_: SkippingLoop) -> list[str]:
        async with ScriptedBroker({FIND_COORDINATOR: found}) as broker:
            connection = await connect(broker.address)
            responses = await asyncio.gather(*(connection.request(find(f"group-{number}")) for number in range(20)))
            connection.close()
            return [response.coordinators[0].key for response in responses]

    assert run(scenario) == [f"group-{number}" for number in range(20)]


def test_no_more_than_the_bound_is_in_flight() -> None:
    async def scenario(_: SkippingLoop) -> None:
        transport = Transport()
        connection = Connection(Address("nowhere", 1), "test", Limits(max_in_flight=2))
        connection.connection_made(transport)
        asking = [asyncio.create_task(connection.send(find(str(number)), 4)) for number in range(5)]
        for answered in range(5):
            await turns()
            assert transport.written == min(answered + 2, 5)
            receive(connection, response_frame(FIND_COORDINATOR, 4, answered, coordinators=[{"key": str(answered)}]))
        responses = await asyncio.gather(*asking)
        assert [response.coordinators[0].key for response in responses] == ["0", "1", "2", "3", "4"]

    run(scenario)


def test_whoever_gives_up_keeps_the_place_of_its_response_in_the_order() -> None:
    async def scenario(_: SkippingLoop) -> None:
        transport = Transport()
        connection = Connection(Address("nowhere", 1), "test", Limits(max_in_flight=2))
        connection.connection_made(transport)
        asking = [asyncio.create_task(connection.send(find(str(number)), 4)) for number in range(3)]
        await turns()
        asking[0].cancel()
        await turns()
        assert transport.written == 2, "what was sent is in flight until it is answered"
        for number in range(3):
            receive(connection, response_frame(FIND_COORDINATOR, 4, number, coordinators=[{"key": str(number)}]))
            await turns()
        assert (await asking[1]).coordinators[0].key == "1"
        assert (await asking[2]).coordinators[0].key == "2"

    run(scenario)


def found_frame(number: int) -> bytes:
    return response_frame(FIND_COORDINATOR, 4, number, coordinators=[{"key": str(number)}])


def test_a_follow_up_is_asked_in_the_turn_in_which_the_response_comes() -> None:
    """Its caller sees the last response, and the place in flight is kept until then."""

    async def scenario(_: SkippingLoop) -> None:
        transport = Transport()
        connection = Connection(Address("nowhere", 1), "test", Limits(max_in_flight=1))
        connection.connection_made(transport)
        seen: list[str] = []

        def follow_up(response: Any) -> MessageCall | None:
            seen.append(response.coordinators[0].key)
            return find("again") if len(seen) < 3 else None

        asking = asyncio.create_task(connection.send(find("first"), 4, follow_up))
        waiting = asyncio.create_task(connection.send(find("other"), 4))
        await turns()
        for number in range(3):
            receive(connection, found_frame(number))
            assert transport.written == min(number + 2, 3)
        assert (await asking).coordinators[0].key == "2"
        assert seen == ["0", "1", "2"]
        await turns()
        assert transport.written == 4
        receive(connection, found_frame(3))
        assert (await waiting).coordinators[0].key == "3"

    run(scenario)


def test_what_a_follow_up_raises_is_its_callers_and_the_connection_goes_on() -> None:
    async def scenario(_: SkippingLoop) -> None:
        connection = Connection(Address("nowhere", 1), "test", Limits(max_in_flight=1))
        connection.connection_made(Transport())

        def follow_up(_: Any) -> None:
            raise NetworkError("no such luck")

        asking = asyncio.create_task(connection.send(find("0"), 4, follow_up))
        await turns()
        receive(connection, found_frame(0))
        with pytest.raises(NetworkError, match="no such luck"):
            await asking
        asking = asyncio.create_task(connection.send(find("1"), 4))
        await turns()
        receive(connection, found_frame(1))
        assert (await asking).coordinators[0].key == "1"

    run(scenario)


@pytest.mark.parametrize("ends", ["closed", "given up", "logged out"])
def test_nothing_follows_on_a_connection_that_ended_nor_for_nobody_nor_without_a_login(ends: str) -> None:
    class LoggedOut:
        is_current = True

        async def renew(self) -> None:
            raise AssertionError

    async def scenario(_: SkippingLoop) -> None:
        transport, session, seen = Transport(), LoggedOut(), []
        connection = Connection(Address("nowhere", 1), "test", LIMITS)
        connection.connection_made(transport)
        connection.begin_session(session)

        def follow_up(response: Any) -> MessageCall:
            seen.append(response)
            connection.close()
            return find("again")

        asking = asyncio.create_task(connection.send(find("0"), 4, follow_up))
        await turns()
        if ends == "given up":
            asking.cancel()
            await turns()
        session.is_current = ends != "logged out"
        receive(connection, found_frame(0))
        assert transport.written == 1
        assert len(seen) == (ends == "closed")
        if ends == "logged out":
            assert (await asking).coordinators[0].key == "0"
        else:
            with pytest.raises(NetworkError if ends == "closed" else asyncio.CancelledError):
                await asking

    run(scenario)


def test_closing_fails_what_is_pending_and_what_waits_with_one_clear_error() -> None:
    async def scenario(_: SkippingLoop) -> list[Any]:
        async with ScriptedBroker({FIND_COORDINATOR: lambda _: None}) as broker:
            connection = await connect(broker.address, Limits(max_in_flight=2))
            asking = [asyncio.create_task(connection.request(find(str(number)))) for number in range(4)]
            await broker.until_asked(1)
            connection.close()
            results = await asyncio.gather(*asking, return_exceptions=True)
            late = await asyncio.gather(connection.request(find("late")), return_exceptions=True)
            assert not connection.is_usable
            return [*results, *late, broker.address]

    *errors, address = run(scenario)
    assert [type(error) for error in errors] == [NetworkError] * 5
    assert {str(error) for error in errors} == {f"the connection to {address} was closed"}
    assert len({id(error) for error in errors}) == 5


def test_a_broker_that_hangs_up_fails_what_is_pending() -> None:
    async def scenario(_: SkippingLoop) -> None:
        async with ScriptedBroker({FIND_COORDINATOR: lambda _: None}) as broker:
            connection = await connect(broker.address)
            asking = asyncio.create_task(connection.request(find("group")))
            await broker.until_asked(1)
            await broker.die()
            await asking

    with pytest.raises(NetworkError, match="ended the connection"):
        run(scenario)


def test_a_silent_broker_is_given_up_after_its_time_and_not_before() -> None:
    async def scenario(loop: SkippingLoop) -> None:
        async with ScriptedBroker({FIND_COORDINATOR: lambda _: None}) as broker:
            connection = await connect(broker.address, Limits(request_timeout_ms=30_000))
            patient = asyncio.create_task(connection.request(find("patient", wait_ms=60_000)))
            await broker.until_asked(1)
            hasty = asyncio.create_task(connection.request(find("hasty")))
            await turns()
            loop.skip(29)
            await turns()
            assert not hasty.done()
            loop.skip(2)
            for asking in (hasty, patient):
                with pytest.raises(RequestTimedOut, match="did not answer within its time"):
                    await asking

    run(scenario)


def test_a_broker_may_wait_as_long_as_the_call_allows() -> None:
    async def scenario(loop: SkippingLoop) -> None:
        async with ScriptedBroker({FIND_COORDINATOR: lambda _: None}) as broker:
            connection = await connect(broker.address, Limits(request_timeout_ms=30_000))
            patient = asyncio.create_task(connection.request(find("patient", wait_ms=60_000)))
            await broker.until_asked(1)
            loop.skip(89)
            await turns()
            assert not patient.done()
            loop.skip(2)
            with pytest.raises(RequestTimedOut):
                await patient

    run(scenario)


def test_a_response_in_time_ends_its_time_limit() -> None:
    async def scenario(loop: SkippingLoop) -> None:
        async with ScriptedBroker({FIND_COORDINATOR: found}) as broker:
            connection = await connect(broker.address)
            for _ in range(3):
                await connection.request(find("group"))
                loop.skip(60)
                await turns()
            assert connection.is_usable
            connection.close()

    run(scenario)


def test_versions_are_asked_again_as_an_old_broker_says() -> None:
    asked = []

    def answer(request: Any) -> Facts:
        asked.append(request.__version__)
        if request.__version__ > 2:
            return {"version": 0, "error_code": UNSUPPORTED_VERSION, "api_keys": versions_facts({API_VERSIONS: 2})}
        return {"api_keys": versions_facts(OFFERED)}

    async def scenario(_: SkippingLoop) -> Any:
        async with ScriptedBroker({API_VERSIONS: answer, FIND_COORDINATOR: found}) as broker:
            connection = await connect(broker.address)
            response = await connection.request(find("group"))
            connection.close()
            return response

    assert run(scenario).coordinators[0].key == "group"
    assert asked == [4, 2]


def test_a_broker_that_refuses_every_version_is_one_sentence() -> None:
    async def scenario(_: SkippingLoop) -> None:
        refusal = {"version": 0, "error_code": UNSUPPORTED_VERSION}
        async with ScriptedBroker({API_VERSIONS: lambda _: dict(refusal)}) as broker:
            await connect(broker.address)

    with pytest.raises(UnsupportedVersion, match=r"does not tell its versions \(error 35\)"):
        run(scenario)


@pytest.mark.parametrize(
    ("said", "error", "reason"),
    [
        (b"", NetworkError, "ended the connection"),
        (b"\x00\x00\x00\x09abc", NetworkError, "ended the connection"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", MalformedResponse, "does not speak Kafka's protocol"),
        (b"\x15\x03\x01\x00\x02\x02\x46", MalformedResponse, "it speaks TLS.*set security.protocol"),
        (b"\xff\xff\xff\xff", MalformedResponse, "does not speak Kafka's protocol"),
        (b"\x00\x00\x00\x05\x00\x00\x00\x00\x00", MalformedResponse, "ApiVersionsResponse"),
        (b"\x00\x00\x00\x06\x00\x00\x00\x05\x00\x00", MalformedResponse, "answered request 5 where 0 was due"),
    ],
    ids=["hangs up", "half a frame", "http", "tls alert", "negative size", "too short", "another request"],
)
def test_what_is_no_broker_is_one_sentence_with_its_address(said: bytes, error: type[KafkaError], reason: str) -> None:
    with a_server_that_says(said) as server:
        host, _, port = server.partition(":")
        with pytest.raises(error, match=rf"^{server}.*{reason}"):
            run(lambda _: connect(Address(host, int(port))))


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_port_where_nobody_listens(host: str) -> None:
    with pytest.raises(NetworkError, match=rf"^{host}:1 cannot be reached \(Connection refused\)$"):
        run(lambda _: connect(Address(host, 1)))


@pytest.mark.parametrize("is_first", [True, False])
def test_a_name_refuses_only_where_all_of_its_addresses_do(monkeypatch: pytest.MonkeyPatch, *, is_first: bool) -> None:
    """One that cannot be reached may be that of a live broker."""
    refused, unreachable = (
        (socket.AF_INET, socket.SOCK_STREAM, 0, "", (host, 1)) for host in ("127.0.0.1", "255.255.255.255")
    )

    async def resolved(_: Address) -> list[Any]:
        return [refused, unreachable] if is_first else [unreachable, refused]

    async def look(_: SkippingLoop) -> bool:
        return await is_refused(PlainConnector("test"), Address("two-addresses", 1), LIMITS)

    monkeypatch.setattr(connector, "_resolved", resolved)
    assert not run(look)


def test_a_port_where_nobody_listens_is_refused_and_one_that_answers_is_not() -> None:
    async def look(_: SkippingLoop) -> tuple[bool, bool]:
        async with ScriptedBroker() as broker:
            looked = [
                await is_refused(PlainConnector("test"), address, LIMITS)
                for address in (Address("127.0.0.1", 1), broker.address)
            ]
        return looked[0], looked[1]

    assert run(look) == (True, False)


@pytest.mark.parametrize("host", ["nowhere.invalid", "a" * 64 + ".invalid", "a..b", "a\0b", "\ud800"])
def test_a_name_that_cannot_be_resolved(host: str) -> None:
    with pytest.raises(NetworkError, match="cannot be reached"):
        run(lambda _: connect(Address(host, 9092)))


@pytest.mark.parametrize("port", [-1, 0, 2**16, 2**31 - 1])
def test_a_port_that_cannot_be(port: int) -> None:
    with pytest.raises(NetworkError, match="cannot be reached"):
        run(lambda _: connect(Address("127.0.0.1", port)))


def test_a_port_that_takes_connections_and_says_nothing() -> None:
    async def scenario(loop: SkippingLoop) -> None:
        async with ScriptedBroker({API_VERSIONS: lambda _: None}) as broker:
            connecting = asyncio.create_task(connect(broker.address, Limits(connect_timeout_ms=10_000)))
            await broker.until_asked(1)
            loop.skip(9)
            await turns()
            assert not connecting.done()
            loop.skip(2)
            await connecting

    with pytest.raises(NetworkError, match="did not answer within 10000 ms"):
        run(scenario)


class Transport(asyncio.Transport):
    """Counts frames."""

    def __init__(self) -> None:
        super().__init__()
        self.written = 0

    def write(self, data: Any) -> None:
        self.written += 1

    def abort(self) -> None:
        pass


def receive(connection: Connection, data: bytes) -> None:
    connection.get_buffer(-1)[: len(data)] = data
    connection.buffer_updated(len(data))


async def turns() -> None:
    """Let everything run that can run without waiting."""
    for _ in range(10):
        await asyncio.sleep(0)
