"""Which modules numba compiles: their bytecode has to stay as it was written, so the fuzzer does not instrument them.

A module is among them when it imports numba, or when a kernel compiles its functions.
"""

from collections.abc import Iterator
from pathlib import Path

COMPILED_BY_KERNELS = ("lamina.compaction.retain",)


def compiled_modules(sources: Path) -> Iterator[str]:
    """Their names, of the packages below a directory."""
    yield from COMPILED_BY_KERNELS
    for path in sorted(sources.rglob("*.py")):
        if any(line.startswith(("from numba", "import numba")) for line in path.read_text().splitlines()):
            yield ".".join(path.relative_to(sources).with_suffix("").parts)
