"""``lamina compact`` and ``lamina cleaner``, against a broker of their own and on directories that no broker uses."""

import json
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lamina.cli.cleaner.status import HEADINGS, status_cells
from lamina.cli.compact.figures import print_blockers
from lamina.cli.compact.online import compact_online
from lamina.cli.printing.tables import print_table
from lamina.client.admin_listener import AdminListener
from lamina.client.errors import ClientError
from lamina.log.directory import LogDirectory
from lamina.settings.log_config import LogConfig
from tests.broker.process import BrokerProcess, eventually
from tests.broker.raw import RawClient, batch_of
from tests.cli.running import Lamina, Outcome
from tests.fixtures.kafka_data import load_fixture
from tests.log.building import records_of

START = Callable[..., BrokerProcess]
QUIET = ("--set", "log.cleaner.backoff.ms=3600000", "--set", "log.cleaner.min.cleanable.ratio=1")
"""No pass comes by itself."""


def fill(lamina: Lamina, broker: BrokerProcess, *configs: str, topic: str = "t", rounds: int = 3) -> None:
    """Keys ``a`` and ``b`` again and again, then a tombstone for ``b``, all in the active segment."""
    given = [part for config in ("cleanup.policy=compact", *configs) for part in ("--config", config)]
    made = lamina("topics", "create", topic, *given, "--bootstrap-server", broker.address)
    assert made.status == 0, made.err
    now_ms = time.time_ns() // 1_000_000
    with RawClient(broker) as raw:
        for number in range(rounds):
            values = [(b"a", b"%d" % number), (b"b", b"%d" % number)]
            assert raw.produce(topic, batch_of(*values, now_ms=now_ms)).error_code == 0
        assert raw.produce(topic, batch_of((b"b", None), now_ms=now_ms)).error_code == 0


class Commands:
    def __init__(self, broker: BrokerProcess, lamina: Lamina) -> None:
        self.broker = broker
        self.lamina = lamina

    @property
    def where(self) -> tuple[str, ...]:
        return "--bootstrap-server", self.broker.address

    def __call__(self, *args: str) -> Outcome:
        return self.lamina(*args, *self.where, "--token-file", str(self.broker.data_dir / "admin.token"))


@pytest.fixture
def quiet(own_broker: START, lamina: Lamina) -> Commands:
    return Commands(own_broker(*QUIET), lamina)


def test_a_topic_is_compacted_now_and_the_table_says_what_came_of_it(quiet: Commands) -> None:
    fill(quiet.lamina, quiet.broker)
    nothing = quiet("compact", "t", "--wait")
    assert nothing.status == 0
    assert "in the active segment" in nothing.err
    assert "--roll" in nothing.err
    done = quiet("compact", "t", "--roll", "--wait")
    assert done.status == 0, done.err
    heading, row, *remains = done.out.splitlines()
    assert heading.split() == ["topic", "partition", "records", "bytes", "segments", "keys", "tombstones", "seconds"]
    assert row.split()[:5] == ["t", "0", "7", "→", "2"]
    assert "t-0: 1 tombstone left, until its delete horizon" in remains[0]
    [told] = quiet("cleaner", "history", "--json").objects
    assert (told["outcome"], told["is_manual"], told["keys"]) == ("cleaned", True, 2)
    assert (told["before"]["records"], told["after"]["records"], told["after"]["tombstones"]) == (7, 2, 1)
    assert told["dropped"]["superseded"] == 5
    assert "cleaned" in quiet("cleaner", "history", "t").out
    assert quiet("cleaner", "history", "other").out == "No pass over other since the broker started.\n"
    again = quiet("compact", "t", "--roll", "--wait")
    assert again.err == "lamina: t-0: nothing in it can be cleaned; all of it is clean\n"


class NoPass(AdminListener):
    """A broker that gave a partition up before a pass over it was opened."""

    def pages(self, rows: str, *_path: str, **_query: str) -> Iterator[dict[str, Any]]:
        given_up = {"topic": "t", "partition": 0, "is_wanted": False, "phase": None, "error": "its index is torn"}
        return iter([given_up] if rows == "partitions" else [])

    def post(self, *_path: str, body: object = None) -> dict[str, Any]:
        return {"since": 0, "partitions": [{"partition": 0, "is_wanted": True, "is_under_way": True, "reason": None}]}


def test_a_pass_that_never_comes_is_not_waited_for() -> None:
    with pytest.raises(ClientError, match="t-0 was not compacted: its index is torn"):
        compact_online(NoPass("nowhere"), ("t",), None, roll=False, wait=True, as_json=False)


class SlowFirstPass(NoPass):
    """A broker that compiles kernels while it is looked at three times."""

    def __init__(self) -> None:
        super().__init__("nowhere")
        self._looks = 0

    def pages(self, rows: str, *_path: str, **_query: str) -> Iterator[dict[str, Any]]:
        if rows == "passes":
            self._looks += 1
            return iter([a_pass(1)] if self._looks > 3 else [])
        compiling = {"done_bytes": 0, "total_bytes": 9, "phase": "cleaning", "waits_for": "kernels are compiled"}
        return iter([{"topic": "t", "partition": 0, "is_wanted": True, "held_back": []} | compiling])

    def post(self, *path: str, body: object = None) -> dict[str, Any]:
        answer = super().post(*path, body=body)
        answer["partitions"][0]["is_under_way"] = False
        return answer


def test_what_a_pass_waits_for_is_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert compact_online(SlowFirstPass(), ("t",), None, roll=False, wait=True, as_json=True) == 0
    assert capsys.readouterr().err == "lamina: kernels are compiled\n"


class PassUnderWay(NoPass):
    """A broker whose cleaner had begun a pass before it was asked for one."""

    def __init__(self, passes: list[dict[str, Any]]) -> None:
        super().__init__("nowhere")
        self._passes = passes
        self._looks = 0

    def pages(self, rows: str, *path: str, **query: str) -> Iterator[dict[str, Any]]:
        if rows == "partitions":
            is_open = {"is_wanted": self._looks == 1, "done_bytes": 0, "total_bytes": 0, "held_back": []}
            return (row | is_open for row in super().pages(rows, *path, **query))
        self._looks += 1
        return iter(self._passes[: self._looks][::-1])


def a_pass(number: int) -> dict[str, Any]:
    figures = {"records": number, "bytes": 1, "segments": 1, "tombstones": 0, "markers": 0, "header_only_batches": 0}
    told = {"number": number, "topic": "t", "partition": 0, "outcome": "cleaned", "keys": 1}
    return told | {"before": figures, "after": figures, "seconds": {"total": 1.0}, "horizons": {"earliest_ms": None}}


@pytest.mark.parametrize("comes", [True, False])
def test_the_pass_that_was_asked_for_is_shown_unless_an_earlier_one_left_nothing_to_do(
    comes: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    passes = [a_pass(1)] + [a_pass(2)] * comes
    assert compact_online(PassUnderWay(passes), ("t",), None, roll=True, wait=True, as_json=True) == 0
    [shown] = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert shown["number"] == (2 if comes else 1)


def test_a_batch_that_is_kept_without_records_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    for count, told in ((1, "1 batch without records kept"), (2, "2 batches without records kept")):
        one = a_pass(1)
        one["after"] = one["after"] | {"header_only_batches": count}
        print_blockers(one, [])
        assert capsys.readouterr().out == f"  t-0: {told}: a producer's last one, or the last one that was cleaned\n"


def test_who_stops_waiting_is_told_that_the_broker_goes_on(quiet: Commands, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_arguments: object) -> None:
        raise KeyboardInterrupt

    fill(quiet.lamina, quiet.broker)
    with monkeypatch.context() as patch:
        patch.setattr("lamina.cli.compact.online._await", interrupted)
        stopped = quiet("compact", "t", "--roll", "--wait")
    assert stopped.status == 130
    assert stopped.err == "lamina: the broker goes on compacting; `lamina cleaner status` shows the progress\n"
    eventually(lambda: bool(quiet("cleaner", "history", "t", "--json").objects))


def test_the_state_of_each_partition_is_shown(quiet: Commands) -> None:
    assert quiet("cleaner", "status").out == "No topic is compacted.\n"
    fill(quiet.lamina, quiet.broker)
    [row] = quiet("cleaner", "status", "t", "--json").objects
    assert row["state"] is None
    assert (row["first_dirty_offset"], row["first_uncleanable_offset"], row["log_end_offset"]) == (0, 0, 7)
    assert (row["dirty_ratio"], row["is_eligible"]) == (0.0, False)
    quiet("compact", "t", "--roll", "--wait")
    [row] = quiet("cleaner", "status", "--json").objects
    assert (row["first_dirty_offset"], row["last_pass"]["outcome"]) == (7, "cleaned")
    assert "cleaned" in quiet("cleaner", "status").out
    unknown = quiet("cleaner", "status", "no-such-topic")
    assert (unknown.status, unknown.err) == (1, "lamina: there is no topic 'no-such-topic'\n")
    for near in (("compact", "tt"), ("cleaner", "explain", "tt", "--key", "a")):
        assert quiet(*near).err == "lamina: there is no topic 'tt'; did you mean t?\n"
    nowhere = quiet("compact", "t", "--partition", "9")
    assert (nowhere.status, "did you mean" in nowhere.err) == (1, False)


def test_the_status_is_said_in_plain_words_and_internal_topics_only_when_asked_for(quiet: Commands) -> None:
    fill(quiet.lamina, quiet.broker)
    quiet.lamina("groups", "reset-offsets", "g", "--topic", "t", "--to-earliest", "--execute", *quiet.where)
    headings, row = quiet("cleaner", "status").out.splitlines()
    assert re.split(" {2,}", headings) == ["partition", "state", "dirty ratio", "dirty offsets", "last pass"]
    assert re.split(" {2,}", row) == ["t-0", "idle", "0.00 / 1", "none"]
    with_internal = quiet("cleaner", "status", "--internal").out.splitlines()
    assert len(with_internal) == 1 + 50 + 1
    assert len(quiet("cleaner", "status", "__consumer_offsets").out.splitlines()) == 1 + 50
    assert {one["topic"] for one in quiet("cleaner", "status", "--json").objects} == {"t"}


def explained(quiet: Commands, *args: str) -> dict[str, Any]:
    [row] = quiet("cleaner", "explain", "t", *args, "--json").objects
    return row


def test_why_a_record_is_still_there_is_explained(quiet: Commands) -> None:
    fill(quiet.lamina, quiet.broker, "delete.retention.ms=3600000")
    first = explained(quiet, "--offset", "0")
    assert first["goes"]
    assert first["reasons"][0] == "a newer record of its key is at offset 2, and the last so far at 4"
    assert "active segment" in first["reasons"][1]
    latest = explained(quiet, "--key", "a")
    assert (latest["offset"], latest["goes"]) == (4, False)
    assert latest["reasons"] == ["it is the latest of its key and stays until a newer one comes"]
    tombstone = explained(quiet, "--key", "b")
    assert tombstone["is_tombstone"]
    assert "the next pass sets its delete horizon" in tombstone["reasons"][0]
    quiet("compact", "t", "--roll", "--wait")
    tombstone = explained(quiet, "--key", "b")
    assert "stays until its delete horizon" in tombstone["reasons"][0]
    assert "nothing in this log is dirty" in tombstone["reasons"][1]
    assert tombstone["earliest_ms"] == tombstone["delete_horizon_ms"] > time.time_ns() // 1_000_000
    gone = explained(quiet, "--offset", "0")
    assert not gone["is_there"]
    assert "compaction removed it" in gone["reasons"][0]
    assert "nothing was written there yet" in explained(quiet, "--offset", "99")["reasons"][0]
    shown = quiet("cleaner", "explain", "t", "--key", "b").out
    assert shown.startswith("t-0 offset 6, key b, a tombstone: will be removed\n")
    unwritten = quiet("cleaner", "explain", "t", "--key", "no-such-key")
    assert (unwritten.status, unwritten.err) == (
        1,
        "lamina: topic 't' has no record with that key: it was removed, or never written; "
        "`lamina consume t --format '%k'` shows the keys\n",
    )
    assert quiet("cleaner", "explain", "t").status == 2
    assert quiet("cleaner", "explain", "no-such-topic", "--key", "a").status == 1


def test_what_cannot_be_compacted_is_refused_with_one_sentence(quiet: Commands) -> None:
    assert quiet("compact").status == 2
    assert quiet("compact", "t", "--dry-run").status == 2
    assert quiet("compact", "t", "--dir", "x", "--wait").status == 2
    missing = quiet("compact", "no-such-topic")
    assert (missing.status, missing.err.count("\n")) == (1, 1)
    quiet.lamina("topics", "create", "plain", "--bootstrap-server", quiet.broker.address)
    refused = quiet("compact", "plain")
    assert refused.status == 1
    assert refused.err == (
        "lamina: the cleanup.policy of plain does not compact; "
        "`lamina configs set --topic plain cleanup.policy=compact` changes that\n"
    )
    fill(quiet.lamina, quiet.broker)
    assert "3 partitions" not in quiet("compact", "t", "--partition", "3").out
    assert "no 3" in quiet("compact", "t", "--partition", "3").err
    file = quiet.broker.data_dir / "wrong.token"
    file.write_text("not-the-token-at-all")
    wrong = quiet.lamina("compact", "t", "--bootstrap-server", quiet.broker.address, "--token-file", file)
    assert wrong.status == 1
    assert "token" in wrong.err


def test_a_topic_that_is_not_compacted_says_so_where_people_look(own_broker: START, lamina: Lamina) -> None:
    """Decision 12."""
    quiet = Commands(own_broker("--set", "log.cleaner.enable=false"), lamina)
    fill(lamina, quiet.broker)
    described = lamina("topics", "describe", "t", "--bootstrap-server", quiet.broker.address)
    assert "lamina.compaction = off: log.cleaner.enable is false" in described.out
    refused = quiet("compact", "t")
    assert refused.status == 1
    assert "no topic is being compacted: log.cleaner.enable is false" in refused.err
    assert "nothing is compacted on this broker" in quiet("cleaner", "status").err


# Directories that no broker uses


def texts_in(directory: Path, topic: str) -> list[tuple[bytes | None, bytes | None]]:
    opened = LogDirectory.open(str(directory), node_id=1)
    try:
        config = LogConfig(compact=True, delete=False)
        log = opened.open_partition(topic, 0, config, 0)
        return [(record.key, record.value) for record in records_of(log)]
    finally:
        opened.close()


def test_the_directory_of_a_stopped_broker_is_compacted(own_broker: START, lamina: Lamina) -> None:
    broker = own_broker(*QUIET)
    fill(lamina, broker, "segment.ms=1")
    fill(lamina, broker, topic="other")
    refused = lamina("compact", "--dir", broker.data_dir)
    assert refused.status == 1
    assert "in use" in refused.err
    broker.stop()
    tried = lamina("compact", "--dir", broker.data_dir, "t", "--dry-run")
    assert "in the active segment" in tried.err
    before = texts_in(broker.log_dir, "t")
    done = lamina("compact", "--dir", broker.data_dir, "--roll", "--json")
    assert done.status == 0, done.err
    rows = {row["topic"]: row for row in done.objects}
    assert set(rows) == {"t", "other"}
    assert (rows["t"]["before"]["records"], rows["t"]["after"]["records"]) == (7, 2)
    assert len(before) == 7
    assert texts_in(broker.log_dir, "t") == [(b"a", b"2"), (b"b", None)]
    assert not list(broker.log_dir.glob("*/*.deleted"))
    assert (broker.log_dir / "cleaner-offset-checkpoint").read_text().splitlines()[2:] == ["other 0 7", "t 0 7"]
    assert lamina("verify", "--dir", broker.log_dir).status == 0
    broker.start()
    [row] = Commands(broker, lamina)("cleaner", "status", "t", "--json").objects
    assert row["first_dirty_offset"] == 7


def test_a_directory_that_kafka_wrote_is_compacted_once_its_settings_are_given(tmp_path: Path, lamina: Lamina) -> None:
    directory = load_fixture(tmp_path).clean.directory
    asked = lamina("compact", "--dir", directory)
    assert asked.status == 1
    assert "--set cleanup.policy=compact" in asked.err
    before = texts_in(directory, "__consumer_offsets")
    args = ("compact", "--dir", directory, "__consumer_offsets", "--set", "cleanup.policy=compact")
    assert lamina(*args[:3], "no-such-topic", *args[4:]).status == 1
    assert "--set no.such: unknown" in lamina(*args, "--set", "no.such=1").err
    nowhere = lamina(*args, "--partition", "9")
    assert (nowhere.status, "has no partition 9 of __consumer_offsets" in nowhere.err) == (1, True)
    tried = lamina(*args, "--dry-run", "--json")
    assert "in the active segment" in tried.objects[0]["held_back"][0]
    assert texts_in(directory, "__consumer_offsets") == before
    done = lamina(*args, "--roll", "--json")
    assert done.status == 0, done.err
    assert done.objects[0]["after"]["records"] < done.objects[0]["before"]["records"]
    after = texts_in(directory, "__consumer_offsets")
    assert dict(after) == dict(before)
    assert len(after) < len(before)
    again = lamina(*args, "--dry-run")
    assert again.status == 0
    assert "nothing in it can be cleaned; all of it is clean" in again.err
    assert lamina("verify", "--dir", directory).status == 0


def test_the_status_of_a_busy_partition_fits_a_terminal_of_80_columns(capsys: pytest.CaptureFixture[str]) -> None:
    row = {
        "topic": "payments",
        "partition": 0,
        "state": "in progress",
        "is_wanted": False,
        "phase": "installing",
        "done_bytes": 10,
        "total_bytes": 10,
        "error": None,
        "is_uncleanable": False,
        "last_pass": {"number": 1, "outcome": "uncleanable", "ended_ms": 0},
        "min_cleanable_dirty_ratio": 0.25,
        "dirty_ratio": 0.5,
        "first_dirty_offset": 1_000_000,
        "first_uncleanable_offset": 2_000_000,
        "overdue_ms": 0,
    }
    print_table(HEADINGS, [status_cells(row, 59 * 60_000)])
    shown = capsys.readouterr().out
    assert "installing 100%" in shown
    assert "1000000-1999999" in shown
    assert "uncleanable 59m ago" in shown
    assert max(map(len, shown.splitlines())) <= 80
