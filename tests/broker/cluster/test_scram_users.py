"""SCRAM's users in a cluster: made at any broker, kept in ZooKeeper, let in by all (S43, S83)."""

import asyncio
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from lamina.broker.login.mechanisms import ScramUsers
from lamina.broker.metadata.replicas import Replicas
from lamina.security.scram import ScramClient, ScramError, ScramServer
from lamina.security.scram_credential import ScramMechanism, salted_password
from tests.broker.cluster.conftest import NewMembers
from tests.broker.cluster.members import Members

DESCRIBE, ALTER = 50, 51
MECHANISM = ScramMechanism.SHA_512
SALT = b"of the client"
PASSWORD = "secret"
LOGGING_IN = {
    "listeners": "PLAINTEXT://:9092,BROKERS://:9093,USERS://:9094",
    "advertised.listeners": "PLAINTEXT://here:9092,BROKERS://here:9093,USERS://here:9094",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,BROKERS:PLAINTEXT,USERS:SASL_PLAINTEXT",
    "inter.broker.listener.name": "BROKERS",
    "sasl.enabled.mechanisms": "SCRAM-SHA-512",
}


@pytest.fixture
def members(new_members: NewMembers) -> Members:
    """Brokers 1, 2 and 3; broker 1 is the controller."""
    members = new_members(**LOGGING_IN)
    for node_id in (1, 2, 3):
        members.start(node_id)
    return members


def make(members: Members, node_id: int, user: str) -> None:
    salted = salted_password(MECHANISM.digest, PASSWORD, SALT, 4096)
    upsertion = {"name": user, "mechanism": 2, "iterations": 4096, "salt": SALT, "salted_password": salted}
    (made,) = members.ask(node_id, ALTER, 0, upsertions=[upsertion], deletions=[]).results
    assert made.error_code == 0, made.error_message


def server(members: Members, node_id: int) -> ScramServer:
    parts = members.up[node_id].parts
    return ScramUsers(parts.metadata, parts.storage.login_secret).new_server(MECHANISM)


def is_let_in(members: Members, node_id: int, user: str) -> bool:
    answering, client = server(members, node_id), ScramClient(MECHANISM, user, "nonce")
    salt, iterations = client.challenge(answering.respond(client.first()))
    try:
        client.verify(answering.respond(client.final(salted_password(MECHANISM.digest, PASSWORD, salt, iterations))))
    except ScramError:
        return False
    return answering.is_complete


def test_a_user_that_is_made_at_any_broker_is_let_in_by_all(members: Members) -> None:
    make(members, 2, "alice")
    members.run_until(lambda: all("alice" in one.image.scram_credentials for one in members.up.values()))
    for node_id in (1, 2, 3):
        assert is_let_in(members, node_id, "alice")
        assert not is_let_in(members, node_id, "bob")
        (told,) = members.ask(node_id, DESCRIBE, 0, users=[{"name": "alice"}]).results
        assert [(info.mechanism, info.iterations) for info in told.credential_infos] == [(2, 4096)]
    (gone,) = members.ask(3, ALTER, 0, upsertions=[], deletions=[{"name": "alice", "mechanism": 2}]).results
    assert gone.error_code == 0
    members.run_until(lambda: not any(one.image.scram_credentials for one in members.up.values()))
    assert not is_let_in(members, 1, "alice")


def test_users_are_let_in_by_a_controller_that_still_opens_its_logs(
    members: Members, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other brokers may log in as such users."""
    make(members, 1, "alice")
    members.create(1, "t", [[1]])
    for node_id in (1, 2, 3):
        members.stop(node_id)

    async def never(*_: Any) -> Any:
        await asyncio.Event().wait()

    monkeypatch.setattr(Replicas, "open", never)
    process = members.begin_start(1)
    members.run_until(lambda: process.member.is_controller)
    assert is_let_in(members, 1, "alice")


def salt_of(members: Members, node_id: int, user: str) -> bytes:
    client = ScramClient(MECHANISM, user, "nonce")
    return client.challenge(server(members, node_id).respond(client.first())).salt


def test_who_does_not_exist_is_told_the_same_salt_by_all_and_at_all_times_s83(members: Members) -> None:
    """Else asking two brokers, or asking again when users have changed, would tell who exists."""
    before = salt_of(members, 1, "nobody")
    make(members, 1, "alice")
    members.run_until(lambda: all("alice" in one.image.scram_credentials for one in members.up.values()))
    assert [salt_of(members, node_id, "nobody") for node_id in (1, 2, 3)] == [before] * 3
    members.stop(2)
    members.start(2)
    assert salt_of(members, 2, "nobody") == before


def test_nobody_can_compute_the_salt_of_who_does_not_exist(members: Members, tmp_path: Path) -> None:
    """Not where there are no users either: another cluster makes up others."""
    with closing(Members(tmp_path / "other", **LOGGING_IN)) as other:
        other.start(1)
        assert salt_of(members, 1, "nobody") != salt_of(other, 1, "nobody")


def test_where_nobody_logs_in_there_is_no_secret(new_members: NewMembers) -> None:
    members = new_members()
    assert members.start(1).parts.storage.login_secret == b""
