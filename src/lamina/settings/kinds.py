"""The types a setting's value may have and the ranges it may lie in.

Owns how text becomes a value, by the rules of Kafka's own configuration parser: surrounding white space is
dropped, ``true`` and ``false`` in any case, whole numbers that must fit their width, lists split at commas.
Must not know any setting.
"""

import difflib
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from lamina.settings.log_config import INT_MAX, LONG_MAX, MEBIBYTE

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)

SHORT_MAX = 2**15 - 1
# What Java's String.trim drops: every character up to the space.
TRIMMED = "".join(map(chr, range(0x21)))

_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]{1,40}")
_DECIMAL_NUMBER = re.compile(r"[+-]?([0-9]{1,400}\.?[0-9]{0,400}|\.[0-9]{1,400})([eE][+-]?[0-9]{1,9})?")


@dataclass(frozen=True, slots=True)
class Kind(Generic[T]):
    """A type of value; ``parse`` gets trimmed text, and its ValueError says what the value "must be"."""

    name: str
    parse: Callable[[str], T]
    format: Callable[[T], str]


@dataclass(frozen=True, slots=True)
class Rule(Generic[T_contra]):
    """What a value must satisfy; ``text`` completes the sentence "must be …"."""

    text: str
    holds: Callable[[T_contra], bool]
    names: tuple[str, ...] = ()
    """The words that a value may consist of, where it consists of words."""

    def suggestion(self, text: str) -> str | None:
        """``text`` with the nearest valid word in place of each wrong one; ``None`` where one has none near it."""
        words: list[str] = []
        for word in (each.strip(TRIMMED) for each in text.split(",")):
            folded = {name.lower(): name for name in self.names}
            near = difflib.get_close_matches(word.lower()[:100], folded, n=1)
            if not near:
                return None
            words.append(folded[near[0]])
        return ",".join(dict.fromkeys(words))


def _parse_boolean(text: str) -> bool:
    lowered = text.lower()
    if lowered not in ("true", "false"):
        raise ValueError("must be true or false")
    return lowered == "true"


def _parse_whole_number(maximum: int, bits: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        value = int(text) if _WHOLE_NUMBER.fullmatch(text) else None
        if value is None or not -maximum - 1 <= value <= maximum:
            raise ValueError(f"must be a whole number of {bits} bits")
        return value

    return parse


def _parse_double(text: str) -> float:
    value = float(text) if _DECIMAL_NUMBER.fullmatch(text) else math.inf
    if math.isinf(value):
        raise ValueError("must be a number")
    return value


def _parse_list(text: str) -> tuple[str, ...]:
    if not text:
        return ()
    entries = tuple(entry.strip(TRIMMED) for entry in text.split(","))
    if "" in entries:
        raise ValueError("must be a comma-separated list without empty entries")
    return entries


BOOLEAN: Kind[bool] = Kind("boolean", _parse_boolean, lambda value: "true" if value else "false")
SHORT: Kind[int] = Kind("short", _parse_whole_number(SHORT_MAX, 16), str)
INT: Kind[int] = Kind("int", _parse_whole_number(INT_MAX, 32), str)
LONG: Kind[int] = Kind("long", _parse_whole_number(LONG_MAX, 64), str)
DOUBLE: Kind[float] = Kind("double", _parse_double, repr)
STRING: Kind[str] = Kind("string", str, str)
CLASS: Kind[str] = Kind("class", str, str)
PASSWORD: Kind[str] = Kind("password", str, str)
LIST: Kind[tuple[str, ...]] = Kind("list", _parse_list, ",".join)


def _with_unit(number: float) -> str:
    """``1048576`` → ``1048576 (1 MiB)``; only whole mebibytes are worth a second reading."""
    if number >= MEBIBYTE and number % MEBIBYTE == 0:
        return f"{number} ({number // MEBIBYTE:g} MiB)"
    return str(number)


def at_least(minimum: int) -> Rule[int]:
    return Rule(f"at least {_with_unit(minimum)}", lambda value: value >= minimum)


def between(minimum: float, maximum: float) -> Rule[float]:
    """Both ends belong to the range, as in Kafka."""
    return Rule(f"between {_with_unit(minimum)} and {_with_unit(maximum)}", lambda value: minimum <= value <= maximum)


def one_of(*names: str) -> Rule[str]:
    return Rule(f"{_either(names)}", lambda value: value in names, names)


def each_of(*names: str) -> Rule[tuple[str, ...]]:
    """A list of nothing but these names (fact 3)."""
    return Rule(f"a list of {_either(names)}", lambda value: set(value) <= set(names), names)


def _either(names: tuple[str, ...]) -> str:
    return " or ".join((", ".join(names[:-1]), names[-1])) if len(names) > 1 else names[0]
