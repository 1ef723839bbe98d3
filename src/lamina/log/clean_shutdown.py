"""The mark of a clean stop: ``.kafka_cleanshutdown`` in a log directory (formats.md §2.5).

Owns the file. Its presence says that nothing in the directory has to be recovered; its epoch, after which run of a
member of a cluster (KIP-966). Must not know when that is true.
"""

import json

from lamina.log.files import Disk, read_file, write_new_file
from lamina.settings.log_config import LONG_MAX

CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
NO_BROKER_EPOCH = -1


def read_clean_shutdown(disk: Disk, directory: str) -> int | None:
    """The broker epoch in the mark, NO_BROKER_EPOCH where it tells none; ``None`` without a mark."""
    try:
        data = read_file(disk, f"{directory}/{CLEAN_SHUTDOWN}")
    except FileNotFoundError:
        return None
    try:
        broker_epoch = int(json.loads(data)["brokerEpoch"])
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return NO_BROKER_EPOCH
    return broker_epoch if NO_BROKER_EPOCH <= broker_epoch <= LONG_MAX else NO_BROKER_EPOCH


def write_clean_shutdown(disk: Disk, directory: str, broker_epoch: int) -> None:
    mark = json.dumps({"version": 0, "brokerEpoch": broker_epoch}, separators=(",", ":"))
    write_new_file(disk, f"{directory}/{CLEAN_SHUTDOWN}", mark.encode())


def remove_clean_shutdown(disk: Disk, directory: str) -> None:
    """Before anything is opened, so that a crash from here on counts as unclean."""
    disk.unlink(f"{directory}/{CLEAN_SHUTDOWN}")
    disk.sync_dir(directory)
