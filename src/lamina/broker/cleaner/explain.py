"""Why a record is still there, and when compaction can remove it at the earliest.

Owns the reasons and their order: what the record itself is, what blocks its segment, when the next pass comes. Must not
read anything: it is given the record and the state of its partition.
"""

from dataclasses import dataclass

from lamina.broker.cleaner.blockers import Blocker, BlockerKind, find_blockers, moment_text, retention_sentences
from lamina.broker.cleaner.candidates import CleaningCandidate
from lamina.broker.cleaner.partition_states import FailedPass, State
from lamina.broker.cleaner.record_search import SEARCH_MAX_MS, FoundRecord, Unsearched


@dataclass(frozen=True, slots=True)
class PartitionView:
    """What the cleaner knows of the partition."""

    candidate: CleaningCandidate
    state: State
    failed_pass: FailedPass | None
    why_not: str | None
    """Why no topic is being compacted."""
    expires_idle: bool
    now_ms: int


@dataclass(frozen=True, slots=True)
class Explanation:
    goes: bool
    """Whether compaction will remove it as things are."""
    reasons: tuple[str, ...]
    earliest_ms: int | None
    """Not before this; ``None`` where time does not decide."""


def explain(found: FoundRecord, view: PartitionView, unsearched: Unsearched | None = None) -> Explanation:
    """``unsearched`` is where a newer record of its key was not searched for."""
    fate = _fate(found, view)
    reasons, times = [fate.reason], [fate.not_before_ms]
    if unsearched is not None:
        reasons.insert(0, unsearched_text(unsearched))
    if fate.goes:
        blockers = _blockers(fate.decided_at, view)
        reasons += [blocker.sentence for blocker in blockers]
        times += [blocker.until_ms for blocker in blockers]
        if not blockers:
            next_pass, not_before_ms = _next_pass(view, is_idle=fate.is_idle)
            reasons.append(next_pass)
            times.append(not_before_ms)
    reasons += retention_sentences(view.candidate.partition.log.config)
    known = [one for one in times if one is not None]
    return Explanation(fate.goes, tuple(reasons), max(known) + fate.after_that_ms if known and fate.goes else None)


@dataclass(frozen=True, slots=True)
class _Fate:
    goes: bool
    reason: str
    decided_at: int = 0
    """The offset that has to be cleanable before it can go."""
    not_before_ms: int | None = None
    after_that_ms: int = 0
    """How long it stays after the next pass."""
    is_idle: bool = False
    """With ``lamina.cleaner.expire.idle`` it goes even from a log with nothing dirty."""


def unsearched_text(unsearched: Unsearched) -> str:
    return (
        f"the search ended after {SEARCH_MAX_MS // 1000} s and did not read offsets {unsearched.start} to "
        f"{unsearched.end - 1}: the rest holds only if no newer record of the key is there"
    )


def _fate(found: FoundRecord, view: PartitionView) -> _Fate:
    offset, config = found.offset, view.candidate.partition.log.config
    if found.is_aborted:
        return _Fate(True, "it belongs to an aborted transaction, which no committed reader sees", offset)
    if found.is_open:
        return _Fate(False, "it belongs to a transaction that is still open: how that ends decides")
    if found.is_control:
        if found.delete_horizon_ms is None:
            return _Fate(
                True,
                f"it is a transaction's marker: when the transaction's records are gone, the next pass gives it "
                f"delete.retention.ms = {config.delete_retention_ms} more",
                offset,
                view.now_ms,
                config.delete_retention_ms,
            )
        return _expiring(found, "it is a transaction's marker", view)
    if found.key is None:
        return _Fate(True, "it has no key", offset)
    if found.newer:
        first, last = found.newer
        more = "" if first == last else f", and the last so far at {last}"
        return _Fate(True, f"a newer record of its key is at offset {first}{more}", first)
    if found.newer_open is not None:
        return _Fate(
            False,
            f"it is the latest of its key that counts: a newer one at offset {found.newer_open} belongs to a "
            f"transaction that is still open, and replaces it if that commits",
        )
    if not found.is_tombstone:
        return _Fate(False, "it is the latest of its key and stays until a newer one comes")
    if found.delete_horizon_ms is None:
        return _Fate(
            True,
            f"it is a tombstone and the latest of its key: the next pass sets its delete horizon, "
            f"delete.retention.ms = {config.delete_retention_ms} later, and a pass after that removes it",
            offset,
            view.now_ms,
            config.delete_retention_ms,
        )
    return _expiring(found, "it is a tombstone and the latest of its key", view)


def _expiring(found: FoundRecord, what: str, view: PartitionView) -> _Fate:
    horizon_ms = found.delete_horizon_ms
    assert horizon_ms is not None
    when = moment_text(horizon_ms, view.now_ms)
    verb = "stays until its delete horizon" if horizon_ms > view.now_ms else "its delete horizon has passed:"
    return _Fate(True, f"{what}, and {verb} {when}", found.offset, horizon_ms, is_idle=True)


def _blockers(offset: int, view: PartitionView) -> list[Blocker]:
    """What keeps a pass from reaching ``offset``."""
    candidate = view.candidate
    if offset < candidate.cleanable.first_uncleanable_offset:
        return []
    blockers = find_blockers(candidate.partition.log, candidate.cleanable, view.now_ms)
    if offset >= candidate.partition.log.segments.active.base_offset:
        return blockers
    return [blocker for blocker in blockers if blocker.kind is not BlockerKind.ACTIVE_SEGMENT]


def _next_pass(view: PartitionView, *, is_idle: bool) -> tuple[str, int | None]:
    """When the next pass comes."""
    config, cleanable = view.candidate.partition.log.config, view.candidate.cleanable
    if view.why_not is not None:
        return f"no topic is being compacted: {view.why_not}", None
    if view.state is State.IN_PROGRESS:
        return "a pass is under way", None
    if view.state is not State.NONE:
        return f"its cleaning is {view.state}", None
    if view.failed_pass is not None:
        failed = view.failed_pass
        return (
            f"the last pass failed and is tried again at {moment_text(failed.retry_at_ms, view.now_ms)}: "
            f"{failed.reason}",
            failed.retry_at_ms,
        )
    if view.candidate.is_eligible:
        return "the next round of the cleaner takes this log", None
    if not cleanable.cleanable_bytes:
        if is_idle and view.expires_idle:
            return "lamina.cleaner.expire.idle has it removed though nothing is dirty", None
        return (
            "nothing in this log is dirty: no pass comes before something new is written and its segment closed",
            None,
        )
    ratio = (
        f"{cleanable.dirty_ratio:.2f} of it is dirty, which has to be more than min.cleanable.dirty.ratio = "
        f"{config.min_cleanable_dirty_ratio:g}"
    )
    if cleanable.overdue_at_ms is None:
        return f"the log is not dirty enough: {ratio}", None
    return (
        f"the log is not dirty enough: {ratio}; whatever its ratio, it is cleaned from "
        f"{moment_text(cleanable.overdue_at_ms, view.now_ms)} on: "
        f"max.compaction.lag.ms = {config.max_compaction_lag_ms}",
        None,
    )
