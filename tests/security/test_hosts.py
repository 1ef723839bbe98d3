import pytest

from lamina.security.hosts import plain_address, rule_host


@pytest.mark.parametrize(
    ("text", "plain", "in_rules"),
    [
        ("10.0.0.1", "10.0.0.1", "10.0.0.1"),
        ("::ffff:127.0.0.1", "127.0.0.1", "127.0.0.1"),
        ("0:0:0:0:0:0:0:1", "::1", "0:0:0:0:0:0:0:1"),
        ("2001:db8::ff", "2001:db8::ff", "2001:db8:0:0:0:0:0:ff"),
        ("fe80::1%eth0", "fe80::1", "fe80:0:0:0:0:0:0:1"),
        ("no address", None, None),
    ],
)
def test_an_address_is_spelled_in_one_way(text: str, plain: str | None, in_rules: str | None) -> None:
    assert (plain_address(text), rule_host(text)) == (plain, in_rules)
