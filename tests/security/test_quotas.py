"""Entities, and what an alteration makes of their quotas (S60, S67)."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.errors import InvalidRequest
from lamina.security.quotas import QuotaEntity, QuotaOperation, alter_quotas, entity_text, quota_entity

ALICE = quota_entity([("user", "alice")])
ADDRESS = quota_entity([("ip", "10.0.0.1")])


def test_an_entity_is_the_same_in_whatever_order_it_is_named() -> None:
    pairs = [("user", "alice"), ("client-id", None)]
    assert quota_entity(pairs) == quota_entity(reversed(pairs)) == (("client-id", None), ("user", "alice"))


@pytest.mark.parametrize(
    ("pairs", "why"),
    [
        ([], "at least one type"),
        ([("user", "")], "empty name"),
        ([("group", "g")], "no type of entity"),
        ([("user", "a"), ("user", "b")], "more than one user"),
        ([("ip", "10.0.0.1"), ("user", "a")], "alone"),
        ([("ip", None), ("client-id", None)], "alone"),
        ([("ip", "no.such.host.invalid")], "no address"),
        ([("ip", "10.0.0.300")], "no address"),
    ],
)
def test_entities_that_cannot_be_are_refused(pairs: list[tuple[str, str | None]], why: str) -> None:
    """S67."""
    with pytest.raises(InvalidRequest, match=why):
        quota_entity(pairs)


@pytest.mark.parametrize(
    ("entity", "key", "value", "why"),
    [
        (ALICE, "producer_byte_rate", 0.0, "above 0"),
        (ALICE, "producer_byte_rate", -1.0, "above 0"),
        (ALICE, "request_percentage", math.nan, "above 0"),
        (ALICE, "request_percentage", math.inf, "above 0"),
        (ALICE, "consumer_byte_rate", 1.5, "whole number"),
        (ALICE, "consumer_byte_rate", 1e19, "at most"),
        (ALICE, "connection_creation_rate", 1.0, "no quota of user alice"),
        (ALICE, "nonsense", 1.0, "no quota of user alice"),
        (ADDRESS, "connection_creation_rate", 2.5, "whole number"),
        (ADDRESS, "connection_creation_rate", 2.0**31, "at most"),
        (ADDRESS, "producer_byte_rate", 1.0, "no quota of ip 10.0.0.1"),
    ],
)
def test_values_that_cannot_be_are_refused(entity: QuotaEntity, key: str, value: float, why: str) -> None:
    """S67."""
    with pytest.raises(InvalidRequest, match=why):
        alter_quotas(entity, {}, [QuotaOperation(key, value)])


def test_a_key_is_altered_once_at_most() -> None:
    """S67."""
    twice = [QuotaOperation("producer_byte_rate", 1.0), QuotaOperation("producer_byte_rate", None)]
    with pytest.raises(InvalidRequest, match="more than once"):
        alter_quotas(ALICE, {}, twice)


def test_fractions_are_for_shares_and_changes() -> None:
    operations = [QuotaOperation("request_percentage", 0.5), QuotaOperation("controller_mutation_rate", 1.25)]
    assert alter_quotas(ALICE, {}, operations) == {"request_percentage": 0.5, "controller_mutation_rate": 1.25}


def test_what_is_not_named_stays_and_what_is_absent_may_be_removed() -> None:
    """S67."""
    current = {"producer_byte_rate": 10.0, "consumer_byte_rate": 20.0}
    operations = [QuotaOperation("producer_byte_rate", None), QuotaOperation("request_percentage", None)]
    assert alter_quotas(ALICE, current, operations) == {"consumer_byte_rate": 20.0}
    assert current == {"producer_byte_rate": 10.0, "consumer_byte_rate": 20.0}


def test_an_entity_is_told_as_people_read_it() -> None:
    assert entity_text(quota_entity([("client-id", None), ("user", "alice")])) == "user alice, client-id default"


@given(st.floats())
def test_no_value_that_is_taken_stops_anybody_for_ever(value: float) -> None:
    try:
        altered = alter_quotas(ALICE, {}, [QuotaOperation("consumer_byte_rate", value)])
    except InvalidRequest:
        assert not (value >= 1 and value.is_integer() and value <= 2**63 - 1)
    else:
        assert altered["consumer_byte_rate"] >= 1
