"""What goes over the pipe between a broker and its engine."""

import json
from pathlib import Path

import pytest

from lamina.cleaning.answers import Failure, Progress, dump_line
from lamina.cleaning.contract import ContractError
from lamina.cleaning.orders import (
    Cancel,
    Clean,
    Entry,
    Order,
    Start,
    Started,
    dump_order,
    dump_started,
    load_order,
    load_said,
)
from tests.pipeline.engines import a_plan


def test_orders_are_the_same_after_the_pipe(tmp_path: Path) -> None:
    start = Start("local[*]", (Entry("spark.x", 'a "quoted"\nline'),), "/data/spark")
    orders: list[Order] = [start, Clean(a_plan(tmp_path)), Cancel("p1")]
    for order in orders:
        line = dump_order(order)
        assert line.count(b"\n") == 1
        assert load_order(line) == order


def test_what_an_engine_says_is_the_same_after_the_pipe() -> None:
    started = Started("4.1.0", "Java 17", 2, 4.5)
    assert load_said(dump_started(started)) == started
    for said in (Progress("p", 1, 2), Failure("p", "why", is_uncleanable=True)):
        assert load_said(dump_line(said)) == said


def test_another_version_is_refused_with_a_sentence() -> None:
    line = json.dumps({"version": 3, "cancel": {"plan_id": "p"}}).encode()
    with pytest.raises(ContractError, match="use the same Lamina for both"):
        load_order(line)


@pytest.mark.parametrize(
    "line",
    [b"", b"nonsense", b"[]", b'{"version":2}', b'{"version":2,"dance":{}}', b'{"version":2,"cancel":{"plan":1}}'],
)
def test_nonsense_is_refused(line: bytes) -> None:
    with pytest.raises(ContractError):
        load_order(line)
    with pytest.raises(ContractError):
        load_said(line)
