from dataclasses import fields

import pytest

from lamina.settings.definition import SettingError
from lamina.settings.log_config import LogConfig, ThrottledReplicas
from lamina.settings.resolve import resolve_broker
from lamina.settings.topic import RETENTION_MS
from lamina.settings.topic_config import check_overrides, check_topic_overrides, resolve_topic, topic_config
from lamina.settings.values import Source, Synonym

BROKER = resolve_broker()

# A value for each topic setting, the field that it must change, and what the field becomes.
OVERRIDES: list[tuple[str, str, str, object]] = [
    ("compression.type", "zstd", "compression_type", "zstd"),
    ("compression.gzip.level", "9", "compression_gzip_level", 9),
    ("compression.lz4.level", "17", "compression_lz4_level", 17),
    ("compression.zstd.level", "-131072", "compression_zstd_level", -131072),
    ("min.insync.replicas", "2", "min_insync_replicas", 2),
    ("segment.bytes", "1048576", "segment_bytes", 1048576),
    ("internal.segment.bytes", "100", "segment_bytes", 100),
    ("segment.ms", "1", "segment_ms", 1),
    ("segment.jitter.ms", "1", "segment_jitter_ms", 1),
    ("segment.index.bytes", "4", "segment_index_bytes", 4),
    ("index.interval.bytes", "0", "index_interval_bytes", 0),
    ("retention.ms", "0", "retention_ms", 0),
    ("retention.bytes", "7", "retention_bytes", 7),
    ("file.delete.delay.ms", "0", "file_delete_delay_ms", 0),
    ("flush.messages", "1", "flush_messages", 1),
    ("flush.ms", "0", "flush_ms", 0),
    ("cleanup.policy", "", "delete", False),
    ("cleanup.policy", "delete,compact", "compact", True),
    ("max.message.bytes", "0", "max_message_bytes", 0),
    ("message.timestamp.type", "LogAppendTime", "is_log_append_time", True),
    ("message.timestamp.before.max.ms", "0", "timestamp_before_max_ms", 0),
    ("message.timestamp.after.max.ms", "0", "timestamp_after_max_ms", 0),
    ("min.cleanable.dirty.ratio", "0.2", "min_cleanable_dirty_ratio", 0.2),
    ("delete.retention.ms", "0", "delete_retention_ms", 0),
    ("min.compaction.lag.ms", "1", "min_compaction_lag_ms", 1),
    ("max.compaction.lag.ms", "1", "max_compaction_lag_ms", 1),
    ("preallocate", "true", "preallocate", True),
    ("leader.replication.throttled.replicas", "*", "throttled_leaders", ThrottledReplicas(is_every=True)),
    (
        "follower.replication.throttled.replicas",
        "0:1, 01:02",
        "throttled_followers",
        ThrottledReplicas(replicas=frozenset({(0, 1), (1, 2)})),
    ),
]
# The same for the broker's halves.
BROKER_FILE: list[tuple[str, str, str, object]] = [
    ("log.segment.bytes", "1048576", "segment_bytes", 1048576),
    ("log.roll.ms", "1", "segment_ms", 1),
    ("log.roll.hours", "1", "segment_ms", 3_600_000),
    ("log.roll.jitter.ms", "1", "segment_jitter_ms", 1),
    ("log.roll.jitter.hours", "1", "segment_jitter_ms", 3_600_000),
    ("log.index.size.max.bytes", "4", "segment_index_bytes", 4),
    ("log.index.interval.bytes", "0", "index_interval_bytes", 0),
    ("log.retention.ms", "1", "retention_ms", 1),
    ("log.retention.minutes", "1", "retention_ms", 60_000),
    ("log.retention.hours", "-1", "retention_ms", -1),
    ("log.retention.bytes", "7", "retention_bytes", 7),
    ("log.segment.delete.delay.ms", "0", "file_delete_delay_ms", 0),
    ("log.flush.interval.messages", "1", "flush_messages", 1),
    ("log.flush.interval.ms", "0", "flush_ms", 0),
    ("log.flush.scheduler.interval.ms", "0", "flush_ms", 0),
    ("log.cleanup.policy", "compact,delete", "compact", True),
    ("message.max.bytes", "0", "max_message_bytes", 0),
    ("log.message.timestamp.type", "LogAppendTime", "is_log_append_time", True),
    ("log.message.timestamp.before.max.ms", "0", "timestamp_before_max_ms", 0),
    ("log.message.timestamp.after.max.ms", "0", "timestamp_after_max_ms", 0),
    ("log.cleaner.min.cleanable.ratio", "1", "min_cleanable_dirty_ratio", 1.0),
    ("log.cleaner.delete.retention.ms", "0", "delete_retention_ms", 0),
    ("log.cleaner.min.compaction.lag.ms", "1", "min_compaction_lag_ms", 1),
    ("log.cleaner.max.compaction.lag.ms", "1", "max_compaction_lag_ms", 1),
    ("log.preallocate", "true", "preallocate", True),
    ("compression.gzip.level", "1", "compression_gzip_level", 1),
    ("compression.lz4.level", "1", "compression_lz4_level", 1),
    ("compression.zstd.level", "22", "compression_zstd_level", 22),
]


def changed_fields(config: LogConfig) -> dict[str, object]:
    default = LogConfig()
    values = {field.name: getattr(config, field.name) for field in fields(LogConfig)}
    return {name: value for name, value in values.items() if value != getattr(default, name)}


def test_the_defaults_of_a_log_are_those_of_the_definitions() -> None:
    assert topic_config(BROKER, {}) == LogConfig()


@pytest.mark.parametrize(("name", "text", "field", "value"), OVERRIDES)
def test_an_override_changes_its_field_and_no_other(name: str, text: str, field: str, value: object) -> None:
    assert changed_fields(topic_config(BROKER, {name: text})) == {field: value}


@pytest.mark.parametrize(("name", "text", "field", "value"), BROKER_FILE)
def test_a_brokers_pair_changes_the_same_field(name: str, text: str, field: str, value: object) -> None:
    assert changed_fields(topic_config(resolve_broker(file={name: text}), {})) == {field: value}


def test_a_topics_override_wins_over_every_broker_value() -> None:
    broker = resolve_broker(sets={"log.retention.ms": "5"}, dynamic_broker={"log.retention.ms": "6"})
    assert topic_config(broker, {}).retention_ms == 6
    assert topic_config(broker, {"retention.ms": "7"}).retention_ms == 7


def test_a_topics_name_in_the_brokers_file_has_no_effect() -> None:
    assert topic_config(resolve_broker(file={"segment.ms": "1"}), {}) == LogConfig()


def test_internal_segment_bytes_wins_over_segment_bytes() -> None:
    config = topic_config(BROKER, {"internal.segment.bytes": "100", "segment.bytes": "2000000"})
    assert config.segment_bytes == 100


@pytest.mark.parametrize(
    "name", ["retention.bytes", "log.retention.bytes", "log.retention.ms", "log.retention.minutes"]
)
def test_any_negative_retention_means_no_limit(name: str) -> None:
    if name.startswith("log."):
        config = topic_config(resolve_broker(file={name: "-5"}), {})
    else:
        config = topic_config(BROKER, {name: "-5"})
    assert min(config.retention_ms, config.retention_bytes) == -1


def test_a_topics_value_carries_its_source_and_the_brokers_synonyms() -> None:
    broker = resolve_broker(file={"log.retention.minutes": "9"})
    resolved = resolve_topic(RETENTION_MS, broker, {"retention.ms": "5"})
    assert resolved is not None
    assert (resolved.value, resolved.source) == (5, Source.TOPIC)
    assert resolved.synonyms == (
        Synonym("retention.ms", "5", Source.TOPIC),
        Synonym("log.retention.minutes", "9", Source.FILE),
        Synonym("log.retention.hours", "168", Source.DEFAULT),
    )
    inherited = resolve_topic(RETENTION_MS, broker, {})
    assert inherited is not None
    assert (inherited.value, inherited.source) == (540_000, Source.FILE)


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        ({"segment.bytes": "12"}, "segment.bytes = 12: must be at least 1048576 (1 MiB)"),
        ({"retention.ms": "-2"}, "retention.ms = -2: must be at least -1"),
        ({"max.compaction.lag.ms": "0"}, "max.compaction.lag.ms = 0: must be at least 1"),
        ({"retention": "1"}, "retention: unknown, did you mean retention.ms?"),
        ({"log.retention.hours": "1"}, "log.retention.hours: unknown, did you mean retention.ms?"),
        ({"qqqqqq": "1"}, "qqqqqq: unknown"),
        (
            {"remote.storage.enable": "true"},
            "remote.storage.enable = true: must be false: Lamina has no tiered storage",
        ),
        (
            {"cleanup.policy": "Compact"},
            "cleanup.policy = Compact: must be a list of compact or delete; did you mean compact?",
        ),
        ({"message.format.version": "3.0"}, "message.format.version: unknown"),
        (
            {"compression.gzip.level": "10"},
            "compression.gzip.level = 10: must be between 1 and 9, or -1 for zlib's own choice",
        ),
        ({"compression.lz4.level": "0"}, "compression.lz4.level = 0: must be between 1 and 17"),
        ({"compression.zstd.level": "23"}, "compression.zstd.level = 23: must be between -131072 and 22"),
        ({"local.retention.ms": "-3"}, "local.retention.ms = -3: must be at least -2"),
        (
            {"leader.replication.throttled.replicas": "0:1,*"},
            "leader.replication.throttled.replicas = 0:1,*: must be `*` or a list of partition:broker",
        ),
    ],
)
def test_what_a_topic_cannot_have_is_refused_with_one_sentence(overrides: dict[str, str], sentence: str) -> None:
    with pytest.raises(SettingError) as caught:
        check_overrides(overrides)
    assert str(caught.value) == sentence


def test_the_lags_of_a_topic_and_its_broker_must_go_together() -> None:
    patient = resolve_broker(file={"log.cleaner.min.compaction.lag.ms": "100"})
    check_topic_overrides(patient, {"max.compaction.lag.ms": "100"})
    for broker, overrides in (
        (patient, {"max.compaction.lag.ms": "99"}),
        (BROKER, {"min.compaction.lag.ms": "100", "max.compaction.lag.ms": "99"}),
    ):
        with pytest.raises(SettingError) as caught:
            check_topic_overrides(broker, overrides)
        assert str(caught.value) == "min.compaction.lag.ms = 100: must be at most max.compaction.lag.ms = 99"


def test_a_name_that_an_older_broker_let_pass_does_not_stop_this_one() -> None:
    assert topic_config(BROKER, {"message.format.version": "3.0"}) == LogConfig()


def test_what_kafka_knows_and_nothing_reads_is_accepted_on_a_topic() -> None:
    overrides = {
        "unclean.leader.election.enable": "true",
        "remote.storage.enable": "false",
        "local.retention.bytes": "-2",
    }
    check_overrides(overrides)
    assert topic_config(BROKER, overrides) == LogConfig()


def test_which_replicas_are_throttled() -> None:
    assert (7, 8) in ThrottledReplicas(is_every=True)
    pairs = ThrottledReplicas(replicas=frozenset({(0, 1)}))
    assert (0, 1) in pairs
    assert (1, 0) not in pairs
