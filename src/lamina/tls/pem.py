"""PEM: blocks of base64 between lines that say what they hold.

Owns finding them as Kafka does: also where a properties file has all of it in one line. Must not know what is in them.
"""

import binascii
import re
from typing import NamedTuple

CERTIFICATE = "CERTIFICATE"
PRIVATE_KEY, ENCRYPTED_PRIVATE_KEY = "PRIVATE KEY", "ENCRYPTED PRIVATE KEY"
BEGIN = b"-----BEGIN "

_BLOCK = re.compile(r"-----BEGIN ([A-Z0-9 ]{1,40})-----([A-Za-z0-9+/=\s]*)-----END \1-----")


class Block(NamedTuple):
    label: str
    der: bytes

    def __repr__(self) -> str:
        return f"Block({self.label!r}, [hidden])"


def blocks(text: str) -> list[Block]:
    """Raises :class:`ValueError` where something begins that does not end, or is not base64."""
    found = _BLOCK.findall(text)
    if len(found) != text.count(BEGIN.decode()):
        raise ValueError("a block in it is damaged, or not plain PEM")
    try:
        return [Block(label, binascii.a2b_base64("".join(body.split()), strict_mode=True)) for label, body in found]
    except binascii.Error:
        raise ValueError("a block in it is damaged: it is not base64") from None


def encode(label: str, der: bytes) -> str:
    body = binascii.b2a_base64(der, newline=False).decode()
    lines = "\n".join(body[at : at + 64] for at in range(0, len(body), 64))
    return f"-----BEGIN {label}-----\n{lines}\n-----END {label}-----\n"
