"""The requests of ``make bench-turns``: every API that takes a list is asked, and each with what a broker can read."""

from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from bench.long_requests import Facts, LongRequests
from lamina.broker.requests.api_table import APIS
from lamina.wire.fields import Entity, fields_of
from lamina.wire.versions import request_schema
from tests.broker.in_process import InProcessBroker

ENTRIES = 5
OFFERED = {api.key: api for api in APIS}


class ToBroker:
    def __init__(self, broker: InProcessBroker) -> None:
        self._broker = broker
        self.asked: set[int] = set()

    def ask(self, api_key: int, facts: Facts, version: int | None = None) -> Any:
        answer = self._broker.ask(api_key, OFFERED[api_key].versions[-1] if version is None else version, **facts)
        # Whoever asks until there is a coordinator waits for nothing else.
        self._broker.settle()
        return answer

    def send(self, api_key: int, asked: Iterable[Facts], version: int | None = None) -> None:
        for facts in asked:
            self.ask(api_key, facts, version)
        self.asked.add(api_key)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[InProcessBroker]:
    broker = InProcessBroker(
        tmp_path,
        {
            "offsets.topic.num.partitions": "1",
            "transaction.state.log.num.partitions": "1",
            "group.initial.rebalance.delay.ms": "0",
        },
    )
    yield broker
    broker.close()


@pytest.mark.parametrize("is_one_topic", [True, False])
def test_every_api_with_a_list_is_asked(broker: InProcessBroker, is_one_topic: bool) -> None:
    client = ToBroker(broker)
    requests = LongRequests(client, ENTRIES, is_one_topic=is_one_topic)
    names = []
    for asked in chain(requests.rows(), requests.rows_without_topics()):
        client.send(asked.api_key, [asked.facts], asked.version)
        names.append(asked.name)
    assert len(set(names)) == len(names)
    assert client.asked >= {api.key for api in APIS if has_list(request_schema(api.key, api.versions[-1]))}


def has_list(schema: type[Entity]) -> bool:
    return any(field.is_array or (field.entity is not None and has_list(field.entity)) for field in fields_of(schema))
