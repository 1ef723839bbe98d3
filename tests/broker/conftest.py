"""What tests of the broker are given."""

from collections.abc import Iterator

import pytest

from tests.broker.process import BrokerProcess
from tests.broker.raw import RawClient


@pytest.fixture
def raw(broker: BrokerProcess) -> Iterator[RawClient]:
    with RawClient(broker) as client:
        yield client
