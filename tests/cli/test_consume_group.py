"""``lamina consume --group`` against a real broker."""

import json
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.broker.process import BrokerProcess, eventually
from tests.cli.records import Records
from tests.cli.running import Lamina, started

PROTOCOLS = pytest.mark.parametrize("protocol", ["classic", "consumer"])


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """Whose groups wait for nobody."""
    no_delay = ("--set", "group.initial.rebalance.delay.ms=0")
    with BrokerProcess(tmp_path_factory.mktemp("broker"), *no_delay) as started_broker:
        yield started_broker


@pytest.fixture
def ten(records: Records, topic: str) -> str:
    """A topic with the numbers 0 to 9, in two partitions."""
    records.make(topic, 2)
    for number in range(10):
        records.produce(topic, b"%d\n" % number, "--partition", str(number % 2))
    return topic


def lag(lamina: Lamina, broker: BrokerProcess, group: str) -> dict[str, Any]:
    return lamina("groups", "lag", group, "--json", "--bootstrap-server", broker.address).objects[-1]


@PROTOCOLS
def test_what_was_printed_is_committed_and_not_printed_again(
    records: Records, lamina: Lamina, broker: BrokerProcess, ten: str, protocol: str
) -> None:
    joined = ("--group", f"group-of-{ten}", "--group-protocol", protocol)
    first = records.consume(ten, *joined)
    assert (first.status, sorted(first.out.split())) == (0, [str(number) for number in range(10)])
    total = lag(lamina, broker, f"group-of-{ten}")
    assert (total["state"], total["lag"], total["partition_count"]) == ("Empty", 0, 2)
    again = records.consume(ten, *joined)
    assert (again.status, again.out) == (0, "")
    assert f"group group-of-{ten} is at the end of {ten} already; `lamina groups reset-offsets" in again.err
    records.produce(ten, b"new\n")
    assert records.consume(ten, *joined).out == "new\n"


@PROTOCOLS
def test_only_as_many_as_were_printed_are_committed(records: Records, ten: str, protocol: str) -> None:
    joined = ("--group", f"group-of-{ten}", "--group-protocol", protocol)
    printed = [records.consume(ten, *joined, "--count", "4").out.split() for _ in range(3)]
    assert [len(values) for values in printed] == [4, 4, 2]
    assert sorted(value for values in printed for value in values) == [str(number) for number in range(10)]


def test_where_a_group_without_offsets_begins(records: Records, ten: str) -> None:
    group = ("--group", f"group-of-{ten}")
    assert sorted(records.consume(ten, *group, "--from", "-1").out.split()) == ["8", "9"]
    assert records.consume(ten, *group, "--from", "earliest").out == ""
    assert records.consume(ten, "--group", f"late-group-of-{ten}", "--from", "latest").out == ""


def test_what_was_not_written_out_is_not_committed(
    records: Records, lamina: Lamina, broker: BrokerProcess, ten: str
) -> None:
    group = f"group-of-{ten}"
    records.consume(ten, "--group", group, "--count", "1")
    with started("consume", ten, "--group", group, "--bootstrap-server", broker.address) as reader:
        assert reader.stdout is not None
        reader.stdout.close()
        assert reader.wait(60) == 141
    assert lag(lamina, broker, group)["partition_count"] == 1
    assert len(records.consume(ten, "--group", group).out.split()) == 9


@PROTOCOLS
def test_members_share_partitions_and_print_every_record_once(
    records: Records, lamina: Lamina, broker: BrokerProcess, topic: str, protocol: str
) -> None:
    records.make(topic, 4)
    group = f"group-of-{topic}"
    where = ("--bootstrap-server", broker.address)

    def owned() -> list[int]:
        described = lamina("groups", "describe", group, "--json", *where)
        members = described.objects[0]["members"] if described.out else []
        return sorted(len(member["assignment"].get(topic, [])) for member in members)

    options = ("-f", "--group", group, "--group-protocol", protocol, "--json")
    with ExitStack() as cleanup:
        readers = []

        def join() -> None:
            readers.append(cleanup.enter_context(started("consume", topic, *options, *where)))

        def produce(start: int) -> None:
            for partition in range(4):
                lines = b"".join(b"%d\n" % number for number in range(start + partition, start + 100, 4))
                records.produce(topic, lines, "--partition", str(partition))

        join()
        eventually(lambda: owned() == [4], 60)
        produce(0)
        join()
        eventually(lambda: owned() == [2, 2], 60)
        produce(100)
        eventually(lambda: lag(lamina, broker, group)["lag"] == 0, 60)
        printed: list[int] = []
        for reader in readers:
            reader.send_signal(signal.SIGTERM)
            out, err = reader.communicate(timeout=60)
            assert reader.returncode == 130, err
            values = [int(json.loads(line)["value"]) for line in out.splitlines()]
            assert values
            printed += values
    assert sorted(printed) == list(range(200))
    eventually(lambda: owned() == [], 60)
    assert lag(lamina, broker, group)["lag"] == 0


def test_what_cannot_be_meant_is_bad_input(records: Records) -> None:
    assert records.consume("t", "--group", "g", "--partition", "0").status == 2
    assert records.consume("t", "--group-protocol", "consumer").status == 2
    assert records.consume("t", "--group", "").status == 2
