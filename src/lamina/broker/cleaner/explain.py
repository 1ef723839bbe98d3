"""Why a record is still there, and when it can go at the earliest.

Owns the reasons and their order: what the record itself is, what holds its segment back, when the next pass comes.
Must not read anything: it is shown the record and the log.
"""

from dataclasses import dataclass

from lamina.broker.cleaner.finding import SEARCH_MAX_MS, Found, Unsearched
from lamina.broker.cleaner.remains import Hold, Holder, moment_text, why_deleted, why_uncleanable
from lamina.broker.cleaner.sight import Sight
from lamina.broker.cleaner.states import State
from lamina.broker.cleaner.troubles import Trouble


@dataclass(frozen=True, slots=True)
class Standing:
    """What the cleaner knows of the partition."""

    sight: Sight
    state: State
    trouble: Trouble | None
    why_not: str | None
    """Why nothing at all is compacted."""
    expires_idle: bool
    now_ms: int


@dataclass(frozen=True, slots=True)
class Explanation:
    goes: bool
    """Whether compaction will remove it as things are."""
    reasons: tuple[str, ...]
    earliest_ms: int | None
    """Not before this; ``None`` where no clock decides."""


def explain(found: Found, standing: Standing, unsearched: Unsearched | None = None) -> Explanation:
    """``unsearched`` is where nobody has looked for a newer record of its key."""
    fate = _fate(found, standing)
    reasons, times = [fate.reason], [fate.not_before_ms]
    if unsearched is not None:
        reasons.insert(0, unsearched_text(unsearched))
    if fate.goes:
        held = _held_back(fate.decided_at, standing)
        reasons += [hold.sentence for hold in held]
        times += [hold.until_ms for hold in held]
        if not held:
            coming, not_before_ms = _coming(standing, is_idle=fate.is_idle)
            reasons.append(coming)
            times.append(not_before_ms)
    reasons += why_deleted(standing.sight.partition.log.config)
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
    """It goes even from a log with nothing dirty, if that is wanted."""


def unsearched_text(unsearched: Unsearched) -> str:
    return (
        f"the search ended after {SEARCH_MAX_MS // 1000} s and did not read offsets {unsearched.start} to "
        f"{unsearched.end - 1}: the rest holds only if no newer record of the key is there"
    )


def _fate(found: Found, standing: Standing) -> _Fate:
    offset, config = found.offset, standing.sight.partition.log.config
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
                standing.now_ms,
                config.delete_retention_ms,
            )
        return _expiring(found, "it is a transaction's marker", standing)
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
            standing.now_ms,
            config.delete_retention_ms,
        )
    return _expiring(found, "it is a tombstone and the latest of its key", standing)


def _expiring(found: Found, what: str, standing: Standing) -> _Fate:
    horizon_ms = found.delete_horizon_ms
    assert horizon_ms is not None
    when = moment_text(horizon_ms, standing.now_ms)
    verb = "stays until its delete horizon" if horizon_ms > standing.now_ms else "its delete horizon has passed:"
    return _Fate(True, f"{what}, and {verb} {when}", found.offset, horizon_ms, is_idle=True)


def _held_back(offset: int, standing: Standing) -> list[Hold]:
    """What keeps a pass from reaching ``offset``."""
    if offset < standing.sight.cleanable.first_uncleanable_offset:
        return []
    sight = standing.sight
    holds = why_uncleanable(sight.partition.log, sight.cleanable, standing.now_ms)
    if offset >= sight.partition.log.segments.active.base_offset:
        return holds
    return [hold for hold in holds if hold.holder is not Holder.ACTIVE_SEGMENT]


def _coming(standing: Standing, *, is_idle: bool) -> tuple[str, int | None]:
    """When the next pass comes."""
    config, cleanable = standing.sight.partition.log.config, standing.sight.cleanable
    if standing.why_not is not None:
        return f"no topic is being compacted: {standing.why_not}", None
    if standing.state is State.IN_PROGRESS:
        return "a pass is under way", None
    if standing.state is not State.NONE:
        return f"its cleaning is {standing.state}", None
    if standing.trouble is not None:
        trouble = standing.trouble
        return (
            f"the last pass failed and is tried again at {moment_text(trouble.retry_at_ms, standing.now_ms)}: "
            f"{trouble.reason}",
            trouble.retry_at_ms,
        )
    if standing.sight.is_eligible:
        return "the next round of the cleaner takes this log", None
    if not cleanable.cleanable_bytes:
        if is_idle and standing.expires_idle:
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
        f"{moment_text(cleanable.overdue_at_ms, standing.now_ms)} on: "
        f"max.compaction.lag.ms = {config.max_compaction_lag_ms}",
        None,
    )
