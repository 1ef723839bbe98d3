"""What the fuzzer leaves as it was written: the modules that numba compiles."""

from importlib.util import find_spec
from pathlib import Path

from fuzz.compiled import COMPILED_BY_KERNELS, compiled_modules

SOURCES = Path(__file__).parents[2] / "src"


def test_modules_that_import_numba_are_found() -> None:
    found = set(compiled_modules(SOURCES))
    assert {"lamina.records.kernel", "lamina.records.columns.numbers", "lamina.cleaning.kernels.rewrite"} <= found
    assert "lamina.records.batch" not in found


def test_every_module_that_is_named_is_there() -> None:
    assert all(find_spec(name) is not None for name in COMPILED_BY_KERNELS)
