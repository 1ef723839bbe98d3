"""The cleaner's routes: what they answer, and what they refuse."""

import time
from collections.abc import Callable
from urllib.parse import quote

import pytest

from tests.broker.admin.asking import ask, bearer, get, refused
from tests.broker.admin.test_writing import token_of
from tests.broker.process import BrokerProcess
from tests.broker.raw import RawClient, batch_of
from tests.cli.running import run_process


@pytest.fixture
def compacted(own_broker: Callable[..., BrokerProcess]) -> BrokerProcess:
    """A topic ``t`` of two partitions, a record in each, and one that is not compacted."""
    broker = own_broker("--set", "log.cleaner.backoff.ms=3600000")
    where = ("--bootstrap-server", broker.address)
    made = run_process("topics", "create", "t", "--partitions", "2", "--config", "cleanup.policy=compact", *where)
    assert made.status == 0, made.err
    assert run_process("topics", "create", "plain", *where).status == 0
    with RawClient(broker) as raw:
        for partition in (0, 1):
            batch = batch_of((b"k\xff", b"v"), now_ms=time.time_ns() // 1_000_000)
            assert raw.produce("t", batch, partition=partition).error_code == 0
    return broker


def test_the_routes_tell_what_is_there_and_refuse_what_is_not(compacted: BrokerProcess) -> None:
    broker = compacted
    overview = get(broker, "/v1/cleaner")
    assert overview["is_enabled"]
    assert overview["why_not"] is None
    assert [(row["topic"], row["partition"]) for row in overview["partitions"]] == [("t", 0), ("t", 1)]
    first = get(broker, "/v1/cleaner?limit=1")
    assert first["next_after"] == "t-0"
    assert [row["partition"] for row in get(broker, "/v1/cleaner?limit=1&after=t-0")["partitions"]] == [1]
    assert get(broker, "/v1/cleaner?topic=plain")["partitions"] == []
    assert get(broker, "/v1/cleaner/history") == {"passes": [], "next_after": None}
    assert "must be a whole number" in refused(broker, "/v1/cleaner?after=t", 400)
    assert "since" in refused(broker, "/v1/cleaner/history?since=x", 400)


def test_a_record_is_explained_to_who_has_the_token(compacted: BrokerProcess) -> None:
    broker, explain = compacted, "/v1/cleaner/explain?topic=t"
    assert "token" in refused(broker, f"{explain}&partition=1&offset=0", 401)
    authorized = bearer(token_of(broker))

    def refused_with_token(path: str, status: int) -> str:
        return refused(broker, path, status, headers=authorized)

    assert "topic is missing" in refused_with_token("/v1/cleaner/explain", 400)
    assert "give one of" in refused_with_token(explain, 400)
    assert "give one of" in refused_with_token(f"{explain}&offset=1&key=k", 400)
    assert "say which" in refused_with_token(f"{explain}&offset=0", 400)
    assert "not base64" in refused_with_token(f"{explain}&key_base64=%3D", 400)
    assert "no 9" in refused_with_token(f"{explain}&partition=9&offset=0", 404)
    assert "no record with that key" in refused_with_token(f"{explain}&key=nobody", 404)
    assert "no topic" in refused_with_token("/v1/cleaner/explain?topic=nothing&offset=0", 404)
    found = ask(broker, f"{explain}&key_base64={quote('a/8=')}", headers=authorized).body["records"]
    assert [row["partition"] for row in found] == [0, 1]
    [row] = ask(broker, f"{explain}&partition=1&offset=0", headers=authorized).body["records"]
    assert (row["offset"], row["key_base64"], row["goes"]) == (0, "a/8=", False)
    [row] = ask(broker, "/v1/cleaner/explain?topic=plain&offset=0", headers=authorized).body["records"]
    assert not row["is_there"]


def test_compacting_needs_the_token_and_a_topic_that_is_compacted(compacted: BrokerProcess) -> None:
    broker, authorized = compacted, bearer(token_of(compacted))
    assert ask(broker, "/v1/topics/t/compact", "POST", b"{}").status == 401
    for body in (b"[]", b"x", b'{"partition": "1"}', b'{"roll": 1}', b'{"partitions": 1}'):
        assert "both optional" in refused(
            broker, "/v1/topics/t/compact", 400, method="POST", body=body, headers=authorized
        )
    for path, status in (("plain", 409), ("nothing", 404)):
        refused(broker, f"/v1/topics/{path}/compact", status, method="POST", body=b"", headers=authorized)
    told = ask(broker, "/v1/topics/t/compact", "POST", b"", authorized)
    assert told.status == 202
    assert told.body["since"] == 0
    assert [row["is_wanted"] for row in told.body["partitions"]] == [False, False]
    assert "active segment" in told.body["partitions"][0]["reason"]
    told = ask(broker, "/v1/topics/t/compact", "POST", b'{"partition": 1, "roll": true}', authorized)
    assert told.body["partitions"] == [{"partition": 1, "is_wanted": True, "is_under_way": False, "reason": None}]
