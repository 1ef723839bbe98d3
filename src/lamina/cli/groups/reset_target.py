"""Where offsets are reset to, as options say it: exactly one place.

Owns the options and what they mean. Must not know the cluster.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from typing import Any

import click

from lamina.cli.groups.reset_file import Partition, ResetFileError, read_offsets
from lamina.cli.options.cluster import with_parameters
from lamina.cli.options.moments import parse_moment
from lamina.cli.options.numbers import OFFSET_MAX, whole
from lamina.clocks import SYSTEM_CLOCKS

_DURATION = re.compile(
    r"P(?=.)((?P<d>\d{1,9})D)?(T(?=.)((?P<h>\d{1,9})H)?((?P<m>\d{1,9})M)?((?P<s>\d{1,9})(\.\d+)?S)?)?", re.IGNORECASE
)
"""ISO 8601, as Kafka's tool takes it."""


class Place(Enum):
    EARLIEST = "earliest"
    LATEST = "latest"
    CURRENT = "current"
    OFFSET = "offset"
    TIME = "time"
    SHIFT = "shift"
    FILE = "file"


@dataclass(frozen=True, slots=True)
class Target:
    place: Place
    number: int = 0
    """The offset, the milliseconds since 1970, or by how much to shift."""
    file: str = ""

    def offsets_in_file(self, group: str) -> dict[Partition, int]:
        with open(self.file, "rb") as opened:
            try:
                return read_offsets(opened.read(), group)
            except ResetFileError as error:
                raise click.BadParameter(f"{self.file}: {error}.", param_hint="--from-file") from error


_OPTIONS = (
    click.option("--to-earliest", is_flag=True, help="To the beginning of each partition."),
    click.option("--to-latest", is_flag=True, help="To the end of each partition."),
    click.option("--to-current", is_flag=True, help="To the committed offset; to the end where there is none."),
    click.option("--to-offset", metavar="N", type=whole(), help="To one offset in every partition."),
    click.option(
        "--to-time", "--to-datetime", "to_time", metavar="TIME", help="To the first record of that time or later."
    ),
    click.option("--by-duration", metavar="SPAN", help="The same, so long before now: 90m, 1d12h or PT1H30M."),
    click.option(
        "--shift-by",
        metavar="N",
        type=whole(-OFFSET_MAX),
        help="By N from the committed offset; backwards if negative.",
    ),
    click.option("--from-file", metavar="FILE", help="To the offsets in Kafka's CSV: topic,partition,offset."),
)


def target_options(command: Callable[..., int]) -> Callable[..., int]:
    """Adds the options; the command is given ``target`` in their place."""

    def with_target(
        *args: Any,
        to_earliest: bool,
        to_latest: bool,
        to_current: bool,
        to_offset: int | None,
        to_time: str | None,
        by_duration: str | None,
        shift_by: int | None,
        from_file: str | None,
        **rest: Any,
    ) -> int:
        now_ms = SYSTEM_CLOCKS.now_ms()
        given = [
            *([Target(Place.EARLIEST)] if to_earliest else []),
            *([Target(Place.LATEST)] if to_latest else []),
            *([Target(Place.CURRENT)] if to_current else []),
            *([] if to_offset is None else [Target(Place.OFFSET, to_offset)]),
            *([] if to_time is None else [Target(Place.TIME, _moment(to_time, now_ms, "--to-time"))]),
            *([] if by_duration is None else [Target(Place.TIME, _before(by_duration, now_ms))]),
            *([] if shift_by is None else [Target(Place.SHIFT, shift_by)]),
            *([] if from_file is None else [Target(Place.FILE, file=from_file)]),
        ]
        if len(given) != 1:
            names = ", ".join(option_names())
            raise click.UsageError(f"Give exactly one of {names}.")
        return command(*args, target=given[0], **rest)

    return with_parameters(command, with_target, *_OPTIONS)


def option_names() -> tuple[str, ...]:
    return (
        "--to-earliest",
        "--to-latest",
        "--to-current",
        "--to-offset",
        "--to-time",
        "--by-duration",
        "--shift-by",
        "--from-file",
    )


def _before(text: str, now_ms: int) -> int:
    iso = _DURATION.fullmatch(text.strip())
    if iso is None:
        return _moment(text if text.startswith("-") else f"-{text}", now_ms, "--by-duration")
    days, hours, minutes, seconds = (int(iso[unit] or 0) for unit in "dhms")
    span_ms = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds) // timedelta(milliseconds=1)
    return max(now_ms - span_ms, 0)


def _moment(text: str, now_ms: int, option: str) -> int:
    try:
        return parse_moment(text, now_ms)
    except ValueError as error:
        raise click.BadParameter(f"{error}.", param_hint=option) from error
