"""What certificates, stores and settings say of names: refused as documented, or told alike each time."""

from lamina.security.distinguished_names import MalformedName, distinguished_name
from lamina.security.principal_rules import RuleError, parse_rules
from lamina.tls import pem

NAME, BLOCKS, RULES = range(3)


def one(data: bytes) -> None:
    kind, rest = data[:1], data[1:]
    if kind == bytes([NAME]):
        _name(rest)
    elif kind == bytes([BLOCKS]):
        _blocks(rest.decode("latin-1"))
    elif kind == bytes([RULES]):
        _rules(rest.decode("utf-8", "replace"))


def _name(der: bytes) -> None:
    try:
        name = distinguished_name(der)
    except MalformedName:
        return
    assert "\0" not in name
    assert name == distinguished_name(bytes(der))


def _blocks(text: str) -> None:
    try:
        found = pem.blocks(text)
    except ValueError:
        return
    assert pem.blocks("".join(pem.encode(block.label, block.der) for block in found)) == found


def _rules(text: str) -> None:
    """They are not tried: who writes a pattern may write one that takes for ever."""
    try:
        parse_rules(text)
    except RuleError as error:
        assert str(error)
