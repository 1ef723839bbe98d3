"""Addresses as users type them."""

import pytest

from lamina.peer.addresses import Address, parse_bootstrap


def test_a_list_of_addresses() -> None:
    assert parse_bootstrap("one:1, two ,[::1]:3,PLAINTEXT://four:4") == (
        Address("one", 1),
        Address("two", 9092),
        Address("::1", 3),
        Address("four", 4),
    )


def test_an_address_is_shown_as_it_is_typed() -> None:
    assert [str(address) for address in parse_bootstrap("one:1,[::1]:3")] == ["one:1", "[::1]:3"]


@pytest.mark.parametrize("servers", ["", "one:1,", "a b:1", "one:port", "::1:3", "one:123456"])
def test_what_is_no_address_is_refused(servers: str) -> None:
    with pytest.raises(ValueError, match="is not of the form HOST:PORT"):
        parse_bootstrap(servers)
