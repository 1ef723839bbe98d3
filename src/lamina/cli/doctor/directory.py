"""The data directory: whether a broker is running on it, how the last one stopped, and the version of its metadata.

Everything is read without locking or opening a database. Must not look at records.
"""

import os
from dataclasses import dataclass

from lamina.cli.doctor.finding import Finding, fine, problem, warning
from lamina.cli.lock_holder import holder
from lamina.log.clean_shutdown import CLEAN_SHUTDOWN
from lamina.log.directory import LOCK
from lamina.log.identity import META_PROPERTIES
from lamina.storage import METADATA_DB
from lamina.store.interface import StoreError
from lamina.store.member_file import read_member_file
from lamina.store.sqlite import APPLICATION_ID, SCHEMA_STEPS

_SQLITE = b"SQLite format 3\0"
_HEADER_BYTES = 100
NEWEST_SCHEMA = len(SCHEMA_STEPS)


@dataclass(frozen=True, slots=True)
class Metadata:
    """What the header of ``metadata.db`` says; a schema of 0 is one that is not written back yet."""

    schema_version: int
    is_ours: bool


@dataclass(frozen=True, slots=True)
class DirectoryFacts:
    """``holder`` is the process that uses it: 0 when there is one, but which is not known."""

    exists: bool
    holder: int | None = None
    has_past: bool = False
    unclean: tuple[str, ...] = ()
    metadata: Metadata | None = None
    refusal: str | None = None
    cluster_id: str | None = None
    """Of the cluster whose member it belongs to."""


def judge_directory(path: str, facts: DirectoryFacts, *, joins: bool = False) -> Finding:
    """``joins``: the settings name the ZooKeeper of a cluster."""
    name = "data directory"
    metadata = facts.metadata
    if facts.refusal is not None:
        return problem(name, f"{path}: {facts.refusal}", "run this, and the broker, as the user that owns it")
    if not facts.exists:
        return fine(name, f"{path} does not exist yet; `lamina serve` creates it")
    if metadata is not None and not metadata.is_ours:
        return problem(
            name, f"{path}/{METADATA_DB} is not Lamina's", "choose another --data-dir, or move the file away"
        )
    if metadata is not None and metadata.schema_version > NEWEST_SCHEMA:
        return problem(
            name,
            f"{path}/{METADATA_DB} has schema {metadata.schema_version}, this Lamina knows up to {NEWEST_SCHEMA}",
            "run the newer Lamina that wrote it",
        )
    if facts.holder is not None:
        who = f" (process {facts.holder})" if facts.holder else ""
        return fine(name, f"a broker is running on {path}{who}")
    if facts.cluster_id is not None and not joins:
        return problem(
            name,
            f"{path} belongs to a member of cluster {facts.cluster_id}, and the settings name no ZooKeeper",
            "say which ZooKeeper that cluster has, with --zookeeper or zookeeper.connect",
        )
    if metadata is not None and joins:
        return problem(
            name, f"{path} belongs to a broker without a cluster", "choose another --data-dir, or leave out ZooKeeper"
        )
    whose = "" if metadata is None else f", metadata schema {metadata.schema_version}"
    if facts.cluster_id is not None:
        whose = f", member of cluster {facts.cluster_id}"
    elif facts.has_past and metadata is None:
        return warning(name, f"{path} has logs and no {METADATA_DB}", "`lamina adopt` imports the logs")
    if facts.unclean:
        where = ", ".join(facts.unclean)
        return warning(
            name, f"the last shutdown was unclean: {where}{whose}", "nothing: the next start checks the logs"
        )
    if not facts.has_past:
        return fine(name, f"{path} is empty{whose}")
    return fine(name, f"{path} was left by a clean stop{whose}")


def check_directory(path: str, log_directories: tuple[str, ...], *, joins: bool) -> tuple[Finding, int | None]:
    """Also the process that is running on it, if any. ``joins``: the settings name the ZooKeeper of a cluster."""
    facts = _gather(path, log_directories)
    return judge_directory(path, facts, joins=joins), facts.holder


def _gather(path: str, log_directories: tuple[str, ...]) -> DirectoryFacts:
    try:
        os.listdir(path)
        pasts = [log for log in log_directories if os.path.exists(os.path.join(log, META_PROPERTIES))]
        holders = [pid for log in log_directories if (pid := holder(os.path.join(log, LOCK))) is not None]
        unclean = tuple(log for log in pasts if not os.path.exists(os.path.join(log, CLEAN_SHUTDOWN)))
        metadata = read_metadata(os.path.join(path, METADATA_DB))
        member = read_member_file(path)
    except FileNotFoundError:
        return DirectoryFacts(exists=False)
    except OSError as error:
        return DirectoryFacts(exists=True, refusal=(error.strerror or str(error)).lower())
    except StoreError as error:
        return DirectoryFacts(exists=True, refusal=str(error))
    cluster_id = None if member is None else member.cluster_id
    return DirectoryFacts(True, max(holders, default=None), bool(pasts), unclean, metadata, cluster_id=cluster_id)


def read_metadata(path: str) -> Metadata | None:
    """From the file's header, since it cannot be opened while a broker runs; ``None`` without a file."""
    try:
        with open(path, "rb") as file:
            header = file.read(_HEADER_BYTES)
    except FileNotFoundError:
        return None
    if not header:
        return Metadata(0, is_ours=True)
    if len(header) < _HEADER_BYTES or not header.startswith(_SQLITE):
        return Metadata(0, is_ours=False)
    version, application_id = int.from_bytes(header[60:64], "big"), int.from_bytes(header[68:72], "big")
    # Until the write-ahead log is written back, a new file has neither number.
    return Metadata(version, is_ours=application_id == APPLICATION_ID or (application_id == 0 == version))
