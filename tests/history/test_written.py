"""A history that was written to a file is the same when it is read."""

from pathlib import Path
from random import Random

import pytest

from tests.history.__main__ import main
from tests.history.perfect_log import PerfectLog
from tests.history.plantings import lose
from tests.history.written import read_history, write_history


def test_a_kept_history_is_checked_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    random, path = Random(1), tmp_path / "history.jsonl.gz"
    history = PerfectLog(random).live(200)
    history.compacted = {"elsewhere"}
    write_history(history, path)
    assert read_history(path) == history
    assert main([str(path)]) == 0
    lose(history, random)
    write_history(history, path)
    assert main([str(path)]) == 1
    assert "\nlost (1)\n  " in capsys.readouterr().out
