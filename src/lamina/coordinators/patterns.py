"""Regular expressions that members subscribe with, in RE2's syntax, by an engine that takes linear time.

RE2 is loaded when the first expression comes. Must not know groups.
"""

from collections.abc import Iterable
from functools import lru_cache
from importlib import import_module
from typing import Any

from lamina.errors import InvalidRegularExpression

_MAX_PATTERN_BYTES = 16 * 1024


@lru_cache(maxsize=256)
def compile_pattern(text: str) -> Any:
    """Raises InvalidRegularExpression with RE2's own reason."""
    if len(text.encode()) > _MAX_PATTERN_BYTES:
        raise InvalidRegularExpression(f"a regular expression has more than {_MAX_PATTERN_BYTES} bytes")
    re2 = import_module("re2")
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(text, options=options)
    except re2.error as error:
        reason = error.args[0] if error.args else "it cannot be compiled"
        reason = reason.decode(errors="replace") if isinstance(reason, bytes) else reason
        raise InvalidRegularExpression(f"{text!r} is not a regular expression of RE2: {reason}") from error


def matching(text: str, names: Iterable[str]) -> tuple[str, ...]:
    """The names that the whole expression stands for, in order."""
    pattern = compile_pattern(text)
    return tuple(sorted(name for name in names if pattern.fullmatch(name) is not None))
