"""The committed corpus: where it lies, and which files are in it.

A folder for each target below `fuzz/corpus`. `python -m fuzz.seeding` makes the seeds again; what begins with
``found-`` is an input that once failed, and stays.
"""

from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent / "corpus"
FOUND = "found-"


def files_of(target: str) -> list[Path]:
    return sorted(path for path in (ROOT / target).glob("*") if path.is_file())


def all_files() -> Iterator[tuple[str, Path]]:
    for folder in sorted(path for path in ROOT.iterdir() if path.is_dir()):
        for path in files_of(folder.name):
            yield folder.name, path
