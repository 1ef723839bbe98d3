"""A log directory opened on any small files: refused in a sentence, or opened, stopped and opened again."""

from contextlib import suppress
from pathlib import Path

from fuzz.choices import Choices
from fuzz.files import scratch, unpack_files
from lamina.log import checkpoints
from lamina.log.clean_shutdown import CLEAN_SHUTDOWN
from lamina.log.directory import DirectoryError, LogDirectory
from lamina.log.epochs import FILE_NAME as LEADER_EPOCHS
from lamina.log.identity import META_PROPERTIES, PARTITION_METADATA, IdentityError, read_topic_id
from lamina.log.partition_log import PartitionLog
from lamina.records.batch import read_header
from lamina.records.record import Record, build_batch
from lamina.settings.log_config import LogConfig

_PARTITION = "orders-0"
NAMES = (
    META_PROPERTIES,
    CLEAN_SHUTDOWN,
    checkpoints.RECOVERY_POINT,
    checkpoints.HIGH_WATERMARK,
    checkpoints.LOG_START,
    checkpoints.CLEANER,
    f"{_PARTITION}/{PARTITION_METADATA}",
    f"{_PARTITION}/{LEADER_EPOCHS}",
    f"{_PARTITION}/{0:020d}.log",
)

_NODE_ID = 1
_NOW_MS = 1_700_000_000_000
_CONFIG = LogConfig(segment_bytes=1000, segment_index_bytes=1200, index_interval_bytes=200)
_FAR_OFFSET = 2**62


def one(data: bytes) -> None:
    files = unpack_files(NAMES, Choices(data))
    with scratch(files) as root:
        (root / _PARTITION).mkdir(exist_ok=True)
        try:
            directory, log = _open(root)
        except DirectoryError:
            return
        with suppress(IdentityError):
            read_topic_id(directory.disk, f"{directory.path}/{_PARTITION}")
        assert 0 <= log.log_start_offset <= log.log_end_offset
        if log.log_end_offset < _FAR_OFFSET:
            batch = build_batch([Record(0, _NOW_MS, b"key", b"value")])
            log.append(batch, read_header(batch), 3, _NOW_MS)
        start, end = log.log_start_offset, log.log_end_offset
        directory.close()
        again, log = _open(root)
        assert again.was_clean
        assert (log.log_start_offset, log.log_end_offset) == (start, end)
        again.close()


def _open(root: Path) -> tuple[LogDirectory, PartitionLog]:
    directory = LogDirectory.open(str(root), node_id=_NODE_ID)
    return directory, directory.open_partition("orders", 0, _CONFIG, _NOW_MS)
