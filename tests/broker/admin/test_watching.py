"""Metrics, slow requests and followed connections of a broker that runs, over HTTP."""

import http.client
from collections.abc import Callable
from urllib.parse import quote

import pytest
from prometheus_client.parser import text_string_to_metric_families

from lamina.broker.metrics.definitions import METRICS
from tests.broker.admin.asking import SECONDS, admin_address, ask, bearer, get, refused
from tests.broker.process import BrokerProcess
from tests.broker.raw import RawClient, batch_of, metadata_request


def scrape(broker: BrokerProcess, accept: str = "*/*", method: str = "GET") -> tuple[str, str]:
    """The content type and the text of ``/metrics``."""
    connection = http.client.HTTPConnection(*admin_address(broker), timeout=SECONDS)
    try:
        connection.request(method, "/metrics", headers={"Accept": accept})
        response = connection.getresponse()
        assert response.status == 200
        return response.headers["Content-Type"], response.read().decode()
    finally:
        connection.close()


def test_a_scrape_of_a_broker_tells_every_metric_on_the_list(broker: BrokerProcess, raw: RawClient, topic: str) -> None:
    raw.create_topic(topic)
    raw.produce(topic, batch_of((b"key", b"value"), now_ms=1))
    content_type, text = scrape(broker)
    assert content_type == "text/plain; version=0.0.4; charset=utf-8"
    families = {family.name: family for family in text_string_to_metric_families(text)}
    assert list(families) == [metric.name.removesuffix("_total") for metric in METRICS]
    [messages] = [one for one in families["lamina_topic_in_messages"].samples if one.labels["topic"] == topic]
    assert messages.value == 1
    [memory] = families["lamina_process_resident_memory_bytes"].samples
    assert memory.value > 10_000_000
    assert all(disk.value > 0 for disk in families["lamina_log_directory_free_bytes"].samples)


def test_prometheus_gets_openmetrics_when_it_asks(broker: BrokerProcess) -> None:
    content_type, text = scrape(broker, "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;q=0.1")
    assert content_type.startswith("application/openmetrics-text; version=1.0.0")
    assert text.endswith("# EOF\n")


def test_the_head_of_the_metrics_can_be_asked_for(broker: BrokerProcess) -> None:
    assert scrape(broker, method="HEAD")[1] == ""


@pytest.fixture
def slow_broker(own_broker: Callable[..., BrokerProcess]) -> BrokerProcess:
    return own_broker("--set", "lamina.slow.request.ms=0")


def test_slow_requests_are_listed_with_where_their_time_went(slow_broker: BrokerProcess) -> None:
    with RawClient(slow_broker) as client:
        client.create_topic("t")
        [slow] = get(slow_broker, "/v1/slow-requests")["slow_requests"]
        assert (slow["peer"], slow["client_id"], slow["api"], slow["error"]) == (client.peer, "raw", "Metadata", "NONE")
        [connection] = get(slow_broker, "/v1/connections")["connections"]
        assert slow["connection_id"] == connection["id"]
        assert slow["threads_ms"] > 0
        parts = ("arriving_ms", "queued_ms", "handling_ms", "threads_ms", "sending_ms")
        assert sum(slow[part] for part in parts) == pytest.approx(slow["total_ms"], abs=0.01)


def test_a_connection_is_followed_until_it_is_not(own_broker: Callable[..., BrokerProcess]) -> None:
    broker = own_broker()
    authorized = bearer((broker.data_dir / "admin.token").read_text().strip())
    with RawClient(broker) as client:
        path = f"/v1/followed/{quote(client.peer)}"
        assert "token" in refused(broker, path, 401, method="PUT")
        assert ask(broker, path, "PUT", headers=authorized).body == {"followed": [client.peer]}
        client.ask(metadata_request())
        assert "Metadata version 12, correlation id 1, " in broker.wait_for_log(f"of {client.peer}, client id 'raw'")
        assert get(broker, "/v1/followed") == {"followed": [client.peer]}
        assert ask(broker, path, "DELETE", headers=authorized).body == {"followed": []}
        client.ask(metadata_request())
        assert "is not followed" in refused(broker, path, 404, method="DELETE", headers=authorized)
    assert sum("followed:" in line for line in broker.log) == 1
