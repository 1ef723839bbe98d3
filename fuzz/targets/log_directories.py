"""A log directory opened on any small files: refused in a sentence, or opened, stopped and opened again."""

from contextlib import suppress
from pathlib import Path

from fuzz.choices import Choices
from fuzz.files import scratch, unpack_files
from lamina.errors import StorageError
from lamina.log import checkpoints
from lamina.log.clean_shutdown import CLEAN_SHUTDOWN
from lamina.log.directory import DirectoryError, LogDirectory
from lamina.log.epochs import FILE_NAME as LEADER_EPOCHS
from lamina.log.identity import META_PROPERTIES, PARTITION_METADATA, IdentityError, read_topic_id
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
)

_NODE_ID = 1
_NOW_MS = 1_700_000_000_000
_CONFIG = LogConfig(segment_bytes=1000, segment_index_bytes=1200, index_interval_bytes=200)
_BATCH = bytes(build_batch([Record(offset, _NOW_MS, b"key", b"value") for offset in range(3)], leader_epoch=0))


def one(data: bytes) -> None:
    files = unpack_files(NAMES, Choices(data)) | {f"{_PARTITION}/{0:020d}.log": _BATCH}
    with scratch(files) as root:
        try:
            directory = _open(root)
        except DirectoryError:
            return
        with suppress(IdentityError):
            read_topic_id(directory.disk, f"{directory.path}/{_PARTITION}")
        (log,) = directory.logs.values()
        batch = build_batch([Record(0, _NOW_MS, b"key", b"value")])
        log.append(batch, read_header(batch), 3, _NOW_MS)
        start, end = log.log_start_offset, log.log_end_offset
        directory.close()
        again = _open(root)
        assert again.was_clean
        (log,) = again.logs.values()
        assert (log.log_start_offset, log.log_end_offset) == (start, end)
        again.close()


def _open(root: Path) -> LogDirectory:
    directory = LogDirectory.open(str(root), node_id=_NODE_ID)
    try:
        directory.open_partitions(lambda _topic: _CONFIG, _NOW_MS)
    except StorageError as error:
        raise DirectoryError(str(error)) from None
    return directory
