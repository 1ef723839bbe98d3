"""Durations and sizes in the values of settings."""

import pytest

from lamina.cli.options.units import setting_value
from tests.broker.process import BrokerProcess
from tests.cli.running import Lamina


@pytest.mark.parametrize(
    ("name", "given", "meant"),
    [
        ("retention.ms", "7d", "604800000"),
        ("retention.ms", "1d12h", "129600000"),
        ("retention.ms", "1.5s", "1500"),
        ("retention.ms", "250ms", "250"),
        ("retention.ms", "-1", "-1"),
        ("log.retention.hours", "2w", "336"),
        ("log.retention.minutes", "90m", "90"),
        ("offsets.retention.minutes", "7d", "10080"),
        ("retention.bytes", "10GiB", "10737418240"),
        ("retention.bytes", "10MB", "10000000"),
        ("segment.bytes", "1.5mib", "1572864"),
        ("segment.bytes", "512 KiB", "524288"),
        ("log.cleaner.io.max.bytes.per.second", "10MB", "10000000"),
        ("log.cleaner.dedupe.buffer.size", "64MiB", "67108864"),
        ("segment.bytes", "1048576", "1048576"),
        ("segment.bytes", "", ""),
        ("cleanup.policy", "compact", "compact"),
        ("lamina.spark.conf.spark.x.ms", "7d", "7d"),
    ],
)
def test_the_unit_is_that_of_the_name(name: str, given: str, meant: str) -> None:
    assert setting_value(name, given) == meant


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("retention.ms", "7 days"),
        ("retention.ms", "10GiB"),
        ("retention.ms", "0.1ms"),
        ("log.retention.hours", "90m"),
        ("retention.bytes", "7d"),
        ("retention.bytes", "10G"),
        ("retention.bytes", "lots"),
        ("retention.bytes", "0.5B"),
    ],
)
def test_what_is_neither_number_nor_unit_is_refused_with_examples(name: str, given: str) -> None:
    with pytest.raises(ValueError, match=r"give a whole number of (\w+), or a (duration|size) such as") as refused:
        setting_value(name, given)
    assert str(refused.value).startswith(f"{name} = {given}: ")


def test_settings_of_topics_are_given_with_units(lamina: Lamina, broker: BrokerProcess, topic: str) -> None:
    where = ("--bootstrap-server", broker.address)
    lamina("topics", "create", topic, "--config", "retention.ms=7d", "--config", "retention.bytes=1GiB", *where)
    done = lamina("configs", "set", "--topic", topic, "segment.bytes=64MiB", *where)
    assert done.out == f"{topic}: segment.bytes = 67108864\n"
    rows = lamina("configs", "get", "--topic", topic, "--json", *where).objects
    assert {row["name"]: row["value"] for row in rows} == {
        "retention.ms": "604800000",
        "retention.bytes": "1073741824",
        "segment.bytes": "67108864",
    }
    refused = lamina("configs", "set", "--topic", topic, "retention.ms=7 days", *where)
    assert refused.status == 2
    assert "retention.ms = 7 days: give a whole number of ms, or a duration such as 7d" in refused.err


def test_settings_of_a_broker_are_given_with_units(lamina: Lamina, tmp_path: object) -> None:
    refused = lamina("serve", "--data-dir", f"{tmp_path}/data", "--set", "log.retention.ms=soon")
    assert refused.status == 2
    assert "log.retention.ms = soon: give a whole number of ms" in refused.err
