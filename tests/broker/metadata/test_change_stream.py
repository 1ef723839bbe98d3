"""The numbered changes of one controller: from any version the same image is reached."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.broker.metadata import change_stream
from lamina.broker.metadata.change_messages import encode_changes, patched
from lamina.broker.metadata.change_stream import ChangeStream
from lamina.image.changes import set_controller
from lamina.image.diff import diff
from lamina.image.image import Image
from tests.image.steps import CLUSTER_ID, Step, walk, walks

EPOCH = 4
NOTHING = Image(CLUSTER_ID)


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(work)


@given(walks, st.integers(0, 25), st.integers(1, 30))
def test_a_broker_reaches_the_last_image_from_any_version(steps: list[Step], followed: int, kept: int) -> None:
    stream = ChangeStream(EPOCH, NOTHING)
    images = [NOTHING]
    before, change_stream._KEPT_CHANGES = change_stream._KEPT_CHANGES, kept
    try:
        for image in walk(steps):
            stream.append(image, encode_changes(diff(stream.image, image)))
            images.append(image)
    finally:
        change_stream._KEPT_CHANGES = before
    version = min(followed, stream.version)
    told = stream.since(EPOCH, version)
    image = NOTHING if told.is_full else images[version]
    for line in told.lines:
        image = patched(image, line)
    assert image == images[-1]
    assert told.version == stream.version == len(steps)
    assert told.is_full == (stream.version - version > kept)
    assert told.is_full or len(told.lines) == stream.version - version


def test_another_controllers_follower_gets_the_whole_image() -> None:
    stream = ChangeStream(EPOCH, set_controller(NOTHING, 1))
    told = stream.since(EPOCH - 1, 0)
    assert (told.version, told.is_full) == (0, True)
    assert patched(NOTHING, told.lines[0]) == stream.image
    assert stream.since(EPOCH, 7).is_full, "a version that was never told"


def test_who_waits_is_woken_by_a_change_by_time_and_by_the_end() -> None:
    async def waiting() -> None:
        loop = asyncio.get_running_loop()
        stream = ChangeStream(EPOCH, NOTHING)
        far = loop.time() + 3600
        elected = set_controller(NOTHING, 1)
        wakes: list[Callable[[], None]] = [
            lambda: stream.append(elected, encode_changes(diff(NOTHING, elected))),
            stream.end,
        ]
        for wake in wakes:
            waiter = asyncio.ensure_future(stream.wait_above(stream.version, far))
            await asyncio.sleep(0)
            assert not waiter.done()
            wake()
            await waiter
        await ChangeStream(EPOCH, NOTHING).wait_above(0, loop.time())

    run(waiting())


@pytest.mark.parametrize("wake", [ChangeStream.end, ChangeStream.release])
def test_nobody_waits_for_a_controller_that_stops(wake: Callable[[ChangeStream], None]) -> None:
    async def waiting() -> None:
        stream, far = ChangeStream(EPOCH, NOTHING), asyncio.get_running_loop().time() + 3600
        before = asyncio.ensure_future(stream.wait_above(0, far))
        await asyncio.sleep(0)
        wake(stream)
        await before
        await stream.wait_above(0, far)

    run(waiting())
