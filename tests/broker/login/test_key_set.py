"""When the keys of tokens are fetched (S46)."""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from lamina.broker.login.key_set import KeySet
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

    def __init__(self, *answers: "bytes | Exception | Stuck") -> None:
        self.answers = list(answers)
        self.count = 0
        self.keys: KeySet | None = None
        """Whose keys are noted at each look."""
        self.noted: list[list[str | None]] = []

    def new_fetch(self, url: str) -> "Look":
        return Look(self)

    def next_answer(self) -> "bytes | Exception | Stuck":
        answer = self.answers[min(self.count, len(self.answers) - 1)]
        self.count += 1
        if self.keys is not None:
            self.noted.append(ids(self.keys))
        return answer


class Stuck:
    """An answer that never comes."""


class Look:
    def __init__(self, address: Address) -> None:
        self._address = address
        self._given_up = Event()

    def read(self) -> bytes:
        answer = self._address.next_answer()
        if isinstance(answer, Stuck):
            self._given_up.wait(30)
            raise TimeoutError("given up")
        if isinstance(answer, Exception):
            raise answer
        return answer

    def give_up(self) -> None:
        self._given_up.set()


def run(
    address: Address, story: Callable[[KeySet], Any], source: KeySource = SOURCE, clocks: Clocks | None = None
) -> None:
    async def live() -> None:
        loop = asyncio.get_running_loop()
        threads = Threads(loop, SYSTEM_CLOCKS, 1, new_executor=ThreadPoolExecutor)
        keys = KeySet(source, threads, clocks or SYSTEM_CLOCKS, loop, address.new_fetch)
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


def test_a_fetch_is_given_up_in_time(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr("lamina.broker.login.key_set._FETCH_SECONDS", 0.01)
    address = Address(Stuck(), key_set(ISSUER))

    async def story(keys: KeySet) -> None:
        await until(lambda: ids(keys) == ["first"])

    with caplog.at_level(logging.WARNING):
        run(address, story)
    assert caplog.messages == ["the keys of OAUTHBEARER could not be read from /keys: given up"]


def test_a_stop_waits_for_no_fetch() -> None:
    address = Address(Stuck())

    async def story(keys: KeySet) -> None:
        await until(lambda: address.count == 1)

    run(address, story)


def test_no_issuer_waits_for_another(tmp_path: Path) -> None:
    loop = asyncio.new_event_loop()
    threads = Threads(loop, SYSTEM_CLOCKS, new_executor=ThreadPoolExecutor)
    keys = TokenKeys(threads, SYSTEM_CLOCKS, loop)
    for name in ("one", "other"):
        keys.validator(OAuthBearer(TokenRules(), replace(SOURCE, url=(tmp_path / name).as_uri())))
    assert len({id(one._threads) for one in keys._sets.values()}) == 2
    threads.close()
    loop.close()
