"""What is said of the machine."""

import os
import subprocess
from importlib.metadata import version
from pathlib import Path

from bench.family import PROC
from bench.machine import describe, mount_of, revision_of, touch_memory

MOUNTS = """\
/dev/vda / ext4 rw 0 0
proc /proc proc rw 0 0
/dev/vdb /data xfs rw 0 0
tmpfs /data/fast tmpfs rw 0 0
"""


def test_a_directory_lies_on_the_nearest_mount() -> None:
    assert mount_of(Path("/home"), MOUNTS) == ("/dev/vda", "ext4")
    assert mount_of(Path("/data/logs"), MOUNTS) == ("/dev/vdb", "xfs")
    assert mount_of(Path("/data/fast/logs"), MOUNTS) == ("tmpfs", "tmpfs")
    assert mount_of(Path("/database"), MOUNTS) == ("/dev/vda", "ext4")


def test_everything_that_a_figure_depends_on_is_said(tmp_path: Path) -> None:
    found = describe(tmp_path)
    assert all(found.values())
    assert {
        "date",
        "cores",
        "processor",
        "memory",
        "disk",
        "kernel",
        "Lamina",
        "Kafka",
        "JDK",
        "Python",
    } <= found.keys()


def test_the_revision_of_a_checkout_tells_whether_files_were_changed(tmp_path: Path) -> None:
    def git(*words: str) -> str:
        identity = ("-c", "user.name=a", "-c", "user.email=a@example.com")
        return subprocess.run(
            ["git", "-C", str(tmp_path), *identity, *words], check=True, capture_output=True, text=True
        ).stdout.strip()

    assert revision_of(tmp_path) == version("lamina")
    git("init")
    for name in ("src", "bench", "docs"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text("one")
    git("add", ".")
    git("commit", "-m", "one")
    revision = git("rev-parse", "--short=12", "HEAD")
    assert revision_of(tmp_path) == revision
    (tmp_path / "docs" / "file").write_text("the picture of another bench")
    assert revision_of(tmp_path) == revision
    (tmp_path / "src" / "file").write_text("two")
    assert revision_of(tmp_path) == f"{revision}-dirty"


def test_memory_is_touched_and_given_back() -> None:
    size = 64 << 20
    minor_faults, resident = _minor_faults(), _resident_pages()
    touch_memory(size)
    assert _minor_faults() > minor_faults
    assert _resident_pages() - resident < size // os.sysconf("SC_PAGE_SIZE") // 2


def _minor_faults() -> int:
    return int((PROC / "self" / "stat").read_text().rpartition(") ")[2].split()[7])


def _resident_pages() -> int:
    return int((PROC / "self" / "statm").read_text().split()[1])
