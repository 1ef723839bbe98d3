"""The same partition in two log directories: what is used, and when the other one may go."""

from pathlib import Path
from random import Random

import pytest

from lamina.log.copies import open_furthest
from lamina.log.directory import LogDirectory
from lamina.log.flushing import flush
from lamina.log.partition_log import PartitionLog
from tests.log.building import NOW_MS, LogBuilder, a_log
from tests.log.disk import RecordingDisk

KEY = ("t", 3)
DAY_MS = 24 * 3600 * 1000


def append_some(log: PartitionLog, builder: LogBuilder) -> None:
    lease = builder.log.read(log.log_end_offset, 1)
    assert lease is not None
    with lease:
        log.append_as_follower(lease.read(), NOW_MS)


@pytest.mark.parametrize("seed", range(10))
def test_what_is_used_is_on_disk_before_the_other_copy_may_go(tmp_path: Path, seed: int) -> None:
    """A process that was killed leaves what it wrote, and no word of what of it was flushed."""
    builder = a_log(tmp_path / "builder")
    builder.append_batches(20)
    (tmp_path / "disk").mkdir()
    disk = RecordingDisk(str(tmp_path / "disk"))
    directories = [LogDirectory.open(str(tmp_path / "disk" / name), node_id=1, disk=disk) for name in ("one", "two")]
    for directory, is_flushed in zip(directories, (True, False), strict=True):
        log = directory.create_partition(*KEY, bytes(16), builder.config, NOW_MS)
        append_some(log, builder)
        if is_flushed:
            flush(log)
            end_offset = log.log_end_offset
        else:
            append_some(log, builder)
        directory.logs.pop(KEY).close()
    opened = open_furthest(directories, KEY, builder.config, NOW_MS, DAY_MS)
    assert (opened.directory, opened.others) == (directories[1], [directories[0]])
    opened.log.close()
    for directory in directories:
        directory.release()
    disk.crash(len(disk.ops), Random(seed), str(tmp_path / "left"))
    left = LogDirectory.open(str(tmp_path / "left" / "two"), node_id=1)
    assert left.open_partition(*KEY, builder.config, NOW_MS).log_end_offset >= end_offset
    left.close()
