"""Addresses as access rules have them: as text, in the way in which Java writes it.

Must not know rules, nor connections.
"""

from ipaddress import IPv6Address, ip_address


def rule_host(text: str) -> str | None:
    """IPv6 without ``::`` and zone, IPv4 as such where it came over IPv6; ``None`` for what is no address."""
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    if not isinstance(address, IPv6Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return ":".join(f"{int(part, 16):x}" for part in address.exploded.split(":"))
