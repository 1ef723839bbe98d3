"""Random lives of logs for the comparison with Kafka's cleaner, each from its number alone.

Earlier passes are Lamina's, which leaves what a cleaned log has: horizons, header-only batches, gaps, merged segments.
"""

from __future__ import annotations

from pathlib import Path
from random import Random

from lamina.records.batch import Codec
from tests.cleaning.passes import install, plan_of, run_pass
from tests.compaction.story import Story

KEYS = [b"a", b"b", b"c", b"d", b"", b"\x00\x00\x00\x01", b"a long key of thirty-two bytes!!", None]
VALUES = [None, b"", b"v", b"x" * 200]
PRODUCERS = [11, 12, 13]
RETENTIONS = [0, 1000, 86_400_000]


def a_life(number: int, start_ms: int, directory: Path) -> Story:
    """The log with this number, as it is before the pass that is compared; its last segment is never empty."""
    random = Random(number)
    story = Story(now_ms=start_ms, leader_epoch=0)
    for _ in range(random.randrange(3)):
        _write(story, random)
        if story.cleanable:
            first_dirty = random.choice([0, story.first_uncleanable_offset // 2])
            forgotten = frozenset(producer for producer in PRODUCERS if random.random() < 0.3)
            p = story.pass_at(first_dirty, random.choice(RETENTIONS), forgotten)
            plan = plan_of(directory, story, p, segment_bytes=random.choice([1, 600, 2**30]))
            install(story, plan, run_pass(plan)[1])
    _write(story, random)
    story.roll()
    story.write([(b"active", b"segment")])
    return story


def _write(story: Story, random: Random) -> None:
    for _ in range(random.randrange(4, 30)):
        match random.randrange(10):
            case 0 | 1 | 2:
                producer = random.choice([None, *PRODUCERS])
                story.write(
                    _pairs(random),
                    producer=producer,
                    codec=random.choice(list(Codec)),
                    log_append_time=random.random() < 0.2,
                    has_headers=random.random() < 0.2,
                    timestamp_step=random.choice([-700, 0, 1, 5000]),
                )
            case 3 | 4:
                codec = random.choice(list(Codec))
                story.write(_pairs(random), producer=random.choice(PRODUCERS), transactional=True, codec=codec)
            case 5 | 6:
                _end(story, random)
            case 7:
                story.roll()
            case 8:
                story.skip(random.randrange(1, 4))
            case 9:
                story.now_ms += random.choice([1, 1000, 40_000_000])


def _end(story: Story, random: Random) -> None:
    story.end(random.choice(PRODUCERS), commit=random.random() < 0.5, bumps_epoch=random.random() < 0.3)


def _pairs(random: Random) -> list[tuple[bytes | None, bytes | None]]:
    return [(random.choice(KEYS), random.choice(VALUES)) for _ in range(random.randrange(1, 6))]
