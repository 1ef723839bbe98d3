"""UnregisterBroker on a broker that is the whole cluster."""

import pytest

from lamina.errors import ErrorCode
from tests.broker.in_process import InProcessBroker

UNREGISTER_BROKER = 64


@pytest.mark.parametrize(
    ("broker_id", "code", "message"),
    [
        (1, ErrorCode.INVALID_REQUEST, "broker 1 is the whole cluster"),
        (2, ErrorCode.BROKER_ID_NOT_REGISTERED, "there is no broker 2"),
        (-1, ErrorCode.BROKER_ID_NOT_REGISTERED, "there is no broker -1"),
    ],
)
def test_a_broker_alone_stays(broker: InProcessBroker, broker_id: int, code: ErrorCode, message: str) -> None:
    answer = broker.ask(UNREGISTER_BROKER, 0, broker_id=broker_id)
    assert (answer.error_code, answer.error_message) == (code, message)
