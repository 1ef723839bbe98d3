"""The disk below a directory: its free space, its kind, and whether what the log relies on works there.

To try that, a directory of its own is made and removed again. Must not look into the broker's files.
"""

import os
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass

from lamina.cli.doctor.finding import Finding, fine, in_units, problem, warning
from lamina.log.files import Disk, sync

NETWORK = ("nfs", "nfs4", "cifs", "smb", "smb3", "smbfs", "9p", "afs", "ceph", "glusterfs", "fuse.sshfs", "virtiofs")
FLEETING = ("tmpfs", "ramfs", "overlay", "aufs")

_MOUNTS = "/proc/self/mounts"


@dataclass(frozen=True, slots=True)
class DiskFacts:
    """``refusal`` is what the system said when a file was made, synced, or linked; ``kind`` is ``None`` if unknown."""

    free_bytes: int
    kind: str | None = None
    refusal: str | None = None
    has_links: bool = True


def judge_disk(name: str, path: str, facts: DiskFacts, min_free_bytes: int) -> Finding:
    what = f"{in_units(facts.free_bytes)} free" + (f" on {facts.kind}" if facts.kind else "") + f" for {path}"
    if facts.refusal is not None:
        return problem(name, f"{path}: {facts.refusal}", "run the broker as a user who may write there, or elsewhere")
    if facts.free_bytes < min_free_bytes:
        advice = (
            f"free some space or lower lamina.disk.free.min.bytes ({in_units(min_free_bytes)}): producers are refused"
        )
        return problem(name, what, advice)
    if not facts.has_links:
        return warning(name, f"{what}; no hard links", "choose another file system: backups copy everything here")
    if facts.kind in NETWORK:
        advice = "choose a local disk: locks and fsync of a network file system cannot be relied on"
        return warning(name, what, advice)
    if facts.kind in FLEETING:
        return warning(name, what, "choose a disk or a volume: this one is gone when the machine or container ends")
    if facts.free_bytes < 4 * min_free_bytes:
        return warning(name, what, "free some space soon: at lamina.disk.free.min.bytes producers are refused")
    return fine(name, what)


def check_disk(name: str, path: str, min_free_bytes: int) -> Finding:
    """A directory that does not exist yet will be where its first existing parent is."""
    place = os.path.realpath(path)
    while not os.path.isdir(place) and place != "/":
        place = os.path.dirname(place)
    try:
        free_bytes = Disk().free_bytes(place)
    except OSError as error:
        return judge_disk(name, path, DiskFacts(0, None, (error.strerror or str(error)).lower()), min_free_bytes)
    refusal, has_links = _try_out(place)
    return judge_disk(name, path, DiskFacts(free_bytes, _kind(place), refusal, has_links), min_free_bytes)


def _try_out(place: str) -> tuple[str | None, bool]:
    """What was refused, if anything; and whether a file can have two names."""
    try:
        with tempfile.TemporaryDirectory(prefix=".lamina-doctor-", dir=place) as directory:
            path = os.path.join(directory, "file")
            with open(path, "xb") as file:
                file.write(b"lamina")
                file.flush()
                sync(file.fileno())
            Disk().sync_dir(directory)
            try:
                os.link(path, path + ".link")
            except OSError:
                return None, False
    except OSError as error:
        return (error.strerror or str(error)).lower(), True
    return None, True


def _kind(place: str) -> str | None:
    try:
        with open(_MOUNTS) as file:
            return kind_of(place, file)
    except OSError:
        return None


def kind_of(place: str, mounts: Iterable[str]) -> str | None:
    """The file system whose mount point is the longest that leads to ``place``; of two in one place, the later."""
    best, kind = "", None
    for line in mounts:
        fields = line.split()
        if len(fields) < 3:
            continue
        point = fields[1].replace("\\040", " ")
        leads = place == point or place.startswith(point.rstrip("/") + "/")
        if leads and len(point) >= len(best):
            best, kind = point, fields[2]
    return kind
