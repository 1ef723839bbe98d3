"""Plan and manifest come back as they were written, and what is not one of them is refused in a sentence."""

import json
from dataclasses import replace

import pytest

from lamina.cleaning.contract import (
    AbortedEntry,
    ActiveProducer,
    ContractError,
    Counts,
    Dropped,
    Horizons,
    Manifest,
    OutputFile,
    OutputGroup,
    Plan,
    Seconds,
    SourceSegment,
    dump,
    load,
)

PLAN = Plan(
    plan_id="5f2c",
    topic="orders",
    topic_id=bytes(range(16)),
    partition=3,
    directory="/data/logs/orders-3",
    pass_time_ms=1_700_000_000_000,
    delete_retention_ms=86_400_000,
    segment_bytes=2**30,
    segment_index_bytes=10 * 2**20,
    index_interval_bytes=4096,
    max_message_bytes=1_048_588,
    first_dirty_offset=100,
    first_uncleanable_offset=2**40,
    segments=(SourceSegment(0, 2**40, 1234, 8, 12, 1_690_000_000_000, "0.log"),),
    producers=(ActiveProducer(7, 0, 99), ActiveProducer(8, 3, None)),
    aborted=(AbortedEntry(7, 10, 20, 21),),
    memory_limit_bytes=2**27,
    throttle_bytes_per_second=None,
    hash_key=bytes(16),
)

MANIFEST = Manifest(
    plan_id="5f2c",
    attempt="0-1",
    end_offset=2**40,
    groups=(OutputGroup(0, 2**40, (0,), 1_690_000_000_000, (OutputFile(".log", "0.5f2c.0-1.log", 61, 2**32 - 1),)),),
    before=Counts(1, 1234, 5, 10, 1, 1, 0),
    after=Counts(1, 61, 1, 0, 0, 0, 1),
    keys=4,
    dropped=Dropped(6, 1, 1, 1, 1),
    horizons=Horizons(0, 0, None, None),
    bytes_read=2468,
    bytes_written=61,
    seconds=Seconds(0.1, 0.2, 0.3, 0.0, 0.6),
)


@pytest.mark.parametrize("plan", [PLAN, replace(PLAN, throttle_bytes_per_second=1.5e6, only_expired=True)])
def test_a_plan_comes_back_as_it_was_written(plan: Plan) -> None:
    assert load(Plan, dump(plan)) == plan


def test_a_manifest_comes_back_as_it_was_written() -> None:
    assert load(Manifest, dump(MANIFEST)) == MANIFEST
    assert load(Manifest, dump(MANIFEST).decode()) == MANIFEST


def test_the_pass_folder_lies_in_the_partition_directory_under_the_plans_id() -> None:
    assert PLAN.pass_folder == "/data/logs/orders-3/.lamina-pass-5f2c"


def test_a_newer_version_is_refused_with_what_to_do() -> None:
    newer = json.dumps({**json.loads(dump(PLAN)), "version": 2, "news": 1})
    with pytest.raises(ContractError, match=r"newer Lamina.*version 2.*up to 1.*same version"):
        load(Plan, newer)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"topic": 5}, "topic is 5, not text"),
        ({"partition": True}, "partition is true, not an integer"),
        ({"partition": 1.0}, "partition is 1.0, not an integer"),
        ({"topic_id": "xyz"}, 'topic_id is "xyz", not hex text'),
        ({"segments": {}}, "segments is not a list"),
        ({"segments": [7]}, r"segments\[0\] is not an object"),
        ({"producers": [{"producer_id": 7, "epoch": 0}]}, r"producers\[0\].last_data_offset is missing"),
        ({"throttle_bytes_per_second": "fast"}, 'throttle_bytes_per_second is "fast", not a number'),
        ({"only_expired": 1}, "only_expired is 1, not true or false"),
        ({"colour": "red"}, "colour is an unknown field"),
        ({"version": None}, "it has no version"),
        ({"version": 0}, "it has no version"),
    ],
)
def test_what_is_not_a_plan_is_refused_with_its_place(change: dict[str, object], said: str) -> None:
    with pytest.raises(ContractError, match=f"no cleaning plan of version 1: {said}"):
        load(Plan, json.dumps({**json.loads(dump(PLAN)), **change}))


@pytest.mark.parametrize("text", ["", "[]", "nonsense", b"\xff\xfe", "[" * 100_000])
def test_what_is_not_a_json_object_is_refused(text: str | bytes) -> None:
    with pytest.raises(ContractError, match="no cleaning manifest of version 1: it is not"):
        load(Manifest, text)


def test_a_missing_field_is_named() -> None:
    value = json.loads(dump(PLAN))
    del value["hash_key"]
    with pytest.raises(ContractError, match="hash_key is missing"):
        load(Plan, json.dumps(value))
