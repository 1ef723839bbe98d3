import pytest

from lamina.errors import ErrorCode
from tests.broker.in_process import InProcessBroker

DESCRIBE, CREATE, DELETE = 29, 30, 31
VERSIONS = pytest.mark.parametrize("version", range(1, 4))


@VERSIONS
def test_every_version_says_that_there_are_no_access_rules(broker: InProcessBroker, version: int) -> None:
    asked = {"resource_type_filter": 1, "pattern_type_filter": 1, "operation": 1, "permission_type": 1}
    response = broker.ask(DESCRIBE, version, **asked)
    assert (response.error_code, response.resources) == (ErrorCode.SECURITY_DISABLED, ())
    assert response.error_message


@VERSIONS
def test_every_rule_that_is_to_be_made_is_refused(broker: InProcessBroker, version: int) -> None:
    rule = {"resource_type": 2, "resource_name": "t", "principal": "User:a", "host": "*", "operation": 3}
    response = broker.ask(CREATE, version, creations=[rule | {"permission_type": 3}] * 2)
    assert [one.error_code for one in response.results] == [ErrorCode.SECURITY_DISABLED] * 2
    assert all(one.error_message for one in response.results)


@VERSIONS
def test_every_filter_of_rules_to_be_deleted_is_refused(broker: InProcessBroker, version: int) -> None:
    every = {"resource_type_filter": 1, "pattern_type_filter": 1, "operation": 1, "permission_type": 1}
    response = broker.ask(DELETE, version, filters=[every] * 2)
    assert [(one.error_code, one.matching_acls) for one in response.filter_results] == [
        (ErrorCode.SECURITY_DISABLED, ())
    ] * 2
    assert all(one.error_message for one in response.filter_results)
