"""Printing rows: a table for a person, plain columns for a pipe, or JSON.

Rows are printed page by page, so that memory does not grow with their number. In a pipe nothing is wrapped,
cut or coloured. Must not know what the rows say.
"""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

import click

Value = str | int | float | bool | None | list["Value"] | dict[str, "Value"]
Row = Mapping[str, Value]

_PAGE_ROWS = 500
_FOLDED_WIDTH = 20
_BETWEEN = 3


def print_json(row: Row) -> None:
    click.echo(json_line(row))


def json_line(row: Row) -> str:
    """One object on one line."""
    return json.dumps(row, separators=(",", ":"))


def print_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> int:
    """All rows under their headings; returns how many there were. With no rows nothing is printed."""
    iterator = iter(rows)
    print_page = _print_rich if sys.stdout.isatty() else _print_plain
    count, widths = 0, [len(heading) for heading in headings]
    while page := list(islice(iterator, _PAGE_ROWS)):
        widths = [max(width, *(len(row[n]) for row in page)) for n, width in enumerate(widths)]
        print_page(headings, page, widths, count == 0)
        count += len(page)
    return count


def _print_plain(
    headings: Sequence[str], page: Sequence[Sequence[str]], widths: Sequence[int], with_headings: bool
) -> None:
    lines = [headings, *page] if with_headings else page
    text = "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )
    click.echo(text)


def _print_rich(
    headings: Sequence[str], page: Sequence[Sequence[str]], widths: Sequence[int], with_headings: bool
) -> None:
    """Long cells are folded if the table then fits the terminal; if not, its lines run on and nothing is lost."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    between = _BETWEEN * (len(widths) - 1)
    if sum(min(width, _FOLDED_WIDTH) for width in widths) + between > console.width:
        console.width = sum(widths) + between
    table = Table(box=box.SIMPLE_HEAD, show_header=with_headings, show_edge=False, pad_edge=False)
    for heading, width in zip(headings, widths, strict=True):
        table.add_column(heading, min_width=min(width, _FOLDED_WIDTH), overflow="fold")
    for row in page:
        table.add_row(*(Text(cell) for cell in row))
    console.print(table, crop=False)
