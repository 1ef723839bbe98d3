"""What a job says of a pass that came to nothing."""

from dataclasses import replace
from errno import ENOSPC

from lamina.cleaning.answers import failure_of
from lamina.cleaning.failures import CorruptLog, SourceLost
from tests.cleaning.test_contract import PLAN


def test_only_damage_makes_a_log_uncleanable() -> None:
    assert failure_of(PLAN, CorruptLog("/x.log", 7, 3, "its CRC is wrong")).is_uncleanable
    assert not failure_of(PLAN, SourceLost("gone")).is_uncleanable
    assert "unexpectedly: KeyError" in failure_of(PLAN, KeyError("x")).reason


def test_a_full_disk_is_named_by_the_file_or_by_the_pass() -> None:
    plan = replace(PLAN, plan_id="p", directory="/data/t-0")
    named = failure_of(plan, OSError(ENOSPC, "No space left on device", "/x.log"))
    assert named.reason == "the disk failed the pass: /x.log: No space left on device"
    assert not named.is_uncleanable
    write = failure_of(plan, OSError(ENOSPC, "No space left on device"))
    assert write.reason == "the disk failed the pass: /data/t-0/.lamina-pass-p: No space left on device"
