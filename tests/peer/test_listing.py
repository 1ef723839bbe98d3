"""ListOffsets: the request for many partitions of one broker, and what its response tells (R37)."""

from types import SimpleNamespace

from lamina.peer.listing import DEBUGGING_CONSUMER, EARLIEST, LATEST, list_many, offsets_listed
from lamina.wire.api_keys import LIST_OFFSETS
from lamina.wire.codec import parse_request
from lamina.wire.fetch_request import READ_COMMITTED
from lamina.wire.headers import parse_request_header


def test_many_partitions_are_one_request_with_each_topic_once() -> None:
    call = list_many({("a", 0): EARLIEST, ("b", 3): 17, ("a", 1): LATEST}, READ_COMMITTED, DEBUGGING_CONSUMER)
    frame = memoryview(call.encode(call.versions.stop - 1, 5, "me"))[4:]
    header = parse_request_header(frame)
    told = parse_request(header.api_key, header.api_version, frame[header.body_at :])
    assert (call.api_key, told.replica_id, told.isolation_level) == (LIST_OFFSETS, DEBUGGING_CONSUMER, READ_COMMITTED)
    assert [
        (topic.name, [(one.partition_index, one.current_leader_epoch, one.timestamp) for one in topic.partitions])
        for topic in told.topics
    ] == [("a", [(0, -1, EARLIEST), (1, -1, LATEST)]), ("b", [(3, -1, 17)])]


def test_a_partition_with_an_error_has_no_offset() -> None:
    fine, failed = (SimpleNamespace(partition_index=i, offset=9, error_code=i * 6) for i in (0, 1))
    response = SimpleNamespace(topics=[SimpleNamespace(name="a", partitions=[fine, failed])])
    assert offsets_listed(response) == {("a", 0): 9}
