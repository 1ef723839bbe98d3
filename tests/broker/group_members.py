"""Members of a consumer group as processes, and what their words show: who owned what, and when."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
SECONDS = 60.0

Partition = tuple[str, int]


class Member:
    def __init__(self, client: str, servers: str, topics: list[str], config: dict[str, Any]) -> None:
        asked = json.dumps({"servers": servers, "topics": topics, "config": config})
        self.events: list[dict[str, Any]] = []
        self.ended_ns: int | None = None
        """When it was killed or stopped by a signal: it owned nothing afterwards."""
        self._heard = threading.Condition()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.broker.group_member_process", client, asked],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
        )
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with self._heard:
                self.events.append(json.loads(line))
                self._heard.notify_all()

    # Telling it

    def say(self, command: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{command}\n")
        self._process.stdin.flush()

    def stop(self) -> None:
        """Let it leave as a good member does."""
        if self._process.poll() is None:
            self.say("stop")
        self._ended()

    def kill(self) -> None:
        self.ended_ns = self.ended_ns or time.monotonic_ns()
        self._process.kill()
        self._ended()

    def freeze(self) -> None:
        self.ended_ns = time.monotonic_ns()
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def _ended(self) -> None:
        try:
            self._process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise AssertionError(f"the member did not end: {self.events[-5:]}") from None
        self._thread.join()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            stream.close()

    # Hearing it

    def wait(self, event: str, since: int = 0) -> dict[str, Any]:
        """The first such event from number ``since`` on."""

        def found() -> dict[str, Any] | None:
            return next((one for one in self.events[since:] if one["event"] == event), None)

        with self._heard:
            assert self._heard.wait_for(lambda: found() is not None, SECONDS), (event, self.events[since:])
            event_found = found()
        assert event_found is not None
        return event_found

    @property
    def changes(self) -> list[tuple[str, list[Any]]]:
        """Assignments and revocations of anything, in order."""
        told = [one for one in list(self.events) if one["event"] in ("assigned", "revoked") and one["partitions"]]
        return [(one["event"], one["partitions"]) for one in told]

    @property
    def values(self) -> list[str]:
        return [value for one in list(self.events) if one["event"] == "records" for value in one["values"]]

    def periods(self) -> Iterable[tuple[Partition, int, int]]:
        """For each partition that it ever had: from when to when."""
        began: dict[Partition, int] = {}
        # Whoever stops takes no more records, whether its client tells of a revocation or not.
        stopped = (one["at_ns"] for one in list(self.events) if one["event"] == "stopping")
        end_ns = self.ended_ns or next(stopped, 2**63)
        for one in list(self.events):
            if one["event"] not in ("assigned", "revoked"):
                continue
            for topic, index in one["partitions"]:
                if one["event"] == "assigned":
                    began[topic, index] = one["at_ns"]
                elif (topic, index) in began:
                    yield (topic, index), began.pop((topic, index)), min(one["at_ns"], end_ns)
        for partition, began_ns in began.items():
            yield partition, began_ns, end_ns

    @property
    def owned(self) -> set[Partition]:
        if self.ended_ns is not None:
            return set()
        return {partition for partition, _, end_ns in self.periods() if end_ns == 2**63}


def check_one_owner(members: Iterable[Member]) -> None:
    """No partition ever had two owners."""
    periods = sorted(
        (partition, began_ns, end_ns, number)
        for number, member in enumerate(members)
        for partition, began_ns, end_ns in member.periods()
        if end_ns > began_ns
    )
    for (partition, _, end_ns, first), (other, began_ns, _, second) in pairwise(periods):
        if partition == other and first != second:
            assert began_ns >= end_ns, f"{partition} was owned by {first} and {second}"


def wait_until(holds: Callable[[], bool], what: Callable[[], Any] = lambda: "") -> None:
    deadline = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < deadline, what()
        time.sleep(0.02)


def wait_for_shares(members: list[Member], partitions: int) -> None:
    """Until every partition has an owner and everybody has a fair share."""
    least, most = partitions // len(members), -(-partitions // len(members))

    def is_fair() -> bool:
        shares = [member.owned for member in members]
        together = set().union(*shares)
        return (
            len(together) == partitions
            and sum(map(len, shares)) == partitions
            and all(least <= len(share) <= most for share in shares)
        )

    wait_until(is_fair, lambda: [(sorted(member.owned), member.events[-3:]) for member in members])
