"""What a picture shows, and where."""

from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image, ImageFont

from bench.picture import (
    BAR_HEIGHT,
    COLUMN_WIDTH,
    HEADING_CHARACTERS,
    HEADING_HEIGHT,
    HEADING_LINE_HEIGHT,
    HEADING_SIZE,
    LABEL_GAP,
    LABEL_INDENT,
    LABEL_WIDTH,
    LEGEND_TEXT,
    TEXT_SIZE,
    WIDTH,
    Pattern,
    Section,
    draw,
    drawable,
    fills,
    in_columns,
    lay_out,
    name_size,
    name_width,
    stripes,
    verdict,
)
from bench.results import Better, Pair
from tests.bench.comparisons import CONTESTANTS, PAIR, result


def test_bars_share_a_scale_from_zero_to_the_most_of_their_figure() -> None:
    (section,) = lay_out([result([20, 40, 50], [80, 90, 100])], [PAIR])
    kafka, lamina = section.figures[0].blocks[0].bars
    assert (kafka.least, kafka.share, kafka.most) == (0.2, 0.4, 0.5)
    assert (lamina.least, lamina.share, lamina.most) == (0.8, 0.9, 1.0)


def test_a_negative_value_is_refused_with_its_figure() -> None:
    with pytest.raises(ValueError, match=r"Small requests: requests was -0\.5 ms in a round"):
        lay_out([result([20], [40], "less"), result([20, 30], [40, -0.5], "less")], [PAIR])


def test_variants_of_a_figure_share_its_scale() -> None:
    (section,) = lay_out([result([20], [40], variant="1"), result([50], [100], variant="16")], [PAIR])
    first, last = section.figures[0].blocks
    assert [bar.share for bar in (*first.bars, *last.bars)] == [0.2, 0.4, 0.5, 1.0]


def test_a_bar_says_its_value_with_range_and_unit_and_ours_says_who_is_ahead() -> None:
    (section,) = lay_out([result([20, 40, 50], [80, 90, 100])], [PAIR])
    assert section.figures[0].name == "requests (/s, more is better)"
    kafka, lamina = section.figures[0].blocks[0].bars
    assert (kafka.value, kafka.verdict, kafka.ahead) == ("40 (20–50) /s", "", None)
    assert (lamina.value, lamina.verdict, lamina.ahead) == ("90 (80–100) /s", "2.25× better", "ours")


@pytest.mark.parametrize(
    ("lamina", "better", "said"),
    [
        ([20], "more", "2.00× better"),
        ([5], "more", "2.00× worse"),
        ([20], "less", "2.00× worse"),
        ([5], "less", "2.00× better"),
        ([200], "more", "20.0× better"),
        ([10], "more", "even"),
    ],
)
def test_a_verdict_says_how_many_times_better_or_worse(lamina: list[float], better: Better, said: str) -> None:
    assert verdict(result([10], lamina, better), PAIR) == said


def test_nothing_is_better_than_something_without_a_number_of_times() -> None:
    assert verdict(result([1], [0], "less"), PAIR) == "better"


def test_a_verdict_about_which_rounds_disagree_is_the_ratio() -> None:
    assert verdict(result([10, 10, 10], [9, 12, 20]), PAIR) == "ratio 1.20, rounds disagree"


def test_variants_are_blocks_of_one_figure() -> None:
    (section,) = lay_out([result([1], [1], variant=variant) for variant in ("1", "16")], [PAIR])
    (figure,) = section.figures
    assert [block.label for block in figure.blocks] == ["1", "16"]


def test_a_contestant_that_did_not_take_part_has_no_bar() -> None:
    (section,) = lay_out([result([1], [1])], [PAIR, Pair(rival="tuned", ours="lamina-2")])
    assert [bar.contestant for bar in section.figures[0].blocks[0].bars] == ["kafka", "lamina"]


def test_columns_keep_the_order_and_are_about_as_tall() -> None:
    sections = lay_out([result([1], [1], group=str(number)) for number in range(5)], [PAIR])
    columns = in_columns(sections, 2)
    assert [section.heading for column in columns for section in column] == ["0", "1", "2", "3", "4"]
    assert [len(column) for column in columns] == [3, 2]


def test_a_single_tall_section_is_one_column() -> None:
    sections = lay_out([result([1], [1], variant=str(number)) for number in range(9)], [PAIR])
    assert [len(column) for column in in_columns(sections, 2)] == [1]
    assert in_columns(list[Section](), 2) == [[]]


def test_everything_drawn_has_letters_in_the_font() -> None:
    font = ImageFont.load_default(14)
    missing = bytes(font.getmask("\ufffe"))
    text = drawable("1.20× (3–4) µs, 100 %; …" + LEGEND_TEXT)
    assert [letter for letter in text if letter != " " and bytes(font.getmask(letter)) == missing] == []


def test_a_picture_is_as_tall_as_what_is_in_it(tmp_path: Path) -> None:
    heights = []
    for count in (1, 3):
        results = [result([1, 2, 3], [4, 5, 6], variant=str(number)) for number in range(count)]
        draw("Title", results, CONTESTANTS, [PAIR], ["foot"], tmp_path / "picture.png")
        with Image.open(tmp_path / "picture.png") as image:
            assert image.width == WIDTH
            heights.append(image.height)
    assert heights[1] - heights[0] >= 4 * BAR_HEIGHT


def test_a_long_heading_takes_lines_that_fit_into_its_column() -> None:
    words = "Produce requests of one record: three Lamina brokers beside one Kafka broker"
    (short,) = lay_out([result([1], [1], group="Memory")], [PAIR])
    (long,) = lay_out([result([1], [1], group=f"{words}, {words}")], [PAIR])
    assert " ".join(long.heading_lines) == f"{words}, {words}"
    assert (short.heading_height, long.heading_height) == (HEADING_HEIGHT, HEADING_HEIGHT + HEADING_LINE_HEIGHT)
    assert long.height == short.height + HEADING_LINE_HEIGHT
    widest = ImageFont.load_default(HEADING_SIZE).getlength("n" * HEADING_CHARACTERS)
    assert widest <= COLUMN_WIDTH


def test_a_long_label_keeps_what_follows_below_it() -> None:
    label = "each broker stopped and started, in sync before the next"
    (section,) = lay_out([result([1], [1], variant=label)], [PAIR])
    (block,) = section.figures[0].blocks
    assert len(block.label_lines) == 3 > len(block.bars)
    assert block.height >= BAR_HEIGHT * 3


def test_brokers_are_told_apart_by_more_than_colour() -> None:
    pairs = [PAIR, Pair(rival="tuned", ours="lamina-2")]
    assert len({fill.pattern for fill in fills([], pairs).values()}) == 4
    assert len({fill.pattern for fill in fills([], [PAIR]).values()}) == 2


def test_a_rival_of_several_has_one_bar_and_all_who_stand_beside_it_their_own() -> None:
    pairs = [PAIR, Pair("kafka", "other"), Pair("kafka", "third")]
    (section,) = lay_out([result([1], [1])], pairs)
    assert [bar.contestant for bar in section.figures[0].blocks[0].bars] == ["kafka", "lamina"]
    assert len({fill.colour for fill in fills([], pairs).values()}) == 4


def test_beside_several_rivals_the_best_one_counts_and_who_has_no_rival_has_no_verdict() -> None:
    pairs = [PAIR, Pair("newer", "lamina"), Pair("tuned", "lamina")]
    cases: list[tuple[Better, str]] = [("more", "1.50× worse"), ("less", "2.00× worse")]
    for better, said in cases:
        found = result([10], [20], better)
        found = replace(found, rounds={**found.rounds, "newer": [30], "empty": [99]})
        (section,) = lay_out([found], pairs)
        verdicts = {bar.contestant: (bar.verdict, bar.ahead) for bar in section.figures[0].blocks[0].bars}
        assert verdicts == {"kafka": ("", None), "lamina": (said, "rival"), "newer": ("", None), "empty": ("", None)}
    assert len({fill.colour for fill in fills(["empty"], pairs).values()}) == 5


@pytest.mark.parametrize("name", ["Lamina", "Spark's own 4.2.0, same Spark", "Kafka 4.1.0, with a smaller heap"])
def test_the_name_of_a_contestant_ends_before_its_bar(name: str) -> None:
    assert LABEL_INDENT + name_width(name, name_size(name)) + LABEL_GAP <= LABEL_WIDTH
    assert name_size("Lamina") == TEXT_SIZE


@pytest.mark.parametrize("pattern", ["slanted", "upright", "level", "plain"])
def test_a_pattern_stays_inside_its_box(pattern: Pattern) -> None:
    lines = list(stripes(pattern, 10, 20, 42, 33))
    assert bool(lines) == (pattern != "plain")
    for begin_x, begin_y, end_x, end_y in lines:
        assert 10 <= begin_x <= end_x <= 42
        assert 20 <= min(begin_y, end_y) <= max(begin_y, end_y) <= 33


def test_a_micro_sign_has_a_tail_below_the_line(tmp_path: Path) -> None:
    ink = []
    for unit in ("us", "µs"):
        draw(unit, [], {}, [], [], tmp_path / "picture.png")
        with Image.open(tmp_path / "picture.png") as image:
            ink.append(sum(image.convert("L").crop((0, 0, 100, 70)).histogram()[:128]))
    assert ink[1] > ink[0]
