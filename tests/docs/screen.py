"""What a terminal shows of the bytes that it is sent: as much of one as bars and tables use.

Must not know who sends them.
"""

import re

_PIECE = re.compile(r"\x1b\[(?P<numbers>[0-9;?]*)(?P<what>[A-Za-z])|(?P<control>[\r\n\x07])|(?P<text>[^\x1b\r\n\x07]+)")
_UNFINISHED = re.compile(r"\x1b(\[[0-9;?]*)?")


class Screen:
    """Lines without colours, as they stand after everything that was written over them."""

    def __init__(self) -> None:
        self._lines = [""]
        self._row = self._column = 0
        self._unfinished = ""
        """The beginning of a sequence whose end is still to come: who reads a terminal gets what is there by then."""

    @property
    def lines(self) -> list[str]:
        """Without blanks at their ends, and without empty lines at the end."""
        lines = [line.rstrip() for line in self._lines]
        while lines and not lines[-1]:
            lines.pop()
        return lines

    def write(self, text: str) -> None:
        """Raises ValueError for a sequence that is not known."""
        text, self._unfinished = self._unfinished + text, ""
        position = 0
        while position < len(text):
            piece = _PIECE.match(text, position)
            if piece is None and _UNFINISHED.fullmatch(text, position):
                self._unfinished = text[position:]
                return
            if piece is None:
                raise ValueError(f"a screen does not know {text[position : position + 10]!r}")
            position = piece.end()
            if piece["text"] is not None:
                self._put(piece["text"])
            elif piece["what"] is not None:
                self._obey(piece["what"], piece["numbers"])
            elif piece["control"] == "\r":
                self._column = 0
            elif piece["control"] == "\n":
                self._row += 1
                if self._row == len(self._lines):
                    self._lines.append("")

    def _put(self, text: str) -> None:
        line = self._lines[self._row].ljust(self._column)
        self._lines[self._row] = line[: self._column] + text + line[self._column + len(text) :]
        self._column += len(text)

    def _obey(self, what: str, numbers: str) -> None:
        line = self._lines[self._row]
        if what == "K":
            self._lines[self._row] = "" if numbers == "2" else line[: self._column]
        elif what == "A":
            self._row = max(0, self._row - int(numbers or 1))
        elif what not in "mhl":
            raise ValueError(f"a screen does not know ESC [ {numbers} {what}")
