import pytest

from lamina.errors import InvalidConfig, InvalidRequest, KafkaError
from lamina.image.configs import ConfigOperation, OperationType, alter_configs, check_configs
from lamina.image.image import ConfigResource, ResourceType

TOPIC = ConfigResource(ResourceType.TOPIC, "orders")
BROKER = ConfigResource(ResourceType.BROKER, "0")
ALL_BROKERS = ConfigResource(ResourceType.BROKER, "")
SET, DELETE, APPEND, SUBTRACT = OperationType


def alter(current: dict[str, str], *operations: ConfigOperation) -> dict[str, str]:
    return alter_configs(TOPIC, current, operations)


def test_set_and_delete() -> None:
    current = {"retention.ms": "1", "segment.ms": "7"}
    altered = alter(current, ConfigOperation("retention.ms", SET, "2"), ConfigOperation("segment.ms", DELETE))
    assert altered == {"retention.ms": "2"}
    assert current == {"retention.ms": "1", "segment.ms": "7"}
    assert alter({}, ConfigOperation("segment.ms", DELETE)) == {}


def test_a_list_that_is_not_set_begins_as_its_default() -> None:
    assert alter({}, ConfigOperation("cleanup.policy", APPEND, "compact")) == {"cleanup.policy": "delete,compact"}
    assert alter({}, ConfigOperation("cleanup.policy", SUBTRACT, "delete")) == {"cleanup.policy": ""}


@pytest.mark.parametrize(
    ("operation", "value", "expected"),
    [
        (APPEND, "delete", "compact,delete"),
        (APPEND, " compact , delete,delete", "compact,delete"),
        (SUBTRACT, "compact", ""),
        (SUBTRACT, "delete", "compact"),
    ],
)
def test_entries_of_a_list_are_added_once_and_taken_out(operation: OperationType, value: str, expected: str) -> None:
    altered = alter({"cleanup.policy": "compact"}, ConfigOperation("cleanup.policy", operation, value))
    assert altered == {"cleanup.policy": expected}


@pytest.mark.parametrize(
    ("operations", "error", "sentence"),
    [
        ([ConfigOperation("retention.ms", SET, None)], InvalidRequest, "SET needs a value"),
        ([ConfigOperation("a", DELETE), ConfigOperation("a", DELETE)], InvalidRequest, "a: named twice"),
        ([ConfigOperation("retention.ms", APPEND, "1")], InvalidConfig, "APPEND is for lists only"),
        ([ConfigOperation("no.such", SUBTRACT, "1")], InvalidConfig, "SUBTRACT is for lists only"),
    ],
)
def test_a_wrong_operation_gets_kafkas_error(
    operations: list[ConfigOperation], error: type[KafkaError], sentence: str
) -> None:
    with pytest.raises(error, match=sentence):
        alter_configs(TOPIC, {}, operations)


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [("retention.ms", "soon", "retention.ms = soon"), ("retention.msec", "1", "did you mean retention.ms")],
)
def test_a_config_that_a_topic_cannot_have_is_invalid(name: str, text: str, sentence: str) -> None:
    with pytest.raises(InvalidConfig, match=sentence):
        check_configs(TOPIC, {name: text})


def test_a_brokers_dynamic_configs_pass() -> None:
    check_configs(BROKER, {"log.retention.ms": "1"})
    check_configs(ALL_BROKERS, {"log.retention.ms": "1"})


@pytest.mark.parametrize(
    ("resource", "name", "text", "sentence"),
    [
        (BROKER, "node.id", "3", "cannot change while the broker runs"),
        (BROKER, "log.retention.ms", "soon", "log.retention.ms = soon"),
        (ALL_BROKERS, "listeners", "PLAINTEXT://:1", "cannot change while the broker runs"),
    ],
)
def test_a_config_that_a_broker_cannot_have_is_an_invalid_request(
    resource: ConfigResource, name: str, text: str, sentence: str
) -> None:
    with pytest.raises(InvalidRequest, match=sentence):
        check_configs(resource, {name: text})
