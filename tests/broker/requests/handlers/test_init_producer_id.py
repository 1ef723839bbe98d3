from typing import Any

import pytest

from lamina.errors import ErrorCode
from lamina.log.producer_states import PRODUCER_ID_CEILING
from lamina.records.record import Record, build_batch
from tests.broker.in_process import PRODUCE, PRODUCE_VERSION, InProcessBroker

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


def write_as(broker: InProcessBroker, producer_id: int) -> None:
    batch = build_batch(
        [Record(0, broker.parts.clocks.now_ms(), b"k", b"v")],
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=0,
    )
    topic: dict[str, Any] = {"name": "t", "partition_data": [{"index": 0, "records": bytes(batch)}]}
    response = broker.ask(PRODUCE, PRODUCE_VERSION, acks=-1, topic_data=[topic])
    assert response.responses[0].partition_responses[0].error_code == ErrorCode.NONE


@pytest.mark.parametrize("made_up", [2**63 - 1, 2**63 - 2000, PRODUCER_ID_CEILING, PRODUCER_ID_CEILING - 1])
def test_a_made_up_id_in_a_log_leaves_ids_to_give_and_hides_no_other(
    broker: InProcessBroker, made_up: int, caplog: pytest.LogCaptureFixture
) -> None:
    broker.create("t")
    write_as(broker, 123_456)
    write_as(broker, made_up)
    broker.restart()
    response = broker.ask(API_KEY, 4, producer_id=-1, producer_epoch=-1)
    is_counted = made_up < PRODUCER_ID_CEILING
    assert (response.error_code, response.producer_id) == (0, made_up + 1 if is_counted else 123_457)
    assert (f"no broker gave producer id {made_up}" in caplog.text) is not is_counted


@pytest.mark.parametrize(
    ("transactional_id", "code"), [("orders", ErrorCode.NOT_COORDINATOR), ("", ErrorCode.INVALID_REQUEST)]
)
@pytest.mark.parametrize("version", range(6))
def test_a_transactional_producer_must_have_a_name_and_have_found_its_coordinator(
    broker: InProcessBroker, version: int, transactional_id: str, code: ErrorCode
) -> None:
    response = broker.ask(API_KEY, version, transactional_id=transactional_id, producer_id=-1, producer_epoch=-1)
    assert (response.error_code, response.producer_id, response.producer_epoch) == (code, -1, -1)


@pytest.mark.parametrize(("producer_id", "epoch"), [(5, -1), (-1, 5)])
@pytest.mark.parametrize("transactional_id", [None, "orders"])
def test_an_id_without_an_epoch_is_no_producer(
    broker: InProcessBroker, producer_id: int, epoch: int, transactional_id: str | None
) -> None:
    response = broker.ask(API_KEY, 3, transactional_id=transactional_id, producer_id=producer_id, producer_epoch=epoch)
    assert response.error_code == ErrorCode.INVALID_REQUEST
