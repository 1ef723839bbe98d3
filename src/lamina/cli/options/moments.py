"""Points in time as a person types them.

Owns the three forms: ISO 8601, milliseconds since 1970, and a span before now. A time without a zone is UTC, as in
Kafka's tools and in everything that this command prints. Must not know the clock: now is an argument.
"""

import re
from datetime import UTC, datetime, timedelta

from lamina.cli.options.units import duration_ms

FORMS = "2026-01-31T12:00, 1769860800000 (milliseconds since 1970) or -90m (before now)"
"""Examples of all forms, for help and for errors."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LARGEST_MS = 2**63 - 1
_MILLISECONDS = re.compile(r"[0-9]{1,19}")
_LONGEST = 40
"""Characters; no form needs more."""


def parse_moment(text: str, now_ms: int) -> int:
    """Milliseconds since 1970; raises ValueError with one sentence."""
    given = text.strip()
    if len(given) > _LONGEST:
        raise ValueError(f"{given[:_LONGEST]!r}… is not a time; give it as {FORMS}")
    if _MILLISECONDS.fullmatch(given):
        moment_ms = int(given)
    elif given.startswith("-") and (span_ms := duration_ms(given[1:])) is not None:
        moment_ms = now_ms - int(span_ms)
    elif given == "now":
        moment_ms = now_ms
    else:
        moment_ms = _from_calendar(given)
    if not 0 <= moment_ms <= _LARGEST_MS:
        raise ValueError(f"{given!r} is outside the times that a record can have, which begin with 1970")
    return moment_ms


def _from_calendar(given: str) -> int:
    try:
        moment = datetime.fromisoformat(given)
    except ValueError:
        raise ValueError(f"{given!r} is not a time; give it as {FORMS}") from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - _EPOCH) // timedelta(milliseconds=1)
