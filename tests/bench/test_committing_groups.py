"""Groups that commit until they are stopped, against a broker."""

from typing import Any

import pytest
from confluent_kafka.admin import AdminClient

from bench import committing_groups
from bench.committing_groups import SESSION_SECONDS, CommittingGroups, is_lost, is_within_session
from lamina.peer.cluster import ClusterClient
from tests.broker.process import BrokerProcess, eventually


def test_groups_commit_until_they_are_stopped_and_find_what_they_committed(broker: BrokerProcess, topic: str) -> None:
    AdminClient({"bootstrap.servers": broker.address}).list_topics(topic, 30)
    with CommittingGroups(broker.address, 5, [topic]) as groups:
        eventually(lambda: groups.told.commits >= 5)
    assert groups.told.failures == []
    assert groups.told.longest_wait_seconds > 0


def test_no_group_waits_for_the_commits_of_another_on_a_connection(
    broker: BrokerProcess, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    AdminClient({"bootstrap.servers": broker.address}).list_topics(topic, 30)
    asked_by: dict[str, set[ClusterClient]] = {}

    class Watched(ClusterClient):
        async def request(self, to: Any, call: Any) -> Any:
            asked_by.setdefault(to.key, set()).add(self)
            return await super().request(to, call)

    monkeypatch.setattr(committing_groups, "ClusterClient", Watched)
    with CommittingGroups(broker.address, 3, [topic]) as groups:
        eventually(lambda: groups.told.commits >= 3)
    assert len(asked_by) == 3
    assert len(set[ClusterClient]().union(*asked_by.values())) == sum(map(len, asked_by.values())), asked_by


@pytest.mark.parametrize(("found", "lost"), [(6, True), (7, False), (9, False), (10, True), (-1, True)])
def test_what_was_acknowledged_or_tried_later_is_found(found: int, lost: bool) -> None:
    assert is_lost(acked=7, tried=9, found=found) is lost


def test_a_group_may_forget_a_member_after_a_session_without_a_heartbeat_and_not_before() -> None:
    assert is_within_session(SESSION_SECONDS - 1)
    assert not is_within_session(SESSION_SECONDS + 1)
