"""Points in time as a person types them."""

import pytest

from lamina.cli.options.moments import parse_moment

NOON_MS = 1_769_860_800_000
"""2026-01-31T12:00:00Z"""


@pytest.mark.parametrize(
    ("text", "moment_ms"),
    [
        ("2026-01-31T12:00:00Z", NOON_MS),
        ("2026-01-31T12:00:00.250Z", NOON_MS + 250),
        ("2026-01-31T14:00+02:00", NOON_MS),
        (" 2026-01-31 12:00 ", NOON_MS),
        ("2026-01-31", NOON_MS - 43_200_000),
        ("1970-01-01", 0),
        ("1769860800000", NOON_MS),
        ("0", 0),
        (str(2**63 - 1), 2**63 - 1),
        ("now", NOON_MS),
        ("-0s", NOON_MS),
        ("-30s", NOON_MS - 30_000),
        ("-90m", NOON_MS - 5_400_000),
        ("-1h", NOON_MS - 3_600_000),
        ("-1h30m", NOON_MS - 5_400_000),
        ("-2d", NOON_MS - 172_800_000),
        ("-1w1d", NOON_MS - 691_200_000),
    ],
)
def test_every_form_is_understood_and_no_zone_means_utc(text: str, moment_ms: int) -> None:
    assert parse_moment(text, now_ms=NOON_MS) == moment_ms


@pytest.mark.parametrize(
    "text", ["", "-", "-h", "-1", "1h", "+1h", "-1h-2m", "-1m1h", "yesterday", "2026-13-01", "²", "12:00", "x" * 500]
)
def test_what_is_no_time_gets_one_sentence_with_the_forms(text: str) -> None:
    with pytest.raises(ValueError, match=r"^[^\n]{1,50}is not a time; give it as 2026-01-31T12:00, [^\n]+$"):
        parse_moment(text, now_ms=NOON_MS)


@pytest.mark.parametrize("text", ["1969-12-31T23:59:59Z", "-9999w", "9" * 19, "0001-01-01T00:00+14:00"])
def test_a_time_that_no_record_can_have_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="outside the times"):
        parse_moment(text, now_ms=NOON_MS)
