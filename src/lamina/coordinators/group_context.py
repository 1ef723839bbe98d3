"""What decisions about a group depend on besides the group itself: settings, topics, assignors.

The runtime makes one context for each decision. Must not know any group, nor where settings come from.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from lamina.coordinators.assignors import Assignor
from lamina.image.image import Image


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """The broker's, and where a group has its own, the group's. Defaults are Kafka's."""

    min_session_timeout_ms: int = 6_000
    max_session_timeout_ms: int = 1_800_000
    initial_rebalance_delay_ms: int = 3_000
    max_size: int = 2**31 - 1
    offset_metadata_max_bytes: int = 4096
    offsets_retention_ms: int = 7 * 24 * 60 * 60 * 1000
    consumer_session_timeout_ms: int = 45_000
    consumer_heartbeat_interval_ms: int = 5_000
    consumer_max_size: int = 2**31 - 1
    consumer_assignors: tuple[str, ...] = ("uniform", "range")
    """The first is the default."""
    consumer_migration_policy: str = "bidirectional"
    consumer_regex_refresh_interval_ms: int = 600_000


@dataclass(frozen=True, slots=True)
class GroupContext:
    settings: GroupSettings
    image: Image
    image_version: int
    """Grows with every image that has a topic that the one before had not."""
    assignors: Mapping[str, Assignor]
