"""Every test here needs a real Kafka; where that cannot run, one sentence says why."""

from __future__ import annotations

import pytest

from tests.peers.kafka import KafkaMissingError, jars


@pytest.fixture(scope="session", autouse=True)
def kafka_jars() -> str:
    try:
        return jars()
    except KafkaMissingError as missing:
        pytest.exit(str(missing), returncode=1)
