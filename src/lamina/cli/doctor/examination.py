"""Everything that ``lamina doctor`` looks at, in order.

Must not print.
"""

from collections.abc import Iterator

from lamina.broker.admin.listening import admin_gives_way
from lamina.cli.doctor import clock, engine, machine
from lamina.cli.doctor.certificates import check_certificate
from lamina.cli.doctor.directory import check_directory
from lamina.cli.doctor.disk import check_disk
from lamina.cli.doctor.ensemble import check_ensemble
from lamina.cli.doctor.finding import Finding, fine, problem, warning
from lamina.cli.doctor.members import check_members
from lamina.cli.doctor.port import check_admin_port, check_port
from lamina.client.cluster import Cluster
from lamina.client.errors import ClientError
from lamina.clocks import SYSTEM_CLOCKS
from lamina.settings.broker import LAMINA_DISK_FREE_MIN_BYTES
from lamina.settings.listeners import admin_listeners, listeners
from lamina.settings.ssl_stores import listener_ssl
from lamina.settings.values import BrokerSettings
from lamina.settings.zookeeper_options import zookeeper_options
from lamina.storage import storage_paths


def judge_settings(settings: BrokerSettings | None, refusal: str | None) -> Finding:
    if refusal is not None:
        return problem("settings", refusal, "correct it; docs/settings.md names every setting")
    if settings is not None and settings.warnings:
        return warning("settings", "; ".join(settings.warnings), "take out what is ignored, correct what is unknown")
    return fine("settings", "all known and possible")


def examine(settings: BrokerSettings | None, refusal: str | None, cluster: Cluster | None) -> Iterator[Finding]:
    """One finding after the other. Without settings that can be used, nothing is said of files and ports."""
    since = clock.began()
    yield machine.check_python()
    yield machine.check_platform()
    yield machine.check_packages()
    yield engine.check_java()
    yield engine.check_engine()
    yield engine.check_kernel_cache()
    yield engine.check_cleaning_kernels()
    yield machine.check_memory()
    yield machine.check_descriptors()
    yield judge_settings(settings, refusal)
    if settings is not None:
        yield from _examine_broker(settings)
    yield clock.check_clock(since)
    if cluster is not None:
        yield from examine_cluster(cluster)


def examine_cluster(cluster: Cluster) -> Iterator[Finding]:
    """Its brokers alone: nothing of this machine."""
    try:
        yield from check_members(cluster)
    except ClientError as error:
        yield problem("brokers", str(error), "start the cluster, or correct --bootstrap-server")


def _examine_broker(settings: BrokerSettings) -> Iterator[Finding]:
    data_directory, log_directories = storage_paths(settings)
    options = zookeeper_options(settings)
    found, at_work = check_directory(data_directory, log_directories, joins=options is not None)
    yield found
    places = log_directories if data_directory in log_directories else (data_directory, *log_directories)
    inside = data_directory.rstrip("/") + "/"
    for place in places:
        if place == data_directory or not place.startswith(inside):
            yield check_disk("disk", place, settings[LAMINA_DISK_FREE_MIN_BYTES])
    for listener in listeners(settings):
        yield check_port(listener, holder=at_work)
    for listener in admin_listeners(settings):
        yield check_admin_port(listener, holder=at_work, gives_way=admin_gives_way(settings))
    for listener in (*listeners(settings), *admin_listeners(settings)):
        ssl = listener_ssl(settings, listener)
        if ssl is not None:
            yield check_certificate(listener, ssl, SYSTEM_CLOCKS.now_ms())
    if options is not None:
        yield check_ensemble(options)
