"""What goes over the pipe between a broker and its engine."""

import json
from dataclasses import replace
from errno import ENOSPC
from pathlib import Path

import pytest

from lamina.cleaning.contract import ContractError
from lamina.cleaning.engine_messages import (
    Cancel,
    Clean,
    Entry,
    Failure,
    Order,
    Progress,
    Start,
    Started,
    dump_line,
    dump_order,
    dump_started,
    failure_of,
    load_order,
    load_said,
)
from lamina.cleaning.failures import CorruptLog, SourceLost
from tests.cleaning.test_contract import PLAN
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


def test_only_damage_makes_a_log_uncleanable() -> None:
    assert failure_of(PLAN, CorruptLog("/x.log", 7, 3, "its CRC is wrong")).is_uncleanable
    assert not failure_of(PLAN, SourceLost("gone")).is_uncleanable
    assert "unexpectedly: KeyError" in failure_of(PLAN, KeyError("x")).reason


def test_a_full_disk_is_named_by_the_file_or_by_the_pass() -> None:
    plan = replace(PLAN, plan_id="p", directory="/data/t-0")
    named = failure_of(plan, OSError(ENOSPC, "No space left on device", "/x.log"))
    assert named.reason == "the disk failed the pass: /x.log: No space left on device"
    assert not named.is_uncleanable
    write = failure_of(plan, OSError(ENOSPC, "No space left on device"))
    assert write.reason == "the disk failed the pass: /data/t-0/.lamina-pass-p: No space left on device"
