"""The root of the command line: help, version, errors, completion."""

import subprocess
import sys

import click
import pytest

from lamina import __version__
from lamina.cli import serve
from lamina.cli.app import COMMANDS, NOT_ON_WINDOWS, app
from tests.cli.running import COMMAND, SOURCES, Lamina, run_process


def test_help_names_every_command_and_an_example(lamina: Lamina) -> None:
    outcome = lamina("--help")
    assert outcome.status == 0
    assert all(f"{name} " in outcome.out for name in COMMANDS)
    assert "Examples:" in outcome.out


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_says_of_itself_what_the_root_says_of_it_and_shows_an_example(lamina: Lamina, name: str) -> None:
    command = app.get_command(click.Context(app), name)
    assert command is not None
    assert command.get_short_help_str(limit=200) == COMMANDS[name]
    assert "Example" in lamina(name, "--help").out


def test_help_loads_neither_rich_nor_the_log() -> None:
    """What keeps it quick."""
    code = (
        "import sys\nfrom lamina.cli import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        "heavy = ('rich', 'logging', 'confluent_kafka', 'lamina.log', 'lamina.records')\n"
        "print(sorted(name for name in sys.modules if name.startswith(heavy)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, env={"PYTHONPATH": str(SOURCES)}
    )
    assert done.stdout.splitlines()[-1] == "[]"


def test_the_version(lamina: Lamina) -> None:
    assert lamina("--version").out == f"lamina {__version__}\n"


def test_a_command_line_that_is_wrong_ends_with_status_2_and_points_to_help(lamina: Lamina) -> None:
    for args in (["nonsense"], ["dump"], ["verify"], ["dump", "--nonsense", "x"]):
        outcome = lamina(*args)
        assert outcome.status == 2
        assert "--help" in outcome.err
        assert not outcome.out


def fail(**_: object) -> int:
    raise RuntimeError("no such luck")


def test_a_fault_of_ours_is_one_sentence(lamina: Lamina, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve.command, "callback", fail)
    outcome = lamina("serve")
    assert outcome.status == 70
    assert outcome.err.count("\n") == 1
    assert "no such luck" in outcome.err
    assert "--debug" in outcome.err


def test_debug_shows_the_traceback(lamina: Lamina, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve.command, "callback", fail)
    with pytest.raises(RuntimeError, match="no such luck"):
        lamina("--debug", "serve")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_can_complete(shell: str) -> None:
    outcome = run_process(_LAMINA_COMPLETE=f"{shell}_source")
    assert "_LAMINA_COMPLETE" in outcome.out


def test_completion_knows_the_commands() -> None:
    outcome = run_process(_LAMINA_COMPLETE="bash_complete", COMP_WORDS="lamina ", COMP_CWORD="1")
    assert [line.partition(",")[2] for line in outcome.out.splitlines()] == sorted(COMMANDS)


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("lamina topics de", ["delete", "delete-records", "describe"]),
        ("lamina configs ", ["get", "set", "unset"]),
        ("lamina bench ", ["consume", "produce"]),
        ("lamina topics create --par", ["--partitions"]),
    ],
)
def test_completion_knows_what_is_in_a_group(words: str, offered: list[str]) -> None:
    last = str(words.count(" "))
    outcome = run_process(_LAMINA_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD=last)
    assert [line.partition(",")[2] for line in outcome.out.splitlines()] == offered


def test_a_reader_that_leaves_is_no_error() -> None:
    process = subprocess.Popen(
        [*COMMAND, "--help"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={"PYTHONPATH": str(SOURCES)},
    )
    assert process.stdout is not None
    process.stdout.close()
    assert process.wait(60) == 141
    assert process.stderr is not None
    with process.stderr:
        assert process.stderr.read() == b""


_ON_WINDOWS = """
import sys
import click
sys.platform = "win32"
for name in ("fcntl", "resource", "termios", "pwd", "grp", "uvloop"):
    sys.modules[name] = None
from lamina.cli import main
main(sys.argv[1:])
"""


def on_windows(*args: str) -> subprocess.CompletedProcess[str]:
    """A Python that says it runs on Windows and has none of the modules that are missing there."""
    return subprocess.run(
        [sys.executable, "-c", _ON_WINDOWS, *args],
        capture_output=True,
        text=True,
        timeout=60,
        env={"PYTHONPATH": str(SOURCES)},
    )


@pytest.mark.parametrize("name", sorted(NOT_ON_WINDOWS))
def test_on_windows_a_command_that_needs_posix_says_so_in_one_sentence(name: str) -> None:
    done = on_windows(name, "--data-dir", "x", "y")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines() == [
        f"lamina: lamina {name} does not run on Windows: use Linux or macOS, or Linux in WSL or a container"
    ]


def test_on_windows_there_is_help() -> None:
    done = on_windows("--help")
    assert done.returncode == 0
    assert "Run a broker." in done.stdout
