"""The shapes of logs that cleaners are measured with."""

from bench.source_log import MEBIBYTE, Log, messages_of


def test_a_log_is_always_the_same() -> None:
    log = Log(500, 20, 10)
    assert list(messages_of(log)) == list(messages_of(log))


def test_a_log_has_as_many_records_as_it_says_with_keys_and_values_of_one_size() -> None:
    (messages,) = messages_of(Log(500, 20, 11))
    assert len(messages) == 500
    assert len({message["key"] for message in messages}) == 20
    assert {len(message["value"]) for message in messages} == {11}


def test_partitions_get_equal_shares() -> None:
    assert [len(messages) for messages in messages_of(Log(300, 20, 10, partitions=3))] == [100, 100, 100]


def test_a_smaller_log_has_smaller_segments_or_fewer_partitions() -> None:
    log = Log(10_000_000, 2_000_000, 100)
    assert log.scaled(1.0) == log
    assert log.scaled(0.1) == Log(1_000_000, 200_000, 100, segment_bytes=128 * MEBIBYTE // 10)
    many = Log(1_000_000, 200_000, 100, segment_bytes=4 * MEBIBYTE, partitions=100)
    assert many.scaled(0.1) == Log(100_000, 20_000, 100, segment_bytes=4 * MEBIBYTE, partitions=10)
