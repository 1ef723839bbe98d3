"""Which error a response tells, when it has several."""

import pytest

from lamina.errors import ErrorCode
from lamina.peer.transacting import Producer, add_partitions, first_error
from tests.peer.responses import response_frame

ADD_PARTITIONS_TO_TXN, VERSION, SIZE_BYTES = 24, 3, 4
FORBIDDEN, NOT_ATTEMPTED = ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.OPERATION_NOT_ATTEMPTED


@pytest.mark.parametrize(
    ("codes", "told"),
    [
        ([0, 0], None),
        ([NOT_ATTEMPTED, FORBIDDEN], FORBIDDEN),
        ([FORBIDDEN, NOT_ATTEMPTED], FORBIDDEN),
        ([NOT_ATTEMPTED, NOT_ATTEMPTED], NOT_ATTEMPTED),
    ],
)
def test_the_reason_is_told_and_not_what_was_not_attempted_because_of_it(
    codes: list[int], told: ErrorCode | None
) -> None:
    call = add_partitions("id", Producer(1, 0), {"a": [0], "b": [0]})
    results = [
        {"name": topic, "results_by_partition": [{"partition_index": 0, "partition_error_code": code}]}
        for topic, code in zip("ab", codes, strict=True)
    ]
    frame = response_frame(ADD_PARTITIONS_TO_TXN, VERSION, 7, results_by_topic_v3_and_below=results)
    error = first_error(call, call.decode(VERSION, memoryview(frame)[SIZE_BYTES:]), "the transaction")
    assert (None if error is None else error.code) == told
