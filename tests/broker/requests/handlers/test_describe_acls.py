import pytest

from lamina.errors import ErrorCode
from tests.broker.in_process import InProcessBroker


@pytest.mark.parametrize("version", range(1, 4))
def test_every_version_says_that_there_are_no_access_rules(broker: InProcessBroker, version: int) -> None:
    response = broker.ask(29, version, resource_type_filter=1, pattern_type_filter=1, operation=1, permission_type=1)
    assert (response.error_code, response.resources) == (ErrorCode.SECURITY_DISABLED, ())
    assert response.error_message
