"""Who is in the cluster and who controls it: Kafka's znodes for both.

Owns the registration of this broker and the election of a controller. A broker's epoch is the zxid that created its
registration; a controller's is ``/controller_epoch``, whose version guards every write of its tenure. Must not know
the metadata, nor what anybody does about a change.
"""

import logging
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum

from lamina.clocks import SYSTEM_CLOCKS, Clocks
from lamina.store import registration as registrations
from lamina.store import values
from lamina.store.cluster_identity import check_cluster_id
from lamina.store.entries import create_missing, create_path, parsed
from lamina.store.interface import (
    Check,
    ClusterStore,
    Create,
    Delete,
    Entry,
    Operation,
    OutcomeUnknown,
    SessionLost,
    Set,
    StoreConflict,
    StoreError,
    Watcher,
    WrongCluster,
)
from lamina.store.registration import Registration

logger = logging.getLogger(__name__)

BROKER_IDS = "/brokers/ids"
CONTROLLER = "/controller"
CONTROLLER_EPOCH = "/controller_epoch"
LAST_REGISTRATIONS = "/lamina/registrations"
"""By broker an entry that stays, made anew together with each registration: its zxid is the epoch of the last one."""
REGISTRATION_COUNTS = "/lamina/registration-counts"
"""By broker an entry that stays, and whose version grows with each registration. Who checks it learns that the broker
has registered again: the registration's own version does not tell, for it begins at 0 each time."""
_FOUND_DEAD = b"found dead"
"""The value of the entry of a last registration that another broker took away, because the process was gone."""
_UNREGISTERED = b"unregistered"
"""And of one that the controller took away, because it was asked to."""


@dataclass(frozen=True, slots=True)
class Tenure:
    """One broker's time as the active controller."""

    controller_epoch: int
    epoch_version: int
    """The version that ``/controller_epoch`` has as long as it lasts."""


class Removal(StrEnum):
    """Why a broker's registration is gone, where it is not to register again by itself."""

    UNREGISTERED = "this broker was unregistered"
    UNEXPLAINED = "the registration of this broker is gone from ZooKeeper, and nobody has unregistered it"
    """Somebody removed the entry by hand; or the controller was of a version that did not say why."""


class IdTaken(StoreError):
    """Another broker is registered under this broker's id."""


class Membership:
    """This broker's place in the cluster. Not for several threads at once."""

    def __init__(
        self,
        store: ClusterStore,
        node_id: int,
        clocks: Clocks = SYSTEM_CLOCKS,
    ) -> None:
        self._store = store
        self._node_id = node_id
        self._clocks = clocks
        self._unreadable: set[str] = set()
        """Entries among the registrations of which the log was told."""
        self.session_id = 0
        """The session that owns this broker's registration; 0 before there is one."""
        self._epoch: int | None = None
        """Of the last registration of this process."""

    def watch(self, watcher: Watcher) -> None:
        """Call after any change of the brokers or the controller, and after trouble with the session."""
        self._store.watch(BROKER_IDS, watcher)
        self._store.watch(CONTROLLER, watcher)

    # The cluster

    def check_cluster(self, known_id: str, known_epoch: int) -> None:
        """Raise :class:`WrongCluster` unless this is that cluster, with a controller epoch not below the known one."""
        try:
            self._check_cluster(known_id, known_epoch)
        except WrongCluster:
            # The server that answered may be behind the others.
            self._store.sync()
            self._check_cluster(known_id, known_epoch)

    def _check_cluster(self, known_id: str, known_epoch: int) -> None:
        check_cluster_id(self._store, known_id)
        epoch, _ = self._controller_epoch()
        if epoch < known_epoch:
            raise WrongCluster(
                f"ZooKeeper is at controller epoch {epoch} and this broker has seen {known_epoch}: "
                "the ensemble was wiped, or restored from an old copy, or is another one"
            )

    # Brokers

    def try_register(self, registration: Registration) -> int:
        """Register, and return the broker's epoch. The caller holds the locks of the directories that he names.

        So a registration that names one of them, and an address of this broker, is that of a process that is gone, and
        is replaced. Not at other addresses, nor where this process was registered before: the directory may be a copy.
        Raises :class:`IdTaken` where another broker has the id, :class:`StoreError` in a Kafka cluster, and
        :class:`WrongCluster` in an ensemble that counts its transactions anew.
        """
        for above in (BROKER_IDS, LAST_REGISTRATIONS, REGISTRATION_COUNTS):
            create_path(self._store, above)
        self._check_is_not_kafka()
        path, value = f"{BROKER_IDS}/{self._node_id}", registrations.dump(registration)
        count_path = f"{REGISTRATION_COUNTS}/{self._node_id}"
        count = self._store.get(count_path)
        found = self._store.get(path)
        operations: list[Operation] = [Create(path, value, is_ephemeral=True)]
        if found is not None:
            if found.owner != self._store.session_id:
                self._check_is_ghost(found, registration)
            operations.insert(0, Delete(path, found.version))
        last = self._store.get(self._last_path)
        if self._was_unregistered(last):
            raise StoreConflict("this broker was unregistered meanwhile")
        if last is not None:
            operations.append(Delete(self._last_path, last.version))
        operations.append(Create(self._last_path, b""))
        operations.append(Create(count_path, b"") if count is None else Set(count_path, b"", count.version))
        try:
            self._store.transact(operations)
        except OutcomeUnknown as error:
            cause: Exception = error
        else:
            cause = SessionLost("the session ended while this broker registered")
        found = self._store.get(path)
        if found is None or found.owner != self._store.session_id or found.value != value:
            raise cause
        self.session_id, before, self._epoch = found.owner, self._epoch, found.created_zxid
        if before is not None and self._epoch <= before:
            raise WrongCluster(
                f"this broker was registered with epoch {before} and now is with {self._epoch}: "
                "the ensemble was restored from an old copy, or is another one"
            )
        return self._epoch

    def last_epoch(self) -> int | None:
        """The epoch with which this broker was registered last, however long ago; ``None`` if it never was."""
        last = self._store.get(self._last_path)
        return None if last is None else last.created_zxid

    @property
    def _last_path(self) -> str:
        return f"{LAST_REGISTRATIONS}/{self._node_id}"

    def brokers(self) -> dict[int, tuple[Registration, int]]:
        """Every registered broker of Lamina with its epoch."""
        return {
            broker_id: (registration, entry.created_zxid)
            for broker_id, registration, entry in self._registrations()
            if registration is not None
        }

    def mark_ready(self, registration: Registration) -> None:
        """Note in this broker's registration that a controller has taken it in; nothing where it is gone."""
        path = f"{BROKER_IDS}/{self._node_id}"
        found = self._store.get(path)
        if found is not None and found.owner == self.session_id:
            value = registrations.dump(replace(registration, is_ready=True))
            self._store.transact([Set(path, value, found.version)])

    def removal(self) -> Removal | None:
        """Why this broker's registration is gone; ``None`` where it is there, or the broker is to register again.

        That is so when its session has ended, or another broker took this one for dead.
        """
        session_id = self.session_id
        # In this order: what another session reads says nothing of this one.
        found = self._store.get(f"{BROKER_IDS}/{self._node_id}")
        last = self._store.get(self._last_path)
        if found is not None or session_id == 0:
            return None
        if self._was_unregistered(last):
            return Removal.UNREGISTERED
        was_taken_for_dead = last is not None and last.value == _FOUND_DEAD
        return None if was_taken_for_dead or self._store.session_id != session_id else Removal.UNEXPLAINED

    def _was_unregistered(self, last: Entry | None) -> bool:
        """Since this process registered. Whoever is started again after that may register."""
        return self._epoch is not None and last is not None and last.value == _UNREGISTERED

    def unregister(self, broker_id: int, broker_epoch: int | None, tenure: Tenure) -> bool:
        """Take a broker's registration away, if it has one, and keep its process from registering again.

        False if it has another one by now, which stays. Raises :class:`StoreConflict` if this broker is not the active
        controller any more.
        """
        path, last_path = f"{BROKER_IDS}/{broker_id}", f"{LAST_REGISTRATIONS}/{broker_id}"
        operations = [Check(CONTROLLER_EPOCH, tenure.epoch_version), *self._same_registration(broker_id)]
        found, last = self._store.get(path), self._store.get(last_path)
        if found is not None:
            if found.created_zxid != broker_epoch:
                return False
            operations.append(Delete(path, found.version))
        if last is not None:
            operations.append(Set(last_path, _UNREGISTERED, last.version))
        try:
            self._store.transact(operations)
        except StoreConflict:
            if self._controller_epoch()[1] != tenure.epoch_version:
                raise
            return False
        return True

    def _same_registration(self, broker_id: int) -> list[Operation]:
        """What holds while a broker has not registered again since; to be asked before its registration is read.

        Nothing where a version of Lamina has registered it that did not count.
        """
        path = f"{REGISTRATION_COUNTS}/{broker_id}"
        count = self._store.get(path)
        return [] if count is None else [Check(path, count.version)]

    def remove_dead(self, broker_id: int, broker_epoch: int, tenure: Tenure | None) -> bool:
        """Take away what the session of a dead process still holds; whether that was done.

        Not of a version that would not register again, should it live. The controller does it in its ``tenure``;
        without one, any broker does it to the controller, and removes its znode. Raises :class:`StoreConflict` where
        somebody was faster.
        """
        path, last_path = f"{BROKER_IDS}/{broker_id}", f"{LAST_REGISTRATIONS}/{broker_id}"
        operations = self._same_registration(broker_id)
        found, last, controller = (self._store.get(one) for one in (path, last_path, CONTROLLER))
        if found is None or last is None or found.created_zxid != broker_epoch:
            return False
        registration = parsed(path, registrations.load, found.value)
        if registration is None or not registration.registers_again:
            return False
        if tenure is not None:
            operations.append(Check(CONTROLLER_EPOCH, tenure.epoch_version))
        elif controller is not None and controller.owner == found.owner:
            operations.append(Delete(CONTROLLER, controller.version))
        else:
            return False
        operations += [Set(last_path, _FOUND_DEAD, last.version), Delete(path, found.version)]
        self._store.transact(operations)
        return True

    def leave(self, tenure: Tenure | None = None) -> None:
        """Leave the cluster, and resign where this broker is the controller; the others learn of both at once.

        Together: whoever is elected next must not wait for the report of a broker that is about to go.
        """
        resignation = [] if tenure is None else self._resignation(tenure)
        path = f"{BROKER_IDS}/{self._node_id}"
        found = self._store.get(path)
        if found is not None and found.owner == self.session_id:
            registration = Delete(path, found.version)
            try:
                self._store.transact([*resignation, registration])
            except StoreConflict:  # another one is active
                self._store.transact([registration])
        self.session_id = 0

    def _check_is_ghost(self, found: Entry, own: Registration) -> None:
        """Raise :class:`IdTaken` unless a registration is what an earlier life of this broker left."""
        if found.created_zxid == self._epoch:
            return
        other = parsed(f"{BROKER_IDS}/{self._node_id}", registrations.load, found.value)
        taken = f"broker id {self._node_id} is taken"
        if other is None or not set(other.directories) & set(own.directories):
            where = "" if other is None else f" at {other.addresses}"
            raise IdTaken(
                f"{taken}: another broker{where} is registered with it: "
                "give this one another --node-id, or stop that one"
            )
        if self._epoch is not None or not other.has_address_of(own):
            raise IdTaken(f"{taken}: a second broker with a copy of this log directory runs at {other.addresses}")

    def _check_is_not_kafka(self) -> None:
        for broker_id, registration, _ in self._registrations():
            if registration is None:
                raise StoreError(
                    f"broker {broker_id} in this ZooKeeper is a Kafka broker, and Lamina's cannot join its cluster: "
                    "give zookeeper.connect another chroot"
                )

    def _registrations(self) -> Iterator[tuple[int, Registration | None, Entry]]:
        """All that can be read, with ``None`` for one of Kafka's own. What somebody else put there stops nobody."""
        paths = {f"{BROKER_IDS}/{name}": name for name in self._store.children(BROKER_IDS)}
        for path, entry in self._store.get_many(paths).items():
            try:
                broker_id = parsed(path, int, paths[path])
                registration = parsed(path, registrations.load, entry.value)
            except StoreError as error:
                if path not in self._unreadable:
                    self._unreadable.add(path)
                    logger.warning("an entry among the registered brokers is passed over: %s", error)
                continue
            yield broker_id, registration, entry

    # The controller

    def elect(self) -> Tenure | None:
        """Become the controller; ``None`` when another broker is. Raises :class:`SessionLost` if not registered.

        What an earlier tenure of this broker left is replaced: each tenure has an epoch of its own, which fences the
        writes of those before, and by which followers tell their changes apart.
        """
        if not self.session_id or self.session_id != self._store.session_id:
            raise SessionLost("this broker's registration is gone with its session")
        epoch, version = self._controller_epoch()
        found = self._store.get(CONTROLLER)
        operations: list[Operation] = []
        if found is not None:
            if parsed(CONTROLLER, _controller_id, found.value) != self._node_id:
                return None
            operations.append(Delete(CONTROLLER, found.version))
        operations += [
            Create(CONTROLLER, self._controller_value(), is_ephemeral=True),
            Set(CONTROLLER_EPOCH, values.dump(epoch + 1), version),
        ]
        # However it ends, both entries tell who was elected.
        with suppress(StoreConflict, OutcomeUnknown):
            self._store.transact(operations)
        return self._won_tenure(epoch + 1)

    def controller(self) -> tuple[int, int] | None:
        """The controller's id and epoch."""
        found = self._store.get(CONTROLLER)
        if found is None:
            return None
        return parsed(CONTROLLER, _controller_id, found.value), self._controller_epoch()[0]

    def resign(self, tenure: Tenure) -> None:
        """Be the controller no more, if this broker still is; another broker can be elected at once."""
        if operations := self._resignation(tenure):
            with suppress(StoreConflict):  # another one is active
                self._store.transact(operations)

    def _resignation(self, tenure: Tenure) -> list[Operation]:
        """Nothing where this broker is not the active controller any more."""
        found = self._store.get(CONTROLLER)
        if found is None or found.owner != self.session_id:
            return []
        return [Check(CONTROLLER_EPOCH, tenure.epoch_version), Delete(CONTROLLER, found.version)]

    def _won_tenure(self, epoch: int) -> Tenure | None:
        found = self._store.get(CONTROLLER)
        stored, version = self._controller_epoch()
        is_own = found is not None and found.owner == self.session_id and stored == epoch
        return Tenure(epoch, version) if is_own else None

    def _controller_epoch(self) -> tuple[int, int]:
        """The epoch and its version; 0 in a new cluster."""
        found = self._store.get(CONTROLLER_EPOCH)
        if found is None:
            create_missing(self._store, CONTROLLER_EPOCH, values.dump(0))
            return self._controller_epoch()
        return parsed(CONTROLLER_EPOCH, values.load_number, found.value), found.version

    def _controller_value(self) -> bytes:
        return values.dump(
            {
                "version": 2,
                "brokerid": self._node_id,
                "timestamp": str(self._clocks.now_ms()),
                "kraftControllerEpoch": -1,
            }
        )


def _controller_id(data: bytes) -> int:
    return int(values.load(data)["brokerid"])
