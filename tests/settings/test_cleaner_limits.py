"""What a pass may take, and what has to hold between the cleaner's settings (facts 4, 6 and 9)."""

import sys

import pytest

from lamina.settings.cleaner import (
    LOG_CLEANER_BACKOFF_MS,
    LOG_CLEANER_DEDUPE_BUFFER_SIZE,
    LOG_CLEANER_ENABLE,
    LOG_CLEANER_IO_BUFFER_LOAD_FACTOR,
    LOG_CLEANER_IO_BUFFER_SIZE,
    LOG_CLEANER_IO_MAX_BYTES_PER_SECOND,
    LOG_CLEANER_THREADS,
)
from lamina.settings.cleaner_limits import check_threads, cleaner_limits
from lamina.settings.definition import SettingError
from lamina.settings.resolve import resolve_broker


def test_the_defaults_are_kafkas() -> None:
    """Fact 4."""
    settings = resolve_broker()
    assert settings[LOG_CLEANER_ENABLE] is True
    assert settings[LOG_CLEANER_THREADS] == 1
    assert settings[LOG_CLEANER_IO_MAX_BYTES_PER_SECOND] == sys.float_info.max
    assert settings[LOG_CLEANER_DEDUPE_BUFFER_SIZE] == 134_217_728
    assert settings[LOG_CLEANER_IO_BUFFER_SIZE] == 524_288
    assert settings[LOG_CLEANER_IO_BUFFER_LOAD_FACTOR] == 0.9
    assert settings[LOG_CLEANER_BACKOFF_MS] == 15_000


def test_memory_is_divided_by_the_threads_and_filled_up_to_the_load_factor() -> None:
    sets = {"log.cleaner.threads": "4", "log.cleaner.dedupe.buffer.size": "80000000"}
    limits = cleaner_limits(resolve_broker(sets=sets))
    assert limits.memory_bytes == 18_000_000
    assert limits.read_bytes == 131_072
    assert limits.throttle_bytes_per_second is None


def test_a_rate_below_the_largest_number_is_a_limit() -> None:
    settings = resolve_broker(sets={"log.cleaner.io.max.bytes.per.second": "1.5e6"})
    assert cleaner_limits(settings).throttle_bytes_per_second == 1_500_000


@pytest.mark.parametrize(
    ("sets", "words"),
    [
        ({"log.cleaner.dedupe.buffer.size": "1048576"}, "must be more than 1048576 (1 MiB)"),
        ({"log.cleaner.threads": "128"}, "for each of log.cleaner.threads = 128"),
        ({"log.cleaner.io.buffer.load.factor": "0"}, "leaves no room for keys"),
        ({"log.cleaner.min.cleanable.ratio": "1.1"}, "between 0 and 1"),
        ({"log.cleaner.io.max.bytes.per.second": "0"}, "more than 0"),
    ],
)
def test_what_does_not_go_together_stops_the_start(sets: dict[str, str], words: str) -> None:
    """Fact 6."""
    with pytest.raises(SettingError) as caught:
        resolve_broker(sets=sets)
    assert words in str(caught.value)


@pytest.mark.parametrize(("current", "wanted"), [(1, 2), (2, 1), (4, 8), (4, 2), (3, 1), (5, 2)])
def test_threads_may_halve_and_double(current: int, wanted: int) -> None:
    """Fact 9."""
    check_threads(current, wanted)


@pytest.mark.parametrize(("current", "wanted"), [(1, 0), (1, 3), (4, 1), (4, 9)])
def test_threads_may_not_change_by_more_than_that(current: int, wanted: int) -> None:
    with pytest.raises(SettingError, match="between half and double"):
        check_threads(current, wanted)
