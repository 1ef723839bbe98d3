"""Draws the pictures of the documentation: ``python docs/pictures/draw.py`` makes an SVG of each text beside it.

A text is a grid of characters. Box-drawing characters become lines, the four arrow heads become arrows, a run of other
characters becomes a label; ``*like this*`` is bold. So the picture is read in a terminal as well, and a change of it is
read in a diff.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 8, 18
"""Of one character, in pixels."""
MARGIN = 12

UP, DOWN, LEFT, RIGHT = (0, -1), (0, 1), (-1, 0), (1, 0)
LINES = {
    "─": (LEFT, RIGHT),
    "│": (UP, DOWN),
    "┌": (RIGHT, DOWN),
    "┐": (LEFT, DOWN),
    "└": (RIGHT, UP),
    "┘": (LEFT, UP),
    "├": (UP, DOWN, RIGHT),
    "┤": (UP, DOWN, LEFT),
    "┬": (LEFT, RIGHT, DOWN),
    "┴": (LEFT, RIGHT, UP),
    "┼": (UP, DOWN, LEFT, RIGHT),
}
ARROWS = {"▶": RIGHT, "◀": LEFT, "▲": UP, "▼": DOWN}
STYLE = (
    "svg{background:#fff}"
    "path{stroke:#57606a;stroke-width:1.5;fill:none;stroke-linecap:square}"
    "polygon{fill:#57606a}"
    "text{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;fill:#1f2328;white-space:pre}"
    ".b{font-weight:700;fill:#0550ae}"
)


def draw(text: str) -> str:
    rows = text.rstrip("\n").split("\n")
    width = max(map(len, rows)) * WIDTH + 2 * MARGIN
    height = len(rows) * HEIGHT + 2 * MARGIN
    shapes = [*_lines(rows), *_arrows(rows), *_labels(rows)]
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">'
    return "\n".join([head, f"<style>{STYLE}</style>", *shapes, "</svg>", ""])


def _centre(x: int, y: int) -> tuple[float, float]:
    return MARGIN + x * WIDTH + WIDTH / 2, MARGIN + y * HEIGHT + HEIGHT / 2


def _cells(rows: list[str]) -> Iterator[tuple[int, int, str]]:
    return ((x, y, character) for y, row in enumerate(rows) for x, character in enumerate(row))


def _lines(rows: list[str]) -> Iterator[str]:
    strokes = []
    for x, y, character in _cells(rows):
        at = _centre(x, y)
        towards = LINES.get(character, ())
        if character in ARROWS:
            # An arrow head has a shaft behind it.
            towards = ((-ARROWS[character][0], -ARROWS[character][1]),)
        for towards_x, towards_y in towards:
            strokes.append(f"M{at[0]:g} {at[1]:g}l{towards_x * WIDTH / 2:g} {towards_y * HEIGHT / 2:g}")
    yield f'<path d="{"".join(strokes)}"/>'


def _arrows(rows: list[str]) -> Iterator[str]:
    for x, y, character in _cells(rows):
        if character in ARROWS:
            (at_x, at_y), (to_x, to_y) = _centre(x, y), ARROWS[character]
            tip = (at_x + to_x * WIDTH / 2, at_y + to_y * HEIGHT / 2)
            side_x, side_y = to_y * 4.5, to_x * 4.5
            back = (tip[0] - to_x * 8, tip[1] - to_y * 10)
            corners = (tip, (back[0] + side_x, back[1] + side_y), (back[0] - side_x, back[1] - side_y))
            yield f'<polygon points="{" ".join(f"{px:g},{py:g}" for px, py in corners)}"/>'


def _labels(rows: list[str]) -> Iterator[str]:
    drawn = "".join((*LINES, *ARROWS))
    for y, row in enumerate(rows):
        for found in re.finditer(rf"[^\s{drawn}]+(?: [^\s{drawn}]+)*", row):
            x, at_y = MARGIN + found.start() * WIDTH, MARGIN + (y + 0.72) * HEIGHT
            for part in re.split(r"(\*[^*]+\*)", found[0]):
                label, kind = (part[1:-1], ' class="b"') if part.startswith("*") and len(part) > 2 else (part, "")
                length = f' textLength="{len(label) * WIDTH:g}"' if label.strip() else ""
                if label.strip():
                    yield f'<text x="{x:g}" y="{at_y:g}"{kind}{length}>{escape(label)}</text>'
                x += len(label) * WIDTH


if __name__ == "__main__":
    for source in sorted(Path(__file__).parent.glob("*.txt")):
        source.with_suffix(".svg").write_text(draw(source.read_text()))
