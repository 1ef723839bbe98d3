"""An ensemble that was restored from an old copy, or wiped, while brokers run: nothing on their disks is lost by it."""

from pathlib import Path

import pytest

from lamina.errors import ErrorCode
from lamina.image.image import Image
from lamina.store.cluster_identity import CLUSTER_ID
from lamina.store.interface import Entry, StoreError
from lamina.store.membership import BROKER_IDS, CONTROLLER_EPOCH
from lamina.store.znode_paths import state_path
from tests.broker.cluster.conftest import NewMembers
from tests.broker.cluster.members import Members

Copy = tuple[dict[str, Entry], int]


def three(new_members: NewMembers) -> Members:
    members = new_members()
    for node_id in (1, 2, 3):
        members.start(node_id)
    with_topic(members, "t")
    return members


def with_topic(members: Members, name: str) -> None:
    """Led by broker 1; one record is on all of them."""
    members.create(1, name, [[1, 2, 3]])
    members.run_until(lambda: members.leads(1, name) and members.produce(1, name) == ErrorCode.NONE)


def copied(members: Members) -> Copy:
    """What a copy of ZooKeeper's data has for those whose sessions have ended."""
    zookeeper = members.zookeeper
    return {path: entry for path, entry in zookeeper.entries.items() if not entry.owner}, zookeeper.zxid


def put_back(members: Members, copy: Copy) -> None:
    """Instead of what is there, with no sessions."""
    members.zookeeper.entries, members.zookeeper.zxid = dict(copy[0]), copy[1]
    for node_id in members.up:
        members.expire(node_id)


def sizes_of(members: Members, name: str) -> list[int]:
    """The bytes of that partition's log on each broker that has a directory for it."""
    logs = [members.directory / f"broker-{node_id}" / "logs" / name for node_id in (1, 2, 3)]
    return [file_of(log).stat().st_size for log in logs if log.exists()]


def file_of(directory: Path) -> Path:
    return directory / "00000000000000000000.log"


def test_a_topic_that_a_restored_ensemble_does_not_know_is_kept_on_every_disk(new_members: NewMembers) -> None:
    members = three(new_members)
    copy = copied(members)
    with_topic(members, "u")
    before = sizes_of(members, "u-0")
    put_back(members, copy)
    members.run_until(lambda: all("u" not in one.image.topics for one in members.up.values()))
    members.run_until(lambda: members.produce(members.state("t").leader, "t") == ErrorCode.NONE)
    assert sizes_of(members, "u-0") == before
    assert all(one.parts.partitions.find("u", 0) is None for one in members.up.values())
    members.stop(3)
    assert members.start(3).parts.unknown == [str(members.directory / "broker-3/logs/u-0")]
    assert all(one.fatal == [] for one in members.up.values())


def test_a_wiped_ensemble_stops_running_brokers_and_gets_nothing_from_them(new_members: NewMembers) -> None:
    members = three(new_members)
    put_back(members, ({"": members.zookeeper.entries[""]}, 0))
    members.run_until(lambda: all(one.fatal for one in members.up.values()))
    for one in members.up.values():
        (why,) = one.fatal
        assert why.startswith(f"this broker belongs to cluster {one.image.cluster_id}, and there is no cluster in ")
    assert list(members.zookeeper.entries) == [""]
    assert len(sizes_of(members, "t-0")) == 3


def test_a_wiped_ensemble_in_which_another_cluster_has_begun_stops_running_brokers(new_members: NewMembers) -> None:
    members = three(new_members)
    old = list(members.up.values())
    members.set_zookeeper_away(is_away=True)
    members.zookeeper.entries, members.zookeeper.zxid = {"": members.zookeeper.entries[""]}, 0
    other = members.start(4)
    members.set_zookeeper_away(is_away=False)
    for one in old:
        members.expire(one.id)
    members.run_until(lambda: all(one.fatal for one in old))
    for one in old:
        known, stored = one.image.cluster_id, other.image.cluster_id
        assert one.fatal == [f"this broker belongs to cluster {known}, and ZooKeeper holds cluster {stored}"]
    assert len(sizes_of(members, "t-0")) == 3


def test_an_ensemble_that_knows_an_older_controller_stops_running_brokers(new_members: NewMembers) -> None:
    members = three(new_members)
    copy = copied(members)
    members.stop(1)
    members.start(1)
    members.run_until(lambda: all(one.member.election.controller_broker for one in members.up.values()))
    put_back(members, copy)
    members.run_until(lambda: all(one.fatal for one in members.up.values()))
    for one in members.up.values():
        (why,) = one.fatal
        assert why.startswith("ZooKeeper is at controller epoch 1 and this broker has seen 2: the ensemble was wiped")
    assert len(sizes_of(members, "t-0")) == 3


def test_an_ensemble_that_knows_an_older_controller_elects_none_of_those_that_have_seen_a_later_one(
    new_members: NewMembers,
) -> None:
    """Sessions are in the copy too, and those who have them notice nothing before they are candidates."""
    members = three(new_members)
    copy = copied(members)
    members.kill(1)
    members.run_until(lambda: members.controller().id != 1 and members.leads(members.controller().id, "t"))
    entries, first = members.zookeeper.entries, members.controller().id
    members.run_until(lambda: all(one.member.election._remembered.controller_epoch == 2 for one in members.up.values()))
    registered = {path: entry for path, entry in entries.items() if entry.owner and path.startswith(BROKER_IDS)}
    members.zookeeper.entries = copy[0] | registered
    members.kill(first)
    (left,) = members.up.values()
    members.run_until(lambda: bool(left.fatal))
    assert left.fatal[0].startswith("ZooKeeper is at controller epoch 1 and this broker has seen 2")


def test_an_ensemble_that_knows_older_leaders_stops_whoever_would_be_its_controller(new_members: NewMembers) -> None:
    """Restored, with controllers enough since then to be past all that brokers have seen of them."""
    members = three(new_members)
    (entries, zxid) = copied(members)
    for node_id in (1, 2, 3):
        members.stop(node_id)
        members.start(node_id)
    before = members.state("t").leader_epoch
    entries[CONTROLLER_EPOCH] = members.zookeeper.entries[CONTROLLER_EPOCH]
    put_back(members, (entries, zxid + 1000))
    members.run_until(lambda: any(one.fatal for one in members.up.values()))
    state = state_path("t", 0)
    assert members.zookeeper.entries[state] == entries[state], "whoever saw it has written nothing"
    (why,) = next(one.fatal for one in members.up.values() if one.fatal)
    assert why == (
        f"t-0 was at leader epoch {before} and ZooKeeper has it at 0: "
        "the ensemble was restored from an old copy, or is another one"
    )


def test_a_broker_that_finds_itself_registered_in_the_past_stops(new_members: NewMembers) -> None:
    members = new_members()
    members.start(1)
    process = members.start(2)
    entries, _ = copied(members)
    epoch = process.member.broker_epoch
    put_back(members, (entries, 1))
    members.run_until(lambda: bool(process.fatal))
    (why,) = process.fatal
    assert why.startswith(f"this broker was registered with epoch {epoch} and now is with ")
    assert why.endswith(": the ensemble was restored from an old copy, or is another one")


def test_a_controller_that_cannot_read_the_metadata_is_elected_once(
    new_members: NewMembers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each election raises the controller epoch, by which brokers tell an old ensemble."""
    members = new_members()
    process = members.start(1)
    tries, load = 0, process.member.election._store.load

    def failing() -> Image:
        nonlocal tries
        tries += 1
        if tries <= 2:
            raise StoreError("/brokers/topics/t cannot be read")
        return load()

    monkeypatch.setattr(process.member.election._store, "load", failing)
    members.expire(1)
    members.run_until(lambda: tries == 3 and process.member.is_controller)
    assert members.zookeeper.entries[CONTROLLER_EPOCH].value == b"2"
    assert CLUSTER_ID in members.zookeeper.entries
