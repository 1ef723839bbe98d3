"""Results as tables: in a terminal a line for every figure, in Markdown one for all variants of a figure.

Figures that the rival wins are shown like any other; in Markdown their ratios are bold. Where rounds disagree about who
is ahead, the ratio says so. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, takewhile

from rich.table import Table

from bench.results import Figure, Pair, Result, Spread

NOTHING = "–"
DISAGREE = "rounds disagree"


def number(value: float) -> str:
    """Three digits that count; thousands by commas."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) >= 0.001 or not value else f"{value:.1g}"


def with_range(found: Spread | None) -> str:
    """Such as "1.2 (1.1–1.3)"; the range is left out where there is none."""
    if found is None:
        return NOTHING
    least, middle, most = number(found.least), number(found.median), number(found.most)
    return middle if least == most else f"{middle} ({least}–{most})"


def ratio(found: Spread | None) -> str:
    """With two decimals, or as many as a small one needs."""
    if found is None:
        return NOTHING
    middle, least, most = (_ratio(value) for value in found)
    return middle if least == most else f"{middle} ({least}–{most})"


def _ratio(value: float) -> str:
    if math.isinf(value):
        return "∞"
    return f"{value:.2f}" if value >= 0.1 else f"{value:.2g}"


# In a terminal


def terminal_table(results: Sequence[Result], contestants: Mapping[str, str], pairs: Sequence[Pair]) -> Table:
    table = Table("what", "unit")
    for heading in _headings(contestants, pairs, "ratio, ahead"):
        table.add_column(heading, justify="right")
    for _, block in grouped(results):
        table.add_section()
        table.add_row(f"[bold]{block[0].figure.group}[/bold]")
        for result in block:
            figure = result.figure
            name = f"{figure.name}, {figure.variant}" if figure.variant else figure.name
            table.add_row(
                name,
                unit(figure),
                *(
                    cell
                    for shown, pair in _columns(contestants, pairs)
                    for cell in _cells(result, shown, pair, contestants)
                ),
            )
    return table


def unit(figure: Figure) -> str:
    """With what is better: "ms, less"."""
    return figure.unit if figure.better == "neither" else f"{figure.unit}, {figure.better}"


def _headings(contestants: Mapping[str, str], pairs: Sequence[Pair], ratio_heading: str) -> Iterator[str]:
    for shown, pair in _columns(contestants, pairs):
        yield from (contestants[who] for who in shown)
        if pair is not None:
            yield ratio_heading if pair.ours in shown else f"{ratio_heading}: {contestants[pair.ours]}"


def _columns(contestants: Mapping[str, str], pairs: Sequence[Pair]) -> list[tuple[tuple[str, ...], Pair | None]]:
    """Each pair with those of whom it has columns, which are not there yet; at the end who is in no pair."""
    found: list[tuple[tuple[str, ...], Pair | None]] = []
    there: set[str] = set()
    for pair in pairs:
        found.append((tuple(who for who in pair if who not in there), pair))
        there |= {*pair}
    if alone := tuple(who for who in contestants if who not in there):
        found.append((alone, None))
    return found


def _cells(result: Result, shown: Sequence[str], pair: Pair | None, contestants: Mapping[str, str]) -> Iterator[str]:
    yield from (with_range(result.of(who)) for who in shown)
    if pair is None:
        return
    names = {
        "ours": contestants[pair.ours],
        "rival": contestants[pair.rival],
        "even": "even",
        "disagree": DISAGREE,
        None: "",
    }
    ahead = names[result.ahead(pair)].partition(",")[0]
    yield f"{ratio(result.ratio(pair))} {ahead}".rstrip()


def grouped(results: Sequence[Result]) -> list[tuple[str, list[Result]]]:
    """By heading, in the order in which headings first appear; the variants of a figure together."""
    headings = list(dict.fromkeys(result.figure.group for result in results))
    found = []
    for heading in headings:
        block = [result for result in results if result.figure.group == heading]
        names = list(dict.fromkeys(result.figure.name for result in block))
        found.append((heading, sorted(block, key=lambda result: names.index(result.figure.name))))
    return found


# In Markdown


def markdown(
    results: Sequence[Result], contestants: Mapping[str, str], pairs: Sequence[Pair], foot: Sequence[str]
) -> str:
    headings = ["", "unit", *_headings(contestants, pairs, "ratio")]
    lines = [_line(headings), _line(["---"] * 2 + ["---:"] * (len(headings) - 2))]
    for heading, block in grouped(results):
        lines.append(_line([f"**{heading}**", *[""] * (len(headings) - 1)]))
        for _, variants in groupby(block, key=lambda result: result.figure.name):
            lines.append(_line(_markdown_cells(list(variants), contestants, pairs)))
    return "\n".join([*lines, "", *foot])


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _markdown_cells(variants: Sequence[Result], contestants: Mapping[str, str], pairs: Sequence[Pair]) -> list[str]:
    figure = variants[0].figure
    named = joined([result.figure.variant for result in variants if result.figure.variant])
    cells = [f"{figure.name}, {named}" if named else figure.name, unit(figure)]
    for shown, pair in _columns(contestants, pairs):
        cells += [_together([_median(result.of(who)) for result in variants]) for who in shown]
        if pair is not None:
            cells.append(_together([_marked_ratio(result, pair) for result in variants]))
    return cells


def _together(cells: Sequence[str]) -> str:
    """Those of all variants; nothing is said once."""
    return NOTHING if set(cells) == {NOTHING} else " / ".join(cells)


def joined(variants: Sequence[str]) -> str:
    """With the words that all begin or end with said once: "100 / 1,000 B"."""
    words = [variant.split() for variant in variants]
    if len(words) < 2:
        return " ".join(variants)
    begin = _shared(words)
    end = _shared([each[begin:][::-1] for each in words])
    different = " / ".join(" ".join(each[begin : len(each) - end]) for each in words)
    return " ".join([*words[0][:begin], different, *words[0][len(words[0]) - end :]])


def _shared(words: Sequence[Sequence[str]]) -> int:
    """How many words all begin with."""
    return sum(1 for _ in takewhile(lambda column: len(set(column)) == 1, zip(*words, strict=False)))


def _median(found: Spread | None) -> str:
    return NOTHING if found is None else number(found.median)


def _marked_ratio(result: Result, pair: Pair) -> str:
    shown = ratio(result.ratio(pair))
    ahead = result.ahead(pair)
    if ahead == "disagree":
        return f"{shown}, {DISAGREE}"
    return f"**{shown}**" if ahead == "rival" else shown
