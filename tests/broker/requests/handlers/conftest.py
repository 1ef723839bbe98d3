from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.broker.in_process import InProcessBroker


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[InProcessBroker]:
    opened = InProcessBroker(tmp_path / "data", {})
    yield opened
    opened.close()
