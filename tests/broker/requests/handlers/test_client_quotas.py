"""DescribeClientQuotas and AlterClientQuotas (S60, S67, S68)."""

from collections.abc import Mapping
from typing import Any

import pytest

from lamina.errors import ErrorCode
from lamina.image.changes import set_feature
from lamina.image.features import LAMINA_VERSION
from tests.broker.in_process import InProcessBroker
from tests.broker.quotas import alter, entity_of, quotas_of

DESCRIBE, ALTER = 48, 49
Entity = Mapping[str, str | None]
USER: Entity = {"user": "alice"}
DEFAULT_USER: Entity = {"user": None}
BOTH: Entity = {"user": "alice", "client-id": "app"}


def altered(
    broker: InProcessBroker, *entries: tuple[Mapping[str, str | None], Mapping[str, float | None]]
) -> list[int]:
    response = broker.ask(
        ALTER,
        1,
        entries=[
            {
                "entity": entity_of(entity),
                "ops": [
                    {"key": key, "value": value or 0.0, "remove": value is None} for key, value in operations.items()
                ],
            }
            for entity, operations in entries
        ],
    )
    return [entry.error_code for entry in response.entries]


def described(
    broker: InProcessBroker, *components: tuple[str, int, str | None], strict: bool = False, version: int = 1
) -> Any:
    wanted = [{"entity_type": kind, "match_type": match, "match": name} for kind, match, name in components]
    return broker.ask(DESCRIBE, version, components=wanted, strict=strict)


@pytest.mark.parametrize("version", range(2))
def test_quotas_are_set_told_and_kept(broker: InProcessBroker, version: int) -> None:
    alter(broker, USER, version=version, producer_byte_rate=1000.0, request_percentage=12.5)
    alter(broker, DEFAULT_USER, version=version, consumer_byte_rate=2000.0)
    everything = {
        (("user", "alice"),): {"producer_byte_rate": 1000.0, "request_percentage": 12.5},
        (("user", None),): {"consumer_byte_rate": 2000.0},
    }
    assert quotas_of(described(broker, version=version)) == everything
    broker.restart()
    assert quotas_of(described(broker, version=version)) == everything
    alter(broker, USER, version=version, producer_byte_rate=None, request_percentage=None)
    assert quotas_of(described(broker, version=version)) == {(("user", None),): {"consumer_byte_rate": 2000.0}}


def test_a_filter_tells_the_entities_that_match(broker: InProcessBroker) -> None:
    """S68."""
    for entity in (USER, DEFAULT_USER, BOTH):
        alter(broker, entity, producer_byte_rate=1000.0)
    user, both = (("user", "alice"),), (("client-id", "app"), ("user", "alice"))
    assert set(quotas_of(described(broker, ("user", 0, "alice")))) == {user, both}
    assert set(quotas_of(described(broker, ("user", 0, "alice"), strict=True))) == {user}
    assert set(quotas_of(described(broker, ("user", 1, None)))) == {(("user", None),)}
    assert set(quotas_of(described(broker, ("user", 2, None)))) == {user, both, (("user", None),)}
    assert quotas_of(described(broker, ("ip", 2, None))) == {}


@pytest.mark.parametrize(
    ("components", "code"),
    [
        ([("user", 0, None)], ErrorCode.INVALID_REQUEST),
        ([("user", 1, "alice")], ErrorCode.INVALID_REQUEST),
        ([("user", 7, None)], ErrorCode.INVALID_REQUEST),
        ([("", 2, None)], ErrorCode.INVALID_REQUEST),
        ([("user", 2, None), ("user", 2, None)], ErrorCode.INVALID_REQUEST),
        ([("user", 2, None), ("ip", 2, None)], ErrorCode.INVALID_REQUEST),
        ([("group", 2, None)], ErrorCode.UNSUPPORTED_VERSION),
    ],
)
def test_a_filter_that_cannot_be_is_an_error_of_the_whole(
    broker: InProcessBroker, components: list[tuple[str, int, str | None]], code: ErrorCode
) -> None:
    """S68."""
    answer = described(broker, *components)
    assert (answer.error_code, answer.entries) == (code, None)
    assert answer.error_message


def test_what_is_wrong_with_one_entry_is_its_own(broker: InProcessBroker) -> None:
    """S67."""
    codes = altered(
        broker,
        ({"user": "alice"}, {"producer_byte_rate": 1000.0}),
        ({"user": ""}, {"producer_byte_rate": 1000.0}),
        ({}, {"producer_byte_rate": 1000.0}),
        ({"group": "g"}, {"producer_byte_rate": 1000.0}),
        ({"user": "bob"}, {"producer_byte_rate": -1.0}),
        ({"user": "bob"}, {"connection_creation_rate": 1.0}),
        ({"ip": "10.0.0.1", "user": "bob"}, {"connection_creation_rate": 1.0}),
        ({"ip": "not.an.address.invalid"}, {"connection_creation_rate": 1.0}),
        ({"ip": "10.0.0.1"}, {"connection_creation_rate": 1.0}),
        ({"user": "absent"}, {"producer_byte_rate": None}),
    )
    wrong = ErrorCode.INVALID_REQUEST
    assert codes == [0, wrong, wrong, wrong, wrong, wrong, wrong, wrong, 0, 0]
    assert quotas_of(described(broker)) == {
        (("user", "alice"),): {"producer_byte_rate": 1000.0},
        (("ip", "10.0.0.1"),): {"connection_creation_rate": 1.0},
    }


def test_a_key_or_an_entity_that_is_named_twice_is_not_altered(broker: InProcessBroker) -> None:
    """S67."""
    both = [{"key": "producer_byte_rate", "value": value} for value in (1.0, 2.0)]
    response = broker.ask(ALTER, 1, entries=[{"entity": entity_of(USER), "ops": both}])
    assert [entry.error_code for entry in response.entries] == [ErrorCode.INVALID_REQUEST]
    once: dict[str, float | None] = {"producer_byte_rate": 1.0}
    codes = altered(broker, (BOTH, once), (DEFAULT_USER, once), (dict(reversed([*BOTH.items()])), once))
    assert codes == [ErrorCode.INVALID_REQUEST, 0, ErrorCode.INVALID_REQUEST]
    assert quotas_of(described(broker)) == {(("user", None),): {"producer_byte_rate": 1.0}}


def test_validation_alone_sets_nothing(broker: InProcessBroker) -> None:
    operations = [{"key": "producer_byte_rate", "value": 1.0}]
    response = broker.ask(ALTER, 1, entries=[{"entity": entity_of(USER), "ops": operations}], validate_only=True)
    assert [entry.error_code for entry in response.entries] == [0]
    assert quotas_of(described(broker)) == {}


def test_quotas_wait_until_every_broker_keeps_them(broker: InProcessBroker) -> None:
    broker.change(lambda image: set_feature(image, LAMINA_VERSION, 1))
    assert altered(broker, (USER, {"producer_byte_rate": 1.0})) == [ErrorCode.UNSUPPORTED_VERSION]
    assert quotas_of(described(broker)) == {}
