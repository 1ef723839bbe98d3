"""Registration and election, on the ZooKeeper in memory and on a real one."""

import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from lamina.image.image import Broker
from lamina.settings.listeners import Listener
from lamina.store import registration as registrations
from lamina.store.cluster_identity import CLUSTER_ID, cluster_id, generated_id
from lamina.store.interface import (
    ClusterStore,
    Create,
    Delete,
    Operation,
    OutcomeUnknown,
    SessionLost,
    Set,
    StoreConflict,
    StoreError,
    WrongCluster,
)
from lamina.store.membership import BROKER_IDS, CONTROLLER, CONTROLLER_EPOCH, IdTaken, Membership, Removal, Tenure
from lamina.store.registration import Registration
from tests.driven_clock import DrivenClock
from tests.store.ensembles import Ensemble
from tests.store.memory_zookeeper import MemoryZooKeeper

INTERNAL = Listener("INTERNAL", "PLAINTEXT", "::1", 19092)
EXTERNAL = Listener("EXTERNAL", "SASL_SSL", "broker-1.example.com", 9092)
ELSEWHERE = Listener("EXTERNAL", "SASL_SSL", "another-machine", 9092)


def registration(directory: str = "dir-1", timestamp_ms: int = 1234) -> Registration:
    return Registration(
        (EXTERNAL, INTERNAL), "rack-a", "0.1", True, (directory,), timestamp_ms, {"transaction.version": range(3)}
    )


def registered(store: ClusterStore, node_id: int, directory: str = "") -> Membership:
    membership = Membership(store, node_id)
    membership.try_register(registration(directory or f"dir-{node_id}"))
    return membership


# Registration


def test_a_registration_is_kafkas_json_with_laminas_part() -> None:
    """zookeeper.md 6.1: version 5; host and port are those of a plain listener."""
    assert json.loads(registrations.dump(registration())) == {
        "version": 5,
        "host": "::1",
        "port": 19092,
        "jmx_port": -1,
        "timestamp": "1234",
        "endpoints": ["EXTERNAL://broker-1.example.com:9092", "INTERNAL://[::1]:19092"],
        "listener_security_protocol_map": {"EXTERNAL": "SASL_SSL", "INTERNAL": "PLAINTEXT"},
        "rack": "rack-a",
        "features": {"transaction.version": {"min_version": 0, "max_version": 2}},
        "lamina": {
            "version": "0.1",
            "clean": True,
            "ready": False,
            "registers_again": True,
            "directories": ["dir-1"],
        },
    }
    assert registrations.load(registrations.dump(registration())) == registration()
    without_plain = replace(registration(), endpoints=(EXTERNAL,), rack=None)
    value = json.loads(registrations.dump(without_plain))
    assert (value["host"], value["port"], value["rack"]) == (None, -1, None)
    assert registrations.load(registrations.dump(without_plain)) == without_plain


def test_brokers_are_found_with_their_epochs_in_the_order_of_registration(ensemble: Ensemble) -> None:
    stores = [ensemble.connect() for _ in range(2)]
    epochs = {}
    for node_id, store in ((7, stores[0]), (2, stores[1])):
        epochs[node_id] = Membership(store, node_id).try_register(registration(f"dir-{node_id}"))
    found = Membership(stores[0], 7).brokers()
    assert {node_id: epoch for node_id, (_, epoch) in found.items()} == epochs
    assert 0 < epochs[7] < epochs[2]
    told, epoch = found[7]
    assert told == registration("dir-7")
    endpoints = {"EXTERNAL": EXTERNAL, "INTERNAL": INTERNAL}
    assert told.broker(7, epoch) == Broker(7, endpoints, "rack-a", epochs[7], features=told.features)


def test_who_registers_again_has_a_higher_epoch(ensemble: Ensemble) -> None:
    """R57: messages to a bounced broker are fenced by it."""
    membership = Membership(ensemble.connect(), 1)
    first = membership.try_register(registration())
    assert membership.try_register(registration(timestamp_ms=2)) > first
    assert membership.brokers()[1][0].timestamp_ms == 2


def test_the_epoch_of_the_last_registration_is_known_after_it_has_ended(ensemble: Ensemble) -> None:
    """KIP-966: by it a clean stop is told from one of an earlier run."""
    membership = Membership(ensemble.connect(), 1)
    assert membership.last_epoch() is None
    membership.try_register(registration())
    epoch = membership.try_register(registration(timestamp_ms=2))
    registered(ensemble.connect(), 2)
    membership.leave()
    assert membership.last_epoch() == epoch


def test_a_second_broker_with_the_same_id_is_refused_with_a_sentence(ensemble: Ensemble) -> None:
    first = registered(ensemble.connect(), 1, "dir-1")
    second = Membership(ensemble.connect(), 1)
    with pytest.raises(
        IdTaken,
        match=r"^broker id 1 is taken: another broker at broker-1\.example\.com:9092, \[::1\]:19092 is registered",
    ):
        second.try_register(registration("dir-2"))
    assert first.brokers()[1][0].directories == ("dir-1",)
    assert second.session_id == 0


def test_an_own_ghost_is_told_by_its_directories_and_replaced_at_once(ensemble: Ensemble) -> None:
    """Whoever holds the lock of a directory knows that its last holder is dead, whatever his session says.

    One of its ports may have been chosen by the system.
    """
    ghost = registered(ensemble.connect(), 1, "dir-1")
    old_epoch = ghost.brokers()[1][1]
    store = ensemble.connect()
    returned = Membership(store, 1)
    with_another_port = replace(registration("dir-1"), endpoints=(EXTERNAL, replace(INTERNAL, port=19093)))
    assert returned.try_register(with_another_port) > old_epoch
    assert returned.session_id == store.session_id
    assert set(returned.brokers()) == {1}


def test_a_copy_of_the_directory_at_another_address_is_no_ghost(ensemble: Ensemble) -> None:
    """A lock is known on its own machine only: the other one may be alive."""
    first = registered(ensemble.connect(), 1, "dir-1")
    copy = Membership(ensemble.connect(), 1)
    with pytest.raises(
        IdTaken,
        match=r"^broker id 1 is taken: a second broker with a copy of this log directory runs at broker-1\.example",
    ):
        copy.try_register(replace(registration("dir-1"), endpoints=(ELSEWHERE,)))
    assert first.brokers()[1][0].endpoints == (EXTERNAL, INTERNAL)


def test_who_was_replaced_by_a_copy_of_its_directory_does_not_replace_it(ensemble: Ensemble) -> None:
    store = ensemble.connect()
    first = registered(store, 1, "dir-1")
    ensemble.expire(store)
    copy = Membership(ensemble.connect(), 1)
    copy.try_register(registration("dir-1"))
    _learn_of_the_loss(store)
    with pytest.raises(IdTaken, match=r"^broker id 1 is taken: a second broker with a copy of this log directory runs"):
        first.try_register(registration("dir-1"))


def test_where_kafkas_own_brokers_are_registered_none_of_ours_is(ensemble: Ensemble) -> None:
    store = ensemble.connect()
    membership = registered(store, 1)
    kafka = b'{"features":{},"listener_security_protocol_map":{"PLAINTEXT":"PLAINTEXT"},"endpoints":[],"version":5}'
    ensemble.connect().transact([Create(f"{BROKER_IDS}/5", kafka, is_ephemeral=True)])
    with pytest.raises(StoreError, match=r"^broker 5 in this ZooKeeper is a Kafka broker, .* another chroot$"):
        Membership(ensemble.connect(), 2).try_register(registration("dir-2"))
    # One that comes later is none of the cluster's brokers, and does not stop it.
    assert set(membership.brokers()) == {1}


@pytest.mark.parametrize("name", ["2", "two"])
def test_a_registration_that_cannot_be_read_is_named_once_and_stops_nobody(
    ensemble: Ensemble, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    store = ensemble.connect()
    membership = registered(store, 1)
    store.transact([Create(f"{BROKER_IDS}/{name}", b'{"lamina":{}}', is_ephemeral=True)])
    for _ in range(2):
        assert set(membership.brokers()) == {1}
    [told] = [message for message in caplog.messages if "passed over" in message]
    assert f"/brokers/ids/{name} in the metadata store cannot be read" in told


def test_after_a_lost_session_a_broker_registers_anew(ensemble: Ensemble) -> None:
    store, other = ensemble.connect(), Membership(ensemble.connect(), 2)
    membership = Membership(store, 1)
    epoch = membership.try_register(registration())
    ensemble.expire(store)
    assert other.brokers() == {}
    _learn_of_the_loss(store)
    with pytest.raises(SessionLost):
        membership.elect()
    assert membership.try_register(registration()) > epoch
    assert membership.elect() is not None


def test_a_broker_that_leaves_is_gone_at_once(ensemble: Ensemble) -> None:
    membership, other = registered(ensemble.connect(), 1), registered(ensemble.connect(), 2)
    membership.leave()
    assert set(other.brokers()) == {2}
    assert membership.session_id == 0


def test_the_controller_takes_away_what_a_dead_process_holds_and_it_is_not_unregistered(ensemble: Ensemble) -> None:
    membership, dead = registered(ensemble.connect(), 1), registered(ensemble.connect(), 2)
    tenure, epoch = membership.elect(), dead.brokers()[2][1]
    assert tenure is not None
    assert not membership.remove_dead(2, epoch - 1, tenure), "it has registered again"
    assert membership.remove_dead(2, epoch, tenure)
    assert set(membership.brokers()) == {1}
    assert dead.removal() is None, "it registers again, if it lives"
    assert dead.try_register(registration("dir-2")) > epoch
    assert not membership.remove_dead(2, epoch, tenure)
    unregistered_epoch = dead.brokers()[2][1]
    membership.unregister(2, unregistered_epoch, tenure)
    assert dead.removal() is Removal.UNREGISTERED


def test_whoever_was_replaced_as_the_controller_takes_nobodys_registration_away(ensemble: Ensemble) -> None:
    old, dead = registered(ensemble.connect(), 1), registered(ensemble.connect(), 2)
    tenure = old.elect()
    assert tenure is not None
    old.resign(tenure)
    assert registered(ensemble.connect(), 3).elect() is not None
    with pytest.raises(StoreConflict):
        old.remove_dead(2, dead.brokers()[2][1], tenure)
    assert set(old.brokers()) == {1, 2, 3}


def test_any_broker_takes_a_dead_controller_out_of_its_office_together_with_its_registration(
    ensemble: Ensemble,
) -> None:
    dead, other = registered(ensemble.connect(), 1), registered(ensemble.connect(), 2)
    tenure = dead.elect()
    assert tenure is not None
    assert other.remove_dead(1, dead.brokers()[1][1], None)
    assert other.controller() is None
    assert set(other.brokers()) == {2}
    elected = other.elect()
    assert elected is not None
    assert elected.controller_epoch == tenure.controller_epoch + 1


def test_without_an_office_nobody_but_the_controller_is_removed(ensemble: Ensemble) -> None:
    membership, other = registered(ensemble.connect(), 1), registered(ensemble.connect(), 2)
    assert not membership.remove_dead(2, other.brokers()[2][1], None), "nobody is the controller"
    assert membership.elect() is not None
    assert not membership.remove_dead(2, other.brokers()[2][1], None)
    assert set(membership.brokers()) == {1, 2}


def test_the_controller_takes_a_registration_away(ensemble: Ensemble) -> None:
    membership, other = registered(ensemble.connect(), 1), registered(ensemble.connect(), 2)
    tenure = membership.elect()
    assert tenure is not None
    epoch = membership.brokers()[2][1]
    membership.unregister(2, epoch - 1, tenure)
    assert set(membership.brokers()) == {1, 2}, "that was another life of it"
    assert other.removal() is None
    membership.unregister(2, epoch, tenure)
    assert set(membership.brokers()) == {1}
    assert other.removal() is Removal.UNREGISTERED
    assert membership.unregister(2, epoch, tenure), "it is gone already"
    assert registered(ensemble.connect(), 2).removal() is None


def test_a_broker_that_registers_again_meanwhile_keeps_its_new_registration(
    ensemble: Ensemble, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The entries of the new one have the versions that those of the old one had."""
    store = ensemble.connect()
    membership, other = registered(store, 1), registered(ensemble.connect(), 2)
    tenure = membership.elect()
    assert tenure is not None

    def again() -> None:
        other.try_register(registration("dir-2"))

    happens_before_the_next_transaction(store, again, monkeypatch)
    with pytest.raises(StoreConflict):
        membership.remove_dead(2, membership.brokers()[2][1], tenure)
    assert set(membership.brokers()) == {1, 2}
    happens_before_the_next_transaction(store, again, monkeypatch)
    assert not membership.unregister(2, membership.brokers()[2][1], tenure)
    assert set(membership.brokers()) == {1, 2}
    assert other.removal() is None
    assert membership.unregister(2, membership.brokers()[2][1], tenure)


def happens_before_the_next_transaction(
    store: ClusterStore, happens: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    transact = store.transact

    def overtaken(operations: Sequence[Operation]) -> None:
        monkeypatch.setattr(store, "transact", transact)
        happens()
        transact(operations)

    monkeypatch.setattr(store, "transact", overtaken)


def test_who_is_unregistered_after_it_was_taken_for_dead_does_not_register_again(ensemble: Ensemble) -> None:
    """Only whoever is started after that does."""
    membership, dead = registered(ensemble.connect(), 1), registered(ensemble.connect(), 2)
    tenure = membership.elect()
    assert tenure is not None
    assert membership.remove_dead(2, dead.brokers()[2][1], tenure)
    assert membership.unregister(2, None, tenure)
    assert dead.removal() is Removal.UNREGISTERED
    with pytest.raises(StoreConflict, match="unregistered"):
        dead.try_register(registration("dir-2"))
    assert registered(ensemble.connect(), 2).removal() is None


def test_who_registers_while_it_is_unregistered_does_so_before_or_not_at_all(
    ensemble: Ensemble, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Taken for dead, it is told that it may register again; then its operator unregisters it."""
    store, other = ensemble.connect(), ensemble.connect()
    membership, dead = registered(store, 1), registered(other, 2)
    tenure = membership.elect()
    assert tenure is not None
    assert membership.remove_dead(2, dead.brokers()[2][1], tenure)
    assert dead.removal() is None
    happens_before_the_next_transaction(other, lambda: unregistered(membership, tenure), monkeypatch)
    with pytest.raises(StoreConflict):
        dead.try_register(registration("dir-2"))
    assert dead.removal() is Removal.UNREGISTERED
    live = registered(ensemble.connect(), 2)
    assert membership.remove_dead(2, live.brokers()[2][1], tenure)
    happens_before_the_next_transaction(store, lambda: registered_again(live), monkeypatch)
    assert not membership.unregister(2, None, tenure)
    assert live.removal() is None
    assert set(membership.brokers()) == {1, 2}


def unregistered(membership: Membership, tenure: Tenure) -> None:
    assert membership.unregister(2, None, tenure)


def registered_again(membership: Membership) -> None:
    membership.try_register(registration("dir-2"))


def test_a_session_that_ends_before_its_broker_is_unregistered_keeps_nobody_in(ensemble: Ensemble) -> None:
    store = ensemble.connect()
    membership, other = registered(ensemble.connect(), 1), registered(store, 2)
    tenure = membership.elect()
    assert tenure is not None
    ensemble.expire(store)
    _learn_of_the_loss(store)
    assert other.removal() is None
    assert membership.unregister(2, None, tenure)
    assert other.removal() is Removal.UNREGISTERED


def test_a_registration_that_is_removed_by_hand_is_not_unregistered(ensemble: Ensemble) -> None:
    store = ensemble.connect()
    membership = registered(ensemble.connect(), 1)
    path = f"{BROKER_IDS}/1"
    entry = store.get(path)
    assert entry is not None
    store.transact([Delete(path, entry.version)])
    assert membership.removal() is Removal.UNEXPLAINED


def test_one_whose_version_would_not_register_again_is_not_taken_for_dead(ensemble: Ensemble) -> None:
    store = ensemble.connect()
    membership, older = registered(ensemble.connect(), 1), Membership(store, 2)
    epoch = older.try_register(replace(registration("dir-2"), registers_again=False))
    tenure = membership.elect()
    assert tenure is not None
    assert not membership.remove_dead(2, epoch, tenure)
    path = f"{BROKER_IDS}/2"
    entry = store.get(path)
    assert entry is not None
    silent = entry.value.replace(b'"registers_again":false,', b"")
    assert silent != entry.value
    store.transact([Set(path, silent, entry.version)])
    assert not membership.remove_dead(2, epoch, tenure), "it says nothing of that"
    assert set(membership.brokers()) == {1, 2}


def test_only_the_controller_in_office_takes_registrations_away(ensemble: Ensemble) -> None:
    first, second = registered(ensemble.connect(), 1), registered(ensemble.connect(), 2)
    tenure = first.elect()
    assert tenure is not None
    first.resign(tenure)
    second.elect()
    with pytest.raises(StoreConflict):
        first.unregister(2, first.brokers()[2][1], tenure)
    assert set(first.brokers()) == {1, 2}


def test_a_registration_that_went_with_its_session_was_not_taken_away(ensemble: Ensemble) -> None:
    store = ensemble.connect()
    membership = Membership(store, 1)
    assert membership.removal() is None, "it has not registered yet"
    membership.try_register(registration())
    ensemble.expire(store)
    _learn_of_the_loss(store)
    assert membership.removal() is None
    membership.try_register(registration())
    membership.leave()
    assert membership.removal() is None, "it has left"


def test_a_registration_whose_answer_was_lost_is_read_back() -> None:
    store = MemoryZooKeeper().connect()
    membership = registered(store, 1)
    store.loses_next_answer = True
    epoch = membership.try_register(registration(timestamp_ms=2))
    assert membership.brokers()[1] == (registration(timestamp_ms=2), epoch)


# The controller


def test_the_first_is_elected_and_the_epoch_grows_by_one_each_time(ensemble: Ensemble) -> None:
    first, second = registered(ensemble.connect(), 1), registered(ensemble.connect(), 2)
    assert first.controller() is None
    assert first.elect() == Tenure(1, 1)
    assert second.elect() is None
    assert second.controller() == (1, 1)
    first.resign(Tenure(1, 1))
    assert first.controller() is None
    assert second.elect() == Tenure(2, 2)
    assert first.controller() == (2, 2)


def test_the_controllers_entries_are_kafkas(ensemble: Ensemble) -> None:
    store = ensemble.connect()
    clock = DrivenClock()
    clock.wall_ms = 77
    membership = Membership(store, 3, clock.clocks)
    membership.try_register(registration())
    membership.elect()
    controller, epoch = store.get(CONTROLLER), store.get(CONTROLLER_EPOCH)
    assert controller is not None
    assert epoch is not None
    assert json.loads(controller.value) == {"version": 2, "brokerid": 3, "timestamp": "77", "kraftControllerEpoch": -1}
    assert controller.owner == store.session_id
    assert epoch.value == b"1"


def test_each_tenure_has_an_epoch_of_its_own(ensemble: Ensemble) -> None:
    one = registered(ensemble.connect(), 1)
    first, second = one.elect(), one.elect()
    assert first is not None
    assert second is not None
    assert second.controller_epoch == first.controller_epoch + 1


def test_a_broker_that_was_taken_in_says_so_in_its_registration(ensemble: Ensemble) -> None:
    one = registered(ensemble.connect(), 1)
    ((told, epoch),) = one.brokers().values()
    assert not told.is_ready
    one.mark_ready(told)
    ((marked, same_epoch),) = one.brokers().values()
    assert marked == replace(told, is_ready=True)
    assert same_epoch == epoch


def test_nobody_is_elected_who_is_not_registered(ensemble: Ensemble) -> None:
    with pytest.raises(SessionLost, match="registration is gone"):
        Membership(ensemble.connect(), 1).elect()


def test_what_an_own_ghost_left_is_replaced_in_a_new_epoch(ensemble: Ensemble) -> None:
    assert registered(ensemble.connect(), 1).elect() == Tenure(1, 1)
    returned = registered(ensemble.connect(), 1)
    assert returned.elect() == Tenure(2, 2)
    assert returned.controller() == (1, 2)


def test_who_resigns_too_late_takes_nothing_from_the_next(ensemble: Ensemble) -> None:
    first = registered(ensemble.connect(), 1)
    tenure = first.elect()
    assert tenure is not None
    first.resign(tenure)
    second = registered(ensemble.connect(), 2)
    second.elect()
    first.resign(tenure)
    assert first.controller() == (2, 2)


def test_a_controller_leaves_the_cluster_and_its_office_in_one_step() -> None:
    """Else the next controller would count it among the brokers whose reports it waits for."""
    zookeeper = MemoryZooKeeper()
    first, second = registered(zookeeper.connect(), 1), registered(zookeeper.connect(), 2)
    tenure, before = first.elect(), zookeeper.zxid
    first.leave(tenure)
    assert zookeeper.zxid == before + 1
    assert (set(second.brokers()), second.controller()) == ({2}, None)


def test_who_leaves_after_another_was_elected_leaves_alone(ensemble: Ensemble) -> None:
    first, second = registered(ensemble.connect(), 1), registered(ensemble.connect(), 2)
    tenure = first.elect()
    assert tenure is not None
    first.resign(tenure)
    second.elect()
    first.leave(tenure)
    assert set(second.brokers()) == {2}
    assert second.controller() == (2, 2)


def test_an_election_whose_answer_was_lost_is_read_back() -> None:
    store = MemoryZooKeeper().connect()
    membership = registered(store, 1)
    store.loses_next_answer = True
    with pytest.raises(OutcomeUnknown):
        store.transact([Create(CONTROLLER_EPOCH, b"4")])
    store.loses_next_answer = True
    assert membership.elect() == Tenure(5, 1)


def test_an_epoch_below_one_that_was_seen_tells_a_restored_ensemble(ensemble: Ensemble) -> None:
    store = ensemble.connect()
    membership = registered(store, 1)
    with pytest.raises(WrongCluster, match=r"^this broker belongs to cluster mine, and there is no cluster in ZooKeep"):
        membership.check_cluster("mine", 0)
    assert store.get(CONTROLLER_EPOCH) is None, "a check leaves nothing in a wiped ensemble"
    cluster_id(store, "mine")
    membership.elect()
    membership.check_cluster("mine", 1)
    with pytest.raises(
        WrongCluster, match=r"^ZooKeeper is at controller epoch 1 and this broker has seen 2: the ensemble"
    ):
        membership.check_cluster("mine", 2)


def test_what_a_server_says_that_is_behind_the_others_counts_only_if_it_says_it_again() -> None:
    store = MemoryZooKeeper().connect()
    cluster_id(store, "mine")
    get, is_behind = store.get, True
    store.get = lambda path: None if is_behind and path == CLUSTER_ID else get(path)  # type: ignore[method-assign]

    def sync() -> int:
        nonlocal is_behind
        is_behind = False
        return 1

    store.sync = sync  # type: ignore[method-assign]
    Membership(store, 1).check_cluster("mine", 0)
    assert not is_behind


# Watching


def test_brokers_that_come_and_go_and_elections_are_heard_of(ensemble: Ensemble) -> None:
    heard = threading.Event()
    watching = registered(ensemble.connect(), 1)
    watching.watch(heard.set)
    other = registered(ensemble.connect(), 2)
    _await(ensemble, heard)
    tenure = other.elect()
    assert tenure is not None
    _await(ensemble, heard)
    other.resign(tenure)
    _await(ensemble, heard)


def _await(ensemble: Ensemble, heard: threading.Event) -> None:
    ensemble.deliver()
    assert heard.wait(20)
    heard.clear()


# The cluster


def test_the_first_broker_names_the_cluster(ensemble: Ensemble) -> None:
    store = ensemble.connect()
    assert cluster_id(store, "first") == "first"
    assert cluster_id(ensemble.connect(), "second") == "first"
    assert cluster_id(store, "third", known="first") == "first"
    found = store.get(CLUSTER_ID)
    assert found is not None
    assert json.loads(found.value) == {"version": "1", "id": "first"}


def test_another_cluster_and_a_wiped_ensemble_are_refused_with_a_sentence(ensemble: Ensemble) -> None:
    store = ensemble.connect()
    with pytest.raises(
        StoreError, match=r"^this broker belongs to cluster mine, and there is no cluster in ZooKeeper: "
    ):
        cluster_id(store, "new", known="mine")
    assert store.get(CLUSTER_ID) is None
    cluster_id(store, "theirs")
    with pytest.raises(StoreError, match=r"^this broker belongs to cluster mine, and ZooKeeper holds cluster theirs$"):
        cluster_id(store, "new", known="mine")


def test_generated_ids_are_above_the_reserved_ones_and_never_the_same(ensemble: Ensemble) -> None:
    stores = [ensemble.connect(), ensemble.connect()]
    assert [generated_id(store, 1000) for store in stores * 2] == [1001, 1002, 1003, 1004]


def test_an_id_that_another_broker_is_given_first_is_left_to_it() -> None:
    zookeeper = MemoryZooKeeper()
    store, rival = zookeeper.connect(), zookeeper.connect()
    assert generated_id(rival, 0) == 1
    get = store.get
    contested = iter([True, False, False])

    def get_late(path: str) -> object:
        found = get(path)
        if path == "/brokers/seqid" and next(contested, False):
            rival.transact([Set(path, b"", found.version if found else 0)])
        return found

    store.get = get_late  # type: ignore[method-assign, assignment]
    assert generated_id(store, 0) == 3


def _learn_of_the_loss(store: ClusterStore) -> None:
    """The first call after an expiry may fail with it."""
    try:
        store.sync()
    except SessionLost:
        store.sync()
