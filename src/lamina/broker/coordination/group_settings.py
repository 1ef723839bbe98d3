"""From a broker's settings, and what was set on a group, to what the group coordinator goes by."""

from collections.abc import Mapping

from lamina.coordinators.group_settings import GroupSettings
from lamina.settings.group import CONSUMER_HEARTBEAT_INTERVAL_MS, CONSUMER_SESSION_TIMEOUT_MS
from lamina.settings.group_config import group_value
from lamina.settings.groups import (
    GROUP_CONSUMER_ASSIGNORS,
    GROUP_CONSUMER_MAX_SIZE,
    GROUP_CONSUMER_MIGRATION_POLICY,
    GROUP_CONSUMER_REGEX_REFRESH_INTERVAL_MS,
    GROUP_INITIAL_REBALANCE_DELAY_MS,
    GROUP_MAX_SESSION_TIMEOUT_MS,
    GROUP_MAX_SIZE,
    GROUP_MIN_SESSION_TIMEOUT_MS,
    OFFSET_METADATA_MAX_BYTES,
    OFFSETS_RETENTION_MINUTES,
)
from lamina.settings.values import BrokerSettings

_MINUTE_MS = 60_000


def group_settings(settings: BrokerSettings, overrides: Mapping[str, str]) -> GroupSettings:
    return GroupSettings(
        min_session_timeout_ms=settings[GROUP_MIN_SESSION_TIMEOUT_MS],
        max_session_timeout_ms=settings[GROUP_MAX_SESSION_TIMEOUT_MS],
        initial_rebalance_delay_ms=settings[GROUP_INITIAL_REBALANCE_DELAY_MS],
        max_size=settings[GROUP_MAX_SIZE],
        offset_metadata_max_bytes=settings[OFFSET_METADATA_MAX_BYTES],
        offsets_retention_ms=settings[OFFSETS_RETENTION_MINUTES] * _MINUTE_MS,
        consumer_session_timeout_ms=group_value(CONSUMER_SESSION_TIMEOUT_MS, settings, overrides),
        consumer_heartbeat_interval_ms=group_value(CONSUMER_HEARTBEAT_INTERVAL_MS, settings, overrides),
        consumer_max_size=settings[GROUP_CONSUMER_MAX_SIZE],
        consumer_assignors=settings[GROUP_CONSUMER_ASSIGNORS],
        consumer_migration_policy=settings[GROUP_CONSUMER_MIGRATION_POLICY],
        consumer_regex_refresh_interval_ms=settings[GROUP_CONSUMER_REGEX_REFRESH_INTERVAL_MS],
    )
