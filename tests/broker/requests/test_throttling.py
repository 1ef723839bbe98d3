"""How long a client is told to wait is in every response that has room for it, whoever encodes it."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from lamina.broker.requests import router
from lamina.broker.requests.api_table import APIS
from lamina.broker.requests.request import Request
from lamina.wire.fields import fields_of
from lamina.wire.versions import response_schema
from tests.broker.in_process import InProcessBroker

PRODUCE = 0


@pytest.fixture
def throttled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[InProcessBroker]:
    class Throttled(Request):
        __slots__ = ()

        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            self.throttle_ms = 7

    monkeypatch.setattr(router, "Request", Throttled)
    broker = InProcessBroker(tmp_path, {})
    yield broker
    broker.close()


def test_every_response_tells_how_long_to_wait(throttled: InProcessBroker) -> None:
    told = set()
    for api in APIS:
        for version in api.versions:
            if "throttle_time" not in {field.name for field in fields_of(response_schema(api.key, version))}:
                continue
            response = throttled.ask(api.key, version, **({"acks": 1} if api.key == PRODUCE else {}))
            assert response.throttle_time == timedelta(milliseconds=7), (api.name, version)
            told.add(api.key)
    assert {PRODUCE, 1, 3} <= told
