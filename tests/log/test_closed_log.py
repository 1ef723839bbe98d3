"""Nobody but the log itself changes where it starts and ends, its segments, or whether it is online."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "lamina"
OWNER = SOURCE / "log" / "partition_log.py"
OFFSETS = {"log_start_offset", "log_end_offset", "recovery_point"}
STATE = OFFSETS | {"failure", "segments", "config"}
PRIVATE = {f"_{name}" for name in STATE} | {"_pending_deletes", "_truncation", "_swaps"}
CHANGES_OF_SEGMENTS = {"add", "remove", "replace"}


def intrusions(source: str) -> list[str]:
    """What a module does to the state of a log that is not its own ``self``."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found += [ast.unparse(node) for target in targets if _is_state_of_another(target)]
        elif (isinstance(node, ast.Attribute) and node.attr in PRIVATE and not _is_self(node.value)) or (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in CHANGES_OF_SEGMENTS
            and isinstance(node.func.value, ast.Attribute)
            and node.func.value.attr == "segments"
        ):
            found.append(ast.unparse(node))
    return found


def _is_state_of_another(target: ast.expr) -> bool:
    if isinstance(target, ast.Tuple | ast.List):
        return any(map(_is_state_of_another, target.elts))
    if not isinstance(target, ast.Attribute) or _is_self(target.value):
        return False
    # Others have a config or count segments: of a log it is by its name.
    return target.attr in OFFSETS | {"failure"} or (target.attr in STATE and ast.unparse(target.value).endswith("log"))


def _is_self(value: ast.expr) -> bool:
    return isinstance(value, ast.Name) and value.id == "self"


@pytest.mark.parametrize(
    "line",
    [
        "log.log_end_offset = 3",
        "self.log.log_start_offset += 1",
        "partition.log.failure = 'gone'",
        "log.segments = other",
        "a, log.recovery_point = (1, 2)",
        "log._log_end_offset",
        "log.segments.add(segment)",
        "self._log.segments.remove([segment])",
    ],
)
def test_the_scan_finds_an_intruder(line: str) -> None:
    assert intrusions(line) == [line]


def test_no_module_changes_the_state_of_a_log_from_outside() -> None:
    found = {
        str(path.relative_to(SOURCE)): lines
        for path in SOURCE.rglob("*.py")
        if path != OWNER and (lines := intrusions(path.read_text()))
    }
    assert found == {}
