"""Results as a picture: for every figure a bar for each contestant, with its value, its range and who is ahead.
Beside several rivals that is told of the best one.

Bars of one figure share a scale that begins at zero; those of different figures do not. Where less is better the
shorter bar is the better one, and every figure says which it is. Brokers are told apart by colour and by pattern, for
those who print or see no colours. Owns the layout, which is pure, and the drawing of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from textwrap import wrap
from typing import Literal

from PIL import Image, ImageDraw, ImageFont

from bench.results import Ahead, Pair, Result
from bench.table import DISAGREE, grouped, with_range

WIDTH, MARGIN, GUTTER, COLUMNS = 1700, 28, 44, 2
COLUMN_WIDTH = (WIDTH - 2 * MARGIN - GUTTER * (COLUMNS - 1)) // COLUMNS
LABEL_WIDTH, BAR_WIDTH = 190, 210
BAR_HEIGHT, BLOCK_GAP, NAME_HEIGHT, HEADING_HEIGHT, SECTION_GAP = 16, 7, 22, 30, 14
TITLE_SIZE, HEADING_SIZE, TEXT_SIZE, SMALLEST_SIZE = 24, 17, 14, 9
LABEL_INDENT, LABEL_GAP = 12, 6
HEADING_LINE_HEIGHT = 22
HEADING_CHARACTERS, LABEL_CHARACTERS = 80, 26
FOOT_CHARACTERS, FOOT_LINE_HEIGHT = 225, 19

INK, PALE, LINE = "#1f2933", "#66727f", "#cbd2d9"
RIVAL_COLOURS, OUR_COLOURS = ("#c3b3d1", "#a8b3c2", "#66788f"), ("#c5dfa3", "#8ccfae", "#2f855a")
"""The last ones are the strong ones."""
ALONE_COLOUR = "#d8c99b"
"""Of who is compared with nobody."""
Pattern = Literal["plain", "slanted", "upright", "level"]
RIVAL_PATTERNS: tuple[Pattern, ...] = ("level", "upright", "slanted")
OUR_PATTERNS: tuple[Pattern, ...] = ("upright", "level", "plain")
STRIPE_GAP = 5
MICRO = "µ"
LEGEND_TEXT = (
    "Every bar begins at zero and ends at the median, on one scale for each figure; the thin line goes from the least "
    "round to the most. “2.00× better”: the median is twice the rival's where more is better, half of it where less "
    "is; “worse” the other way round. “even”: closer than 2 %. “rounds disagree”: one was better in some rounds, the "
    "other in others; the ratio is the median of one figure divided by its rival's, round by round. Of several rivals "
    "the best in that figure counts; who is compared with nobody has no verdict."
)
AHEAD_COLOURS: Mapping[Ahead, str] = {"ours": "#226344", "rival": "#b4420f", "even": PALE, "disagree": PALE}


@dataclass(frozen=True, slots=True)
class Bar:
    contestant: str
    share: float
    """Of the width that bars have."""
    least: float
    most: float
    value: str
    verdict: str
    ahead: Ahead | None


@dataclass(frozen=True, slots=True)
class Block:
    """One figure."""

    label: str
    bars: tuple[Bar, ...]

    @property
    def label_lines(self) -> list[str]:
        return wrap(self.label, LABEL_CHARACTERS)

    @property
    def height(self) -> int:
        return BAR_HEIGHT * max(len(self.bars), len(self.label_lines)) + BLOCK_GAP


@dataclass(frozen=True, slots=True)
class Named:
    """All variants of one figure."""

    name: str
    blocks: tuple[Block, ...]

    @property
    def height(self) -> int:
        return NAME_HEIGHT + sum(block.height for block in self.blocks)


@dataclass(frozen=True, slots=True)
class Section:
    heading: str
    figures: tuple[Named, ...]

    @property
    def heading_lines(self) -> list[str]:
        return wrap(self.heading, HEADING_CHARACTERS)

    @property
    def heading_height(self) -> int:
        return HEADING_HEIGHT + HEADING_LINE_HEIGHT * (len(self.heading_lines) - 1)

    @property
    def height(self) -> int:
        return self.heading_height + sum(figure.height for figure in self.figures) + SECTION_GAP


# Layout


def lay_out(results: Sequence[Result], pairs: Sequence[Pair]) -> list[Section]:
    return [Section(heading, tuple(_named(block, pairs))) for heading, block in grouped(results)]


def _named(results: Sequence[Result], pairs: Sequence[Pair]) -> Iterator[Named]:
    for name, variants in groupby(results, key=lambda result: result.figure.name):
        block = list(variants)
        figure = block[0].figure
        least = min(min(values) for result in block for values in result.rounds.values())
        if least < 0:
            raise ValueError(f"{figure.group}: {name} was {least:.3g} {figure.unit} in a round, and cannot be negative")
        better = "" if figure.better == "neither" else f", {figure.better} is better"
        title = f"{name} ({figure.unit}{better})"
        greatest = max(max(values) for result in block for values in result.rounds.values()) or 1.0
        yield Named(title, tuple(Block(result.figure.variant, _bars(result, pairs, greatest)) for result in block))


def _bars(result: Result, pairs: Sequence[Pair], greatest: float) -> tuple[Bar, ...]:
    bars = []
    for contestant in result.rounds:
        found = result.of(contestant)
        if found is None:
            continue
        pair = _best_rival(result, [pair for pair in pairs if pair.ours == contestant])
        bars.append(
            Bar(
                contestant,
                found.median / greatest,
                found.least / greatest,
                found.most / greatest,
                f"{with_range(found)} {result.figure.unit}",
                "" if pair is None else verdict(result, pair),
                None if pair is None else result.ahead(pair),
            )
        )
    return tuple(bars)


def _best_rival(result: Result, pairs: Sequence[Pair]) -> Pair | None:
    """Of those that took part, the one beside which ours looks worst."""
    medians = {pair: ratio.median for pair in pairs if (ratio := result.ratio(pair)) is not None}
    sign = -1 if result.figure.better == "less" else 1
    return min(medians, key=lambda pair: sign * medians[pair], default=None)


def verdict(result: Result, pair: Pair) -> str:
    """How many times better or worse ours is; where rounds disagree about that, the ratio."""
    ratio, ahead = result.ratio(pair), result.ahead(pair)
    if ratio is None or ahead is None:
        return ""
    if ahead == "even":
        return "even"
    if ahead == "disagree":
        return f"ratio {ratio.median:.2f}, {DISAGREE}"
    which = "better" if ahead == "ours" else "worse"
    if not ratio.median:
        return which
    times = max(ratio.median, 1 / ratio.median)
    return f"{times:.{1 if times >= 10 else 2}f}× {which}"


def in_columns(sections: Sequence[Section], columns: int) -> list[list[Section]]:
    """In their order, so that the tallest column is as low as it can be."""
    heights = [section.height for section in sections]
    limit = max([*heights, -(-sum(heights) // columns)], default=0)
    while True:
        placed: list[list[Section]] = [[]]
        filled = 0
        for section in sections:
            if placed[-1] and filled + section.height > limit:
                placed.append([])
                filled = 0
            placed[-1].append(section)
            filled += section.height
        if len(placed) <= columns:
            return placed
        limit += BAR_HEIGHT


# Drawing


def draw(
    title: str,
    results: Sequence[Result],
    contestants: Mapping[str, str],
    pairs: Sequence[Pair],
    foot: Sequence[str],
    path: Path,
) -> None:
    columns = in_columns(lay_out(results, pairs), COLUMNS)
    foot_lines = [line for paragraph in (LEGEND_TEXT, *foot) for line in wrap(paragraph, FOOT_CHARACTERS)]
    top = MARGIN + 86
    body = max((sum(section.height for section in column) for column in columns), default=0)
    height = top + body + FOOT_LINE_HEIGHT * len(foot_lines) + MARGIN
    image = Image.new("RGB", (WIDTH, height), "white")
    canvas = _Canvas(ImageDraw.Draw(image), contestants, fills(contestants, pairs))
    canvas.text(MARGIN, MARGIN, title, TITLE_SIZE)
    canvas.legend(MARGIN, MARGIN + 44)
    for number, column in enumerate(columns):
        canvas.column(MARGIN + number * (COLUMN_WIDTH + GUTTER), top, column)
    for number, line in enumerate(foot_lines):
        canvas.text(MARGIN, top + body + FOOT_LINE_HEIGHT * number, line, TEXT_SIZE, PALE)
    path.parent.mkdir(parents=True, exist_ok=True)
    image.save(path, optimize=True)


@dataclass(frozen=True, slots=True)
class Fill:
    colour: str
    pattern: Pattern


def fills(contestants: Iterable[str], pairs: Sequence[Pair]) -> dict[str, Fill]:
    """The last pair has the strong ones."""
    rivals = list(dict.fromkeys(pair.rival for pair in reversed(pairs)))
    ours = list(dict.fromkeys(pair.ours for pair in reversed(pairs)))
    found = {who: Fill(ALONE_COLOUR, "upright") for who in contestants}
    for whose, colours, patterns in ((rivals, RIVAL_COLOURS, RIVAL_PATTERNS), (ours, OUR_COLOURS, OUR_PATTERNS)):
        for place, who in enumerate(whose):
            found[who] = Fill(colours[-1 - place], patterns[-1 - place])
    return found


Line = tuple[float, float, float, float]
Font = ImageFont.FreeTypeFont | ImageFont.ImageFont


def stripes(pattern: Pattern, left: float, top: float, right: float, bottom: float) -> Iterator[Line]:
    """The lines of a pattern inside a box."""
    height = bottom - top
    if pattern == "level":
        yield left, top + height / 2 - 3, right, top + height / 2 - 3
        yield left, top + height / 2 + 3, right, top + height / 2 + 3
        return
    lean = height if pattern == "slanted" else 0
    foot = left - lean + STRIPE_GAP
    while pattern != "plain" and foot < right:
        # A line that leans goes from its foot to as far right as it goes up; what is outside the box is cut off.
        begin, end = max(foot, left), min(foot + lean, right)
        yield begin, bottom - (begin - foot if lean else 0), end, bottom - (end - foot if lean else height)
        foot += STRIPE_GAP


@dataclass(frozen=True, slots=True)
class _Canvas:
    draw: ImageDraw.ImageDraw
    contestants: Mapping[str, str]
    fills: Mapping[str, Fill]

    def text(self, x: float, y: float, text: str, size: int, colour: str = INK, anchor: str = "la") -> None:
        font = ImageFont.load_default(size)
        shown = drawable(text)
        self.draw.text((x, y), shown, colour, font, anchor=anchor)
        left = x - font.getlength(shown) if anchor == "ra" else x
        for at in (place for place, letter in enumerate(text) if letter == MICRO):
            self._tail(left + font.getlength(shown[:at]), y, font, colour)

    def _tail(self, x: float, y: float, font: Font, colour: str) -> None:
        """Makes a µ of a u, for the font has none."""
        stem, _, _, bottom = font.getbbox("u", anchor="la")
        _, _, _, lowest = font.getbbox("p", anchor="la")
        self.draw.line((x + stem, y + bottom - 2, x + stem, y + lowest - 1), colour, 1)

    def box(self, contestant: str, left: float, top: float, right: float, bottom: float) -> None:
        fill = self.fills[contestant]
        self.draw.rectangle((left, top, right, bottom), fill.colour)
        for line in stripes(fill.pattern, left, top, right, bottom):
            self.draw.line(line, "white", 1)

    def legend(self, x: float, y: float) -> None:
        for contestant, name in self.contestants.items():
            self.box(contestant, x, y, x + 26, y + BAR_HEIGHT - 3)
            self.text(x + 34, y, name, TEXT_SIZE)
            x += 62 + ImageFont.load_default(TEXT_SIZE).getlength(drawable(name))
        self.draw.line((x, y + 7, x + 26, y + 7), INK, 1)
        for end in (x, x + 26):
            self.draw.line((end, y + 3, end, y + 11), INK, 1)
        self.text(x + 34, y, "least to most", TEXT_SIZE)

    def column(self, x: float, y: float, sections: Sequence[Section]) -> None:
        for section in sections:
            for number, text in enumerate(section.heading_lines):
                self.text(x, y + HEADING_LINE_HEIGHT * number, text, HEADING_SIZE)
            y += section.heading_height
            self.draw.line((x, y - 7, x + COLUMN_WIDTH, y - 7), LINE, 1)
            for figure in section.figures:
                self.text(x, y, figure.name, TEXT_SIZE)
                y += NAME_HEIGHT
                for block in figure.blocks:
                    self.block(x, y, block)
                    y += block.height
            y += SECTION_GAP

    def block(self, x: float, y: float, block: Block) -> None:
        for line, text in enumerate(block.label_lines):
            self.text(x + LABEL_INDENT, y + line * BAR_HEIGHT, text, TEXT_SIZE, PALE)
        left = x + LABEL_WIDTH
        for bar in block.bars:
            if not block.label:
                name = self.contestants[bar.contestant]
                self.text(x + LABEL_INDENT, y - 1, name, name_size(name), PALE)
            middle = y + (BAR_HEIGHT - 3) / 2
            self.box(bar.contestant, left, y, left + bar.share * BAR_WIDTH, y + BAR_HEIGHT - 3)
            least, most = left + bar.least * BAR_WIDTH, left + bar.most * BAR_WIDTH
            if most - least >= 1:
                self.draw.line((least, middle, most, middle), INK, 1)
                for end in (least, most):
                    self.draw.line((end, middle - 3, end, middle + 3), INK, 1)
            self.text(left + BAR_WIDTH + 10, y - 1, bar.value, TEXT_SIZE)
            if bar.ahead is not None:
                self.text(x + COLUMN_WIDTH, y - 1, bar.verdict, TEXT_SIZE, AHEAD_COLOURS[bar.ahead], anchor="ra")
            y += BAR_HEIGHT


def name_size(name: str) -> int:
    """As large as other text, or so small that the name of a contestant ends before its bar."""
    sizes = range(TEXT_SIZE, SMALLEST_SIZE, -1)
    return next(
        (size for size in sizes if LABEL_INDENT + name_width(name, size) + LABEL_GAP <= LABEL_WIDTH), SMALLEST_SIZE
    )


def name_width(name: str, size: int) -> float:
    return ImageFont.load_default(size).getlength(drawable(name))


def drawable(text: str) -> str:
    """In letters that the font has which every Pillow brings along; a µ gets its tail later."""
    return text.translate({ord("×"): "x", ord("–"): "-", ord(MICRO): "u", ord("“"): '"', ord("”"): '"'})
