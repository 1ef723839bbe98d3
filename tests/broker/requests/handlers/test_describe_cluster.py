import pytest

from lamina.errors import ErrorCode
from tests.broker.in_process import InProcessBroker

API_KEY = 60


@pytest.mark.parametrize("version", range(3))
def test_every_version_tells_the_cluster_its_controller_and_its_brokers(broker: InProcessBroker, version: int) -> None:
    response = broker.ask(API_KEY, version, endpoint_type=1)
    assert (response.error_code, response.error_message) == (0, None)
    assert response.cluster_id == broker.parts.metadata.image.cluster_id
    assert len(response.cluster_id) == 22
    assert response.controller_id == 1
    [member] = response.brokers
    assert (member.broker_id, member.host, member.port, member.rack) == (1, "broker.test", 9092, "here")
    assert response.cluster_authorized_operations == -(2**31)
    if version >= 1:
        assert response.endpoint_type == 1
    if version >= 2:
        assert member.is_fenced is False


def test_everything_is_authorized_where_nothing_is_forbidden(broker: InProcessBroker) -> None:
    response = broker.ask(API_KEY, 1, endpoint_type=1, include_cluster_authorized_operations=True)
    operations = {bit for bit in range(32) if response.cluster_authorized_operations >> bit & 1}
    assert operations == {5, 7, 8, 9, 10, 11, 12}


@pytest.mark.parametrize(
    ("endpoint_type", "code"),
    [(2, ErrorCode.MISMATCHED_ENDPOINT_TYPE), (0, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE)],
)
def test_only_brokers_can_be_asked_for(broker: InProcessBroker, endpoint_type: int, code: ErrorCode) -> None:
    response = broker.ask(API_KEY, 1, endpoint_type=endpoint_type)
    assert (response.error_code, response.brokers) == (code, ())
    assert response.error_message
