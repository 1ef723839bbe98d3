"""The cleaner's settings: Kafka's defaults and ranges, which may change while the broker runs, and what each does
(facts 4, 5 and 9)."""

import asyncio
import sys
from collections.abc import Callable

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from lamina.broker.cleaner.candidates import CleaningCandidate
from lamina.cleaning.install import installing
from lamina.settings.definition import SettingError
from lamina.settings.resolve import resolve_broker
from tests.broker.cleaner.cleaning import CleaningBroker
from tests.broker.process import BrokerProcess

WAIT_SECONDS = 30

DEFAULTS = {
    "log.cleaner.enable": "true",
    "log.cleaner.threads": "1",
    "log.cleaner.io.max.bytes.per.second": str(sys.float_info.max),
    "log.cleaner.dedupe.buffer.size": "134217728",
    "log.cleaner.io.buffer.size": "524288",
    "log.cleaner.io.buffer.load.factor": "0.9",
    "log.cleaner.backoff.ms": "15000",
    "log.cleaner.min.cleanable.ratio": "0.5",
    "log.cleaner.delete.retention.ms": "86400000",
    "log.cleaner.min.compaction.lag.ms": "0",
    "log.cleaner.max.compaction.lag.ms": str(2**63 - 1),
}
OTHERS = {
    "log.cleaner.threads": "2",
    "log.cleaner.io.max.bytes.per.second": "1000000.0",
    "log.cleaner.dedupe.buffer.size": "67108864",
    "log.cleaner.io.buffer.size": "262144",
    "log.cleaner.io.buffer.load.factor": "0.75",
    "log.cleaner.backoff.ms": "100",
    "log.cleaner.min.cleanable.ratio": "0.25",
    "log.cleaner.delete.retention.ms": "60000",
    "log.cleaner.min.compaction.lag.ms": "1000",
    "log.cleaner.max.compaction.lag.ms": "2000",
    "message.max.bytes": "2000000",
}
"""Another value for each that may change while the broker runs."""


def change(admin: AdminClient, name: str, value: str) -> str | None:
    """Set it on broker 1 as Kafka's tools do; why it was refused, or ``None``."""
    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.BROKER, "1", incremental_configs=[entry])
    try:
        admin.incremental_alter_configs([resource])[resource].result(WAIT_SECONDS)
    except KafkaException as error:
        return str(error.args[0].str())
    return None


def test_facts_4_and_9_a_client_sees_kafkas_defaults_and_changes_what_may_change(
    own_broker: Callable[..., BrokerProcess],
) -> None:
    admin = AdminClient({"bootstrap.servers": own_broker().address})
    broker = ConfigResource(ResourceType.BROKER, "1")
    configs = admin.describe_configs([broker])[broker].result(WAIT_SECONDS)
    assert {name: configs[name].value for name in DEFAULTS} == DEFAULTS
    assert [name for name in DEFAULTS if configs[name].is_read_only] == ["log.cleaner.enable"]
    assert [refused for name, value in OTHERS.items() if (refused := change(admin, name, value))] == []
    configs = admin.describe_configs([broker])[broker].result(WAIT_SECONDS)
    assert {name: configs[name].value for name in OTHERS} == OTHERS
    assert "log.cleaner.enable" in (change(admin, "log.cleaner.enable", "false") or "")
    assert "between half and double of 2" in (change(admin, "log.cleaner.threads", "5") or "")
    assert "1 MiB" in (change(admin, "log.cleaner.dedupe.buffer.size", "1048576") or "")
    assert {name: configs[name].value for name in OTHERS} == OTHERS


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("log.cleaner.enable", "perhaps"),
        ("log.cleaner.threads", "-1"),
        ("log.cleaner.io.max.bytes.per.second", "-1"),
        ("log.cleaner.dedupe.buffer.size", "0"),
        ("log.cleaner.io.buffer.size", "-1"),
        ("log.cleaner.io.buffer.load.factor", "0"),
        ("log.cleaner.backoff.ms", "-1"),
        ("log.cleaner.min.cleanable.ratio", "-0.1"),
        ("log.cleaner.min.cleanable.ratio", "1.1"),
        ("log.cleaner.delete.retention.ms", "-1"),
        ("log.cleaner.min.compaction.lag.ms", "-1"),
        ("log.cleaner.max.compaction.lag.ms", "0"),
    ],
)
def test_fact_5_a_value_out_of_its_range_stops_the_start(name: str, value: str) -> None:
    with pytest.raises(SettingError, match=name):
        resolve_broker(sets={name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("min.cleanable.dirty.ratio", "1.1"),
        ("delete.retention.ms", "-1"),
        ("min.compaction.lag.ms", "-1"),
        ("max.compaction.lag.ms", "0"),
        ("segment.bytes", "1048575"),
        ("cleanup.policy", "compress"),
    ],
)
def test_fact_5_a_topic_does_not_take_a_value_out_of_its_range(cleaning: CleaningBroker, name: str, value: str) -> None:
    cleaning.create("t", 1)
    resource = {"resource_type": 2, "resource_name": "t", "configs": [a_config(name, value)]}
    assert cleaning.ask(44, 1, resources=[resource]).responses[0].error_code == 40


# What each does


def a_config(name: str, value: str) -> dict[str, object]:
    return {"name": name, "value": value, "config_operation": 0}


def set_on_broker(cleaning: CleaningBroker, **values: str) -> None:
    configs = [a_config(name.replace("_", "."), value) for name, value in values.items()]
    resource = {"resource_type": 4, "resource_name": "1", "configs": configs}
    answer = cleaning.ask(44, 1, resources=[resource]).responses[0]
    assert answer.error_code == 0, answer.error_message


def test_fact_9_a_plan_has_the_limits_that_are_set_when_it_is_made(cleaning: CleaningBroker) -> None:
    cleaning.compacted("before")
    cleaning.clean()
    set_on_broker(
        cleaning,
        log_cleaner_threads="2",
        log_cleaner_dedupe_buffer_size="80000000",
        log_cleaner_io_buffer_load_factor="0.5",
        log_cleaner_io_max_bytes_per_second="1e6",
        log_cleaner_delete_retention_ms="777",
    )
    cleaning.compacted("after")
    cleaning.clean()
    before, after = cleaning.engine.plans
    assert (before.memory_limit_bytes, before.throttle_bytes_per_second) == (int(134_217_728 * 0.9), None)
    assert (after.memory_limit_bytes, after.throttle_bytes_per_second) == (20_000_000, 1e6)
    assert (before.delete_retention_ms, after.delete_retention_ms) == (86_400_000, 777)


def test_fact_9_what_a_pass_wrote_is_checked_in_pieces_of_the_buffer(
    cleaning: CleaningBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    whole = installing

    def noting(*arguments: object) -> object:
        seen.append(arguments[-1])  # type: ignore[arg-type]
        return whole(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr("lamina.broker.cleaner.passes.installing", noting)
    cleaning.compacted("before")
    cleaning.clean()
    set_on_broker(cleaning, log_cleaner_io_buffer_size="65536")
    cleaning.compacted("after")
    cleaning.clean()
    assert seen == [524_288, 65_536]


def test_fact_4_what_topics_do_not_say_themselves_the_broker_says(cleaning: CleaningBroker) -> None:
    cleaning.compacted("own", min_cleanable_dirty_ratio="0.3")
    cleaning.compacted("brokers")
    set_on_broker(
        cleaning,
        log_cleaner_min_cleanable_ratio="1.0",
        log_cleaner_min_compaction_lag_ms="5",
        log_cleaner_max_compaction_lag_ms="6",
    )
    own, brokers = (cleaning.partition(name).log.config for name in ("own", "brokers"))
    assert (own.min_cleanable_dirty_ratio, brokers.min_cleanable_dirty_ratio) == (0.3, 1.0)
    assert (own.min_compaction_lag_ms, own.max_compaction_lag_ms) == (5, 6)


def test_fact_9_a_shorter_back_off_holds_at_once(cleaning: CleaningBroker) -> None:
    """The loop, asleep for an hour, is woken by the change and finds what has become dirty meanwhile."""
    set_on_broker(cleaning, log_cleaner_backoff_ms="3600000")
    looks: list[int] = []
    find_candidates = cleaning.cleaner.search.find_candidates

    async def counting(may_be_cleaned: Callable[[tuple[str, int]], bool]) -> list[CleaningCandidate]:
        looks.append(1)
        return await find_candidates(may_be_cleaned)

    async def until(holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(WAIT_SECONDS):
            while not holds():
                await asyncio.sleep(0.001)

    cleaning.cleaner.search.find_candidates = counting  # type: ignore[method-assign]
    cleaning.cleaner.start()
    cleaning.run(until(lambda: len(looks) == 1))
    cleaning.compacted()
    assert (len(looks), cleaning.checkpoint()) == (1, None)
    set_on_broker(cleaning, log_cleaner_backoff_ms="1")
    cleaning.run(until(lambda: cleaning.checkpoint() == 6))
    cleaning.run(cleaning.cleaner.stop())
