"""Whether kernels are compiled already, told without numba."""

import os
from pathlib import Path

import pytest

from lamina.cleaning.kernel_cache import COMPILING, cache_directory, is_compiled, tell_of_compilation


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory that numba would take for the sources in ``/sources``."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    directory = cache_directory("/sources")
    assert directory is not None
    assert directory.startswith(f"{tmp_path}/sources_")
    return Path(directory)


def test_a_first_compilation_is_told_in_one_line_and_the_next_start_is_silent(
    cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tell_of_compilation("/sources")
    assert capsys.readouterr().err == f"{COMPILING}\n"
    cache.mkdir()
    (cache / "keys.scan_keys-36.py311.nbi").touch()
    assert is_compiled("/sources", "keys.*.nbi")
    tell_of_compilation("/sources")
    assert capsys.readouterr().err == ""


def test_the_kernels_of_this_lamina_are_where_numba_has_them() -> None:
    from lamina.cleaning.kernels import keys

    sources = os.path.dirname(os.path.abspath(keys.__file__))
    assert is_compiled(sources, "keys.*.nbi")
