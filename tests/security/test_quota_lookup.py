"""Whose quota holds, and who shares it (S60)."""

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from lamina.security.quota_lookup import Quota, QuotaBucket, QuotaLookup
from lamina.security.quotas import QuotaEntity, quota_entity

KEY = "producer_byte_rate"
ORDER: list[tuple[str | None, str | None]] = [
    ("alice", "app"),
    ("alice", "default"),
    ("alice", None),
    ("default", "app"),
    ("default", "default"),
    ("default", None),
    (None, "app"),
    (None, "default"),
]
"""S60, in words: the first that is set wins."""


def entity(user: str | None, client_id: str | None) -> QuotaEntity:
    pairs = [("user", user), ("client-id", client_id)]
    return quota_entity((kind, None if name == "default" else name) for kind, name in pairs if name is not None)


def slow_find(
    quotas: Mapping[QuotaEntity, Mapping[str, float]], user: str, client_id: str
) -> tuple[float, str | None, str | None] | None:
    for of_user, of_client in ORDER:
        named = (of_user and of_user.replace("alice", user), of_client and of_client.replace("app", client_id))
        limit = quotas.get(entity(*named), {}).get(KEY)
        if limit is not None:
            return limit, of_user and user, of_client and client_id
    return None


def lookup_of(quotas: Mapping[QuotaEntity, Mapping[str, float]]) -> QuotaLookup:
    lookup = QuotaLookup()
    for one, limits in quotas.items():
        lookup.set(one, limits)
    return lookup


levels = st.sets(st.sampled_from([*ORDER, ("bob", "app"), ("bob", None), (None, "other"), ("alice", "other")]))


@given(levels, st.sampled_from(["alice", "bob", "carol"]), st.sampled_from(["app", "other", "third"]))
def test_the_first_level_of_the_order_wins(
    given_levels: set[tuple[str | None, str | None]], user: str, client_id: str
) -> None:
    """S60."""
    quotas = {entity(*level): {KEY: float(1 + number)} for number, level in enumerate(sorted(given_levels, key=str))}
    found = lookup_of(quotas).find(KEY, user, client_id)
    expected = slow_find(quotas, user, client_id)
    if expected is None:
        assert found is None
    else:
        limit, of_user, of_client = expected
        assert found == Quota(limit, QuotaBucket(KEY, of_user, of_client))


def test_each_key_has_its_own_level() -> None:
    lookup = lookup_of({entity("alice", None): {KEY: 1.0}, entity(None, "app"): {"consumer_byte_rate": 2.0}})
    assert lookup.find(KEY, "alice", "app") == Quota(1.0, QuotaBucket(KEY, "alice", None))
    consumed = lookup.find("consumer_byte_rate", "alice", "app")
    assert consumed == Quota(2.0, QuotaBucket("consumer_byte_rate", None, "app"))
    assert lookup.keys == {KEY, "consumer_byte_rate"}


def test_clients_without_an_id_have_the_defaults() -> None:
    lookup = lookup_of({entity(None, "default"): {KEY: 1.0}})
    assert lookup.find(KEY, "alice", None) == lookup.find(KEY, "alice", "") == Quota(1.0, QuotaBucket(KEY, None, ""))
    assert lookup_of({entity("alice", "app"): {KEY: 1.0}}).find(KEY, "alice", None) is None


def test_a_user_whose_name_is_default_is_not_the_default() -> None:
    named = {quota_entity([("user", "default")]): {KEY: 1.0}}
    assert lookup_of(named).find(KEY, "alice", None) is None


def test_addresses_have_quotas_of_their_own() -> None:
    lookup = lookup_of(
        {
            (("ip", "::ffff:10.0.0.1"),): {"connection_creation_rate": 5.0},
            (("ip", None),): {"connection_creation_rate": 7.0},
        }
    )
    assert lookup.limits_addresses
    assert lookup.keys == frozenset()
    assert lookup.connections_of("10.0.0.1") == 5.0
    assert lookup.connections_of("10.0.0.2") == 7.0
    assert lookup_of({}).connections_of("10.0.0.1") is None


def test_quotas_that_are_removed_hold_no_more() -> None:
    lookup = lookup_of({entity("alice", None): {KEY: 1.0, "request_percentage": 2.0}, quota_entity([("ip", None)]): {}})
    lookup.set(entity("alice", None), {"request_percentage": 3.0})
    assert lookup.find(KEY, "alice", "app") is None
    assert lookup.keys == {"request_percentage"}
    lookup.set(entity("alice", None), {})
    assert lookup.keys == frozenset()
    lookup.set(quota_entity([("ip", None)]), {"connection_creation_rate": 7.0})
    lookup.set(quota_entity([("ip", None)]), {})
    assert not lookup.limits_addresses


def test_a_long_client_id_takes_little_memory_and_counts_alone() -> None:
    lookup = QuotaLookup()
    lookup.set(quota_entity([("client-id", None)]), {KEY: 1.0})
    long = "x" * 32_000
    lookup.set(quota_entity([("client-id", long)]), {KEY: 2.0})
    found, other = lookup.find(KEY, "alice", long), lookup.find(KEY, "alice", long + "y")
    assert found is not None
    assert other is not None
    assert (found.limit, other.limit) == (2.0, 1.0)
    assert found.bucket != other.bucket
    for quota in (found, other):
        assert quota.bucket.client_id is not None
        assert len(quota.bucket.client_id) <= 256
