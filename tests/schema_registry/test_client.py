"""A schema registry is asked over real HTTP, a good one and bad ones."""

import socket
import ssl
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from lamina.clocks import Clocks
from lamina.schema_registry.client import MAX_SCHEMA_BYTES, RegistryClient
from lamina.schema_registry.errors import NotDecodable, RegistryError
from lamina.schema_registry.location import Location, parse_location
from tests.schema_registry.registry import Registry, pauses, serving

CERTIFICATE = Path(__file__).parent / "loopback.pem"
"""A key and a certificate for 127.0.0.1, signed by itself, for a hundred years."""


@pytest.fixture
def registry() -> Iterator[Registry]:
    with serving() as registry:
        yield registry


def client_of(registry: Registry, **options: str) -> RegistryClient:
    given = {name.replace("_", "."): value for name, value in options.items()}
    return RegistryClient(parse_location(registry.url, given), pause=lambda _: None)


def test_a_schema_by_its_id_and_the_latest_of_a_subject(registry: Registry) -> None:
    registry.add("int", subject="a b/c")
    registry.add({"type": "object"}, "JSON", subject="a b/c")
    assert client_of(registry).by_id(1).text == '"int"'
    assert client_of(registry).latest("a b/c").kind == "JSON"
    assert registry.asked[-1] == "/subjects/a%20b%2Fc/versions/latest"


def test_schemas_that_it_refers_to_come_before_those_that_need_them(registry: Registry) -> None:
    registry.add("int", subject="leaf")
    leaf = {"name": "leaf", "subject": "leaf", "version": 1}
    registry.add("long", subject="middle", references=[leaf])
    registry.add("string", subject="top", references=[{"name": "m", "subject": "middle", "version": 1}, leaf])
    assert client_of(registry).latest("top").references == ('"int"', '"long"')
    registry.add("string", subject="self", references=[{"name": "s", "subject": "self", "version": 1}])
    assert client_of(registry).latest("self").references == ('"string"',)
    registry.add("string", subject="lost", references=[{"name": "s", "subject": "nowhere", "version": 4}])
    with pytest.raises(NotDecodable, match="refers to version 4 of subject nowhere, which is not there"):
        client_of(registry).by_id(5)


def test_what_is_not_there(registry: Registry) -> None:
    with pytest.raises(NotDecodable, match=f"the schema registry at {registry.url} has no schema 7"):
        client_of(registry).by_id(7)
    with pytest.raises(RegistryError, match="has no subject 'orders'"):
        client_of(registry).latest("orders")


def test_logins(registry: Registry) -> None:
    registry.add("int")
    registry.login = "Basic YW5uOnNlY3JldDp4"
    assert client_of(registry, basic_auth_user_info="ann:secret:x").by_id(1).text == '"int"'
    registry.login = "Bearer abc"
    assert client_of(registry, bearer_auth_token="abc").by_id(1).text == '"int"'
    with pytest.raises(RegistryError, match=r"refuses this login \(HTTP 401\); check basic\.auth\.user\.info"):
        client_of(registry).by_id(1)


def test_it_tries_again_and_waits_longer_each_time(registry: Registry) -> None:
    registry.add("int")
    registry.replies = [(500, {}, b"oh"), (429, {}, b""), (503, {}, b"")]
    noted, pause = pauses()
    assert RegistryClient(Location(registry.url), pause).by_id(1).text == '"int"'
    assert noted == [0.25, 0.5, 1.0]


@pytest.mark.parametrize(
    ("reply", "sentence"),
    [
        ((500, {}, b"oh"), r"does not answer \(HTTP 500, asked 4 times\)"),
        ((200, {}, b"<html>"), r"is not a schema registry \(HTTP 200 without JSON\)"),
        ((200, {}, b"[" * 100_000), r"is not a schema registry \(HTTP 200 without JSON\)"),
        ((200, {}, b'{"schema": 5}'), r"is not a schema registry \(HTTP 200 without a schema\)"),
        ((200, {}, b"\xff\xfe\xfd"), r"is not a schema registry"),
        ((404, {}, b"<html>"), r"is not a schema registry \(HTTP 404 without JSON\); check the URL"),
        ((404, {}, b'{"error_code":404}'), r"is not a schema registry \(HTTP 404 without a schema\)"),
        ((302, {"Location": "http://elsewhere/"}, b""), r"redirects to http://elsewhere/; give that URL"),
        ((200, {}, b'{"schema":"x","references":[5]}'), r"is not a schema registry \(a reference without subject"),
        ((200, {"Content-Length": "50"}, b'{"schema":'), r"does not answer|is not a schema registry"),
    ],
)
def test_what_is_no_registry_or_a_broken_one(
    registry: Registry, reply: tuple[int, dict[str, str], bytes], sentence: str
) -> None:
    registry.always = reply
    with pytest.raises(RegistryError, match=sentence) as raised:
        client_of(registry, timeout="1").by_id(1)
    assert registry.url in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_redirect_does_not_take_the_login_along(registry: Registry) -> None:
    with serving() as other:
        registry.always = (307, {"Location": f"{other.url}/schemas/ids/1"}, b"")
        with pytest.raises(RegistryError, match="redirects"):
            client_of(registry, bearer_auth_token="abc").by_id(1)
        assert other.asked == []


def test_a_schema_that_is_too_large_is_not_read_to_its_end(registry: Registry) -> None:
    registry.always = (200, {}, b" " * (MAX_SCHEMA_BYTES + 1))
    with pytest.raises(NotDecodable, match="schema 3 is larger than 16 MiB"):
        client_of(registry).by_id(3)
    with pytest.raises(RegistryError, match="subject s: its schema is larger"):
        client_of(registry).latest("s")


def test_tls_by_an_authority_that_is_named() -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    with serving(context) as registry:
        registry.add("int")
        assert client_of(registry, ssl_ca_location=str(CERTIFICATE)).by_id(1).text == '"int"'
        with pytest.raises(RegistryError, match=r"does not answer \(.*certificate verify failed"):
            client_of(registry, max_retries="0").by_id(1)


def test_nobody_answers() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    client = RegistryClient(parse_location(f"http://127.0.0.1:{port}", {"max.retries": "0"}))
    with pytest.raises(
        RegistryError, match=rf"registry at http://127.0.0.1:{port} does not answer \(.*refused\); check"
    ):
        client.by_id(1)


def test_one_that_says_nothing_is_not_waited_for() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        location = parse_location(f"http://127.0.0.1:{silent.getsockname()[1]}", {"timeout": "0.1", "max.retries": "1"})
        noted, pause = pauses()
        with pytest.raises(RegistryError, match=r"does not answer \(timed out, asked 2 times\)"):
            RegistryClient(location, pause).by_id(1)
    assert noted == [0.25]


def test_one_that_drips_is_not_waited_for(registry: Registry) -> None:
    ticks = count(step=3_000_000_000)
    clocks = Clocks(lambda: 0, lambda: next(ticks))
    registry.always = (200, {}, b" " * (1 << 20))
    with pytest.raises(RegistryError, match="timed out"):
        RegistryClient(parse_location(registry.url, {"max.retries": "0"}), clocks=clocks).by_id(1)
