"""The pictures are those that their texts describe."""

from pathlib import Path

import pytest

from docs.pictures.draw import draw

PICTURES = Path(__file__).parents[2] / "docs" / "pictures"


@pytest.mark.parametrize("source", sorted(PICTURES.glob("*.txt")), ids=lambda source: source.stem)
def test_a_picture_is_drawn_from_its_text(source: Path) -> None:
    assert source.with_suffix(".svg").read_text() == draw(source.read_text()), "make docs draws it anew"


def test_lines_meet_labels_stay_and_bold_ones_lose_their_stars() -> None:
    drawn = draw("┌─┐\n│a│ *bold* & more\n└▶┘\n")
    assert drawn.count("<polygon") == 1
    assert ">a</text>" in drawn
    assert 'class="b" textLength="32">bold</text>' in drawn
    assert ">&amp; more</text>" in drawn or "> &amp; more</text>" in drawn
