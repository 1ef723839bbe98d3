"""Every input in the fuzzers' corpus, the once bad ones too, goes through its target without a fuzzer."""

from pathlib import Path

import pytest

from fuzz import corpus
from fuzz.targets import TARGETS, load

ENTRIES = list(corpus.all_files())


def test_every_target_has_seeds_and_every_folder_a_target() -> None:
    assert {target for target, _ in ENTRIES} == set(TARGETS)


def test_the_corpus_stays_small() -> None:
    assert sum(path.stat().st_size for _, path in ENTRIES) < 64 * 1024


@pytest.mark.parametrize("target", TARGETS)
def test_no_bytes_at_all_are_an_input_too(target: str) -> None:
    load(target)(b"")


@pytest.mark.parametrize(("target", "path"), ENTRIES, ids=[f"{target}-{path.name}" for target, path in ENTRIES])
def test_an_input_of_the_corpus_passes(target: str, path: Path) -> None:
    load(target)(path.read_bytes())
