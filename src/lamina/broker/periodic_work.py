"""What a broker does by itself again and again while it serves.

Owns every interval. Must not know how the work is done.
"""

from lamina.broker.parts import Parts
from lamina.broker.timers import Timers
from lamina.settings.broker import (
    LAMINA_DISK_FREE_MIN_BYTES,
    LOG_FLUSH_OFFSET_CHECKPOINT_INTERVAL_MS,
    LOG_FLUSH_START_OFFSET_CHECKPOINT_INTERVAL_MS,
    LOG_RETENTION_CHECK_INTERVAL_MS,
    PRODUCER_ID_EXPIRATION_MS,
    REPLICA_HIGH_WATERMARK_CHECKPOINT_INTERVAL_MS,
)
from lamina.settings.cluster import (
    AUTO_LEADER_REBALANCE_ENABLE,
    LEADER_IMBALANCE_CHECK_INTERVAL_SECONDS,
    LEADER_IMBALANCE_PER_BROKER_PERCENTAGE,
)
from lamina.settings.groups import OFFSETS_RETENTION_CHECK_INTERVAL_MS
from lamina.settings.log import LOG_FLUSH_SCHEDULER_INTERVAL_MS
from lamina.settings.replication import REPLICA_LAG_TIME_MAX_MS

_REMOVAL_INTERVAL_MS = 10_000
_EXPIRY_INTERVAL_MS = 600_000
_FLUSH_INTERVAL_MS = 1000
_FREE_SPACE_INTERVAL_MS = 1000
_READ_LEASES_INTERVAL_MS = 2000
_OPENING_INTERVAL_MS = 10_000
_KEY_MATERIAL_INTERVAL_MS = 10_000


def start_periodic_work(parts: Parts, timers: Timers) -> None:
    upkeep, cleaner, metadata = parts.upkeep, parts.cleaner, parts.metadata
    settings = metadata.settings

    async def retain() -> None:
        await cleaner.retention.expire_others(upkeep.in_turns())

    async def expire_producers() -> None:
        await upkeep.expire_producers(metadata.settings[PRODUCER_ID_EXPIRATION_MS])

    async def measure_free_space() -> None:
        await upkeep.measure_free_space(metadata.settings[LAMINA_DISK_FREE_MIN_BYTES])

    timers.every(settings[LOG_RETENTION_CHECK_INTERVAL_MS], retain)
    timers.every(_REMOVAL_INTERVAL_MS, upkeep.remove_due)
    timers.every(_EXPIRY_INTERVAL_MS, expire_producers)
    timers.every(settings[OFFSETS_RETENTION_CHECK_INTERVAL_MS], parts.groups.expire_offsets)
    timers.every(min(settings[LOG_FLUSH_SCHEDULER_INTERVAL_MS], _FLUSH_INTERVAL_MS), upkeep.flush_due)
    timers.every(settings[LOG_FLUSH_OFFSET_CHECKPOINT_INTERVAL_MS], upkeep.write_recovery_points)
    timers.every(settings[LOG_FLUSH_START_OFFSET_CHECKPOINT_INTERVAL_MS], upkeep.write_log_starts)
    timers.every(settings[REPLICA_HIGH_WATERMARK_CHECKPOINT_INTERVAL_MS], upkeep.write_high_watermarks)
    timers.every(_FREE_SPACE_INTERVAL_MS, measure_free_space)
    timers.every(_READ_LEASES_INTERVAL_MS, parts.read_leases.end_due)
    # R9: a follower that is behind leaves after one to one and a half times the lag that it may have.
    timers.every(settings[REPLICA_LAG_TIME_MAX_MS] // 2, upkeep.shrink_in_sync)
    if parts.member_parts is not None and settings[AUTO_LEADER_REBALANCE_ENABLE]:
        member, percentage = parts.member_parts.member, settings[LEADER_IMBALANCE_PER_BROKER_PERCENTAGE]
        interval_ms = 1000 * settings[LEADER_IMBALANCE_CHECK_INTERVAL_SECONDS]
        timers.every(interval_ms, lambda: member.balance_leaders(percentage))
    timers.every(_KEY_MATERIAL_INTERVAL_MS, lambda: metadata.key_material.refresh(metadata.settings))
    timers.every(_OPENING_INTERVAL_MS, parts.participant.make_waiting)
