"""Retention in a running broker."""

from collections.abc import Callable

from tests.broker.process import BrokerProcess, eventually
from tests.broker.raw import RawClient, batch_of


def test_old_segments_go_while_the_broker_runs(own_broker: Callable[..., BrokerProcess]) -> None:
    settings = {"log.retention.check.interval.ms": "50", "log.roll.ms": "1", "num.partitions": "20"}
    broker = own_broker(*(part for name, text in settings.items() for part in ("--set", f"{name}={text}")))
    with RawClient(broker) as client:
        client.create_topic("old")
        for number in range(3):
            client.produce("old", batch_of((None, b"v"), now_ms=1_600_000_000_000 + 1000 * number))
        eventually(lambda: client.list_offset("old", -2).offset == 3)
    assert not [line for line in broker.log if "Traceback" in line], broker.log
