"""A strict reading of a Compose file, without a YAML parser: what two parsers could read differently is an error.

It takes mappings and lists by indentation, and values that are JSON or words that can be nothing but text.
"""

import json
import re
from typing import Any

_KEY = re.compile(r"([A-Za-z0-9_.-]+):(?: (.+))?")
_AMBIGUOUS = re.compile(
    r"(?i)(yes|no|on|off|true|false|null|~|[-+.]*[0-9][-+.0-9_eE]*|.*: .*|.* #.*|[&*!|>'%@`{\[\]},#?].*)"
)


def read_compose(text: str) -> dict[str, Any]:
    lines = [
        (len(line) - len(line.lstrip()), line.strip())
        for line in text.splitlines()
        if line.strip() and not line.lstrip().startswith("#")
    ]
    assert all(indent % 2 == 0 for indent, _ in lines), "indented by two"
    found, rest = _mapping(lines, 0)
    assert not rest, f"left over: {rest[0]}"
    return found


def _mapping(lines: list[tuple[int, str]], indent: int) -> tuple[dict[str, Any], list[tuple[int, str]]]:
    found: dict[str, Any] = {}
    while lines and lines[0][0] == indent:
        match = _KEY.fullmatch(lines[0][1])
        assert match is not None, f"no key: {lines[0][1]}"
        key, value = match[1], match[2]
        assert key not in found, f"{key} twice"
        lines = lines[1:]
        if value is not None:
            found[key] = _value(value)
        else:
            assert lines, f"{key} has nothing"
            assert lines[0][0] == indent + 2, f"{key} has nothing"
            is_list = lines[0][1].startswith("- ")
            found[key], lines = _list(lines, indent + 2) if is_list else _mapping(lines, indent + 2)
    return found, lines


def _list(lines: list[tuple[int, str]], indent: int) -> tuple[list[Any], list[tuple[int, str]]]:
    found = []
    while lines and lines[0][0] == indent:
        assert lines[0][1].startswith("- "), f"no item: {lines[0][1]}"
        found.append(_value(lines[0][1].removeprefix("- ")))
        lines = lines[1:]
    return found, lines


def _value(text: str) -> Any:
    if text[0] in '"[{' or re.fullmatch(r"[1-9][0-9]*|0", text):
        return json.loads(text)
    assert not _AMBIGUOUS.fullmatch(text), f"{text} could be something else: quote it"
    return text
