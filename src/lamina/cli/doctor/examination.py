"""Everything that ``lamina doctor`` looks at, in order.

Must not print.
"""

from collections.abc import Iterator

from lamina.cli.doctor import clock, engine, machine
from lamina.cli.doctor.directory import look_directory
from lamina.cli.doctor.disk import look_disk
from lamina.cli.doctor.finding import Finding, fine, problem, warning
from lamina.cli.doctor.port import look_port
from lamina.settings.broker import LAMINA_DISK_FREE_MIN_BYTES
from lamina.settings.listeners import listeners
from lamina.settings.values import BrokerSettings
from lamina.storage import storage_paths


def judge_settings(settings: BrokerSettings | None, refusal: str | None) -> Finding:
    if refusal is not None:
        return problem("settings", refusal, "correct it; docs/settings.md names every setting")
    if settings is not None and settings.warnings:
        return warning("settings", "; ".join(settings.warnings), "take out what is ignored, correct what is unknown")
    return fine("settings", "all known and possible")


def examine(settings: BrokerSettings | None, refusal: str | None) -> Iterator[Finding]:
    """One finding after the other. Without settings that can be used, nothing is said of files and ports."""
    since = clock.began()
    yield machine.look_python()
    yield machine.look_platform()
    yield machine.look_packages()
    yield engine.look_java()
    yield engine.look_engine()
    yield engine.look_kernel_cache()
    yield machine.look_memory()
    yield machine.look_descriptors()
    yield judge_settings(settings, refusal)
    if settings is not None:
        yield from _examine_broker(settings)
    yield clock.look_clock(since)


def _examine_broker(settings: BrokerSettings) -> Iterator[Finding]:
    data_directory, log_directories = storage_paths(settings)
    found, at_work = look_directory(data_directory, log_directories)
    yield found
    places = log_directories if data_directory in log_directories else (data_directory, *log_directories)
    inside = data_directory.rstrip("/") + "/"
    for place in places:
        if place == data_directory or not place.startswith(inside):
            yield look_disk("disk", place, settings[LAMINA_DISK_FREE_MIN_BYTES])
    for listener in listeners(settings):
        yield look_port(listener, is_at_work=at_work is not None)
