"""The rows of the comparison with Kafka: warmed up, long enough, in no fixed order."""

from typing import Any

import pytest

from bench import client_trials
from bench.amounts import FULL, QUICK
from bench.client_trials import batches_trial, transaction_trials
from bench.subjects import Subject, all_subjects
from bench.trials import all_trials
from tests.bench.idle_broker import IdleBroker

COLD = {"start", "start-small-heap", "memory", "memory-small-heap", "loading"}


def test_rows_are_told_apart_by_name() -> None:
    names = [trial.name for trial in all_trials(FULL)]
    assert len(set(names)) == len(names)
    assert names == [trial.name for trial in all_trials(QUICK)]


def test_every_load_is_warmed_up_for_up_to_a_minute_but_start_memory_and_restart(tmp_path: Any) -> None:
    trials = all_trials(FULL)
    assert {trial.name for trial in trials if not trial.api} == COLD
    for api in {trial.api for trial in trials} - {""}:
        seconds = max(trial.warm_up_seconds for trial in trials if trial.api == api)
        assert seconds == 60
    assert max(trial.warm_up_seconds for trial in all_trials(QUICK)) < 10
    assert {name for trial in trials for name in trial.subjects.values()} <= all_subjects(tmp_path).keys()


def test_only_what_takes_long_has_fewer_rounds() -> None:
    assert {trial.name for trial in all_trials(FULL) if trial.most_rounds} == COLD


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Loads that were run, all of them in a second."""
    found: list[str] = []

    def noted(name: str) -> Any:
        def note(bootstrap: str, topic: str, *amounts: Any, **more: Any) -> float:
            found.append(f"{name} {' '.join(map(str, amounts))}")
            return 1.0

        return note

    for name in ("create_topic", "delete_topic"):
        monkeypatch.setattr(client_trials, name, lambda *_, **__: None)
    monkeypatch.setattr(client_trials, "touch_memory", lambda size: None)
    monkeypatch.setattr(client_trials, "cpu_seconds", lambda *_: 0.0)
    for name in ("produce_seconds", "consume_seconds", "idempotent_seconds", "transactional_seconds"):
        monkeypatch.setattr(client_trials, name, noted(name))
    return found


def test_a_gigabyte_is_consumed_at_least(sent: list[str]) -> None:
    broker: Subject = IdleBroker("a", [])
    for value_bytes in client_trials.MESSAGES:
        trial = batches_trial(value_bytes, FULL)
        assert len(trial.run(broker, "topic")) == len(trial.figures)
        _, messages, passes = sent.pop().split()
        assert value_bytes * int(messages) * int(passes) >= 1e9


def test_transactions_and_idempotent_producers_take_turns_in_being_first(sent: list[str]) -> None:
    (trial,) = (trial for trial in transaction_trials(FULL) if trial.name == "large-transactions")
    for name in ("a", "b", "b", "a"):
        trial.run(IdleBroker(name, []), "topic")
    firsts = [event.split("_")[0] for event in sent[::2]]
    assert firsts == ["transactional", "transactional", "idempotent", "idempotent"]
