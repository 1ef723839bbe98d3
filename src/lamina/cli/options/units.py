"""Durations and sizes as a person types them, for settings that are plain numbers of a unit.

Kafka's settings carry their unit in their name: ``retention.ms``, ``segment.bytes``. A plain number is left as it is.
Must not know any setting.
"""

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fractions import Fraction

DURATIONS = "7d, 12h, 90m, 30s or 250ms"
SIZES = "512KiB, 10MiB or 1GiB (powers of 1024), 10MB or 1GB (powers of 1000)"
"""Examples of the forms, for help and for errors."""

_MS = {"w": 604_800_000, "d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1_000, "ms": 1}
_BYTES: dict[str, int] = {
    "b": 1,
    **{f"{letter}b": 1000**power for power, letter in enumerate("kmgt", start=1)},
    **{f"{letter}ib": 1024**power for power, letter in enumerate("kmgt", start=1)},
}
_TIME_ENDINGS = {".ms": 1, ".seconds": 1_000, ".minutes": 60_000, ".hours": 3_600_000}
_SIZE_ENDINGS = (".bytes", ".bytes.per.second", ".buffer.size")
_PLAIN = re.compile(r"[+-]?[0-9]*")
_NUMBER = r"[0-9]{1,15}(?:\.[0-9]{1,9})?"
_DURATION = re.compile("(?=[0-9])" + "".join(rf"(?:{_NUMBER}{unit}(?![a-z]))?" for unit in _MS))
_DURATION_PART = re.compile(rf"({_NUMBER})(ms|[wdhms])")
_SIZE = re.compile(rf"({_NUMBER})\s*([kmgt]?i?b)")
_SPARK = "lamina.spark.conf."
"""What follows is Spark's, which has its own way to write units."""


def setting_value(name: str, text: str) -> str:
    """A setting's value with units, as the plain number that Kafka wants; raises ValueError with one sentence."""
    given = text.strip()
    if _PLAIN.fullmatch(given) or name.startswith(_SPARK):
        return text
    for ending, unit_ms in _TIME_ENDINGS.items():
        if name.endswith(ending):
            return _whole(name, given, duration_ms(given), unit_ms, f"{ending[1:]}, or a duration such as {DURATIONS}")
    if name.endswith(_SIZE_ENDINGS):
        return _whole(name, given, size_bytes(given), 1, f"bytes, or a size such as {SIZES}")
    return text


def _whole(name: str, given: str, amount: "Fraction | None", unit: int, forms: str) -> str:
    in_unit = None if amount is None else amount / unit
    if in_unit is None or in_unit.denominator != 1:
        raise ValueError(f"{name} = {given[:40]}: give a whole number of {forms}")
    return str(in_unit.numerator)


def duration_ms(text: str) -> "Fraction | None":
    """``1d12h`` in milliseconds; ``None`` for what is not a duration."""
    if not _DURATION.fullmatch(text):
        return None
    from fractions import Fraction

    return sum((Fraction(number) * _MS[unit] for number, unit in _DURATION_PART.findall(text)), Fraction(0))


def size_bytes(text: str) -> "Fraction | None":
    """``10GiB`` in bytes; ``None`` for what is not a size."""
    found = _SIZE.fullmatch(text.lower())
    if found is None or found[2] not in _BYTES:
        return None
    from fractions import Fraction

    return Fraction(found[1]) * _BYTES[found[2]]
