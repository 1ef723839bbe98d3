"""Which log directories a broker had, by their ids: a disk that is missing, empty or elsewhere is told by name.

Owns the file in the data directory. It says nothing that the broker goes by: where partitions are is seen in the
directories themselves. Must not know what is in a directory.
"""

import logging
from collections.abc import Mapping, Sequence

from lamina.log.directory import LogDirectory
from lamina.log.files import Disk, read_file, write_new_file
from lamina.settings.properties import PropertiesError, dump, load

FILE_NAME = "log-directories.properties"

logger = logging.getLogger(__name__)


def compare_directories(data_directory: str, directories: Sequence[LogDirectory]) -> None:
    """Tell of directories that this broker had and has no more, and of those that are under another path."""
    known = _read(data_directory)
    now = {one.identity.directory_id: one.path for one in directories if one.identity.directory_id is not None}
    unknown = {one.path for one in directories if one.failure is not None}
    for directory_id, path in known.items():
        there = now.get(directory_id)
        if there is None and path in now.values():
            logger.warning("%s is another directory than before: what was in %s is not there", path, directory_id)
        elif there is None and path not in unknown:
            logger.warning("the log directory %s, %s, is not among the directories of log.dirs", path, directory_id)
        elif there is not None and there != path:
            logger.info("the log directory %s was %s before: it is known by its id, %s", there, path, directory_id)


def remember_directories(data_directory: str, directories: Sequence[LogDirectory]) -> None:
    """Write them down. Those that cannot be opened now keep their places. Raises OSError."""
    known = _read(data_directory)
    unknown = {one.path for one in directories if one.failure is not None}
    kept = {directory_id: path for directory_id, path in known.items() if path in unknown}
    now = {one.identity.directory_id: one.path for one in directories if one.identity.directory_id is not None}
    if kept | now != known:
        write_new_file(Disk(), f"{data_directory}/{FILE_NAME}", dump(kept | now))


def _read(data_directory: str) -> Mapping[str, str]:
    """Nothing where the file is missing or damaged: no more follows from it than what is told."""
    try:
        return load(read_file(Disk(), f"{data_directory}/{FILE_NAME}"))
    except (FileNotFoundError, PropertiesError):
        return {}
