"""A log directory, or a single partition's: what is in it is verified, and nothing is written.

Owns how a directory is recognised, what its clean-shutdown mark and checkpoints make one expect, and the checks
of the files that speak of several partitions. Takes no lock. Must not know how findings are shown.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from lamina.log import checkpoints
from lamina.log.checkpoints import parse_lines, parse_offsets
from lamina.log.clean_shutdown import CLEAN_SHUTDOWN
from lamina.log.directory import LOCK
from lamina.log.files import Disk, parent, read_file
from lamina.log.identity import META_PROPERTIES, parse_id, read_meta_properties
from lamina.log.leftovers import segment_logs
from lamina.log.names import parse_partition_directory
from lamina.log.verify.findings import Counts, Findings, Severity, Standing
from lamina.log.verify.partition import AT_START, Extent, PartitionCheck
from lamina.log.verify.records import load_screen
from lamina.topic_partition import TopicPartition, name_of

_METADATA = "__cluster_metadata-0"
"""KRaft's own log, which is in no checkpoint."""
_CHECKPOINTS = (checkpoints.RECOVERY_POINT, checkpoints.HIGH_WATERMARK, checkpoints.LOG_START, checkpoints.CLEANER)
_DELETE_IT = "delete it while no broker runs: it is made again"


class NotALogDirectory(ValueError):
    """A directory that holds neither partitions nor segments; the sentence says so."""


@dataclass(slots=True)
class Verification:
    """What is to be verified, and then what was found."""

    root: str
    """The log directory; the parent when only one partition is asked for."""
    partitions: dict[TopicPartition | str, str]
    """Directory by partition; by its own path where the name is no partition's."""
    is_clean: bool
    is_running: bool
    """Whether a broker has it in use, so that its ends are in motion."""
    total_bytes: int
    whole_directory: bool
    findings: Findings = field(default_factory=Findings)
    counts: Counts = field(default_factory=Counts)


def prepare(disk: Disk, path: str, is_running: Callable[[str], bool]) -> Verification:
    """Look what is in ``path``; raises :class:`NotALogDirectory`, or ``OSError`` when it cannot be listed.

    ``is_running`` is asked whether somebody holds the lock file at a path.
    """
    path = disk.absolute(path)
    entries = disk.scan(path)
    names = {entry.name for entry in entries}
    if segment_logs(entries):
        root = parent(path)
        key = parse_partition_directory(path.rpartition("/")[2])
        partitions: dict[TopicPartition | str, str] = {key or path: path}
        is_whole = False
    else:
        root = path
        found = ((parse_partition_directory(entry.name), entry.name) for entry in entries if entry.is_dir)
        partitions = {key: f"{path}/{name}" for key, name in found if key is not None}
        is_whole = True
        if not partitions and META_PROPERTIES not in names:
            raise NotALogDirectory(
                f"{path} holds no partitions and no segments: name a log directory (log.dirs, or logs in the data "
                "directory) or the directory of one partition"
            )
    total_bytes = sum(_log_bytes(disk, each) for each in partitions.values())
    is_clean = disk.exists(f"{root}/{CLEAN_SHUTDOWN}")
    return Verification(root, partitions, is_clean, is_running(f"{root}/{LOCK}"), total_bytes, is_whole)


def _log_bytes(disk: Disk, path: str) -> int:
    """For the progress bar only; a partition that cannot be listed is reported when its turn comes."""
    try:
        return sum(entry.size_bytes for entry in segment_logs(disk.scan(path)))
    except OSError:
        return 0


def verify(disk: Disk, verification: Verification, progress: Callable[[int], None]) -> None:
    """Verify everything; ``progress`` is told the bytes of each batch."""
    DirectoryCheck(disk, verification).run(progress)


class DirectoryCheck:
    def __init__(self, disk: Disk, verification: Verification) -> None:
        self._disk = disk
        self._verification = verification
        self._root = verification.root
        self._findings = verification.findings

    def run(self, progress: Callable[[int], None]) -> None:
        verification = self._verification
        offsets = {name: self._checkpoint(name) for name in _CHECKPOINTS}
        screen = load_screen(verification.total_bytes)
        extents = {}
        for key, path in sorted(verification.partitions.items(), key=lambda item: item[1]):
            standing = self._standing(key, offsets)
            check = PartitionCheck(self._disk, path, standing, self._findings, verification.counts, screen)
            try:
                extents[key] = check.run(progress)
            except OSError as error:
                advice = "mend its rights or the disk"
                self._findings.add(Severity.ERROR, path, f"it cannot be listed: {error.strerror}", advice)
        for name, entries in offsets.items():
            self._check_offsets(name, entries or {}, extents)
        if verification.whole_directory:
            self._check_mark()
            self._check_identity()
            self._check_topic_ids(extents)
            self._name_leftovers()

    def _standing(self, key: TopicPartition | str, offsets: Mapping[str, dict[TopicPartition, int] | None]) -> Standing:
        """Without any checkpoint nothing can be told; a broker without one takes 0 for a partition it misses."""
        if isinstance(key, str) or all(each is None for each in offsets.values()):
            return Standing(self._verification.is_clean, self._verification.is_running)
        log_start_offset = (offsets[checkpoints.LOG_START] or {}).get(key, 0)
        return Standing(
            self._verification.is_clean,
            self._verification.is_running,
            recovery_point=(offsets[checkpoints.RECOVERY_POINT] or {}).get(key, log_start_offset),
            log_start_offset=log_start_offset,
            cleaned_offset=(offsets[checkpoints.CLEANER] or {}).get(key, 0),
        )

    # Checkpoints

    def _checkpoint(self, name: str) -> dict[TopicPartition, int] | None:
        path = f"{self._root}/{name}"
        try:
            data = read_file(self._disk, path)
            offsets = parse_offsets(data)
        except FileNotFoundError:
            return None
        except ValueError as error:
            self._findings.add(Severity.ERROR, path, str(error), _DELETE_IT)
            return None
        except OSError as error:
            what = f"it cannot be read: {error.strerror}"
            self._findings.add(Severity.ERROR, path, what, "mend its rights or the disk")
            return None
        if len(parse_lines(data, fields=3)) != len(offsets):
            self._findings.add(Severity.ERROR, path, "it names a partition twice", _DELETE_IT)
        return offsets

    def _check_offsets(
        self, name: str, offsets: dict[TopicPartition, int], extents: Mapping[TopicPartition | str, Extent]
    ) -> None:
        path, is_clean = f"{self._root}/{name}", self._verification.is_clean
        for key, offset in offsets.items():
            extent = extents.get(key)
            if extent is not None:
                self._check_offset(name, path, key, offset, extent)
            elif self._verification.whole_directory:
                what = f"it speaks of {name_of(key)}, which has no directory here"
                self._findings.add(
                    Severity.WARNING, path, what, "see whether a disk is missing or a directory was moved"
                )
        if name == checkpoints.RECOVERY_POINT and is_clean and self._verification.whole_directory:
            for unnamed in sorted(path for key, path in self._verification.partitions.items() if key not in offsets):
                if not unnamed.endswith(f"/{_METADATA}"):
                    what = f"it does not speak of {unnamed.rpartition('/')[2]}, though the stop was clean"
                    self._findings.add(Severity.WARNING, path, what, AT_START)

    def _check_offset(self, name: str, path: str, key: TopicPartition, offset: int, extent: Extent) -> None:
        is_clean = self._verification.is_clean
        severity, end = Severity.ERROR, extent.end_offset
        lowest = extent.first_offset if name == checkpoints.LOG_START else 0
        if name == checkpoints.RECOVERY_POINT and is_clean:
            wrong, rule = offset != end, f"a clean stop leaves the log's end, {end}"
        else:
            wrong, rule = not lowest <= offset <= end, f"the log reaches from {extent.first_offset} to {end}"
        if name == checkpoints.HIGH_WATERMARK and not is_clean:
            severity = Severity.WARNING
        if wrong:
            what = f"{name_of(key)} is at {offset}, but {rule}"
            advice = "if the log was cut, take it from another replica; else correct the line while no broker runs"
            self._findings.add(severity, path, what, advice, offset=offset)

    # The directory itself

    def _check_mark(self) -> None:
        path = f"{self._root}/{CLEAN_SHUTDOWN}"
        if not self._verification.is_clean:
            return
        try:
            data = read_file(self._disk, path)
            mark = json.loads(data) if data else {"version": 0}
        except FileNotFoundError:
            return
        except (OSError, ValueError, RecursionError):
            mark = None
        if not isinstance(mark, dict) or mark.get("version") != 0:
            what = "it is no clean-shutdown mark of version 0"
            self._findings.add(Severity.WARNING, path, what, "nothing: that it is there is what counts")

    def _check_identity(self) -> None:
        path = f"{self._root}/{META_PROPERTIES}"
        advice = "write it again by hand: cluster.id and node.id have to be the broker's"
        try:
            identity = read_meta_properties(self._disk, self._root)
            if identity is None:
                self._findings.add(Severity.WARNING, path, "the file is missing", "nothing: the next start writes it")
            elif identity.node_id is None or identity.cluster_id is None:
                self._findings.add(Severity.ERROR, path, "it does not name both a cluster and a node", advice)
            elif identity.directory_id is not None:
                parse_id(identity.directory_id)
        except ValueError as error:
            self._findings.add(Severity.ERROR, path, str(error).removeprefix(f"{path}: "), advice)
        except OSError as error:
            what = f"it cannot be read: {error.strerror}"
            self._findings.add(Severity.ERROR, path, what, "mend its rights or the disk")

    def _check_topic_ids(self, extents: Mapping[TopicPartition | str, Extent]) -> None:
        ids: dict[str, bytes] = {}
        for key, extent in extents.items():
            if extent.topic_id is None or isinstance(key, str):
                continue
            if ids.setdefault(key[0], extent.topic_id) != extent.topic_id:
                path = self._verification.partitions[key]
                what = f"its topic id is not the one of {key[0]}'s other partitions"
                advice = "find out which partition belongs to the topic, and move the other away"
                self._findings.add(Severity.ERROR, path, what, advice)

    def _name_leftovers(self) -> None:
        for entry in self._disk.scan(self._root):
            if entry.is_dir and entry.name.endswith(("-delete", "-stray", "-future")):
                kind = entry.name.rpartition("-")[2]
                what = f"a partition that was set aside ({kind}); it was not verified"
                advice = AT_START if kind == "delete" else "look whether it is still needed"
                if kind == "future":
                    what = "a partition that is being moved to this directory; it was not verified"
                    advice = "the broker goes on with it when it starts"
                self._findings.add(Severity.WARNING, f"{self._root}/{entry.name}", what, advice)
