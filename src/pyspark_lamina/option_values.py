"""Single values of options: what text means which number, size, time or truth.

Owns the words of errors about one value. Pure. Must not know which options there are.
"""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from lamina.arrow.errors import ReadError

_SIZES = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_SIZE = re.compile(r"(\d+)\s*([bkmgt]?)b?")
_TIMES_MS = {"us": 0.001, "": 1, "ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
_TIME = re.compile(r"(\d+)\s*([a-z]*)")
_MAX_LONG = 2**63 - 1


def boolean(name: str, text: str) -> bool:
    value = text.strip().lower()
    if value not in ("true", "false"):
        raise ReadError(f"{name}: {text!r} is neither true nor false")
    return value == "true"


def whole_number(name: str, text: str, least: int = 1) -> int:
    try:
        number = int(text.strip())
    except ValueError:
        raise ReadError(f"{name}: {text!r} is not a whole number") from None
    if not least <= number <= _MAX_LONG:
        raise ReadError(f"{name}: {number} is not a number from {least} to {_MAX_LONG}")
    return number


def size_bytes(name: str, text: str) -> int:
    """Such as ``64m``, in Spark's words: powers of 1024, of bytes without a unit."""
    found = _SIZE.fullmatch(text.strip().lower())
    if found is None or not int(found[1]):
        raise ReadError(f"{name}: {text!r} is not a size such as 134217728 or 128m")
    return min(int(found[1]) * _SIZES[found[2]], _MAX_LONG)


def duration_ms(name: str, text: str) -> int:
    """Such as ``15m``, in Spark's words; milliseconds without a unit."""
    found = _TIME.fullmatch(text.strip().lower())
    if found is None or found[2] not in _TIMES_MS:
        raise ReadError(f"{name}: {text!r} is not a time such as 500ms, 30s or 15m")
    return min(int(int(found[1]) * _TIMES_MS[found[2]]), _MAX_LONG)


def json_object(name: str, text: str, example: str, read: Callable[[Mapping[str, Any]], Any]) -> Any:
    """What `read` makes of a JSON object; its ValueError, TypeError or AttributeError says that it has another form."""
    try:
        given = json.loads(text)
        if not isinstance(given, dict):
            raise TypeError
        return read(given)
    except (ValueError, TypeError, AttributeError):
        raise ReadError(f"{name}: expected JSON such as {example}, and this is {_short(text)}") from None


def _short(text: str) -> str:
    return repr(text if len(text) <= 100 else f"{text[:100]}…")
