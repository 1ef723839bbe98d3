"""A document's ``console`` blocks as steps: what is typed, and what the terminal then shows.

A line behind ``$ `` is typed. It goes on in the next line after a backslash, and up to ``EOF`` where it holds
``<<'EOF'``. All other lines are shown. In those ``…`` stands for anything within the line, and a line that is only
``…`` for any number of lines. Nothing else is let through.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

ANYTHING = "…"
_PROMPT = "$ "
_BLOCK = re.compile(r"^```(?P<kind>.*)\n(?P<text>(?s:.*?))^```$", re.MULTILINE)
_HERE_DOCUMENT = "<<'EOF'"


@dataclass(slots=True)
class Step:
    typed: str
    shown: list[str] = field(default_factory=list)

    @property
    def is_in_background(self) -> bool:
        return self.typed.endswith("&")

    def matches(self, lines: Sequence[str]) -> bool:
        return re.fullmatch(_pattern(self.shown), "".join(f"{line}\n" for line in lines)) is not None


def _pattern(shown: Sequence[str]) -> str:
    """Every line with its end; the whole is matched at once, so that lines of anything may be tried in all ways."""
    return "".join(
        r"(?:[^\n]*\n)*?" if line == ANYTHING else "[^\n]*".join(map(re.escape, line.split(ANYTHING))) + r"\n"
        for line in shown
    )


def steps_of(document: str) -> list[Step]:
    """Raises ValueError for a block that is no ``console``: nobody would know whether what is in it works."""
    steps: list[Step] = []
    for block in _BLOCK.finditer(document):
        if block["kind"] != "console":
            raise ValueError(f"a block of kind {block['kind']!r}, which nobody types")
        steps += _steps_of_block(block["text"].splitlines())
    return steps


def _steps_of_block(lines: Sequence[str]) -> list[Step]:
    steps: list[Step] = []
    is_typing = False
    for line in lines:
        if is_typing:
            steps[-1].typed += f"\n{line}"
        elif line.startswith(_PROMPT):
            steps.append(Step(line.removeprefix(_PROMPT)))
        elif steps:
            steps[-1].shown.append(line)
        else:
            raise ValueError(f"{line!r} is shown before anything was typed")
        typed = steps[-1].typed
        is_here = _HERE_DOCUMENT in typed and not typed.endswith("\nEOF")
        is_typing = is_here or (not steps[-1].shown and typed.endswith("\\"))
    return steps
