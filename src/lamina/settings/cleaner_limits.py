"""What a cleaning pass may take, read from a broker's settings.

Owns what must hold between them (facts 6 and 9). Must not know how a log is cleaned.
"""

import sys
from dataclasses import dataclass

from lamina.settings.cleaner import (
    LOG_CLEANER_DEDUPE_BUFFER_SIZE,
    LOG_CLEANER_IO_BUFFER_LOAD_FACTOR,
    LOG_CLEANER_IO_BUFFER_SIZE,
    LOG_CLEANER_IO_MAX_BYTES_PER_SECOND,
    LOG_CLEANER_THREADS,
)
from lamina.settings.definition import SettingError
from lamina.settings.log_config import MEBIBYTE
from lamina.settings.values import BrokerSettings

_ENTRY_BYTES = 24
"""What Kafka takes for a key; only to refuse what Kafka would refuse."""
_SMALLEST_READ_BYTES = 4096


@dataclass(frozen=True, slots=True)
class CleanerLimits:
    """What one pass may take."""

    memory_bytes: int
    read_bytes: int
    throttle_bytes_per_second: float | None


def cleaner_limits(settings: BrokerSettings) -> CleanerLimits:
    """Raises SettingError for values that do not go together (fact 6)."""
    threads = max(settings[LOG_CLEANER_THREADS], 1)
    each_bytes = settings[LOG_CLEANER_DEDUPE_BUFFER_SIZE] // threads
    if each_bytes <= MEBIBYTE:
        raise SettingError(
            f"log.cleaner.dedupe.buffer.size = {settings[LOG_CLEANER_DEDUPE_BUFFER_SIZE]}: must be more than "
            f"{MEBIBYTE} (1 MiB) for each of log.cleaner.threads = {threads}"
        )
    memory_bytes = int(each_bytes * settings[LOG_CLEANER_IO_BUFFER_LOAD_FACTOR])
    if memory_bytes // _ENTRY_BYTES < 2:
        raise SettingError(
            f"log.cleaner.io.buffer.load.factor = {settings[LOG_CLEANER_IO_BUFFER_LOAD_FACTOR]:g}: leaves no room for "
            f"keys in log.cleaner.dedupe.buffer.size"
        )
    rate = settings[LOG_CLEANER_IO_MAX_BYTES_PER_SECOND]
    read_bytes = max(settings[LOG_CLEANER_IO_BUFFER_SIZE] // threads, _SMALLEST_READ_BYTES)
    return CleanerLimits(memory_bytes, read_bytes, None if rate >= sys.float_info.max else rate)


def check_threads(current: int, wanted: int) -> None:
    """Fact 9: at least one, at least half of what is, at most double."""
    if wanted == current:
        return
    if wanted < 1 or wanted < current // 2 or wanted > current * 2:
        raise SettingError(
            f"log.cleaner.threads = {wanted}: must be at least 1 and between half and double of {current}, "
            f"which it is now"
        )
