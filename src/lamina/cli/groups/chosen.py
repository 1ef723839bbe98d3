"""Which partitions a command means: ``TOPIC`` or ``TOPIC:0,2``, several times.

Must not know any command.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from lamina.cli.options.names import complete_topic

C = TypeVar("C", bound=Callable[..., Any])

_CHOICE = re.compile(r"(?P<topic>[^:]+)(:(?P<numbers>\d{1,9}(,\d{1,9})*))?")


@dataclass(frozen=True, slots=True)
class Chosen:
    topic: str
    partitions: tuple[int, ...] | None
    """``None``: all of them."""


def chosen_option(meaning: str) -> Callable[[C], C]:
    """The command is given ``chosen``, a tuple."""
    return click.option(
        "--topic",
        "chosen",
        metavar="TOPIC[:N,…]",
        multiple=True,
        callback=_parse_all,
        shell_complete=complete_topic,
        help=meaning,
    )


def _parse_all(_: click.Context, __: click.Parameter, texts: tuple[str, ...]) -> tuple[Chosen, ...]:
    return tuple(parse_choice(text) for text in texts)


def parse_choice(text: str) -> Chosen:
    found = _CHOICE.fullmatch(text.strip())
    if found is None:
        raise click.BadParameter(f"{text!r} is not of the form TOPIC or TOPIC:0,2.")
    numbers = found["numbers"]
    return Chosen(found["topic"], None if numbers is None else tuple(dict.fromkeys(map(int, numbers.split(",")))))


def is_chosen(chosen: Iterable[Chosen], topic: str, partition: int) -> bool:
    return any(one.topic == topic and (one.partitions is None or partition in one.partitions) for one in chosen)
