"""Three brokers with 2,000 partitions, 200 groups and compaction are restarted under load: ``make soak-cluster``.

Writers, readers, groups and the cleaner work while one broker after the other is stopped by SIGTERM and started again.
Nothing that was acknowledged may be lost, doubled or out of order, and nobody may be told an error that a client does
not retry. What the brokers hold in memory, how late their loops are and how long clients wait is stated, not judged: it
is the machine's too. The load comes at a rate, about half of what two cores can take: were it more, the longest wait
would be one in a client's own queue.
"""

from __future__ import annotations

import argparse
import json
import logging
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, redirect_stdout
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.committing_groups import CommittingGroups
from bench.loop_lags import LoopLags, metrics_of
from bench.machine import describe
from bench.replicas import await_in_sync, await_until
from bench.usage import resident_bytes
from lamina.cluster.errors import ClusterError
from tests.cluster.faults.keyed_writer import KeyedWriter, latest_values
from tests.cluster.faults.story import Story
from tests.cluster.three_brokers import ALL, ThreeBrokers
from tests.cluster.verifiable_consumer import VerifiableConsumer, read_all
from tests.cluster.verifiable_producer import VerifiableProducer
from tests.cluster.verifying import history_of
from tests.history.anomalies import summary
from tests.history.checker import check

KEPT = "kept"
VALUE_BYTES = 100
KEYS = 2000
"""Of each compacted topic."""
CLEANED_SECONDS = 120
STARTED_SECONDS = 180
"""Until each partition has a record: clients connect and groups begin meanwhile."""
PATIENCE_SECONDS = 10.0
"""The client that writes the kept topic sends nothing while a record has waited so long: this machine is too slow."""
LATEST_ROUND_SECONDS = 270
"""After the start: a round that would begin later is left out, so that all of it takes ten minutes at most."""
_CLEANED = re.compile(r'^lamina_cleaner_passes_total\{outcome="cleaned"\} (\S+)', re.MULTILINE)
SETTINGS = {
    # Logs are cleaned by a plain process: three JVMs would be most of what is measured.
    "lamina.spark.master": "none",
    "zookeeper.session.timeout.ms": "6000",
    "offsets.topic.num.partitions": "50",
    "log.cleaner.backoff.ms": "1000",
}
COMPACTED = {"cleanup_policy": "compact", "min_cleanable_dirty_ratio": "0.1", "segment_ms": "10000"}


@dataclass(frozen=True, slots=True)
class Size:
    kept_partitions: int
    compacted_topics: int
    compacted_partitions: int
    """Of each."""
    groups: int
    records_per_second: int
    """To the topic that is kept. One client writes it, over one connection to each broker: there one request after the
    other is answered, each with the records of one partition and once they are replicated."""
    compacted_records_per_second: int
    """To each compacted topic."""
    steady_seconds: int
    rounds: int
    """How often every broker is restarted."""

    @property
    def compacted(self) -> list[str]:
        return [f"compacted-{number}" for number in range(self.compacted_topics)]

    @property
    def partitions(self) -> int:
        return self.kept_partitions + self.compacted_topics * self.compacted_partitions


FULL = Size(
    1000, 10, 100, groups=200, records_per_second=60, compacted_records_per_second=15, steady_seconds=45, rounds=2
)
QUICK = Size(40, 2, 10, groups=20, records_per_second=60, compacted_records_per_second=50, steady_seconds=8, rounds=1)


@dataclass(frozen=True, slots=True)
class Phase:
    name: str
    seconds: float
    acked_per_second: float
    commits_per_second: float
    most_resident_mb: float
    """Of the broker that holds most."""
    loop_lag_p99_ms: float
    loop_lag_longest_ms: float
    """Both are bounds of the histogram, over all brokers."""


class Load:
    """All that works on the cluster, as a context."""

    def __init__(self, brokers: ThreeBrokers, size: Size, story: Story) -> None:
        bootstrap, names = brokers.bootstrap, size.compacted
        self.producer = VerifiableProducer(
            bootstrap,
            KEPT,
            size.kept_partitions,
            per_second=size.records_per_second,
            value_bytes=VALUE_BYTES,
            # A machine that is slower sets the pace, and no record waits for ever.
            patience_seconds=PATIENCE_SECONDS,
        )
        self.consumer = VerifiableConsumer(bootstrap, KEPT, size.kept_partitions)
        self.groups = CommittingGroups(bootstrap, size.groups, [KEPT, *names])
        per_second = size.compacted_records_per_second
        self.writers = [
            KeyedWriter(
                *(bootstrap, name, KEYS, per_second, VALUE_BYTES, number, story, name),
                is_transactional=False,
                partitions=size.compacted_partitions,
            )
            for number, name in enumerate(names)
        ]
        self._open = ExitStack()

    def __enter__(self) -> Load:
        self._open.enter_context(self.consumer)
        self._open.enter_context(self.producer)
        self._open.enter_context(self.groups)
        for writer in self.writers:
            self._open.enter_context(writer)
        return self

    def __exit__(self, *failure: object) -> None:
        self._open.close()

    @property
    def acked(self) -> int:
        return self.producer.acked_count + sum(writer.acked_count for writer in self.writers)


class Soak:
    def __init__(self, brokers: ThreeBrokers, size: Size, story: Story) -> None:
        self._brokers = brokers
        self._size = size
        self._story = story
        self._lags: dict[int, LoopLags] = {}
        """Of each process at the last look."""
        self.waits_seconds: list[float] = []
        """Of the records that are kept, in order."""

    def run(self) -> Iterator[Phase]:
        size, brokers, began = self._size, self._brokers, time.monotonic()
        brokers.create_topic(KEPT, size.kept_partitions)
        for name in size.compacted:
            brokers.create_topic(name, size.compacted_partitions, None, **COMPACTED)
        with Load(brokers, size, self._story) as load:
            load.producer.await_acked(size.kept_partitions, STARTED_SECONDS)
            load.producer.was_held_back = False
            self._look_at_lags()
            yield self._phase("steady load", load, lambda: time.sleep(size.steady_seconds))
            for number in range(size.rounds):
                if time.monotonic() - began > LATEST_ROUND_SECONDS:
                    break
                for broker_id in ALL:
                    name = f"broker {broker_id} restarts, round {number + 1}"
                    yield self._phase(name, load, partial(self._restart, broker_id))
            yield self._phase("steady load again", load, lambda: time.sleep(size.steady_seconds))
            await_until(self._is_cleaned, "not every broker has cleaned a log", CLEANED_SECONDS)
        self.waits_seconds = sorted(load.producer.waits_seconds(size.kept_partitions))
        self.load = load

    def _restart(self, broker_id: int) -> None:
        self._brokers.restart(broker_id)
        await_in_sync(self._brokers.bootstrap, ALL)

    def _is_cleaned(self) -> bool:
        counts = [_CLEANED.search(metrics_of(address)) for _, _, address in self._processes()]
        return all(count is not None and float(count[1]) > 0 for count in counts)

    def _phase(self, name: str, load: Load, work: Callable[[], None]) -> Phase:
        acked, commits, began = load.acked, load.groups.told.commits, time.monotonic()
        work()
        seconds = time.monotonic() - began
        lags = self._look_at_lags()
        memory = max(resident_bytes(pid) for _, pid, _ in self._processes())
        self._story.tell(f"{name}: {seconds:.1f} s")
        return Phase(
            name,
            seconds,
            (load.acked - acked) / seconds,
            (load.groups.told.commits - commits) / seconds,
            memory / 1e6,
            1000 * lags.within_seconds(0.99),
            1000 * lags.within_seconds(1),
        )

    def _look_at_lags(self) -> LoopLags:
        """Since the last look; of a process that is new since its start."""
        found = LoopLags()
        for _, pid, address in self._processes():
            lags = LoopLags.of(metrics_of(address))
            found += lags - self._lags[pid] if pid in self._lags else lags
            self._lags[pid] = lags
        return found

    def _processes(self) -> list[tuple[int, int, str]]:
        """Broker, process and where its metrics are."""
        started = [(one.id, one.started) for one in self._brokers.cluster.brokers()]
        return [(id_, one.pid, one.admin_address or "") for id_, one in started if one is not None]

    def wrong(self) -> list[str]:
        """Everything that differs from what anybody was told; nothing in a good run."""
        load, size, brokers = self.load, self._size, self._brokers
        found = [f"{load.producer.name}: {error}" for error in load.producer.errors[:5]]
        for writer, name in zip(load.writers, size.compacted, strict=True):
            found += [f"{name}: {error}" for error in writer.errors[:1]]
        found += load.groups.told.failures[:5]
        if load.producer.acked_count < load.producer.sent:
            found.append(f"{load.producer.sent - load.producer.acked_count} records have no answer")
        anomalies = check(
            history_of([load.producer], [load.consumer], read_all(brokers.bootstrap, KEPT, size.kept_partitions))
        )
        if anomalies:
            found.append(summary(anomalies))
        for writer, name in zip(load.writers, size.compacted, strict=True):
            there = read_all(brokers.bootstrap, name, size.compacted_partitions)
            values = {value for partition in there.values() for value in partition.values()}
            missing = set(latest_values([writer]).values()) - values
            if missing:
                found.append(f"{name} lacks the latest values of {len(missing)} keys, {min(missing)!r} among them")
        return [*found, *brokers.complaints()]


def main() -> str | None:
    parser = argparse.ArgumentParser(prog="soak-cluster", description="Three brokers restarted one by one under load.")
    parser.add_argument("--quick", action="store_true", help="few partitions for a minute, to see that it works")
    parser.add_argument("--dir", type=Path, help="where the data lies, instead of the system's temporary directory")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args()
    size = QUICK if options.quick else FULL
    # It says of every broker that ends that it has ended.
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    # What happens meanwhile is told on standard error.
    with (
        tempfile.TemporaryDirectory(prefix="lamina-soak-cluster-", dir=options.dir) as scratch,
        redirect_stdout(sys.stderr),
    ):
        machine, story = describe(Path(scratch)), Story(Path(scratch) / "story")
        brokers = ThreeBrokers(Path(scratch) / "cluster", SETTINGS)
        soak, phases = Soak(brokers, size, story), list[Phase]()
        try:
            brokers.start()
            phases.extend(soak.run())
            wrong = soak.wrong()
        except (ClusterError, TimeoutError, AssertionError) as failure:
            return f"soak-cluster: {failure}"
        finally:
            brokers.close()
    told, waits, producer = soak.load.groups.told, soak.waits_seconds, soak.load.producer
    facts = {
        "partitions": size.partitions,
        "replicas": size.partitions * len(ALL),
        "groups": size.groups,
        "records/s wanted": size.records_per_second + size.compacted_topics * size.compacted_records_per_second,
        "records acknowledged": soak.load.acked,
        "longest wait of a record in s": round(waits[-1], 2),
        "wait of a record in s, p99": round(waits[len(waits) * 99 // 100], 2),
        "records that waited over 1 s": f"{sum(wait > 1 for wait in waits):,} of {len(waits):,}",
        "load": "too much for this machine: waits are those in a client's queue"
        if producer.was_held_back
        else "as wanted",
        "offsets committed": told.commits,
        "longest wait of a commit in s": round(told.longest_wait_seconds, 2),
        "retriable errors that groups saw": told.retried,
        "members that were silent for a whole session": told.rejoined,
        "wrong": wrong,
    }
    if options.json:
        print(json.dumps({"machine": machine, "phases": [asdict(phase) for phase in phases], **facts}, indent=2))
    else:
        _show(phases, facts, machine)
    return "soak-cluster: not all is well" if wrong else None


def _show(phases: list[Phase], facts: dict[str, object], machine: dict[str, str]) -> None:
    console = Console(width=140)
    columns = ("while", "seconds", "records/s", "commits/s", "memory, most", "loop lag p99", "longest")
    table = Table(*columns)
    for one in phases:
        table.add_row(
            one.name,
            f"{one.seconds:.1f}",
            f"{one.acked_per_second:,.0f}",
            f"{one.commits_per_second:,.0f}",
            f"{one.most_resident_mb:,.0f} MB",
            f"≤ {one.loop_lag_p99_ms:g} ms",
            f"≤ {one.loop_lag_longest_ms:g} ms",
        )
    console.print(table)
    for name, value in facts.items():
        console.print(f"{name}: {value if value != [] else 'nothing'}")
    console.print(", ".join(f"{name} {value}" for name, value in machine.items()))


if __name__ == "__main__":
    sys.exit(main())
