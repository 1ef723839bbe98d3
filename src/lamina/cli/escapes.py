"""Bytes that are hard to type or to show, as escapes: ``\\t``, ``\\n``, ``\\r``, ``\\0``, ``\\xHH``, ``\\\\``.

Must not know where they are written.
"""

import re

_ESCAPE = re.compile(rb"\\(?:x([0-9a-fA-F]{2})|(.)|$)", re.DOTALL)
_NAMED = {b"t": b"\t", b"n": b"\n", b"r": b"\r", b"0": b"\0", b"\\": b"\\"}


def unescape(text: str) -> bytes:
    """Raises ValueError with one sentence."""
    return _ESCAPE.sub(_meant, text.encode())


def _meant(match: re.Match[bytes]) -> bytes:
    if match[1] is not None:
        return bytes.fromhex(match[1].decode())
    if match[2] in _NAMED:
        return _NAMED[match[2]]
    written = match[0].decode(errors="replace")
    raise ValueError(f"{written} is not an escape; use \\t, \\n, \\r, \\0, \\xHH or \\\\")


def printable(data: bytes) -> str:
    """For a person at a terminal: what would not be shown as it is, or would move the cursor, is escaped.

    Tabs and newlines stay. A backslash stays too, so this cannot be undone.
    """
    text = data.decode(errors="backslashreplace")
    if text.isprintable():
        return text
    return "".join([char if char.isprintable() or char in "\n\t" else _escaped(char) for char in text])


def _escaped(char: str) -> str:
    number = ord(char)
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
