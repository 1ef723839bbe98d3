"""A disk that is really full while a log on it is cleaned: that pass fails, and nothing else does."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.broker.cleaner.cleaning import CleaningBroker
from tests.broker.cleaner.test_cleaner import CLEANED, DIRTY
from tests.small_disk import SmallDisk, a_small_disk

MEGABYTE = 1 << 20


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with a_small_disk(tmp_path / "disk", 16 * MEGABYTE, names=300) as disk:
        yield disk


@pytest.fixture
def cleaning(tmp_path: Path, disk: SmallDisk) -> Iterator[CleaningBroker]:
    settings = {"log.dirs": f"{disk.path}/logs", "lamina.disk.free.min.bytes": "0", "log.cleaner.backoff.ms": "0"}
    broker = CleaningBroker(tmp_path / "data", settings)
    yield broker
    broker.close()


def reason(cleaning: CleaningBroker) -> str:
    failed = cleaning.cleaner.failed_passes.get(("t", 0))
    assert failed is not None
    assert not failed.is_uncleanable
    return failed.reason


def test_a_disk_without_names_fails_the_install_and_nothing_else(cleaning: CleaningBroker, disk: SmallDisk) -> None:
    """ENOSPC for the names of the rewritten segments; the checkpoint of fact 90 finds those that the pass gave back."""
    cleaning.compacted()
    made: list[Path] = []
    cleaning.engine.meanwhile = lambda: made.extend(disk.use_up_names())
    assert not cleaning.clean()
    assert "No space left on device" in reason(cleaning)
    assert f"{disk.path}/logs/t-0/" in reason(cleaning)
    assert cleaning.parts.directories[0].failure is None
    assert cleaning.texts() == DIRTY
    assert cleaning.folders() == []
    cleaning.write("t", b"d=meanwhile")
    for path in made:
        path.unlink()
    cleaning.engine.meanwhile = lambda: None
    cleaning.cleaner.failed_passes.retry_now(("t", 0), 0)
    assert cleaning.clean()
    assert cleaning.texts() == [*CLEANED, b"d=meanwhile"]
    cleaning.restart()
    assert cleaning.texts() == [*CLEANED, b"d=meanwhile"]


def test_a_pass_that_fails_again_writes_nothing_on_a_full_disk(cleaning: CleaningBroker, disk: SmallDisk) -> None:
    cleaning.compacted()
    made: list[Path] = []
    cleaning.engine.meanwhile = lambda: made.extend(disk.use_up_names())
    for _ in range(3):
        cleaning.cleaner.failed_passes.retry_now(("t", 0), 0)
        assert not cleaning.clean()
        assert "No space left on device" in reason(cleaning)
    assert cleaning.parts.directories[0].failure is None
    assert cleaning.texts() == DIRTY
