"""A plan in words and numbers."""

import json

import pytest

from lamina.cli.reassignment.showing import names_text, print_brokers, sum_text, warn_of_racks
from lamina.planning.moves import Move


def test_what_a_plan_costs() -> None:
    moves = [Move(("t", 0), (1, 2), (3, 2)), Move(("t", 1), (1, 2), (2, 1)), Move(("t", 2), (1, 2), (1, 3))]
    assert sum_text(moves, {("t", 0): 1500, ("t", 2): 500}) == (
        "2 partitions to copy to other brokers (2.0 kB), 2 partitions to get another preferred leader"
    )
    assert sum_text(moves[1:2], {}) == "1 partition to get another preferred leader"
    assert sum_text([Move(("t", 0), (1, 2, 3), (1, 2))], {}) == "1 partition to keep fewer replicas"
    assert sum_text([], {}) == ""


def test_of_many_partitions_the_first_are_named() -> None:
    keys = [("t", index) for index in range(1200)]
    assert names_text(keys[:3]) == "t-0, t-1, t-2"
    assert names_text(keys) == "t-0, t-1, t-2 and 1,197 more"


def test_racks_that_only_some_brokers_have_are_a_warning(capsys: pytest.CaptureFixture[str]) -> None:
    for racks in ({1: "a", 2: "b"}, {1: None, 2: None}, {}):
        warn_of_racks(racks)
    assert capsys.readouterr().err == ""
    warn_of_racks({1: "a", 3: None, 2: None})
    assert "broker 2 has no rack and others have one" in capsys.readouterr().err


def test_brokers_are_shown_before_and_after_also_those_that_are_away(capsys: pytest.CaptureFixture[str]) -> None:
    before = {("t", 0): (1, 9), ("t", 1): (1,)}
    print_brokers(before, {("t", 0): (2, 9), ("t", 1): (1,)}, {1: "a", 2: None}, as_json=True)
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(row["broker"], row["rack"], row["replicas"], row["new_replicas"]) for row in rows] == [
        (1, "a", 2, 1),
        (2, None, 0, 1),
        (9, None, 1, 1),
    ]
    assert [(row["preferred_leaders"], row["new_preferred_leaders"]) for row in rows] == [(2, 1), (0, 1), (0, 0)]
