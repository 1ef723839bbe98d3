"""The ratios as a picture: one bar per figure, Lamina beside Kafka, with a mark where the project's bar is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

from bench.duel import Result

WIDTH, ROW_HEIGHT, MARGIN = 1200, 34, 24
LABEL_WIDTH, VALUE_WIDTH = 470, 210
LEAST, MOST = 1 / 32, 32
"""Ratios outside are drawn at the edge."""

INK, PALE = "#1f2933", "#9aa5b1"
BETTER, WORSE = "#2f855a", "#c05621"


def draw(results: Sequence[Result], path: Path) -> None:
    """Bars to the right of the line at 1 are better than Kafka, to the left worse; the scale is logarithmic."""
    height = 2 * MARGIN + ROW_HEIGHT * (len(results) + 2)
    image = Image.new("RGB", (WIDTH, height), "white")
    canvas = ImageDraw.Draw(image)
    font = ImageFont.load_default(16)
    canvas.text((MARGIN, MARGIN), "Lamina beside Kafka 4.1: how many times better, log scale", INK, font)
    top, bottom = MARGIN + ROW_HEIGHT, height - MARGIN - ROW_HEIGHT
    for times in (1 / 16, 1 / 4, 1, 4, 16):
        x = place(times)
        canvas.line((x, top, x, bottom), INK if times == 1 else "#e4e7eb", 2 if times == 1 else 1)
        canvas.text((x, bottom + 4), f"{times:g}x", PALE, font, anchor="ma")
    for number, result in enumerate(results):
        y = top + ROW_HEIGHT * number
        colour = BETTER if result.is_met else WORSE
        canvas.text((MARGIN, y + 6), result.figure.name.strip(), INK, font)
        one, end = place(1), place(times_better(result, result.measured))
        canvas.rectangle((min(one, end), y + 6, max(one, end), y + ROW_HEIGHT - 8), colour)
        said = f"{result.measured:.2f}"
        if result.figure.bar:
            mark = place(times_better(result, result.figure.bar))
            canvas.line((mark, y + 2, mark, y + ROW_HEIGHT - 4), INK, 3)
            sign = ">=" if result.figure.sign == "≥" else "<="  # the font that every install has knows no other
            said += f"  (bar {sign} {result.figure.bar})"
        canvas.text((WIDTH - MARGIN, y + 6), said, colour, font, anchor="ra")
    path.parent.mkdir(parents=True, exist_ok=True)
    image.save(path)


def times_better(result: Result, ratio: float) -> float:
    return ratio if result.figure.sign == "≥" else 1 / ratio


def place(times: float) -> float:
    """Where a ratio lies on the horizontal scale."""
    left, right = MARGIN + LABEL_WIDTH, WIDTH - MARGIN - VALUE_WIDTH
    share = math.log(min(max(times, LEAST), MOST) / LEAST) / math.log(MOST / LEAST)
    return left + share * (right - left)
