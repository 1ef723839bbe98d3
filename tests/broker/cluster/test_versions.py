"""A cluster of two versions of Lamina: who may join, when a level is finalized, and who is refused."""

import json

import pytest

from lamina.errors import ErrorCode
from lamina.image.features import LAMINA_VERSION, TRANSACTION_VERSION
from lamina.store import registration as registrations
from lamina.store.interface import UnsupportedLevel
from lamina.store.registration import Registration
from tests.broker.cluster.conftest import NewMembers
from tests.broker.cluster.members import MemberProcess, Members

UPDATE_FEATURES = 57
OLDER = {LAMINA_VERSION: range(1, 2), TRANSACTION_VERSION: range(2)}
NEWER = {LAMINA_VERSION: range(1, 3), TRANSACTION_VERSION: range(3)}
REFUSED = (
    "this cluster has finalized lamina.version at level 2, and this version of Lamina supports level 1: "
    "use the version that the brokers run"
)


def start(members: Members, node_id: int, features: dict[str, range]) -> MemberProcess:
    members.features = features
    return members.start(node_id)


def raise_level(members: Members, name: str, level: int) -> tuple[int, str]:
    """Ask the controller."""
    update = {"feature": name, "max_version_level": level, "upgrade_type": 1}
    answer = members.ask(members.controller().id, UPDATE_FEATURES, 1, timeout=1000, feature_updates=[update])
    return answer.error_code, answer.error_message


def levels(process: MemberProcess) -> dict[str, int]:
    return dict(process.image.features.levels)


def upgraded_one_by_one(members: Members) -> None:
    """From three older brokers to three newer ones."""
    for node_id in (1, 2, 3):
        start(members, node_id, OLDER)
    members.create(1, "t", [[1, 2, 3]])
    for node_id in (1, 2, 3):
        members.stop(node_id)
        start(members, node_id, NEWER)
        assert levels(members.up[node_id]) == {LAMINA_VERSION: 1, TRANSACTION_VERSION: 1}


def test_a_level_is_finalized_only_when_the_last_broker_is_upgraded(new_members: NewMembers) -> None:
    members = new_members()
    for node_id in (1, 2):
        start(members, node_id, OLDER)
    start(members, 3, NEWER)
    members.stop(1)
    start(members, 1, NEWER)
    code, reason = raise_level(members, LAMINA_VERSION, 2)
    assert code == ErrorCode.INVALID_UPDATE_VERSION
    assert "broker 2 supports level 1; start every broker with the newer version first" in reason
    members.stop(2)
    start(members, 2, NEWER)
    assert raise_level(members, LAMINA_VERSION, 2)[0] == ErrorCode.NONE
    members.run_until(lambda: all(levels(each)[LAMINA_VERSION] == 2 for each in members.up.values()))


def test_all_brokers_go_back_as_long_as_nothing_is_finalized(new_members: NewMembers) -> None:
    members = new_members()
    upgraded_one_by_one(members)
    for node_id in (3, 2, 1):
        members.stop(node_id)
        start(members, node_id, OLDER)
    members.run_until(lambda: members.produce(members.state("t").leader, "t") == ErrorCode.NONE)


def test_an_older_broker_is_refused_where_a_newer_level_is_finalized(new_members: NewMembers) -> None:
    members = new_members()
    upgraded_one_by_one(members)
    assert raise_level(members, LAMINA_VERSION, 2)[0] == ErrorCode.NONE
    members.stop(3)
    with pytest.raises(UnsupportedLevel, match=f"^{REFUSED}$"):
        start(members, 3, OLDER)
    assert set(members.controller().image.brokers) == {1, 2}
    start(members, 3, NEWER)


def test_an_older_broker_does_not_become_the_controller_of_a_newer_cluster(new_members: NewMembers) -> None:
    """Also where no other broker is there to refuse it."""
    members = new_members()
    start(members, 1, NEWER)
    members.stop(1)
    with pytest.raises(UnsupportedLevel, match=f"^{REFUSED}$"):
        start(members, 1, OLDER)


def test_a_live_broker_that_would_not_register_again_is_not_taken_for_dead(
    new_members: NewMembers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Decision 7: its version would stop, with an exit status that no supervisor takes for a failure."""
    dump = registrations.dump

    def older_dump(registration: Registration) -> bytes:
        value = json.loads(dump(registration))
        if registration.endpoints[0].host == "broker-2":
            del value["lamina"]["registers_again"]
        return json.dumps(value).encode()

    monkeypatch.setattr(registrations, "dump", older_dump)
    members = new_members()
    for node_id in (1, 2, 3):
        members.start(node_id)
    members.run_until(lambda: set(members.up[1].image.brokers) == {1, 2, 3})
    members.refused |= {2, 3}
    for node_id in (2, 3):
        members._cut(members.up[node_id])
        members.isolated.add(node_id)
    members.run_until(lambda: set(members.up[1].image.brokers) == {1, 2})
    members.run_for(1.0)
    assert set(members.up[1].image.brokers) == {1, 2}
    members.zookeeper.expire(members.up[2].session)
    members.run_until(lambda: set(members.up[1].image.brokers) == {1})


def test_a_broker_that_registered_before_a_level_was_finalized_is_not_taken_in(new_members: NewMembers) -> None:
    members = new_members()
    start(members, 1, OLDER)
    members.stop(1)
    start(members, 1, NEWER)
    members.features = OLDER
    late = members.begin_start(2)
    (starting,) = [one for one in late.tasks if one.get_name() == "start"]
    members.run_until(lambda: late.member.broker_epoch >= 0)
    assert 2 not in members.up[1].image.brokers
    assert raise_level(members, LAMINA_VERSION, 2)[0] == ErrorCode.NONE

    def refusals() -> list[str]:
        """It may hear of it with its first image, or when it is to be taken in."""
        failure = starting.exception() if starting.done() else None
        return late.fatal if failure is None else [str(failure)]

    members.run_until(lambda: bool(refusals()))
    assert refusals()[0].startswith(REFUSED)
    assert 2 not in members.up[1].image.brokers
