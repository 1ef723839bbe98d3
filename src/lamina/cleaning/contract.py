"""What the broker and a cleaning job say to each other: the Plan of one pass over one log, and its Manifest.

Owns both formats and their version. A plan carries everything that a pass needs from the live broker, taken at one
instant (fact 105), so that the job reads no snapshot, checkpoint or index file. A change of meaning is a new version;
a newer one is refused. Must not know how a plan is made, carried out or installed.
"""

import json
from dataclasses import dataclass
from typing import Any, TypeVar

from lamina.cleaning.strict_json import NotThatJson, dump_value, load_value, parse_object
from lamina.log.names import PASS_FOLDER_PREFIX

VERSION = 1


class ContractError(ValueError):
    """A plan or manifest that cannot be used; one sentence."""


@dataclass(frozen=True, slots=True)
class SourceSegment:
    """A segment that the pass rewrites."""

    base_offset: int
    next_base_offset: int
    """The base offset of the next segment of the log; of the last one of a plan, the first uncleanable offset."""
    size_bytes: int
    index_bytes: int
    time_index_bytes: int
    """Sizes of the sources, by which they are grouped (fact 42)."""
    modified_ms: int
    log_name: str
    """The name of its hard link in the pass folder."""


@dataclass(frozen=True, slots=True)
class ActiveProducer:
    """A producer that the log remembers (fact 57)."""

    producer_id: int
    epoch: int
    last_data_offset: int | None
    """The last offset of its last batch in this epoch, or None when only a marker has brought the epoch (fact 59)."""


@dataclass(frozen=True, slots=True)
class AbortedEntry:
    """One line of a transaction index (formats.md §2.3)."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


@dataclass(frozen=True, slots=True)
class Plan:
    plan_id: str
    """In the pass folder's name and in every output's: the result of another plan is never installed."""
    topic: str
    topic_id: bytes
    partition: int
    directory: str
    """The partition's directory; the pass folder lies in it."""
    pass_time_ms: int
    """The one instant that the whole pass takes for now (fact 64)."""
    delete_retention_ms: int
    segment_bytes: int
    segment_index_bytes: int
    index_interval_bytes: int
    max_message_bytes: int
    first_dirty_offset: int
    first_uncleanable_offset: int
    segments: tuple[SourceSegment, ...]
    """All from the first of the log up to the first uncleanable offset (fact 41), in offset order."""
    producers: tuple[ActiveProducer, ...]
    aborted: tuple[AbortedEntry, ...]
    """From all segments from the first one up to the log end, the active one included (fact 50)."""
    memory_limit_bytes: int
    """What the table of keys may take."""
    throttle_bytes_per_second: float | None
    """What the pass may read and write, or, with ``throttle_path``, all that name the same file (fact 97)."""
    hash_key: bytes
    """Sixteen secret bytes that key the hashes of keys, so that no collision can be prepared."""
    only_expired: bool = False
    """Rewrite only groups that hold a horizon that has passed: what may be done to a log with nothing dirty."""
    throttle_path: str | None = None
    """Where the processes of one machine note what they spend of the limit."""
    job_syncs: bool = True
    """The job brings its files to the disk itself; one on the broker's own machine leaves that to the broker."""
    keep_free_bytes: int = 0
    """What has to stay free on the disk, whatever the pass writes: others write there too."""

    @property
    def source_bytes(self) -> int:
        return sum(segment.size_bytes for segment in self.segments)

    @property
    def pass_folder(self) -> str:
        return f"{self.directory}/{PASS_FOLDER_PREFIX}{self.plan_id}"


@dataclass(frozen=True, slots=True)
class OutputFile:
    extension: str
    """``.log``, ``.index``, ``.timeindex`` or ``.txnindex``."""
    name: str
    """In the pass folder."""
    size_bytes: int
    crc32c: int


@dataclass(frozen=True, slots=True)
class OutputGroup:
    """One new segment and the ones in whose place it goes."""

    base_offset: int
    next_base_offset: int
    """Where the offsets of its last source end: the next segment's base."""
    sources: tuple[int, ...]
    """Base offsets, in order."""
    modified_ms: int
    files: tuple[OutputFile, ...]
    """In the order in which they are renamed (fact 79)."""


@dataclass(frozen=True, slots=True)
class Counts:
    """What is in the rewritten groups, before the pass or after it."""

    segments: int
    bytes: int
    batches: int
    records: int
    tombstones: int
    markers: int
    header_only_batches: int


@dataclass(frozen=True, slots=True)
class Dropped:
    """Records that went, by reason."""

    superseded: int
    """A newer record has the key."""
    expired_tombstones: int
    without_key: int
    aborted: int
    """Of aborted transactions (fact 51)."""
    expired_markers: int


@dataclass(frozen=True, slots=True)
class Horizons:
    """Delete horizons of the batches that remain (KIP-534)."""

    set_now: int
    batches: int
    earliest_ms: int | None
    latest_ms: int | None


@dataclass(frozen=True, slots=True)
class Seconds:
    """Where the time went; phases that run side by side are counted each."""

    verdicts: float
    keys: float
    rewrite: float
    throttled: float
    total: float


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a finished attempt left in the pass folder."""

    plan_id: str
    attempt: str
    end_offset: int
    """The next first dirty offset: the plan's first uncleanable one (fact 39)."""
    groups: tuple[OutputGroup, ...]
    before: Counts
    after: Counts
    keys: int
    """Distinct keys among the dirty records; 0 where they were not counted."""
    dropped: Dropped
    horizons: Horizons
    bytes_read: int
    bytes_written: int
    seconds: Seconds
    oversized_batches: int = 0
    """Rebuilt batches that grew beyond ``max.message.bytes``, worth a warning (fact 72)."""


Document = TypeVar("Document", Plan, Manifest)


def dump(document: Plan | Manifest) -> bytes:
    """The document as one line of JSON."""
    return json.dumps({"version": VERSION, **dump_value(document)}, separators=(",", ":")).encode()


def load(kind: type[Document], text: str | bytes) -> Document:
    """What :func:`dump` wrote; raises :class:`ContractError` with one sentence."""
    name = "plan" if kind is Plan else "manifest"
    try:
        value = parse_object(text)
        _check_version(value.pop("version", None))
        return load_value(kind, value)
    except NotThatJson as error:
        raise ContractError(f"this is no cleaning {name} of version {VERSION}: {error}") from None


def _check_version(version: Any) -> None:
    if type(version) is int and version > VERSION:
        raise ContractError(
            f"a newer Lamina wrote this: it has version {version}, and this one knows versions up to {VERSION}; "
            f"use the same version of Lamina for the broker and its cleaning jobs"
        )
    if type(version) is not int or version < 1:
        raise NotThatJson("it has no version")
