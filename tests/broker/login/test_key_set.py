"""When the keys of tokens are fetched, and from where (S46, S82)."""

import asyncio
import itertools
import logging
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from lamina.broker.login.key_set import KeySet, fetch_keys
from lamina.broker.login.mechanisms import TokenKeys
from lamina.broker.threads import Threads
from lamina.clocks import SYSTEM_CLOCKS, Clocks
from lamina.security.token_claims import TokenRules
from lamina.settings.oauthbearer import KeySource, OAuthBearer
from tests.security.tokens import Issuer, key_set

ISSUER, OTHER = Issuer(), Issuer("other")
SOURCE = KeySource("file:///keys", refresh_ms=3_600_000, retry_ms=1, retry_max_ms=4)


class Address:
    """What is at an address, and how often somebody looked."""

    def __init__(self, *answers: bytes | Exception) -> None:
        self.answers = list(answers)
        self.count = 0
        self.keys: KeySet | None = None
        """Whose keys are noted at each look."""
        self.noted: list[list[str | None]] = []

    def fetch(self, url: str) -> bytes:
        answer = self.answers[min(self.count, len(self.answers) - 1)]
        self.count += 1
        if self.keys is not None:
            self.noted.append(ids(self.keys))
        if isinstance(answer, Exception):
            raise answer
        return answer


def run(
    address: Address, story: Callable[[KeySet], Any], source: KeySource = SOURCE, clocks: Clocks | None = None
) -> None:
    async def live() -> None:
        loop = asyncio.get_running_loop()
        threads = Threads(loop, SYSTEM_CLOCKS, 1, new_executor=ThreadPoolExecutor)
        keys = KeySet(source, threads, clocks or SYSTEM_CLOCKS, loop, address.fetch)
        address.keys = keys
        keys.start()
        try:
            await asyncio.wait_for(story(keys), 30)
        finally:
            await keys.stop()
            threads.close()

    asyncio.run(live())


async def until(holds: Callable[[], bool]) -> None:
    while not holds():
        await asyncio.sleep(0.001)


def ids(keys: KeySet) -> list[str | None]:
    return [key.id for key in keys.keys]


def test_keys_are_there_soon_after_the_start() -> None:
    async def story(keys: KeySet) -> None:
        await until(lambda: ids(keys) == ["first"])

    run(Address(key_set(ISSUER)), story)


def test_what_fails_is_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    address = Address(OSError("no route"), ValueError("secret in a text"), b"{}", key_set(ISSUER))

    async def story(keys: KeySet) -> None:
        await until(lambda: ids(keys) == ["first"])

    with caplog.at_level(logging.WARNING):
        run(address, story)
    assert address.count == 4
    assert [record.getMessage() for record in caplog.records] == [
        "the keys of OAUTHBEARER could not be read from /keys: no route",
        "the keys of OAUTHBEARER could not be read from /keys: ValueError",
        "the keys of OAUTHBEARER could not be read from /keys: not a set of JSON web keys",
    ]


def test_keys_are_fetched_again_in_time_and_the_last_ones_stay_where_that_fails() -> None:
    address = Address(key_set(ISSUER), OSError("away"), OSError("away"), key_set(OTHER))

    async def story(keys: KeySet) -> None:
        await until(lambda: ids(keys) == ["other"])

    run(address, story, KeySource("file:///keys", refresh_ms=1, retry_ms=1, retry_max_ms=4))
    assert address.noted[:4] == [[], ["first"], ["first"], ["first"]]


def test_a_fault_of_ours_does_not_end_the_fetching_nor_the_stop(caplog: pytest.LogCaptureFixture) -> None:
    async def story(keys: KeySet) -> None:
        await until(lambda: ids(keys) == ["first"])

    run(Address(TypeError("unhashable"), key_set(ISSUER)), story)
    assert "the keys of OAUTHBEARER could not be read from /keys: TypeError" in caplog.text


def test_an_unknown_key_has_them_fetched_once_a_minute() -> None:
    now_ns = [10**12]
    address = Address(key_set(ISSUER), key_set(OTHER))

    async def story(keys: KeySet) -> None:
        await until(lambda: ids(keys) == ["first"])
        keys.want_newer()
        await until(lambda: ids(keys) == ["other"])
        for _ in range(100):
            keys.want_newer()
            await asyncio.sleep(0)
        now_ns[0] += 60_000_000_000
        keys.want_newer()
        await until(lambda: address.count == 3)

    run(address, story, clocks=Clocks(lambda: 0, lambda: now_ns[0]))
    assert address.count == 3


@contextmanager
def web(handle: Callable[[BaseHTTPRequestHandler], None]) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            handle(self)

        def log_message(self, *_: Any) -> None:
            """Nothing."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/keys"
        finally:
            server.shutdown()
            thread.join()


def answer(data: bytes, status: int = 200, **headers: str) -> Callable[[BaseHTTPRequestHandler], None]:
    def handle(request: BaseHTTPRequestHandler) -> None:
        request.send_response(status)
        for name, value in headers.items():
            request.send_header(name, value)
        request.end_headers()
        request.wfile.write(data)

    return handle


def test_keys_come_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "a key set.json"
    file.write_bytes(b"keys")
    assert fetch_keys(file.as_uri(), SYSTEM_CLOCKS.monotonic_ns) == b"keys"


def test_keys_come_over_http() -> None:
    with web(answer(b"keys")) as url:
        assert fetch_keys(url, SYSTEM_CLOCKS.monotonic_ns) == b"keys"


@pytest.mark.parametrize(
    "handle",
    [
        answer(b"", 404),
        answer(b"", 500),
        answer(b"", 302, Location="file:///etc/hostname"),
        answer(b"", 302, Location="http://127.0.0.1:1/elsewhere"),
        answer(b"x" * (1024 * 1024 + 1)),
        lambda request: request.wfile.write(b"nonsense\r\n\r\n"),
    ],
)
def test_what_is_no_answer_gives_no_keys(handle: Callable[[BaseHTTPRequestHandler], None]) -> None:
    with web(handle) as url, pytest.raises((OSError, ValueError)):
        fetch_keys(url, SYSTEM_CLOCKS.monotonic_ns)


def test_an_answer_that_drips_is_given_up() -> None:
    """Each byte comes in time; all of them never would."""
    shown_ns = itertools.count(0, 11_000_000_000)

    def drip(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.end_headers()
        for _ in range(100):
            request.wfile.write(b"x")
            request.wfile.flush()

    with web(drip) as url, pytest.raises(OSError, match="took longer than 10 s"):
        fetch_keys(url, lambda: next(shown_ns))


def test_no_issuer_waits_for_another(tmp_path: Path) -> None:
    loop = asyncio.new_event_loop()
    threads = Threads(loop, SYSTEM_CLOCKS, new_executor=ThreadPoolExecutor)
    keys = TokenKeys(threads, SYSTEM_CLOCKS, loop)
    for name in ("one", "other"):
        keys.validator(OAuthBearer(TokenRules(), replace(SOURCE, url=(tmp_path / name).as_uri())))
    assert len({id(one._threads) for one in keys._sets.values()}) == 2
    threads.close()
    loop.close()


def test_what_is_too_large_is_not_read(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_bytes(bytes(1024 * 1024 + 1))
    with pytest.raises(ValueError, match="more than 1048576 bytes"):
        fetch_keys(file.as_uri(), SYSTEM_CLOCKS.monotonic_ns)
