"""F8 and F9 of reliability.md with real kills: whoever dies, wherever the pass is, nothing acknowledged is lost.

A real broker with a real Spark; a Python worker, Spark's Java, the engine or the broker is killed while keys are found,
while segments are rewritten, and while they are put in place.
"""

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from tests.broker.process import BrokerProcess
from tests.pipeline.engines import Hold, processes_of, wait_until, workers_of
from tests.pipeline.passes import SLOWLY, CompactedTopic, first_inode, is_rewriting

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

SETTINGS = ("--set", "lamina.spark.master=local[2]", "--set", "log.cleaner.backoff.ms=50")
Victims = Callable[[BrokerProcess], set[int]]


def workers(broker: BrokerProcess) -> set[int]:
    return workers_of(broker.data_dir)


def java(broker: BrokerProcess) -> set[int]:
    return processes_of(broker.data_dir, "SparkSubmit")


def engine(broker: BrokerProcess) -> set[int]:
    """The one that the broker has started, not what it has started itself."""
    children = Path(f"/proc/{broker.pid}/task/{broker.pid}/children").read_text().split()
    found = set()
    for pid in children:
        with suppress(FileNotFoundError):
            if b"lamina.pipeline" in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.add(int(pid))
    return found


def kill(topic: CompactedTopic, victims: Victims | None) -> None:
    """Without victims it is the broker that dies, and comes back."""
    if victims is not None:
        running = engine(topic.broker)
        for pid in victims(topic.broker):
            os.kill(pid, signal.SIGKILL)
        if victims is not workers:
            # Else the next pass could be given to an engine that is dead and not missed yet.
            wait_until(lambda: not running & engine(topic.broker))
        return
    topic.broker.kill()
    wait_until(lambda: not processes_of(topic.broker.data_dir))
    topic.broker.start()


def kill_while_keys_are_found(topic: CompactedTopic, victims: Victims | None) -> None:
    """The engine is stopped until there is a pass, whose first source is then one that cannot be opened."""
    topic.write()
    (stopped,) = engine(topic.broker)
    os.kill(stopped, signal.SIGSTOP)
    topic.compact()
    wait_until(lambda: topic.row()["phase"] == "cleaning")
    (folder,) = topic.directory.glob(".lamina-pass-*")
    hold = Hold(folder)
    os.kill(stopped, signal.SIGCONT)
    wait_until(hold.is_reached)
    hold.replace()
    kill(topic, victims)


def kill_while_segments_are_rewritten(topic: CompactedTopic, victims: Victims | None) -> None:
    topic.write()
    topic.throttle(SLOWLY)
    topic.compact()
    wait_until(lambda: is_rewriting(topic.directory))
    kill(topic, victims)
    topic.throttle(None)


def kill_while_segments_are_put_in_place(topic: CompactedTopic, victims: Victims | None) -> None:
    """When the first of many groups is."""
    topic.write()
    before = first_inode(topic.directory)
    topic.compact()
    wait_until(lambda: first_inode(topic.directory) != before)
    if victims is None:
        os.kill(topic.broker.pid, signal.SIGKILL)
        assert list(topic.directory.glob(".lamina-pass-*")), "the pass was over before the broker was"
    kill(topic, victims)


@pytest.mark.parametrize("victims", [workers, java, engine, None], ids=["worker", "java", "engine", "broker"])
def test_whoever_is_killed_in_a_pass_nothing_is_lost_and_the_next_pass_succeeds(
    tmp_path: Path, victims: Victims | None
) -> None:
    broker = BrokerProcess(tmp_path / "data", *SETTINGS)
    with broker:
        topic = CompactedTopic(broker)
        topic.write()
        topic.compact_now()
        for kill_in_a_pass in (
            kill_while_keys_are_found,
            kill_while_segments_are_rewritten,
            kill_while_segments_are_put_in_place,
        ):
            kill_in_a_pass(topic, victims)
            wait_until(lambda: topic.row()["phase"] is None)
            assert not topic.row()["is_uncleanable"]
            topic.write(100)
            topic.compact_now()
            topic.check()
        if victims in (java, engine):
            assert topic.passes("failed") == 2, "what is being put in place needs no engine any more"
        else:
            assert topic.passes("failed") == 0, "a task whose worker is killed is tried again"
        broker.restart()
        topic.check()
    assert not processes_of(tmp_path)
    assert not [line for line in broker.log if "Traceback" in line], broker.log
