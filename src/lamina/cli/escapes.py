"""What a person writes for bytes that are hard to type: ``\\t``, ``\\n``, ``\\r``, ``\\0``, ``\\xHH``, ``\\\\``.

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
    raise ValueError(f"{written} is no escape; there are \\t, \\n, \\r, \\0, \\xHH and \\\\")
