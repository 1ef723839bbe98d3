"""`python -m fuzz`: replaying, and what is made of a hunt's output. Needs no fuzzer."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from fuzz import __main__ as running
from fuzz import corpus


def test_files_behind_a_target_are_replayed() -> None:
    path = corpus.files_of("frames")[0]
    result = CliRunner().invoke(running.main, ["frames", str(path)])
    assert (result.exit_code, result.output) == (0, f"{path}: nothing is wrong\n")


def test_a_bad_input_shows_its_exception_when_it_is_replayed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def one(_data: bytes) -> None:
        raise AssertionError("found")

    monkeypatch.setattr(running, "load", lambda _target: one)
    (tmp_path / "input").write_bytes(b"")
    result = CliRunner().invoke(running.main, ["frames", str(tmp_path / "input")])
    assert isinstance(result.exception, AssertionError)


@pytest.mark.parametrize(
    ("args", "said"),
    [(["frames", "no/such/file"], "no/such/file: No such file"), (["nothing"], "nothing is no target; there are")],
)
def test_a_wrong_name_is_said_in_a_sentence(args: list[str], said: str) -> None:
    result = CliRunner().invoke(running.main, args)
    assert result.exit_code != 0
    assert said in result.output


@pytest.mark.parametrize(
    ("said", "status", "line"),
    [
        ("stat::number_of_executed_units: 70\nstat::peak_rss_mb: 9\n", 0, "70 runs in 5 s, at most 9 MB"),
        (f"artifact_prefix; Test unit written to {running._ROOT}/build/x\nmore", 77, "python -m fuzz frames build/x"),
        ("ImportError", 1, "FAILED it ended with status 1: see "),
    ],
)
def test_a_hunts_log_becomes_one_line(tmp_path: Path, said: str, status: int, line: str) -> None:
    log = tmp_path / "log"
    log.write_text(said)
    assert line in running._line(running._outcome("frames", status, log), 5)
