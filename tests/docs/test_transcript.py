"""What of a document is typed, and what may stand for what was shown."""

import pytest

from tests.docs.screen import Screen
from tests.docs.transcript import Step, steps_of

DOCUMENT = """
Text with `$ not typed`.

```console
$ one
shown
$ two \\
  and more
$ three <<'EOF'
$ not typed
EOF
last
```
"""


def test_what_is_typed_and_what_is_shown() -> None:
    assert steps_of(DOCUMENT) == [
        Step("one", ["shown"]),
        Step("two \\\n  and more"),
        Step("three <<'EOF'\n$ not typed\nEOF", ["last"]),
    ]


@pytest.mark.parametrize("text", ["```sh\nrm -r /\n```", "```\n$ one\n```", "```console\nshown\n$ one\n```"])
def test_a_block_that_nobody_could_type_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"nobody types|before anything"):
        steps_of(text)


@pytest.mark.parametrize(
    ("shown", "lines", "matches"),
    [
        ([], [], True),
        ([], ["more"], False),
        (["a"], ["a"], True),
        (["a"], ["a", "b"], False),
        (["a", "b"], ["a"], False),
        (["a.c"], ["abc"], False),
        (["a…c"], ["a b c"], True),
        (["a…c"], ["a b", "c"], False),
        (["a", "…", "c"], ["a", "b", "b", "c"], True),
        (["a", "…", "c"], ["a", "c"], True),
        (["a", "…", "c"], ["a", "b"], False),
    ],
)
def test_dots_stand_for_anything_and_nothing_else_does(shown: list[str], lines: list[str], matches: bool) -> None:
    assert Step("typed", shown).matches(lines) is matches


def test_a_screen_shows_what_was_written_last() -> None:
    screen = Screen()
    screen.write("\x1b[?25l\r\x1b[2Kbar \x1b[90m━━\x1b[0m\r\n\x1b[?25h\r\x1b[1A\x1b[2Kdone\r\n")
    screen.write("0 records\r\x1b[K3 records  \r\nlonger\rsho\r\n\r\n")
    assert screen.lines == ["done", "3 records", "shoger"]
    with pytest.raises(ValueError, match="does not know"):
        screen.write("\x1b[2J")
