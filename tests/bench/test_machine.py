"""What is said of the machine."""

from pathlib import Path

from bench.machine import describe, mount_of

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
    assert {"date", "cores", "processor", "memory", "disk", "kernel", "Kafka", "JDK", "Python"} <= found.keys()
