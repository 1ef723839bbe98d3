"""What each worker would compute on a machine that has never run these tests, computed once before they begin.

That is numba's kernels, the modules of the tests, in which pytest rewrites what is asserted, and the constants that
Hypothesis finds in our sources. Where all was computed before, the kernels alone are loaded.
"""

import subprocess
import sys
from importlib.util import cache_from_source
from pathlib import Path

import pytest

_KERNELS = (
    "lamina.cleaning.kernels.rewrite, lamina.records.columns.windows, lamina.records.columns.encoding",
    "lamina.records.columns.filling, lamina.records.kernel, lamina.cleaning.kernels.keys",
)
"""What numba compiles, in two halves."""
_MANY = 100
"""Modules: the workers compile fewer as quickly as it takes to find them."""


def compile_ahead(tests: Path, arguments: list[str]) -> None:
    """``arguments``: which tests are to run."""
    commands = [[sys.executable, "-c", f"import {modules}"] for modules in _KERNELS]
    if sum(not _is_rewritten(path) for path in tests.glob("**/test_*.py")) >= _MANY:
        commands.append([sys.executable, "-m", __name__, *arguments])
    compilers = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for command in commands]
    assert [compiler.wait() for compiler in compilers[: len(_KERNELS)]] == [0] * len(_KERNELS)
    compilers[-1].wait()  # What is wrong with a test, its worker says.


def _is_rewritten(path: Path) -> bool:
    """Whether pytest has left its form of a module where it looks for it; whether that is stale it finds out itself."""
    compiled = Path(cache_from_source(str(path)))
    return compiled.with_name(f"{compiled.stem}-pytest-{pytest.__version__}.pyc").exists()


class _Drawing:
    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self) -> None:
        """With all modules loaded: Hypothesis keeps the constants of each."""
        from hypothesis import given, settings
        from hypothesis import strategies as st

        settings(max_examples=1, database=None)(given(st.integers())(lambda _: None))()


if __name__ == "__main__":
    pytest.main(["--collect-only", "-qq", "-p", "no:cacheprovider", *sys.argv[1:]], [_Drawing()])
