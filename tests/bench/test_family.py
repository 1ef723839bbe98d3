"""A process and all below it."""

import subprocess
import sys

import pytest

from bench.family import await_end, families_of, family_of, parents


def test_a_family_is_a_process_and_all_below_it() -> None:
    assert family_of(2, {2: 1, 3: 2, 4: 3, 5: 1, 6: 3}) == [2, 3, 4, 6]


def test_families_of_several_processes_are_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.family.parents", lambda: {2: 1, 3: 2, 4: 1, 5: 4})
    assert families_of([2, 4]) == [2, 3, 4, 5]


def test_the_end_of_a_process_is_waited_for() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        assert child.pid in parents()
        with pytest.raises(TimeoutError, match=str(child.pid)):
            await_end([child.pid], 0)
        assert child.stdin is not None
        child.stdin.close()
        await_end([child.pid], 60)
        assert child.pid not in parents()
