"""What a broker and its engine say to each other over a pipe: lines of JSON, one object each.

Down go orders, each ``{"version": …}`` with what it is: Spark is told to ``start``, then come ``clean`` and ``cancel``.
Up come ``{"started": …}``, ``{"progress": …}``, ``{"failure": …}`` or a manifest as ``contract.dump`` writes it.
Must not know who starts whom, nor who says it.
"""

import json
from dataclasses import dataclass

from lamina.cleaning.contract import ContractError, Manifest, Plan, dump, load
from lamina.cleaning.failures import CleaningFailed, CorruptLog
from lamina.cleaning.strict_json import NotThatJson, dump_value, load_value, parse_object

VERSION = 2
SAID_WHY = 3
"""The status of an engine that ends because it cannot go on: then the last line on its standard error says why."""


# Orders


@dataclass(frozen=True, slots=True)
class Entry:
    name: str
    value: str


@dataclass(frozen=True, slots=True)
class Start:
    """How Spark is to be started; before the first plans."""

    master: str
    conf: tuple[Entry, ...]
    directory: str
    """The engine's own, inside the data directory: what is in it may be removed whenever no engine runs."""


@dataclass(frozen=True, slots=True)
class Clean:
    """Clean this log; others may come before it is answered."""

    plan: Plan


@dataclass(frozen=True, slots=True)
class Cancel:
    """The result of this plan is no longer wanted."""

    plan_id: str


Order = Start | Clean | Cancel
_KINDS: dict[str, type[Start] | type[Clean] | type[Cancel]] = {"start": Start, "clean": Clean, "cancel": Cancel}


def dump_order(order: Order) -> bytes:
    name = next(name for name, kind in _KINDS.items() if isinstance(order, kind))
    return json.dumps({"version": VERSION, name: dump_value(order)}, separators=(",", ":")).encode() + b"\n"


def load_order(line: bytes) -> Order:
    """Raises :class:`ContractError` with one sentence."""
    try:
        value = parse_object(line)
        version = value.pop("version", None)
        if version != VERSION:
            raise ContractError(
                f"the broker speaks version {version} and this engine version {VERSION}: use the same Lamina for both"
            )
        name = next(iter(value)) if len(value) == 1 else ""
        if name not in _KINDS:
            raise NotThatJson("it is no order")
        order: Order = load_value(_KINDS[name], value[name])
    except NotThatJson as error:
        raise ContractError(f"the order to the engine is not valid: {error}") from None
    return order


# What comes back


@dataclass(frozen=True, slots=True)
class Started:
    """Spark is up."""

    spark: str
    java: str
    slots: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Progress:
    plan_id: str
    done_bytes: int
    total_bytes: int


@dataclass(frozen=True, slots=True)
class Failure:
    """A pass that came to nothing; it left the log as it was."""

    plan_id: str
    reason: str
    is_uncleanable: bool = False
    """The log itself is the reason, such as a damaged batch: trying again does not help until it is repaired."""


Answer = Manifest | Failure
"""What becomes of one plan."""

Said = Started | Progress | Answer


def failure_of(plan: Plan, error: Exception) -> Failure:
    """What has gone wrong with a pass, in one sentence. Only damage makes a log uncleanable."""
    if isinstance(error, CleaningFailed):
        return Failure(plan.plan_id, str(error), is_uncleanable=isinstance(error, CorruptLog))
    if isinstance(error, OSError):
        # A write that fails does not say of which file.
        place = error.filename or plan.pass_folder
        return Failure(plan.plan_id, f"the disk failed the pass: {place}: {error.strerror or error}")
    return Failure(plan.plan_id, f"the pass failed unexpectedly: {type(error).__name__}: {error}")


def dump_line(said: Progress | Answer) -> bytes:
    if isinstance(said, Manifest):
        return dump(said) + b"\n"
    name = "progress" if isinstance(said, Progress) else "failure"
    return json.dumps({name: dump_value(said)}, separators=(",", ":")).encode() + b"\n"


def load_line(line: bytes) -> Progress | Answer:
    """Raises :class:`ContractError` for what is none of these."""
    try:
        value = parse_object(line)
        if set(value) == {"progress"}:
            return load_value(Progress, value["progress"])
        if set(value) == {"failure"}:
            return load_value(Failure, value["failure"])
    except NotThatJson as error:
        raise ContractError(f"the answer of a cleaning job is not valid: {error}") from None
    return load(Manifest, line)


def dump_started(started: Started) -> bytes:
    return json.dumps({"started": dump_value(started)}, separators=(",", ":")).encode() + b"\n"


def load_said(line: bytes) -> Said:
    """Raises :class:`ContractError`."""
    if not line.startswith(b'{"started":'):
        return load_line(line)
    try:
        return load_value(Started, parse_object(line)["started"])
    except NotThatJson as error:
        raise ContractError(f"the answer of the engine is not valid: {error}") from None
