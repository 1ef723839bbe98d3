import pytest

from lamina.errors import ErrorCode
from tests.broker.in_process import InProcessBroker

API_KEY = 22


@pytest.mark.parametrize("version", range(6))
def test_every_version_gives_an_id_at_epoch_0(broker: InProcessBroker, version: int) -> None:
    response = broker.ask(API_KEY, version, producer_id=-1, producer_epoch=-1)
    assert (response.error_code, response.producer_epoch) == (0, 0)
    assert response.producer_id >= 0


def test_no_id_is_given_twice_not_even_after_a_restart_or_to_one_that_has_an_id(broker: InProcessBroker) -> None:
    given = [broker.ask(API_KEY, 4, producer_id=-1, producer_epoch=-1).producer_id for _ in range(3)]
    broker.restart()
    given += [broker.ask(API_KEY, 4, producer_id=given[0], producer_epoch=0).producer_id for _ in range(3)]
    assert len(set(given)) == 6


@pytest.mark.parametrize(
    ("transactional_id", "code"), [("orders", ErrorCode.UNSUPPORTED_VERSION), ("", ErrorCode.INVALID_REQUEST)]
)
def test_a_transactional_producer_is_turned_away_for_good(
    broker: InProcessBroker, transactional_id: str, code: ErrorCode
) -> None:
    for version in range(6):
        response = broker.ask(API_KEY, version, transactional_id=transactional_id)
        assert (response.error_code, response.producer_id, response.producer_epoch) == (code, -1, -1)
