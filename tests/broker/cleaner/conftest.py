from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.broker.cleaner.cleaning import CleaningBroker


@pytest.fixture
def cleaning(tmp_path: Path) -> Iterator[CleaningBroker]:
    broker = CleaningBroker(tmp_path / "data", {})
    yield broker
    broker.close()
