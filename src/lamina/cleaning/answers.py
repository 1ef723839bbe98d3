"""What a cleaning job says while it works: lines of JSON, one object each.

``{"progress": …}``, ``{"failure": …}`` or a manifest as ``contract.dump`` writes it. Must not know who says it.
"""

import json
from dataclasses import dataclass

from lamina.cleaning.contract import ContractError, Manifest, Plan, dump, load
from lamina.cleaning.failures import CleaningFailed, CorruptLog
from lamina.cleaning.strict_json import NotThatJson, dump_value, load_value, parse_object


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
