"""SIGUSR1 shows what a broker is doing, and the broker goes on."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable

import pytest

from lamina.broker.stack_dump import describe_tasks
from tests.broker.process import SOURCES, BrokerProcess
from tests.broker.raw import RawClient, fetch_request, metadata_request

HANGING = """
import asyncio, sys, time
from lamina.broker.stack_dump import dumping_on_signal

def busy_for_ever():
    print("hanging", flush=True)
    while True:
        pass

async def main():
    with dumping_on_signal(asyncio.get_running_loop()):
        busy_for_ever()

def plain():
    asyncio.run(main())

def on_uvloop():
    import uvloop
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())

globals()[sys.argv[1]]()
"""


def test_threads_and_tasks_are_shown_again_and_again_and_the_broker_goes_on(
    own_broker: Callable[..., BrokerProcess],
) -> None:
    broker = own_broker()
    with RawClient(broker) as client, RawClient(broker) as waiting:
        topic_id = client.create_topic("t")
        waiting.begin(fetch_request([(topic_id, [(0, 0)])], max_wait_ms=60_000))
        client.ask(metadata_request())
        for _ in range(3):
            since = len(broker.log)
            os.kill(broker.pid, signal.SIGUSR1)
            broker.wait_for_log("tasks on the loop", since)
            broker.wait_for_log("Timers._repeat", since)
            broker.wait_for_log("Thread MainThread", since)
            broker.wait_for_log("in run", since)
            assert client.ask(metadata_request("t")).topics[0].error_code == 0
    assert not [line for line in broker.log if "Traceback" in line], broker.log


@pytest.mark.parametrize("loop", ["plain", "on_uvloop"])
def test_threads_are_shown_while_the_loop_hangs(loop: str) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", HANGING, loop],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(SOURCES)},
    )
    assert process.stdout is not None
    assert process.stderr is not None
    with process.stdout, process.stderr:
        try:
            assert process.stdout.readline() == "hanging\n"
            process.send_signal(signal.SIGUSR1)
            assert any("busy_for_ever" in line for line in iter(process.stderr.readline, ""))
            assert process.poll() is None
        finally:
            process.kill()
            process.wait()


def test_no_more_tasks_are_described_than_a_person_reads() -> None:
    async def sleeper() -> None:
        await asyncio.Event().wait()

    async def main() -> str:
        tasks = [asyncio.create_task(sleeper()) for _ in range(500)]
        await asyncio.sleep(0)
        said = describe_tasks(asyncio.get_running_loop())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return said

    lines = asyncio.run(main()).splitlines()
    assert lines[0] == "501 tasks on the loop"
    assert lines[-1] == "  and 301 more"
    assert len(lines) == 202
    assert any("sleeper" in line and "Event.wait" in line for line in lines)
