"""What a broker with clients tells of itself, read by Prometheus's own parsers."""

import asyncio
import logging
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_families
from prometheus_client.parser import text_string_to_metric_families as families

from lamina.broker.counters import Place
from lamina.broker.metrics import exposition, group_lag, group_tally
from lamina.broker.metrics.definitions import METRICS
from lamina.broker.metrics.exposition import render
from lamina.coordinators.records.group_records import OffsetKey
from tests.broker.in_process import InProcessBroker
from tests.broker.in_thread import BrokerInThread
from tests.broker.metrics.sources import sources_of
from tests.broker.process import eventually
from tests.broker.raw import FETCH, FETCH_VERSION, RawClient, batch_of, fetch_request, metadata_request
from tests.broker.requests.handlers.groups_world import Groups


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerInThread]:
    started = BrokerInThread(tmp_path_factory.mktemp("metrics"), **{"log.flush.interval.messages": "1"}).start()
    yield started
    started.stop()


@pytest.fixture
def raw(broker: BrokerInThread) -> Iterator[RawClient]:
    with RawClient(broker) as client:
        yield client


class Scrape:
    def __init__(self, broker: BrokerInThread) -> None:
        _, text = broker.run(render(sources_of(broker)))
        self.families = list(families(text.decode()))
        self.samples = [sample for family in self.families for sample in family.samples]

    def value(self, name: str, **labels: str) -> float:
        """The one sample with these labels, others left open; 0 where there is none."""
        found = [one.value for one in self.samples if one.name == name and labels.items() <= one.labels.items()]
        assert len(found) < 2, found
        return found[0] if found else 0.0

    def topics(self) -> set[str]:
        return {sample.labels["topic"] for sample in self.samples if "topic" in sample.labels}


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def records(count: int) -> bytes:
    return batch_of(*[(b"key", b"value")] * count, now_ms=now_ms())


def test_what_is_listed_is_exposed_and_nothing_else(broker: BrokerInThread, raw: RawClient) -> None:
    raw.create_topic("listed")
    exposed = Scrape(broker).families
    # The parser, as OpenMetrics does, names counters without their suffix.
    assert [family.name for family in exposed] == [metric.name.removesuffix("_total") for metric in METRICS]
    assert [family.type for family in exposed] == [str(metric.kind) for metric in METRICS]
    for family, metric in zip(exposed, METRICS, strict=True):
        for sample in family.samples:
            assert sample.name in metric.series_names
            assert sample.labels.keys() - {"le"} == set(metric.labels)


def test_after_some_traffic_every_metric_has_a_sample(broker: BrokerInThread, raw: RawClient) -> None:
    raw.create_topic("sampled")
    raw.produce("sampled", records(1))
    without = [family.name for family in Scrape(broker).families if not family.samples]
    tls = ["lamina_tls_certificate_expires_timestamp_seconds", "lamina_tls_handshakes"]
    logins = ["lamina_logins"]
    assert sorted(without) == sorted([*tls, *logins, "lamina_group_lag"]), "no TLS, nobody logs in, there is no group"


def test_messages_and_bytes_are_counted_by_topic(broker: BrokerInThread, raw: RawClient) -> None:
    topic_id = raw.create_topic("counted")
    batch = records(3)
    raw.produce("counted", batch)
    raw.produce("counted", batch)
    raw.fetch(topic_id, 0)
    scrape = Scrape(broker)
    assert scrape.value("lamina_topic_in_messages_total", topic="counted") == 6
    assert scrape.value("lamina_topic_in_bytes_total", topic="counted") == 2 * len(batch)
    assert scrape.value("lamina_topic_out_bytes_total", topic="counted") == 2 * len(batch)
    assert scrape.value("lamina_topic_produce_requests_total", topic="counted") == 2
    assert scrape.value("lamina_topic_produce_failures_total", topic="counted") == 0
    assert scrape.value("lamina_topic_fetch_requests_total", topic="counted") == 1
    for name, expected in {"start_offset": 0, "end_offset": 6, "segments": 1, "size_bytes": 2 * len(batch)}.items():
        assert scrape.value(f"lamina_log_{name}", topic="counted", partition="0") == expected
    assert scrape.value("lamina_high_watermark", topic="counted", partition="0") == 6
    assert scrape.value("lamina_last_stable_offset", topic="counted", partition="0") == 6


def test_failures_are_counted_by_topic_and_by_error(broker: BrokerInThread, raw: RawClient) -> None:
    topic_id = raw.create_topic("failing")
    before = Scrape(broker)
    broken = bytearray(records(1))
    broken[-1] ^= 1
    assert raw.produce("failing", bytes(broken)).error_code == 2
    assert raw.fetch(topic_id, 17).error_code == 1
    assert raw.produce("nowhere", records(1)).error_code == 3
    after = Scrape(broker)
    assert after.value("lamina_topic_produce_failures_total", topic="failing") == 1
    assert after.value("lamina_topic_fetch_failures_total", topic="failing") == 1
    for api, error in (("Produce", "CORRUPT_MESSAGE"), ("Fetch", "OFFSET_OUT_OF_RANGE")):
        labels = {"api": api, "error": error}
        assert after.value("lamina_request_errors_total", **labels) == 1 + before.value(
            "lamina_request_errors_total", **labels
        )
    assert "nowhere" not in after.topics()


def test_a_batch_that_is_too_large_counts_as_rejected_bytes(broker: BrokerInThread, raw: RawClient) -> None:
    raw.create_topic("large")
    batch = batch_of((b"key", bytes(2 << 20)), now_ms=now_ms())
    assert raw.produce("large", batch).error_code == 10
    assert Scrape(broker).value("lamina_topic_rejected_bytes_total", topic="large") == len(batch)


def test_requests_are_counted_by_version_and_their_times_by_api(broker: BrokerInThread, raw: RawClient) -> None:
    before = Scrape(broker)
    for _ in range(3):
        raw.ask(metadata_request())
    raw.ask(metadata_request("no spaces allowed", create=False))
    after = Scrape(broker)

    def grew(name: str, **labels: str) -> float:
        return after.value(name, api="Metadata", **labels) - before.value(name, api="Metadata", **labels)

    assert grew("lamina_requests_total", version="12") == 4
    assert grew("lamina_request_errors_total", error="NONE") == 3
    assert grew("lamina_request_errors_total", error="INVALID_TOPIC_EXCEPTION") == 1
    for part in ("duration", "arrival", "queue", "local", "threads", "remote", "send"):
        assert grew(f"lamina_request_{part}_seconds_count") == 4
        assert grew(f"lamina_request_{part}_seconds_bucket", le="+Inf") == 4
    assert grew("lamina_request_local_seconds_sum") > 0


def test_errors_of_answers_without_a_handler_of_their_own_are_found(broker: BrokerInThread, raw: RawClient) -> None:
    before = Scrape(broker)
    raw.list_offset("nowhere", -1)
    labels = {"api": "ListOffsets", "error": "UNKNOWN_TOPIC_OR_PARTITION"}
    grew = Scrape(broker).value("lamina_request_errors_total", **labels)
    assert grew == before.value("lamina_request_errors_total", **labels) + 1


def test_a_parked_fetch_is_seen_and_its_waiting_is_remote_time(broker: BrokerInThread, raw: RawClient) -> None:
    topic_id = raw.create_topic("parked")
    before = Scrape(broker)
    raw.begin(fetch_request([(topic_id, [(0, 0)])], max_wait_ms=60_000))
    eventually(lambda: Scrape(broker).value("lamina_parked_fetches") == 1)
    with RawClient(broker) as other:
        other.produce("parked", records(1))
    raw.answer(FETCH, FETCH_VERSION)
    after = Scrape(broker)
    assert after.value("lamina_parked_fetches") == 0
    name = "lamina_request_remote_seconds_sum"
    assert after.value(name, api="Fetch") > before.value(name, api="Fetch")


def test_flushes_and_waiting_for_them_are_timed(broker: BrokerInThread, raw: RawClient) -> None:
    raw.create_topic("flushed")
    before = Scrape(broker)
    raw.produce("flushed", records(1))
    after = Scrape(broker)
    count, waited = "lamina_flush_duration_seconds_count", "lamina_request_threads_seconds_sum"
    # A flush of the test before may be counted late.
    assert after.value(count) > before.value(count)
    assert after.value(waited, api="Produce") > before.value(waited, api="Produce")
    assert after.value("lamina_threads_busy_seconds_total") > before.value("lamina_threads_busy_seconds_total")


def test_connections_are_counted_with_how_they_ended(broker: BrokerInThread) -> None:
    eventually(lambda: Scrape(broker).value("lamina_connections", listener="PLAINTEXT") == 0)
    before = Scrape(broker)
    with RawClient(broker) as polite, RawClient(broker) as stranger:
        polite.ask(metadata_request())
        stranger.send(b"GET / HTTP/1.1\r\n\r\n")
        assert stranger.is_closed()
        now = Scrape(broker)
        assert now.value("lamina_connections", listener="PLAINTEXT") == 1
        created = "lamina_connections_created_total"
        assert now.value(created, listener="PLAINTEXT") == before.value(created, listener="PLAINTEXT") + 2
        assert now.value("lamina_network_in_bytes_total") > before.value("lamina_network_in_bytes_total")
        assert now.value("lamina_network_out_bytes_total") > before.value("lamina_network_out_bytes_total")
    eventually(lambda: Scrape(broker).value("lamina_connections", listener="PLAINTEXT") == 0)
    closed, after = "lamina_connections_closed_total", Scrape(broker)
    for reason in ("client", "refused"):
        assert after.value(closed, reason=reason) == before.value(closed, reason=reason) + 1
    assert after.value("lamina_network_in_bytes_total") >= now.value("lamina_network_in_bytes_total")


def test_a_connection_knows_what_went_over_it(broker: BrokerInThread, raw: RawClient) -> None:
    raw.ask(metadata_request())
    (connection,) = [one for one in list(broker.started.listening.connections) if one.peer == raw.peer]
    assert (connection.client_id, connection.listener_name) == ("raw", "PLAINTEXT")
    eventually(lambda: connection.requests == 1)
    assert connection.bytes_in > 0
    assert connection.bytes_out > 0
    assert connection.opened_at_ms <= now_ms()


def test_the_series_of_a_topic_go_with_it(tmp_path: Path) -> None:
    broker = InProcessBroker(tmp_path / "data", {})
    broker.create("kept")
    broker.create("dropped")
    broker.produce("dropped", 1)
    assert b'"dropped"' in scraped(broker)
    broker.ask(20, 5, topic_names=["dropped"])
    text = scraped(broker)
    assert b'"kept"' in text
    assert b'"dropped"' not in text
    broker.create("dropped")
    assert b'lamina_topic_in_messages_total{topic="dropped"} 0.0' in scraped(broker)
    broker.close()


def scraped(broker: InProcessBroker, accept: str = "") -> bytes:
    return broker.parts.loop.run_until_complete(render(sources_of(broker), accept))[1]


def test_what_a_client_calls_itself_is_no_label(broker: BrokerInThread, raw: RawClient) -> None:
    raw.ask(metadata_request())
    assert b"raw" not in broker.run(render(sources_of(broker)))[1]


def test_an_unexpected_exception_is_counted_where_it_was_caught(broker: BrokerInThread) -> None:
    async def fail() -> None:
        broker.parts.counters.count_unexpected(Place.TIMER)

    before = Scrape(broker)
    broker.run(fail())
    name, after = "lamina_unexpected_exceptions_total", Scrape(broker)
    assert after.value(name, place="timer") == before.value(name, place="timer") + 1
    assert after.value(name, place="metadata") == 0


def test_the_requests_of_a_followed_client_are_logged(
    broker: BrokerInThread, raw: RawClient, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    watch = broker.parts.request_watch
    watch.follow(raw.peer)
    raw.ask(metadata_request("no spaces allowed", create=False))
    eventually(lambda: any("followed" in line for line in caplog.messages))
    watch.unfollow(raw.peer)
    raw.ask(metadata_request())
    (line,) = [line for line in caplog.messages if "followed" in line]
    assert raw.peer in line
    assert "Metadata version 12, correlation id 1" in line
    assert "INVALID_TOPIC_EXCEPTION" in line


def test_openmetrics_is_written_for_those_who_ask_for_it(broker: BrokerInThread, raw: RawClient) -> None:
    raw.create_topic("open")
    accept = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"
    content_type, text = broker.run(render(sources_of(broker), accept))
    assert content_type.startswith("application/openmetrics-text")
    assert text.count(b"# EOF\n") == 1
    exposed = open_families(text.decode())  # type: ignore[no-untyped-call]
    assert [family.name for family in exposed] == [metric.name.removesuffix("_total") for metric in METRICS]


@pytest.mark.parametrize("accept", ["", "*/*", "text/html", "application/openmetrics-text;version=new", ";;,q="])
def test_any_other_wish_gets_the_plain_text(broker: BrokerInThread, accept: str) -> None:
    content_type, text = broker.run(render(sources_of(broker), accept))
    assert content_type.startswith("text/plain; version=0.0.4")
    assert b"# EOF" not in text


def test_many_partitions_are_told_in_slices_and_others_go_in_between(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exposition, "SAMPLES_AT_A_TIME", 5)
    broker = InProcessBroker(tmp_path / "data", {})
    broker.create("many", 11)
    turns = 0

    async def run() -> bytes:
        def turn() -> None:
            nonlocal turns
            turns += 1
            loop.call_soon(turn)

        loop = asyncio.get_running_loop()
        loop.call_soon(turn)
        return (await render(sources_of(broker)))[1]

    text = broker.parts.loop.run_until_complete(run())
    (sizes,) = [family for family in families(text.decode()) if family.name == "lamina_log_size_bytes"]
    assert {sample.labels["partition"] for sample in sizes.samples} == {str(index) for index in range(11)}
    assert text.count(b"# TYPE lamina_log_size_bytes ") == 1
    assert turns >= 6 * 3, "six metrics have three slices each"
    broker.close()


def test_many_groups_are_counted_in_slices_and_others_go_in_between(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_tally, "GROUPS_AT_A_TIME", 5)
    broker = InProcessBroker(
        tmp_path / "data", {"offsets.topic.num.partitions": "1", "group.initial.rebalance.delay.ms": "0"}
    )
    broker.create("t")
    groups = Groups(broker).found()
    groups.stable()
    for number in range(21):
        assert groups.commit(("t", 0, 7), group_id=f"g{number}") == [0]
    turns = 0

    async def count() -> group_tally.GroupTally:
        def turn() -> None:
            nonlocal turns
            turns += 1
            if turns == 2:
                machine = next(iter(broker.parts.groups.runtime)).machine
                assert machine is not None
                machine.offsets.replay(OffsetKey("g20", "t", 0), None, None)
            loop.call_soon(turn)

        loop = asyncio.get_running_loop()
        loop.call_soon(turn)
        return await group_tally.tally_groups(broker.parts.groups)

    tally = broker.parts.loop.run_until_complete(count())
    assert tally.states == {("classic", "Empty"): 20, ("classic", "Stable"): 1}, "one went before its turn"
    assert (tally.members, tally.offsets) == ({"classic": 1}, 20)
    assert turns >= 5
    broker.close()


def test_the_groups_with_the_most_lag_are_told_and_the_others_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_lag, "MOST_LAGS", 2)
    broker = InProcessBroker(tmp_path / "data", {"offsets.topic.num.partitions": "1"})
    broker.create("t")
    groups = Groups(broker).found()
    for name, offset in (("slow", 1), ("slower", 0), ("quick", 3), ("ahead", 9)):
        assert groups.commit(("t", 0, offset), group_id=name) == [0]
    broker.parts.partitions.get("t", 0).high_watermark = 3

    text = broker.parts.loop.run_until_complete(render(sources_of(broker)))[1].decode()
    samples = [one for family in families(text) for one in family.samples if one.name.startswith("lamina_group_lag")]
    told = {one.labels["group"]: one.value for one in samples if one.name == "lamina_group_lag"}
    assert told == {"slow": 2, "slower": 3}
    assert [one.value for one in samples if one.name == "lamina_group_lag_omitted"] == [2]
    broker.close()


def test_a_broker_by_itself_is_a_cluster_that_lacks_nothing(broker: BrokerInThread, raw: RawClient) -> None:
    raw.create_topic("alone")
    scrape = Scrape(broker)
    assert scrape.value("lamina_active_controller") == 1
    assert scrape.value("lamina_zookeeper_session_proven") == 1
    assert scrape.value("lamina_leader_partitions") == scrape.value("lamina_partitions") > 0
    assert scrape.value("lamina_at_min_isr_partitions") == scrape.value("lamina_leader_partitions")
    lacking = ("under_replicated_partitions", "under_min_isr_partitions", "controller_offline_partitions")
    for name in (*lacking, "reassigning_partitions", "controller_preferred_replica_imbalance"):
        assert scrape.value(f"lamina_{name}") == 0
    counted = ("isr_shrinks", "isr_expands", "leader_elections", "unclean_leader_elections")
    for name in (*counted, "reassignment_in_bytes", "reassignment_out_bytes"):
        assert scrape.value(f"lamina_{name}_total") == 0


def test_a_broker_starts_without_prometheus_client() -> None:
    code = (
        "import sys, lamina.broker.server, lamina.broker.metrics.exposition; print('prometheus_client' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
