"""From a topic's overrides to what its logs do.

Owns the step from settings to LogConfig: a topic's own value, else what the broker's pair resolves to; and what a
topic cannot be given. Unlike a broker's file, which warns, an unknown name on a topic is an error, as in Kafka.
Must not know how a log uses it.
"""

from collections.abc import Mapping
from typing import TypeVar

from lamina.settings import topic
from lamina.settings.definition import Setting, SettingError
from lamina.settings.lists import TOPIC_SETTINGS, nearest_topic_name
from lamina.settings.log_config import NOT_THROTTLED, LogConfig, ThrottledReplicas
from lamina.settings.values import BrokerSettings, Resolved, Source, Synonym

T = TypeVar("T")

NO_LIMIT = -1


def check_overrides(overrides: Mapping[str, str]) -> None:
    """Raise SettingError for a name or a value that no topic can have."""
    for name, text in overrides.items():
        setting = TOPIC_SETTINGS.get(name)
        if setting is None:
            nearest = nearest_topic_name(name)
            raise SettingError(f"{name}: unknown" + (f", did you mean {nearest}?" if nearest else ""))
        setting.parse(text)


def check_topic_overrides(broker: BrokerSettings, overrides: Mapping[str, str]) -> None:
    """Raise SettingError for values that do not go together on this broker."""
    config = topic_config(broker, overrides)
    if config.min_compaction_lag_ms > config.max_compaction_lag_ms:
        raise SettingError(
            f"{topic.MIN_COMPACTION_LAG_MS.name} = {config.min_compaction_lag_ms}: must be at most "
            f"{topic.MAX_COMPACTION_LAG_MS.name} = {config.max_compaction_lag_ms}"
        )


def resolve_topic(setting: Setting[T], broker: BrokerSettings, overrides: Mapping[str, str]) -> Resolved[T] | None:
    """One setting of a topic with its source and synonyms; None where it has no value."""
    inherited = _inherited(setting, broker)
    text = overrides.get(setting.name)
    if text is None:
        return inherited
    synonyms = () if inherited is None else inherited.synonyms
    return Resolved(setting.parse(text), Source.TOPIC, (Synonym(setting.name, text, Source.TOPIC), *synonyms))


def _inherited(setting: Setting[T], broker: BrokerSettings) -> Resolved[T] | None:
    """The broker's; of one that the broker does not have, the default, which has no name but the topic's own."""
    if setting.pair is not None:
        return broker.resolved(setting.pair)
    return None if setting.default is None else Resolved(setting.default, Source.DEFAULT, ())


def topic_config(broker: BrokerSettings, overrides: Mapping[str, str]) -> LogConfig:
    """Names that are unknown are passed over: they were good when they were set, perhaps by an older broker."""

    def value(setting: Setting[T]) -> T:
        resolved = resolve_topic(setting, broker, overrides)
        assert resolved is not None, f"{setting.name} has a default"
        return resolved.value

    policies = value(topic.CLEANUP_POLICY)
    internal_segment_bytes = resolve_topic(topic.INTERNAL_SEGMENT_BYTES, broker, overrides)
    return LogConfig(
        segment_bytes=internal_segment_bytes.value if internal_segment_bytes else value(topic.SEGMENT_BYTES),
        segment_ms=value(topic.SEGMENT_MS),
        segment_jitter_ms=value(topic.SEGMENT_JITTER_MS),
        segment_index_bytes=value(topic.SEGMENT_INDEX_BYTES),
        index_interval_bytes=value(topic.INDEX_INTERVAL_BYTES),
        # Any negative value means no limit; hours and minutes below zero arrive here multiplied.
        retention_ms=max(value(topic.RETENTION_MS), NO_LIMIT),
        retention_bytes=max(value(topic.RETENTION_BYTES), NO_LIMIT),
        file_delete_delay_ms=value(topic.FILE_DELETE_DELAY_MS),
        flush_messages=value(topic.FLUSH_MESSAGES),
        flush_ms=value(topic.FLUSH_MS),
        compact="compact" in policies,
        delete="delete" in policies,
        max_message_bytes=value(topic.MAX_MESSAGE_BYTES),
        is_log_append_time=value(topic.MESSAGE_TIMESTAMP_TYPE) == "LogAppendTime",
        timestamp_before_max_ms=value(topic.MESSAGE_TIMESTAMP_BEFORE_MAX_MS),
        timestamp_after_max_ms=value(topic.MESSAGE_TIMESTAMP_AFTER_MAX_MS),
        min_cleanable_dirty_ratio=value(topic.MIN_CLEANABLE_DIRTY_RATIO),
        delete_retention_ms=value(topic.DELETE_RETENTION_MS),
        min_compaction_lag_ms=value(topic.MIN_COMPACTION_LAG_MS),
        max_compaction_lag_ms=value(topic.MAX_COMPACTION_LAG_MS),
        preallocate=value(topic.PREALLOCATE),
        compression_type=value(topic.COMPRESSION_TYPE),
        compression_gzip_level=value(topic.COMPRESSION_GZIP_LEVEL),
        compression_lz4_level=value(topic.COMPRESSION_LZ4_LEVEL),
        compression_zstd_level=value(topic.COMPRESSION_ZSTD_LEVEL),
        min_insync_replicas=value(topic.MIN_INSYNC_REPLICAS),
        throttled_leaders=_throttled(value(topic.LEADER_REPLICATION_THROTTLED_REPLICAS)),
        throttled_followers=_throttled(value(topic.FOLLOWER_REPLICATION_THROTTLED_REPLICAS)),
    )


def _throttled(entries: tuple[str, ...]) -> ThrottledReplicas:
    if not entries:
        return NOT_THROTTLED
    if entries == (topic.EVERY_REPLICA,):
        return ThrottledReplicas(is_every=True)
    pairs = (entry.split(":") for entry in entries)
    return ThrottledReplicas(replicas=frozenset((int(partition), int(broker)) for partition, broker in pairs))
