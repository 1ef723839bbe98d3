"""What clients above their quotas are told, over the very router and handlers (S61 to S65)."""

from collections.abc import Awaitable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

from lamina.broker.requests.client_quotas import Charge, ClientQuotas
from lamina.broker.requests.loop_time import LoopTime
from lamina.broker.requests.request import Request
from lamina.errors import ErrorCode
from lamina.image.diff import Changes
from lamina.records.record import Record, build_batch
from lamina.security.quotas import quota_entity
from lamina.wire.codec import SIZE_BYTES, encode_request, parse_response
from lamina.wire.versions import request_schema
from tests.broker.in_process import CORRELATION_ID, InProcessBroker, NoSocket, build, joined
from tests.broker.quotas import alter

PRODUCE, FETCH, METADATA, CREATE_TOPICS, DELETE_TOPICS, CREATE_PARTITIONS = 0, 1, 3, 19, 20, 37
ANONYMOUS, ANYBODY = {"user": "ANONYMOUS"}, {"user": None}


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[InProcessBroker]:
    opened = InProcessBroker(tmp_path / "data", {"num.partitions": "4"})
    opened.create("t")
    opened.clock.monotonic_ms = 1_000_000
    yield opened
    opened.close()


def asked(broker: InProcessBroker, api_key: int, version: int, **facts: Any) -> tuple[Request, Any]:
    """The request as its connection sees it afterwards, and the response."""
    facts = {"replica_id": -1} | facts
    frame = encode_request(build(request_schema(api_key, version), facts), CORRELATION_ID, "app")[SIZE_BYTES:]
    request, served = broker.parts.router.serve(NoSocket(), memoryview(frame))
    if isinstance(served, Awaitable):
        served = broker.wait(served)
    return request, None if served is None else parse_response(api_key, version, joined(served)[SIZE_BYTES:])[1]


def records(broker: InProcessBroker, size_bytes: int) -> bytes:
    return bytes(build_batch([Record(0, broker.parts.clocks.now_ms(), b"", bytes(size_bytes))]))


def produce(broker: InProcessBroker, size_bytes: int, acks: int = 1) -> tuple[Request, Any]:
    partitions = [{"index": 0, "records": records(broker, size_bytes)}]
    return asked(broker, PRODUCE, 9, acks=acks, topic_data=[{"name": "t", "partition_data": partitions}])


def fetch(broker: InProcessBroker, **facts: Any) -> tuple[Request, Any]:
    of = {"partition": 0, "current_leader_epoch": -1, "last_fetched_epoch": -1, "partition_max_bytes": 1 << 20}
    wanted = {"max_bytes": 1 << 20, "session_epoch": -1, "topics": [{"topic": "t", "partitions": [of]}]} | facts
    return asked(broker, FETCH, 12, **wanted)


def throttle_ms(answer: Any) -> int:
    waits_ms: int = round(answer.throttle_time.total_seconds() * 1000)
    return waits_ms


# Produce


def test_a_producer_waits_as_long_as_with_kafka(broker: InProcessBroker) -> None:
    """S61, S63: 750 kB at 50 kB/s; the whole request counts."""
    alter(broker, ANONYMOUS, producer_byte_rate=50_000.0)
    request, answer = produce(broker, 750_000)
    assert answer.responses[0].partition_responses[0].error_code == 0
    assert request.size_bytes > 750_000
    assert throttle_ms(answer) == request.throttle_ms == round(request.size_bytes / 50 - 10_000)


def test_a_producer_within_its_quota_does_not_wait(broker: InProcessBroker) -> None:
    alter(broker, ANONYMOUS, producer_byte_rate=50_000.0)
    request, answer = produce(broker, 400_000)
    assert throttle_ms(answer) == request.throttle_ms == 0


def test_without_answers_a_producer_is_muted_all_the_same(broker: InProcessBroker) -> None:
    """S63; and its request time is free (S65)."""
    alter(broker, ANONYMOUS, producer_byte_rate=50_000.0, request_percentage=0.0001)
    request, answer = produce(broker, 750_000, acks=0)
    assert answer is None
    assert request.throttle_ms == round(request.size_bytes / 50 - 10_000)


def test_several_clients_of_a_user_share_its_quota(broker: InProcessBroker) -> None:
    alter(broker, ANONYMOUS, producer_byte_rate=50_000.0)
    assert produce(broker, 400_000)[0].throttle_ms == 0
    broker.produce("t", 1)
    assert produce(broker, 400_000)[0].throttle_ms > 5000


def test_a_quota_that_is_removed_holds_no_more(broker: InProcessBroker) -> None:
    alter(broker, ANONYMOUS, producer_byte_rate=1.0)
    assert produce(broker, 1000)[0].throttle_ms
    alter(broker, ANONYMOUS, producer_byte_rate=None)
    request, _ = produce(broker, 1000)
    assert (request.throttle_ms, request.charge) == (0, None)


# Fetch


def test_a_consumer_above_its_quota_gets_nothing_until_it_has_waited(broker: InProcessBroker) -> None:
    """S63: and what it was not given does not count."""
    alter(broker, ANONYMOUS, consumer_byte_rate=50_000.0)
    produce(broker, 300_000)
    for _ in range(2):
        produce(broker, 100_000)
    request, answer = fetch(broker)
    assert (len(answer.responses[0].partitions[0].records), throttle_ms(answer)) == (500_000, 0)
    for _ in range(2):
        request, answer = fetch(broker)
        assert answer.responses == ()
        assert throttle_ms(answer) == request.throttle_ms == 10_000
    broker.clock.monotonic_ms = 1_011_000
    request, answer = fetch(broker)
    assert answer.responses[0].partitions[0].records


def test_a_fetch_gets_no_more_than_its_quota_can_bear(broker: InProcessBroker) -> None:
    """S63: quota * 10 s."""
    alter(broker, ANONYMOUS, consumer_byte_rate=1000.0)
    for _ in range(5):
        produce(broker, 4000)
    request, answer = fetch(broker, min_bytes=1_000_000, max_wait=10_000)
    assert (len(answer.responses[0].partitions[0].records), request.throttle_ms) == (10_000, 0)


def test_a_batch_larger_than_a_quota_can_bear_is_read_once_and_then_waited_for(broker: InProcessBroker) -> None:
    """Else it could never be read."""
    alter(broker, ANONYMOUS, consumer_byte_rate=1000.0)
    produce(broker, 20_000)
    request, answer = fetch(broker)
    assert len(answer.responses[0].partitions[0].records) > 20_000
    assert request.throttle_ms > 10_000
    assert fetch(broker)[1].responses == ()


def test_a_throttled_session_goes_on_and_none_begins(broker: InProcessBroker) -> None:
    alter(broker, ANONYMOUS, consumer_byte_rate=100_000.0)
    produce(broker, 500_000)
    _, opened = fetch(broker, session_epoch=0)
    session_id = opened.session_id
    assert session_id
    alter(broker, ANONYMOUS, consumer_byte_rate=10.0)
    incremental = {"session_id": session_id, "session_epoch": 1, "topics": []}
    _, answer = fetch(broker, **incremental)
    assert (answer.error_code, answer.session_id, answer.responses) == (0, session_id, ())
    assert throttle_ms(answer) > 0
    _, answer = fetch(broker, session_epoch=0)
    assert (answer.session_id, answer.responses) == (0, ())
    assert throttle_ms(answer) > 0
    assert len(broker.parts.fetch_sessions) == 1
    alter(broker, ANONYMOUS, consumer_byte_rate=None)
    _, answer = fetch(broker, **(incremental | {"session_epoch": 2}))
    assert (answer.error_code, len(answer.responses[0].partitions[0].records) > 500_000) == (0, True)


def test_a_fetch_of_many_partitions_is_throttled_too(broker: InProcessBroker) -> None:
    broker.create("many", partitions=300)
    broker.produce("many", 1)
    alter(broker, ANONYMOUS, consumer_byte_rate=1.0)
    asked_of = [
        {"partition": number, "current_leader_epoch": -1, "last_fetched_epoch": -1, "partition_max_bytes": 1 << 20}
        for number in range(300)
    ]
    topics = [{"topic": "many", "partitions": asked_of}]
    assert fetch(broker, topics=topics)[0].throttle_ms
    request, answer = fetch(broker, topics=topics)
    assert (answer.responses, throttle_ms(answer)) == ((), request.throttle_ms)


# The loop's time


def test_the_loops_time_is_charged_to_every_api_and_waits_are_short(broker: InProcessBroker) -> None:
    """S62: a second at most."""
    alter(broker, ANONYMOUS, request_percentage=0.000_001)
    ticks = iter(range(1_000_001, 2_000_000))
    broker.clock.monotonic_ms = lambda: next(ticks)
    for request, answer in (
        asked(broker, METADATA, 12, topics=None),
        asked(broker, 18, 3, client_software_name="a", client_software_version="1"),
        asked(broker, CREATE_TOPICS, 7, topics=[]),
        asked(broker, 32, 4, resources=[]),
        produce(broker, 10),
        fetch(broker),
    ):
        assert throttle_ms(answer) == request.throttle_ms == 1000, request.api_key


def test_time_that_others_have_on_the_loop_is_not_charged() -> None:
    charged: list[int] = []
    now_ns = 0

    class Quotas(ClientQuotas):
        def __init__(self) -> None:
            """Charges alone."""

        def used_loop(self, request: Request, duration_ns: int) -> None:
            charged.append(duration_ns)

    charge = Charge(Quotas(), lambda: now_ns)

    class Waits:
        def __await__(self) -> Generator[None, None, None]:
            yield

    async def respond() -> None:
        nonlocal now_ns
        now_ns += 10
        await Waits()
        now_ns += 100
        charge.settle(None)  # type: ignore[arg-type]

    now_ns += 1
    steps = LoopTime(respond(), charge).__await__()
    now_ns += 10_000
    next(steps)
    now_ns += 100_000
    with pytest.raises(StopIteration):
        next(steps)
    assert charged == [111]


# Changes


def new_topics(broker: InProcessBroker, *names: str, version: int = 7, **facts: Any) -> tuple[Request, list[int]]:
    topics = [{"name": name, "num_partitions": 10, "replication_factor": 1} for name in names]
    request, answer = asked(broker, CREATE_TOPICS, version, topics=topics, **facts)
    assert throttle_ms(answer) == request.throttle_ms
    return request, [topic.error_code for topic in answer.topics]


def test_changes_above_the_quota_are_refused_until_the_debt_is_paid(broker: InProcessBroker) -> None:
    """S64: a burst of 11 seconds; the request that overdraws is done."""
    alter(broker, ANONYMOUS, controller_mutation_rate=1.0)
    request, codes = new_topics(broker, "a", "b", "c")
    assert codes == [0, 0, ErrorCode.THROTTLING_QUOTA_EXCEEDED]
    assert request.throttle_ms == 9000
    assert new_topics(broker, "c", validate_only=True)[1] == [ErrorCode.THROTTLING_QUOTA_EXCEEDED]
    broker.clock.monotonic_ms = 1_009_000
    request, codes = new_topics(broker, "c")
    assert (request.throttle_ms, codes) == (0, [0])


def test_validation_alone_is_charged_too(broker: InProcessBroker) -> None:
    """S64."""
    alter(broker, ANONYMOUS, controller_mutation_rate=1.0)
    assert new_topics(broker, "a", "b", validate_only=True)[1] == [0, 0]
    assert new_topics(broker, "a")[1] == [ErrorCode.THROTTLING_QUOTA_EXCEEDED]


def test_topics_that_are_there_cost_nothing(broker: InProcessBroker) -> None:
    alter(broker, ANONYMOUS, controller_mutation_rate=1.0)
    for _ in range(3):
        assert new_topics(broker, "t")[1] == [ErrorCode.TOPIC_ALREADY_EXISTS]
    assert new_topics(broker, "a")[1] == [0]


def test_old_versions_are_served_and_told_to_wait(broker: InProcessBroker) -> None:
    """S64: CreateTopics below v6, DeleteTopics below v5, CreatePartitions below v3."""
    alter(broker, ANONYMOUS, controller_mutation_rate=1.0)
    request, codes = new_topics(broker, "a", "b", version=5)
    assert (request.throttle_ms, codes) == (9000, [0, 0])
    more = [{"name": "a", "count": 12, "assignments": None}]
    request, answer = asked(broker, CREATE_PARTITIONS, 2, topics=more)
    assert ([one.error_code for one in answer.results], request.throttle_ms) == ([0], 11_000)
    request, answer = asked(broker, DELETE_TOPICS, 4, topic_names=["a"])
    assert ([one.error_code for one in answer.responses], request.throttle_ms) == ([0], 23_000)


def test_deletions_and_new_partitions_count_as_many_as_they_concern(broker: InProcessBroker) -> None:
    new_topics(broker, "a", "b")
    alter(broker, ANONYMOUS, controller_mutation_rate=1.0)
    more = [{"name": "a", "count": 22, "assignments": None}]
    request, answer = asked(broker, CREATE_PARTITIONS, 3, topics=more)
    assert ([one.error_code for one in answer.results], request.throttle_ms) == ([0], 0)
    request, answer = asked(broker, DELETE_TOPICS, 6, topics=[{"name": "b"}])
    told = [one.error_code for one in answer.responses]
    assert (told, request.throttle_ms) == ([ErrorCode.THROTTLING_QUOTA_EXCEEDED], 1000)
    assert "b" in broker.parts.metadata.image.topics
    more = [{"name": "b", "count": 12, "assignments": None}]
    request, answer = asked(broker, CREATE_PARTITIONS, 3, topics=more)
    told = [one.error_code for one in answer.results]
    assert (told, request.throttle_ms) == ([ErrorCode.THROTTLING_QUOTA_EXCEEDED], 1000)
    assert len(broker.parts.metadata.image.topics["b"].partitions) == 10


def test_topics_that_come_by_asking_for_them_count_too(broker: InProcessBroker) -> None:
    alter(broker, ANONYMOUS, controller_mutation_rate=0.25)
    request, answer = asked(broker, METADATA, 12, topics=[{"name": "auto"}], allow_auto_topic_creation=True)
    assert (answer.topics[0].error_code, throttle_ms(answer)) == (0, 5000)
    assert request.throttle_ms == 5000


# Memory


def test_who_has_not_come_for_as_long_as_is_measured_is_forgotten(broker: InProcessBroker) -> None:
    """Clients name themselves: however many names one takes, only those of the last seconds are remembered."""
    parts = broker.parts
    quotas = ClientQuotas(parts.metadata.settings, parts.counters.quotas, parts.clocks)
    limits = {"producer_byte_rate": 10.0, "controller_mutation_rate": 10.0}
    quotas.image_changed(Changes(quotas={quota_entity([("client-id", None)]): limits}))
    counters = next(iter(parts.counters.requests.values()))
    for number in range(1000):
        broker.clock.monotonic_ms = 1_000_000 + number * 100
        request = Request(PRODUCE, 9, 0, f"client {number}", NoSocket(), counters)
        request.size_bytes = 10
        quotas.produced(request)
        quotas.changes(request, is_strict=True).take(1)
    assert len(quotas) < 2 * 130
