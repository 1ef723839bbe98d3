"""A person at a terminal: bash on a pty of 80 columns, given one line after the other.

Must not know which lines.
"""

import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Mapping
from fcntl import ioctl
from pathlib import Path
from types import TracebackType

from tests.docs.screen import Screen

_PROMPT = "\x1d"
_SECONDS = 60.0
# The shell leads a session whose terminal is the pty, so that jobs can be put into the background and named.
_LEAD = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execvp(sys.argv[1], sys.argv[1:])"


class Shell:
    def __init__(self, directory: Path, environment: Mapping[str, str]) -> None:
        self._ours, theirs = pty.openpty()
        ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        attributes = termios.tcgetattr(theirs)
        attributes[3] &= ~termios.ECHO
        termios.tcsetattr(theirs, termios.TCSANOW, attributes)
        self._process = subprocess.Popen(
            [sys.executable, "-c", _LEAD, "bash", "--norc", "--noprofile", "--noediting", "-i"],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            cwd=directory,
            env={**environment, "PS1": _PROMPT, "PS2": "", "TERM": "xterm", "LC_ALL": "C.UTF-8"},
            start_new_session=True,
        )
        os.close(theirs)
        self._read_until(lambda text: _PROMPT in text)

    def run(self, typed: str) -> list[str]:
        """What is shown until the next prompt."""
        os.write(self._ours, f"{typed}\n".encode())
        return _lines(self._read_until(lambda text: _PROMPT in text))

    def start(self, typed: str, is_shown: Callable[[list[str]], bool]) -> list[str]:
        """What is shown until that is all; a job in the background says when it likes."""
        os.write(self._ours, f"{typed}\n".encode())
        return _lines(self._read_until(lambda text: _PROMPT in text and is_shown(_lines(text))))

    def _read_until(self, is_enough: Callable[[str], bool]) -> str:
        """Also returns when time is over, or the shell has gone."""
        data, deadline = b"", time.monotonic() + _SECONDS
        while not is_enough(data.decode(errors="replace")):
            if not is_readable(self._ours, max(0.0, deadline - time.monotonic())):
                break
            try:
                data += os.read(self._ours, 65536)
            except OSError:
                break
        return data.decode(errors="replace")

    def __enter__(self) -> "Shell":
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        """The jobs go with their shell."""
        self.run("kill -9 $(jobs -p)")
        self._process.kill()
        self._process.wait()
        os.close(self._ours)


def is_readable(descriptor: int, seconds: float) -> bool:
    """Waits for it. A descriptor may be any number: ``select.select`` would refuse those above 1,023."""
    waiting = select.poll()
    waiting.register(descriptor, select.POLLIN)
    return bool(waiting.poll(seconds * 1000))


def _lines(text: str) -> list[str]:
    screen = Screen()
    screen.write(text.replace(_PROMPT, ""))
    return screen.lines
