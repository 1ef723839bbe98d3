"""Numbers and tables for people."""

from dataclasses import replace

import pytest
from rich.console import Console

from bench.results import Pair, Spread
from bench.table import grouped, joined, markdown, number, ratio, terminal_table, with_range
from tests.bench.comparisons import CONTESTANTS, PAIR, result


@pytest.mark.parametrize(
    ("value", "shown"),
    [(1234567.8, "1,234,568"), (99.96, "100"), (12.34, "12.3"), (0.1234, "0.123"), (0.0, "0"), (0.00012, "0.0001")],
)
def test_numbers_have_three_digits_that_count(value: float, shown: str) -> None:
    assert number(value) == shown


def test_a_range_is_shown_where_there_is_one() -> None:
    assert with_range(Spread(2, 1, 3)) == "2 (1–3)"
    assert with_range(Spread(2, 2, 2)) == "2"
    assert with_range(None) == "–"


def test_variants_of_a_figure_stand_together_under_their_heading() -> None:
    one, other = (
        [result([1], [1], name=name, variant=variant, group="a") for name in ("rate", "p99")] for variant in ("1", "16")
    )
    last = result([1], [1], name="start", group="b")
    headings = [(heading, [each.figure.name for each in block]) for heading, block in grouped([*one, last, *other])]
    assert headings == [("a", ["rate", "rate", "p99", "p99"]), ("b", ["start"])]


def test_markdown_has_a_line_for_all_variants_and_lost_ratios_in_bold() -> None:
    results = [
        result([100, 110, 120], [50, 55, 60], variant="connections: 16"),
        result([100, 100, 100], [200, 300, 300], variant="connections: 100"),
        result([4, 4, 4], [2, 2, 2], "less", name="p99"),
    ]
    assert markdown(results, CONTESTANTS, [PAIR], ["Two cores."]).splitlines() == [
        "|  | unit | Kafka | Lamina | ratio |",
        "| --- | --- | ---: | ---: | ---: |",
        "| **Small requests** |  |  |  |  |",
        "| requests, connections: 16 / 100 | /s, more | 110 / 100 | 55 / 300 | **0.50** / 3.00 (2.00–3.00) |",
        "| p99 | ms, less | 4 | 2 | 0.50 |",
        "",
        "Two cores.",
    ]


def test_a_ratio_about_which_rounds_disagree_is_shown_and_says_so() -> None:
    found = result([10, 10, 10], [9, 12, 20])
    shown = markdown([found], CONTESTANTS, [PAIR], [])
    assert "| requests | /s, more | 10 | 12 | 1.20 (0.90–2.00), rounds disagree |" in shown
    console = Console(width=200)
    with console.capture() as captured:
        console.print(terminal_table([found], CONTESTANTS, [PAIR]))
    assert "1.20 (0.90–2.00) rounds disagree" in captured.get()


@pytest.mark.parametrize(
    ("variants", "shown"),
    [
        (["connections: 1", "connections: 16"], "connections: 1 / 16"),
        (["100 B", "1,000 B", "10,000 B"], "100 / 1,000 / 10,000 B"),
        (["Kafka with -Xmx1G -Xms1G", "Kafka with -Xmx256M"], "Kafka with -Xmx1G -Xms1G / -Xmx256M"),
        (["p50", "p99"], "p50 / p99"),
        (["16 connections"], "16 connections"),
        ([], ""),
    ],
)
def test_words_that_all_variants_share_are_said_once(variants: list[str], shown: str) -> None:
    assert joined(variants) == shown


def test_a_small_ratio_keeps_its_digits() -> None:
    assert ratio(Spread(0.0123, 0.0119, 0.5)) == "0.012 (0.012–0.50)"
    assert ratio(None) == "–"


def test_a_contestant_that_did_not_take_part_leaves_a_dash() -> None:
    pairs = [PAIR, Pair(rival="tuned", ours="lamina")]
    shown = markdown([result([4], [2])], {**CONTESTANTS, "tuned": "Kafka, tuned"}, pairs, [])
    assert "| requests | /s, more | 4 | 2 | **0.50** | – | – |" in shown


def test_a_rival_of_several_has_one_column() -> None:
    pairs = [PAIR, Pair(rival="kafka", ours="other")]
    contestants = {**CONTESTANTS, "other": "Lamina, other"}
    lines = markdown([result([4], [2])], contestants, pairs, []).splitlines()
    assert lines[0] == "|  | unit | Kafka | Lamina | ratio | Lamina, other | ratio |"
    assert "| requests | /s, more | 4 | 2 | **0.50** | – | – |" in lines
    console = Console(width=200)
    with console.capture() as captured:
        console.print(terminal_table([result([4], [2])], contestants, pairs))
    assert captured.get().count(" Kafka ") == 2  # A column, and who is ahead.


def test_ours_of_several_rivals_has_one_column_and_a_ratio_to_each() -> None:
    pairs = [PAIR, Pair(rival="newer", ours="lamina")]
    contestants = {**CONTESTANTS, "newer": "Kafka, newer", "empty": "nothing"}
    found = result([4], [2])
    found = replace(found, rounds={**found.rounds, "newer": [1], "empty": [9]})
    lines = markdown([found], contestants, pairs, []).splitlines()
    assert lines[0] == "|  | unit | Kafka | Lamina | ratio | Kafka, newer | ratio: Lamina | nothing |"
    assert "| requests | /s, more | 4 | 2 | **0.50** | 1 | 2.00 | 9 |" in lines
    console = Console(width=200)
    with console.capture() as captured:
        console.print(terminal_table([found], contestants, pairs))
    assert "nothing" in captured.get()


def test_who_took_part_in_no_variant_leaves_one_dash() -> None:
    pairs = [PAIR, Pair(rival="tuned", ours="lamina")]
    found = [result([4], [2], variant=variant) for variant in ("1", "16")]
    shown = markdown(found, {**CONTESTANTS, "tuned": "Kafka, tuned"}, pairs, [])
    assert "| requests, 1 / 16 | /s, more | 4 / 4 | 2 / 2 | **0.50** / **0.50** | – | – |" in shown


def test_the_terminal_shows_losses_like_wins() -> None:
    console = Console(width=200, record=True, quiet=True)
    with console.capture() as captured:
        console.quiet = False
        console.print(terminal_table([result([4, 4], [2, 3]), result([4, 4], [8, 9])], CONTESTANTS, [PAIR]))
    lines = [line.replace("│", " ").split() for line in captured.get().splitlines() if "requests" in line]
    assert [line[-1] for line in lines if line[0] == "requests"] == ["Kafka", "Lamina"]


def test_a_figure_of_which_neither_more_nor_less_is_better_has_no_winner() -> None:
    found = result([1, 1], [2, 2], "neither", name="cores")
    assert found.ahead(PAIR) is None
    assert "| cores | cores | 1 | 2 | 2.00 |" in markdown([found], CONTESTANTS, [PAIR], [])
