"""Slow requests of a real broker, over sockets."""

from collections.abc import Callable

from lamina.wire.versions import nested_schema, request_schema
from tests.broker.process import BrokerProcess
from tests.broker.raw import RawClient

INCREMENTAL_ALTER_CONFIGS = 44
BROKER = 4
SET = 0


def slow_request_ms(client: RawClient, value: str) -> None:
    schema = request_schema(INCREMENTAL_ALTER_CONFIGS, 1)
    resource = nested_schema(schema, "resources")
    config = nested_schema(resource, "configs")
    change = config(name="lamina.slow.request.ms", config_operation=SET, value=value)
    asked = resource(resource_type=BROKER, resource_name="", configs=(change,))
    assert client.ask(schema(resources=(asked,), validate_only=False)).responses[0].error_code == 0


def test_the_line_names_the_client_and_the_limit_changes_while_the_broker_runs(
    own_broker: Callable[..., BrokerProcess],
) -> None:
    broker = own_broker("--set", "lamina.slow.request.ms=0")
    with RawClient(broker) as client:
        # Making a topic waits for threads: it is never too quick for a limit of nothing.
        client.create_topic("first")
        line = broker.wait_for_log(f"slow request: Metadata version 12 of {client.peer}")
        assert "client id 'raw'" in line
        slow_request_ms(client, "-1")
        client.create_topic("second")
        slow_request_ms(client, "0")
        # The change itself is settled under the limit that it sets.
        broker.wait_for_log("slow request: IncrementalAlterConfigs")
    assert sum("slow request: Metadata" in line for line in broker.log) == 1
