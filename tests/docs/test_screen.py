"""What a screen shows of bytes that come as they are written: a read may end anywhere."""

import pytest

from tests.docs.screen import Screen

_WRITTEN = "one\r\ntwo\r\n\x1b[2A\x1b[2Kthree\x1b[1;33m!\x1b[0m\r\n"


@pytest.mark.parametrize("at", range(len(_WRITTEN)))
def test_a_sequence_may_come_in_two_pieces(at: int) -> None:
    screen = Screen()
    screen.write(_WRITTEN[:at])
    screen.write(_WRITTEN[at:])
    assert screen.lines == ["three!", "two"]


def test_a_sequence_that_is_not_known_is_an_error() -> None:
    with pytest.raises(ValueError, match="does not know ESC"):
        Screen().write("\x1b[3Zmore")
    with pytest.raises(ValueError, match="does not know"):
        Screen().write("\x1bcmore")
