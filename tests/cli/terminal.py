"""The command on a terminal, where a person can be asked."""

import os
import pty
import subprocess

from tests.cli.running import COMMAND, SOURCES, Outcome


def run_on_terminal(*args: str, answer: str) -> Outcome:
    """Answers the question when it is asked; ``err`` is what the terminal showed."""
    ours, theirs = pty.openpty()
    try:
        process = subprocess.Popen(
            [*COMMAND, *args],
            stdin=theirs,
            stderr=theirs,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(SOURCES)},
        )
        os.close(theirs)
        shown = _read_until(ours, "[y/N]:")
        os.write(ours, f"{answer}\n".encode())
        out, _ = process.communicate(timeout=60)
        return Outcome(process.returncode, out, shown)
    finally:
        os.close(ours)


def typed_on_terminal(*args: str, lines: tuple[str, ...]) -> str:
    """Types lines and Ctrl-D once a first line is shown; returns all that the terminal showed."""
    ours, theirs = pty.openpty()
    try:
        process = subprocess.Popen(
            [*COMMAND, *args],
            stdin=theirs,
            stderr=theirs,
            stdout=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": str(SOURCES)},
        )
        os.close(theirs)
        shown = _read_until(ours, "\n")
        os.write(ours, "".join(f"{line}\n" for line in lines).encode() + b"\x04")
        shown += _read_until(ours, "\0")
        assert process.wait(60) == 0, shown
        return shown
    finally:
        os.close(ours)


def shown_on_terminal(*args: str) -> str:
    """What the command prints when its output is a terminal."""
    ours, theirs = pty.openpty()
    try:
        process = subprocess.Popen(
            [*COMMAND, *args],
            stdout=theirs,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(SOURCES), "PYTHONIOENCODING": "utf-8"},
        )
        os.close(theirs)
        shown = _read_until(ours, "\0")
        _, err = process.communicate(timeout=60)
        assert process.returncode == 0, err
        return shown.replace("\r\n", "\n")
    finally:
        os.close(ours)


def _read_until(terminal: int, text: str) -> str:
    """A process that ends without asking ends the reading too."""
    shown = ""
    while text not in shown:
        try:
            piece = os.read(terminal, 1024)
        except OSError:
            break
        if not piece:
            break
        shown += piece.decode()
    return shown
