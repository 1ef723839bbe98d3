"""How fast one address may open connections, decided without sockets (S66)."""

from lamina.broker.network.address_rates import LONGEST_SECONDS, AddressRates
from lamina.security.quotas import quota_entity


def rates(**limits: float) -> AddressRates:
    """By the addresses' last numbers; ``default`` for all others."""
    made = AddressRates(11, 1000)
    for name, limit in limits.items():
        address = None if name == "default" else name.replace("_", "10.0.0.")
        made.set(quota_entity([("ip", address)]), {"connection_creation_rate": limit})
    return made


def test_without_quotas_everybody_comes() -> None:
    made = rates()
    assert not any(made.wait_seconds("10.0.0.1", 0.0) for _ in range(10_000))
    made = rates(_1=5)
    assert not any(made.wait_seconds("10.0.0.2", 0.0) for _ in range(10_000))


def test_above_its_rate_an_address_is_turned_away_after_a_second_at_most() -> None:
    made = rates(_1=5)
    waits = [made.wait_seconds("10.0.0.1", 100.0) for _ in range(53)]
    assert waits == [0.0] * 50 + [0.2, 0.2, 0.2], "who is turned away does not count"
    assert made.refused == 3
    assert rates(_1=1).wait_seconds("10.0.0.1", 0.0) == 0.0
    slow = rates(_1=1)
    assert [slow.wait_seconds("10.0.0.1", 0.0) for _ in range(11)][-1] == LONGEST_SECONDS


def test_others_have_the_default_and_each_its_own_rate() -> None:
    made = rates(default=1, _1=100)
    assert sum(made.wait_seconds("10.0.0.1", 0.0) == 0 for _ in range(20)) == 20
    assert sum(made.wait_seconds("10.0.0.2", 0.0) == 0 for _ in range(20)) == 10
    assert sum(made.wait_seconds("10.0.0.3", 0.0) == 0 for _ in range(20)) == 10


def test_an_ipv4_address_is_the_same_over_ipv6() -> None:
    made = rates(_1=1)
    came = [made.wait_seconds(address, 0.0) == 0 for address in ["10.0.0.1", "::ffff:10.0.0.1"] * 10]
    assert sum(came) == 10
