from lamina.errors import ErrorCode
from lamina.wire.answer_errors import error_codes
from lamina.wire.building import response_shape

LIST_OFFSETS, DELETE_TOPICS, DESCRIBE_ACLS = 2, 20, 29


def test_errors_are_found_however_deep_they_lie_and_none_is_no_error() -> None:
    shape = response_shape(LIST_OFFSETS, 7)
    topic, partition = shape.of("topics"), shape.of("topics").of("partitions")
    codes = (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.FENCED_LEADER_EPOCH)
    partitions = tuple(
        partition(partition_index=index, error_code=code, timestamp=-1, offset=-1, leader_epoch=-1)
        for index, code in enumerate(codes)
    )
    answer = shape(throttle_time=0, topics=(topic(name="t", partitions=partitions), topic(name="u", partitions=())))
    assert list(error_codes(answer)) == [3, 74]


def test_the_error_of_the_whole_answer_is_found() -> None:
    shape = response_shape(DESCRIBE_ACLS, 3)
    answer = shape(throttle_time=0, error_code=ErrorCode.SECURITY_DISABLED, error_message="none", resources=())
    assert list(error_codes(answer)) == [54]


def test_an_answer_without_errors_has_none() -> None:
    shape = response_shape(DELETE_TOPICS, 5)
    response = shape.of("responses")(name="t", error_code=ErrorCode.NONE, error_message=None)
    assert list(error_codes(shape(throttle_time=0, responses=(response,)))) == []
