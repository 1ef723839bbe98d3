from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.broker.in_process import InProcessBroker
from tests.broker.requests.authorization.world import ROOT, SETTINGS, World


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    broker = InProcessBroker(tmp_path / "data", SETTINGS)
    broker.principal = ROOT
    broker.create("t", 2)
    broker.create("other")
    for key_type in (0, 1):
        broker.ask(10, 4, key_type=key_type, coordinator_keys=["x"])
    broker.settle()
    yield World(broker)
    broker.close()
