"""The limits of a broker as its clients meet them."""

from collections.abc import Callable
from contextlib import ExitStack

from lamina.wire.versions import nested_schema, request_schema
from tests.broker.process import BrokerProcess
from tests.broker.raw import Closed, RawClient, metadata_request

DESCRIBE_CONFIGS = 32
INCREMENTAL_ALTER_CONFIGS = 44
BROKER = 4


def set_on_broker(client: RawClient, name: str, value: str) -> None:
    schema = request_schema(INCREMENTAL_ALTER_CONFIGS, 1)
    resources = nested_schema(schema, "resources")
    config = nested_schema(resources, "configs")(name=name, config_operation=0, value=value)
    resource = resources(resource_type=BROKER, resource_name="1", configs=(config,))
    answer = client.ask(schema(resources=(resource,), validate_only=False)).responses[0]
    assert answer.error_code == 0, answer


def is_served(client: RawClient) -> bool:
    try:
        client.ask(metadata_request(create=False))
    except Closed:
        return False
    return True


def test_at_max_connections_the_next_is_served_when_one_leaves(own_broker: Callable[..., BrokerProcess]) -> None:
    broker = own_broker("--set", "max.connections=2")
    with RawClient(broker) as first, RawClient(broker) as second, RawClient(broker) as third:
        assert is_served(first)
        assert is_served(second)
        third.begin(metadata_request(create=False))
        broker.wait_for_log("accepts no connections for now: 2 are open")
        assert is_served(first)
        second.socket.close()
        assert third.answer(3, 12).brokers


def test_too_many_from_one_address_are_closed_and_those_before_them_go_on(
    own_broker: Callable[..., BrokerProcess],
) -> None:
    broker = own_broker("--set", "max.connections.per.ip=1000", "--set", "max.connections.per.ip.overrides=127.0.0.1:1")
    with RawClient(broker) as first:
        assert is_served(first)
        for _ in range(200):
            with RawClient(broker) as next_one:
                assert next_one.is_closed()
        assert is_served(first)
    lines = [line for line in broker.log if "turned away" in line]
    assert lines
    assert "127.0.0.1 was turned away: its limit of connections is 1" in lines[0]
    assert len(lines) < 50, "one a second, not one for each"


def test_limits_change_while_the_broker_runs(own_broker: Callable[..., BrokerProcess]) -> None:
    broker = own_broker()
    with RawClient(broker) as oldest, RawClient(broker) as second, RawClient(broker) as third:
        for client in (oldest, second, third):
            assert is_served(client)
        set_on_broker(third, "max.connections", "2")
        assert oldest.is_closed(), "who was silent longest goes"
        assert is_served(second)
        set_on_broker(third, "max.connections", "100")
        set_on_broker(third, "max.connections.per.ip", "2")
        with RawClient(broker) as fourth:
            assert fourth.is_closed()
        set_on_broker(third, "max.connections.per.ip.overrides", "localhost:3,127.0.0.1:3")
        with RawClient(broker) as fourth:
            assert is_served(fourth)


def test_a_host_that_nobody_knows_is_named_and_has_no_limit_of_its_own(
    own_broker: Callable[..., BrokerProcess],
) -> None:
    broker = own_broker("--set", f"max.connections.per.ip.overrides={'x' * 70}:1,nobody.invalid:1")
    broker.wait_for_log("nobody.invalid is not known")
    assert any(f"{'x' * 70} is not known" in line for line in broker.log)
    with RawClient(broker) as first, RawClient(broker) as second:
        assert is_served(first)
        assert is_served(second)


def test_brokers_take_the_place_of_a_client(own_broker: Callable[..., BrokerProcess]) -> None:
    broker = own_broker(
        "--set",
        "listeners=CLIENTS://127.0.0.1:0,INSIDE://127.0.0.1:0",
        "--set",
        "listener.security.protocol.map=CLIENTS:PLAINTEXT,INSIDE:PLAINTEXT",
        "--set",
        "inter.broker.listener.name=INSIDE",
        "--set",
        "max.connections=1",
    )
    with RawClient(broker) as client:
        assert is_served(client)
        broker.facts["listening"].reverse()
        with RawClient(broker) as other_broker:
            assert is_served(other_broker)
            assert client.is_closed()


def test_above_the_rate_connections_are_delayed_and_not_refused(own_broker: Callable[..., BrokerProcess]) -> None:
    broker = own_broker("--set", "max.connection.creation.rate=20")
    with ExitStack() as connected:
        # All at once: one after another may take long enough to stay below the rate.
        clients = [connected.enter_context(RawClient(broker)) for _ in range(30)]
        assert all(is_served(client) for client in clients)
    broker.wait_for_log("PLAINTEXT accepts more slowly: max.connection.creation.rate is reached")


def test_a_listeners_own_limit_is_set_while_the_broker_runs_and_is_shown(
    own_broker: Callable[..., BrokerProcess],
) -> None:
    broker = own_broker()
    name = "listener.name.plaintext.max.connections"
    with RawClient(broker) as first:
        assert is_served(first)
        set_on_broker(first, name, "1")
        schema = request_schema(DESCRIBE_CONFIGS, 4)
        asked = nested_schema(schema, "resources")(resource_type=BROKER, resource_name="1", configuration_keys=(name,))
        shown = first.ask(schema(resources=(asked,), include_synonyms=False, include_documentation=False)).results[0]
        assert [(config.name, config.value) for config in shown.configs] == [(name, "1")]
        with RawClient(broker) as second:
            second.begin(metadata_request(create=False))
            broker.wait_for_log("PLAINTEXT accepts no connections for now")
            set_on_broker(first, name, "2")
            assert second.answer(3, 12).brokers
