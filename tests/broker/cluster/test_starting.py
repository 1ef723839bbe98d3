"""Who may join: ids, cluster ids, ensembles that were wiped or restored, directories of other brokers."""

import shutil
from pathlib import Path

import pytest

from lamina.errors import ErrorCode
from lamina.settings.resolve import resolve_broker
from lamina.storage import StartError, open_storage
from lamina.store.interface import Create, StoreError
from lamina.store.membership import BROKER_IDS, CONTROLLER_EPOCH
from lamina.store.session import Session
from tests.broker.cluster.conftest import NewMembers
from tests.broker.cluster.members import Members


def one_with_a_topic(new_members: NewMembers) -> Members:
    members = new_members()
    members.start(1)
    members.create(1, "t", [[1]])
    members.run_until(lambda: members.leads(1, "t") and members.produce(1, "t") == ErrorCode.NONE)
    return members


def partition_directory(members: Members, node_id: int, name: str) -> Path:
    return members.directory / f"broker-{node_id}" / "logs" / name


# Ids


def test_an_id_that_zookeeper_gave_is_kept(new_members: NewMembers) -> None:
    """R67: the first is 1001; meta.properties has it from then on."""
    members = new_members(lamina_data_dir="")
    place = {"lamina_data_dir": str(members.directory / "anywhere")}
    assert members.start(None, **place).id == 1001
    members.stop(1001)
    assert members.start(None, **place).id == 1001
    assert members.start(None, lamina_data_dir=str(members.directory / "elsewhere")).id == 1002
    assert "node.id=1001" in (members.directory / "anywhere/logs/meta.properties").read_text()


def test_an_id_of_minus_one_asks_for_one_as_in_kafkas_file(new_members: NewMembers) -> None:
    members = new_members()
    assert members.start(None, broker_id="-1").id == 1001


def test_another_id_than_the_directory_knows_is_refused(new_members: NewMembers) -> None:
    members = one_with_a_topic(new_members)
    members.stop(1)
    with pytest.raises(StartError, match=r"/broker-1/logs belongs to node 1, this is node 2$"):
        members.begin_start(2, lamina_data_dir=str(members.directory / "broker-1"))


def test_a_killed_broker_replaces_its_own_ghost_at_once(new_members: NewMembers) -> None:
    """Its old session is alive, and so is its old tenure as the controller."""
    members = one_with_a_topic(new_members)
    old_epoch = members.up[1].member.broker_epoch
    members.kill(1, session_ends=False)
    assert members.start(1).member.broker_epoch > old_epoch
    assert members.controller().id == 1
    members.run_until(lambda: members.leads(1, "t") and members.produce(1, "t") == ErrorCode.NONE)


def test_a_broker_whose_id_was_taken_while_its_session_was_lost_stops_with_a_sentence(
    new_members: NewMembers,
) -> None:
    members = one_with_a_topic(new_members)
    members.start(2)
    process = members.up[2]
    value = members.zookeeper.entries[f"{BROKER_IDS}/2"].value.replace(
        members.up[2].parts.storage.directories[0].identity.directory_id.encode(),  # type: ignore[union-attr]
        b"another-directory",
    )
    thief = members.zookeeper.connect()
    members.expire(2)
    thief.transact([Create(f"{BROKER_IDS}/2", value, is_ephemeral=True)])
    members.run_until(lambda: bool(process.fatal))
    assert process.fatal == [
        "broker id 2 is taken: another broker at broker-2:9092, broker-2:9093 is registered with it: "
        "give this one another --node-id, or stop that one"
    ]


def test_a_broker_whose_directory_was_copied_stops_as_soon_as_the_copy_has_its_id(new_members: NewMembers) -> None:
    """Both have the same id and directory id: they would take each other's registration back and forth."""
    members = one_with_a_topic(new_members)
    process = members.start(2)
    value = members.zookeeper.entries[f"{BROKER_IDS}/2"].value.replace(b"broker-2", b"copied-2")
    copy = members.zookeeper.connect()
    members.expire(2)
    copy.transact([Create(f"{BROKER_IDS}/2", value, is_ephemeral=True)])
    members.run_until(lambda: bool(process.fatal))
    assert process.fatal == [
        "broker id 2 is taken: a second broker with a copy of this log directory runs at copied-2:9092, copied-2:9093"
    ]
    assert members.zookeeper.entries[f"{BROKER_IDS}/2"].owner == copy.session_id


# Which cluster


def test_a_wiped_ensemble_stops_the_start(new_members: NewMembers) -> None:
    members = one_with_a_topic(new_members)
    members.stop(1)
    members.forget_zookeeper()
    with pytest.raises(
        StartError, match=r"^this broker belongs to cluster .{22}, and there is no cluster in ZooKeeper"
    ):
        members.begin_start(1)


def test_another_cluster_stops_the_start(new_members: NewMembers) -> None:
    members = one_with_a_topic(new_members)
    members.stop(1)
    members.forget_zookeeper()
    members.start(2)
    with pytest.raises(StartError, match=r"^this broker belongs to cluster .{22}, and ZooKeeper holds cluster .{22}$"):
        members.begin_start(1)


def test_an_ensemble_that_was_restored_stops_the_start(new_members: NewMembers) -> None:
    """The same cluster, but a controller has been in office since the copy was made."""
    members = one_with_a_topic(new_members)
    copy = dict(members.zookeeper.entries)
    members.stop(1)
    members.start(1)
    members.stop(1)
    members.zookeeper.entries = {path: entry for path, entry in copy.items() if not entry.owner}
    with pytest.raises(StoreError, match=r"^ZooKeeper is at controller epoch 1 and this broker has seen 2: "):
        members.start(1)


def test_leader_epochs_below_those_of_local_logs_stop_the_start(new_members: NewMembers) -> None:
    """Restored, with controllers enough since then to be past all that this broker has seen of them."""
    members = one_with_a_topic(new_members)
    copy = dict(members.zookeeper.entries)
    for _ in range(3):
        members.stop(1)
        members.start(1)
    assert members.produce(1, "t") == ErrorCode.NONE
    members.stop(1)
    entries = {path: entry for path, entry in copy.items() if not entry.owner}
    entries[CONTROLLER_EPOCH] = members.zookeeper.entries[CONTROLLER_EPOCH]
    members.zookeeper.entries = entries
    with pytest.raises(
        StartError,
        match=r"^t-0 has records of leader epoch \d and ZooKeeper knows no later one than \d: the ensemble",
    ):
        members.start(1)


def test_a_chroot_with_brokers_of_kafkas_own_is_refused(new_members: NewMembers) -> None:
    members = new_members()
    kafka = members.zookeeper.connect()
    for path in ("/brokers", BROKER_IDS):
        kafka.transact([Create(path, b"")])
    kafka.transact([Create(f"{BROKER_IDS}/7", b'{"version":5,"endpoints":[]}', is_ephemeral=True)])
    with pytest.raises(StoreError, match=r"^broker 7 in this ZooKeeper is a Kafka broker"):
        members.start(1)


# Which directories


def test_a_members_directory_is_not_taken_without_its_cluster_nor_a_lone_brokers_with_one(
    new_members: NewMembers,
) -> None:
    members = one_with_a_topic(new_members)
    members.stop(1)
    directory = members.directory / "broker-1"
    with pytest.raises(StartError, match=rf"^{directory} belongs to a member of cluster .{{22}}: say which ZooKeeper"):
        open_storage(resolve_broker(sets={"lamina.data.dir": str(directory)}))
    alone = members.directory / "broker-2"
    open_storage(resolve_broker(sets={"lamina.data.dir": str(alone)})).close()
    with pytest.raises(StartError, match=rf"^{alone} is the directory of a broker without a cluster: choose another"):
        members.begin_start(2)
    assert members.start(1).id == 1, "neither refusal has changed anything"


def test_an_unknown_directory_is_left_alone_and_set_aside_when_its_name_is_needed(new_members: NewMembers) -> None:
    members = one_with_a_topic(new_members)
    members.stop(1)
    shutil.copytree(partition_directory(members, 1, "t-0"), partition_directory(members, 1, "u-0"))
    assert members.start(1).parts.unknown == [str(partition_directory(members, 1, "u-0"))]
    kept = partition_directory(members, 1, "u-0") / "00000000000000000000.log"
    size_bytes = kept.stat().st_size
    members.create(1, "u", [[1]])
    members.run_until(lambda: members.leads(1, "u"))
    assert members.up[1].parts.partitions.find("u", 0).log.log_end_offset == 0  # type: ignore[union-attr]
    (aside,) = [one for one in (members.directory / "broker-1/logs").iterdir() if one.name.startswith("u-0.")]
    assert (aside / kept.name).stat().st_size == size_bytes


def test_what_was_deleted_while_a_broker_was_away_is_deleted_when_it_is_back(new_members: NewMembers) -> None:
    """Also where the topic was made again meanwhile: its old records never come under the new topic id."""
    members = new_members()
    for node_id in (1, 2):
        members.start(node_id)
    members.create(1, "t", [[1, 2]])
    members.create(1, "other", [[2]])
    members.run_until(lambda: members.leads(1, "t") and members.produce(1, "t", 5) == ErrorCode.NONE)
    members.stop(2)
    members.delete(1, "t")
    members.create(1, "t", [[1]])
    assert set(members.controller().image.deletions.values()) == {(2,)}
    process = members.start(2)
    assert process.parts.unknown == []
    assert process.parts.partitions.find("t", 0) is None
    assert not partition_directory(members, 2, "t-0").exists()
    members.run_until(lambda: not members.controller().image.deletions)
    assert process.parts.partitions.find("other", 0) is not None


def test_a_deletion_is_resumed_by_the_next_controller(new_members: NewMembers) -> None:
    members = new_members()
    for node_id in (1, 2, 3):
        members.start(node_id)
    members.create(1, "t", [[2, 3]])
    assert members.controller().id == 1
    # Nobody hears that the topic is to go, and so nobody reports that it is gone.
    members.isolate(2)
    members.isolate(3)
    members.begin_delete(1, "t")
    members.run_until(lambda: members.up[1].member.decided.topics["t"].is_being_deleted)
    members.kill(1)
    members.heal()
    members.run_until(lambda: "t" not in members.controller().image.topics)
    members.run_until(lambda: not partition_directory(members, 2, "t-0").exists())


# Session of a member that waits


def test_nothing_is_proven_before_the_roles_are_taken(new_members: NewMembers) -> None:
    members = new_members()
    process = members.begin_start(1)
    assert isinstance(process.parts.member_parts.lease.session, Session)  # type: ignore[union-attr]
    assert not process.parts.member_parts.lease.is_proven()  # type: ignore[union-attr]
    assert not process.parts.member_parts.lease.was_proven()  # type: ignore[union-attr]
    members.finish_start(process)
    members.probe()
    assert process.parts.member_parts.lease.is_proven()  # type: ignore[union-attr]
    assert process.parts.member_parts.lease.was_proven()  # type: ignore[union-attr]
