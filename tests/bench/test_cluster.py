"""The rows of the comparison of clusters, and what is told beside its figures."""

from pathlib import Path
from typing import Any

import pytest

from bench import cluster_faults, cluster_trials
from bench.amounts import FULL, QUICK
from bench.cluster import BENCH, LONG_ROUNDS
from bench.cluster_faults import catch_up_trial, failover_trials
from bench.cluster_trials import all_trials, batches_trial
from bench.clusters import BROKERS, CLUSTER_SETTINGS, Cluster, all_clusters
from bench.results import AGAIN
from bench.rounds import Values
from tests.bench.idle_broker import IdleBroker

COLD = {"memory", "memory-small-heap"}
FAULTS = {
    "catch-up",
    "rolling-restart",
    "failover-defaults",
    "failover",
    "failover-controller",
    "failover-paused",
}


def test_every_cluster_that_a_row_names_is_there(tmp_path: Path) -> None:
    trials = all_trials(FULL, LONG_ROUNDS)
    assert {name for trial in trials for name in trial.subjects.values()} == all_clusters(tmp_path).keys()
    assert {name for trial in trials for name in trial.subjects} == BENCH.contestants.keys()


def test_rows_of_a_quick_run_are_those_of_a_whole_one(tmp_path: Path) -> None:
    whole, quick = ([trial.name for trial in BENCH.new_trials(is_quick, tmp_path)] for is_quick in (False, True))
    assert whole == quick
    assert len(set(whole)) == len(whole)


def test_brokers_are_hurt_only_when_all_else_is_measured() -> None:
    *names, repeated = [trial.name for trial in all_trials(FULL, LONG_ROUNDS)]
    assert set(names[-len(FAULTS) :]) == FAULTS
    assert repeated.removesuffix(AGAIN) in names


def test_all_rows_are_warmed_up_but_memory() -> None:
    trials = all_trials(FULL, LONG_ROUNDS)
    assert {trial.name for trial in trials if not trial.api} == COLD
    assert {trial.name for trial in trials if trial.api and not trial.warm_up_seconds} == set()


def test_only_what_takes_long_has_fewer_rounds() -> None:
    assert {trial.name for trial in all_trials(FULL, LONG_ROUNDS) if trial.most_rounds} == COLD | FAULTS
    assert {trial.most_rounds for trial in all_trials(QUICK, 1) if trial.most_rounds} == {1}


def test_the_foot_tells_every_setting_that_differs_from_a_default() -> None:
    told = " ".join(BENCH.notes)
    assert [name for name, value in CLUSTER_SETTINGS.items() if f"{name}={value}" not in told] == []


def test_half_a_gigabyte_is_consumed_at_least(monkeypatch: pytest.MonkeyPatch) -> None:
    passes: list[int] = []
    for name in ("create_topic", "delete_topic", "touch_memory"):
        monkeypatch.setattr(cluster_trials, name, lambda *_, **__: None)
    monkeypatch.setattr(cluster_trials, "cpu_seconds", lambda *_: 0.0)
    monkeypatch.setattr(cluster_trials, "produce_seconds", lambda *_, acks: 1.0 if acks == "all" else 0.0)

    def consume(bootstrap: str, topic: str, count: int, times: int) -> float:
        passes.append(times)
        return 1.0

    monkeypatch.setattr(cluster_trials, "consume_seconds", consume)
    for value_bytes, messages in cluster_trials.MESSAGES.items():
        trial = batches_trial(value_bytes, FULL)
        assert len(trial.run(IdleBroker("a", []), "topic")) == len(trial.figures)
        assert value_bytes * messages * passes.pop() >= 5e8


class HurtBroker(IdleBroker):
    def __init__(self, number: int, events: list[str]) -> None:
        super().__init__(f"{number}", events)
        self.data_directory = Path()

    def kill(self) -> None:
        self.events.append(f"kill {self.name}")

    def launch(self) -> None:
        self.events.append(f"launch {self.name}")

    def await_start(self) -> None:
        self.events.append(f"await {self.name}")


class FakeProducer:
    """Waits for six seconds and a half, whatever happens."""

    def __init__(self, events: list[str]) -> None:
        self._events = events

    def __enter__(self) -> "FakeProducer":
        return self

    def __exit__(self, *_: object) -> None:
        self._events.append("producer ends")

    def run_for(self, seconds: float) -> None: ...

    def await_all_partitions(self) -> None:
        self._events.append("all served")

    def check(self) -> None:
        self._events.append("check")

    def longest_wait_seconds(self) -> float:
        return 6.5


class Story:
    """A cluster whose controller is broker 1, and what is done to it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.events: list[str] = []
        self.replicas: Any = None
        members: Any = {number: HurtBroker(number, self.events) for number in BROKERS}
        self.cluster = Cluster(members, lambda _: 1)
        monkeypatch.setattr(cluster_faults, "create_topic", self._create)
        monkeypatch.setattr(cluster_faults, "delete_topic", lambda *_: None)
        monkeypatch.setattr(cluster_faults, "await_in_sync", lambda *_: self.events.append("in sync"))
        monkeypatch.setattr(cluster_faults, "new_admin", lambda _: None)
        monkeypatch.setattr(cluster_faults, "SteadyProducer", lambda *_: FakeProducer(self.events))

    def _create(self, bootstrap: str, topic: str, replicas: Any) -> None:
        self.replicas = replicas

    def run(self, trial: Any) -> Values:
        found: Values = trial.run(self.cluster, "topic")
        assert len(found) == len(trial.figures)
        return found


@pytest.mark.parametrize(("name", "victim"), [("failover", 2), ("failover-controller", 1)])
def test_the_broker_that_is_killed_leads_all_that_is_written(
    monkeypatch: pytest.MonkeyPatch, name: str, victim: int
) -> None:
    story = Story(monkeypatch)
    (trial,) = (trial for trial in failover_trials(FULL, 1) if trial.name == name)
    assert story.run(trial) == (6.5,)
    assert {replicas[0] for replicas in story.replicas} == {victim}
    assert all(sorted(replicas) == [1, 2, 3] for replicas in story.replicas)
    assert story.events == [f"kill {victim}", "all served", "producer ends", "check", f"start {victim}", "in sync"]


@pytest.mark.parametrize(("wait", "beyond"), [(6.5, 0.5), (5.5, 0.0)])
def test_the_leader_that_is_paused_goes_on_when_others_have_taken_over_and_its_session_is_not_counted(
    monkeypatch: pytest.MonkeyPatch, wait: float, beyond: float
) -> None:
    story = Story(monkeypatch)
    story.cluster.members[2].processes = (17,)  # type: ignore[union-attr]
    monkeypatch.setattr(FakeProducer, "longest_wait_seconds", lambda _: wait)
    monkeypatch.setattr("bench.cluster_faults.os.kill", lambda pid, sent: story.events.append(f"{sent.name} {pid}"))
    assert story.run(cluster_faults.paused_trial(FULL, 1)) == (beyond,)
    assert {replicas[0] for replicas in story.replicas} == {2}
    assert story.events == ["SIGSTOP 17", "all served", "SIGCONT 17", "producer ends", "check", "in sync"]


def test_brokers_are_restarted_when_the_one_before_is_in_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    story = Story(monkeypatch)
    assert story.run(cluster_faults.rolling_trial(FULL, 1))[0] == 6.5
    each = [event for number in BROKERS for event in (f"stop {number}", f"start {number}", "in sync")]
    assert story.events == [*each, "all served", "producer ends", "check"]


def test_a_follower_is_timed_from_its_first_byte_until_it_is_in_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    story = Story(monkeypatch)
    now, sizes = [0.0], [100, 100, 100, 300, 500]
    monkeypatch.setattr("bench.cluster_faults.time.monotonic", lambda: now[0])
    monkeypatch.setattr("bench.cluster_faults.time.sleep", lambda _: now.__setitem__(0, now[0] + 1.0))
    monkeypatch.setattr(cluster_faults, "logs_of", lambda _: Path())
    monkeypatch.setattr(cluster_faults, "segment_bytes", lambda *_: sizes.pop(0) if sizes else 600)
    monkeypatch.setattr(cluster_faults, "is_in_sync", lambda *_: now[0] >= 12)
    monkeypatch.setattr(cluster_faults, "produce_together_seconds", lambda *_: story.events.append("write"))
    found = story.run(catch_up_trial(FULL, 1))
    # Two looks showed nothing new: its first byte was seen after two seconds, ten before it was in sync.
    assert found == (2_000 / 10, 12.0)
    assert story.events == ["stop 2", *["write"] * 10, "launch 2", "await 2", "in sync"]
    assert all(replicas[0] != 2 and 2 in replicas for replicas in story.replicas)
