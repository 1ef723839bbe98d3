import asyncio
import gc
import importlib.util
import logging
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import uvloop

from lamina.broker.requests.kernel_loading import KernelLoading
from lamina.broker.threads import Threads
from lamina.clocks import SYSTEM_CLOCKS
from lamina.records.record_walk import walk_records

needs_numba = pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="numba is not installed")


def warm(kernel: str, steps: Callable[[KernelLoading], Awaitable[None]]) -> None:
    """Run ``steps`` on a loop of its own, and stop as a broker does."""

    async def run() -> None:
        loop = asyncio.get_running_loop()
        threads = Threads(loop, SYSTEM_CLOCKS, 1)
        loading = KernelLoading(loop, threads, kernel)
        assert loading.walk_records is walk_records
        await steps(loading)
        await loading.stop()
        threads.close()

    uvloop.run(run())


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """Makes a module that can be imported here and in a child."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}")

    def make(source: str) -> str:
        name = f"kernel_of_{tmp_path.name.rstrip('0123456789')}"
        (tmp_path / f"{name}.py").write_text(source)
        monkeypatch.delitem(sys.modules, name, raising=False)
        return name

    return make


@needs_numba
def test_the_compiled_walk_takes_over_when_it_is_loaded(caplog: pytest.LogCaptureFixture) -> None:
    async def steps(loading: KernelLoading) -> None:
        task = loading.begin()
        assert loading.walk_records is walk_records
        await task
        assert loading.walk_records.__module__ == "lamina.records.kernel"
        assert gc.isenabled()
        assert gc.get_freeze_count()
        gc.unfreeze()

    with caplog.at_level(logging.INFO):
        warm("lamina.records.kernel", steps)
    assert [record.message for record in caplog.records] == ["records are checked by compiled code"]


@needs_numba
def test_it_is_asked_for_once(stand_in: Callable[[str], str], tmp_path: Path) -> None:
    imports = tmp_path / "imports"
    kernel = stand_in(f"with open({str(imports)!r}, 'a') as file: file.write('x')\nwalk_natively = len")

    async def steps(loading: KernelLoading) -> None:
        await loading.begin()
        await loading.begin()

    warm(kernel, steps)
    assert imports.read_text() == "xx"  # in the child, and here


@needs_numba
def test_a_kernel_that_does_not_compile_leaves_one_line_and_the_plain_walk(
    stand_in: Callable[[str], str], caplog: pytest.LogCaptureFixture
) -> None:
    kernel = stand_in("raise RuntimeError('no locator available')")

    async def steps(loading: KernelLoading) -> None:
        await loading.begin()
        assert loading.walk_records is walk_records

    warm(kernel, steps)
    (line,) = caplog.records
    assert "plain Python" in line.message
    assert "no locator available" in line.message
    assert kernel not in sys.modules


@needs_numba
def test_a_cache_that_cannot_be_written_leaves_one_line_and_the_plain_walk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file" / "cache"))
    monkeypatch.setenv("NUMBA_CACHE_LOCATOR_CLASSES", "UserProvidedCacheLocator")  # and nowhere else

    async def steps(loading: KernelLoading) -> None:
        await loading.begin()
        assert loading.walk_records is walk_records

    warm("lamina.records.kernel", steps)
    (line,) = caplog.records
    assert "plain Python" in line.message


def test_without_numba_the_plain_walk_stays(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)

    async def steps(loading: KernelLoading) -> None:
        await loading.begin()
        assert loading.walk_records is walk_records

    with caplog.at_level(logging.INFO):
        warm("lamina.records.kernel", steps)
    (line,) = caplog.records
    assert "lamina[spark]" in line.message


@needs_numba
def test_stopping_ends_a_child_that_still_compiles(stand_in: Callable[[str], str], tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    kernel = stand_in(f"import threading; held = open({str(pipe)!r}, 'w'); threading.Event().wait()")

    async def steps(loading: KernelLoading) -> None:
        loading.begin()
        with await asyncio.to_thread(open, pipe) as reading:  # returns once the child has the other end
            await loading.stop()
            assert reading.read() == ""  # the child's end is closed: it is gone
        assert loading.walk_records is walk_records

    warm(kernel, steps)
