"""One spelling for each address of a client, however it is written and over whichever protocol it came.

Owns what counts as an address, and the two spellings: Java's, which access rules have, and the usual one. Must not know
rules, quotas, nor connections.
"""

from ipaddress import IPv4Address, IPv6Address, ip_address


def rule_host(text: str) -> str | None:
    """As Java writes it: IPv6 without ``::``; ``None`` for what is no address."""
    address = _address(text)
    if isinstance(address, IPv6Address):
        return ":".join(f"{int(part, 16):x}" for part in address.exploded.split(":"))
    return None if address is None else str(address)


def plain_address(text: str) -> str | None:
    """As it is written most shortly; ``None`` for what is no address."""
    address = _address(text)
    return None if address is None else str(address)


def _address(text: str) -> IPv4Address | IPv6Address | None:
    """Without a zone, and IPv4 as such where it came over IPv6."""
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address
