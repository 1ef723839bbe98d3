"""The cluster of one directory: started, changed and stopped, by this process or by any other that knows the directory.

Owns the order of it: ZooKeeper first and last. One process changes a cluster at a time; whoever comes second waits. No
process is the cluster's master: all that is known is in the directory. Must not ask brokers anything, nor print.
"""

import fcntl
import os
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from lamina.clocks import SYSTEM_CLOCKS, Clocks
from lamina.cluster.broker_command import ProgramOf, lamina_program
from lamina.cluster.broker_settings import warnings_of
from lamina.cluster.broker_status import BrokerState, BrokerStatus, ZooKeeperStatus
from lamina.cluster.errors import (
    ClusterError,
    is_of_one_broker,
    last_broker,
    member_runs_not,
    no_broker,
    no_cluster,
    runs_already,
    runs_not,
)
from lamina.cluster.guarded_process import guarded_pid, hold_guard, send_signal
from lamina.cluster.layout import SUPERVISOR, ZOOKEEPER, Layout, broker_name
from lamina.cluster.plan import plan
from lamina.cluster.ports import HOST, free_port, is_free
from lamina.cluster.processes import Processes, Tell
from lamina.cluster.state import BrokerPlace, ClusterState, read_state, write_state
from lamina.cluster.zookeeper_server import is_answering
from lamina.log.identity import META_PROPERTIES
from lamina.settings.listeners import PORT_MAX
from lamina.storage import LOGS, METADATA_DB
from lamina.store.member_file import FILE_NAME as MEMBER_FILE

_LEFT_BY_ONE_BROKER = (METADATA_DB, MEMBER_FILE, META_PROPERTIES, f"{LOGS}/{META_PROPERTIES}")
"""A directory with one of these has the records of a broker, of Lamina or of Kafka."""


def _silent(_sentence: str) -> None:
    pass


class LocalCluster:
    def __init__(self, directory: Path, clocks: Clocks = SYSTEM_CLOCKS, program_of: ProgramOf = lamina_program) -> None:
        # Only the file system knows what `..` behind a link means.
        self.directory = directory.resolve() if ".." in directory.parts else directory.absolute()
        self.layout = Layout(self.directory)
        self._processes = Processes(self.layout, clocks, program_of)

    # Looking

    def state(self) -> ClusterState:
        found = read_state(self.layout.state)
        if found is None:
            raise no_cluster(self.directory)
        return found

    def zookeeper_pid(self) -> int | None:
        return guarded_pid(self.layout.guard(ZOOKEEPER))

    def zookeeper(self) -> ZooKeeperStatus:
        """Asks it whether it is well."""
        state, pid = self.state(), self.zookeeper_pid()
        if pid is not None:
            is_well = is_answering(state.zookeeper_port)
            return ZooKeeperStatus(state.zookeeper_port, BrokerState.RUNNING if is_well else BrokerState.NO_ANSWER, pid)
        is_stopped = all(place.is_stopped for place in state.brokers.values())
        return ZooKeeperStatus(state.zookeeper_port, BrokerState.STOPPED if is_stopped else BrokerState.DEAD)

    def zookeeper_address(self) -> str:
        return f"{HOST}:{self.state().zookeeper_port}"

    def supervisor_pid(self) -> int | None:
        """The `lamina cluster up` that stops the cluster when it ends."""
        return guarded_pid(self.layout.guard(SUPERVISOR))

    def brokers(self) -> list[BrokerStatus]:
        self._processes.reap()
        return [self._processes.status(broker_id, place) for broker_id, place in self.state().brokers.items()]

    def is_running(self) -> bool:
        """Whether anything of it is."""
        return self.zookeeper_pid() is not None or any(one.pid is not None for one in self.brokers())

    def bootstrap_servers(self) -> str:
        return ",".join(f"{HOST}:{place.port}" for place in self.state().brokers.values())

    # The whole

    def check(self, brokers: int | None, base_port: int | None, settings: Mapping[str, str]) -> list[str]:
        """Raise for what `up` would refuse, and touch nothing; otherwise what to warn of."""
        if (pid := self.supervisor_pid()) is not None:
            raise runs_already(self.directory, f"`lamina cluster up`, process {pid}")
        self._refuse_if_running()
        self._plan(brokers, base_port, settings)
        self._processes.find_zookeeper()
        return warnings_of(settings)

    @contextmanager
    def supervised(self) -> Iterator[None]:
        """By this process: nobody else brings the cluster up meanwhile."""
        self.layout.run.mkdir(parents=True, exist_ok=True)
        pid = self.supervisor_pid()
        if pid is not None:
            raise runs_already(self.directory, f"`lamina cluster up`, process {pid}")
        guard = hold_guard(self.layout.guard(SUPERVISOR))
        try:
            yield
        finally:
            os.close(guard)

    def up(
        self,
        brokers: int | None,
        base_port: int | None,
        settings: Mapping[str, str],
        tell: Tell = _silent,
    ) -> None:
        """Start all of it, on what the directory holds. When one cannot start, none is left running."""
        with self._locked(tell):
            self._refuse_if_running()
            state = self._plan(brokers, base_port, settings)
            write_state(self.layout.state, state)
            try:
                tell("starting ZooKeeper")
                self._processes.start_zookeeper(state)
                tell(f"starting {len(state.brokers)} {'broker' if len(state.brokers) == 1 else 'brokers'}")
                for broker_id in state.brokers:
                    self._processes.start_broker(state, broker_id)
                for broker_id, place in state.brokers.items():
                    self._processes.await_start(broker_id, place)
                    tell(f"broker {broker_id} is ready")
            except BaseException:
                self._processes.stop_all(state, tell)
                raise

    def stop(self, tell: Tell = _silent) -> None:
        """Brokers first, so that each can say good-bye; then ZooKeeper."""
        with self._changing(tell):
            state = self.state()
            for broker_id, place in state.brokers.items():
                state = state.with_broker(broker_id, replace(place, is_stopped=True))
            write_state(self.layout.state, state)
            self._processes.stop_all(state, tell)

    def kill(self) -> None:
        """Everything at once, as if the machine lost its power."""
        for name in (*map(broker_name, self.state().brokers), ZOOKEEPER):
            send_signal(self.layout.guard(name), signal.SIGKILL)

    # One broker

    def kill_broker(self, broker_id: int) -> int:
        """SIGKILL; returns the process that is no more."""
        pid = self._running_pid(broker_id)
        self._processes.kill(broker_name(broker_id))
        return pid

    def stop_broker(self, broker_id: int, tell: Tell = _silent) -> None:
        with self._changing(tell):
            self._running_pid(broker_id)
            self._mark(broker_id, is_stopped=True)
            self._processes.stop([broker_name(broker_id)], tell)

    def restart_broker(self, broker_id: int, tell: Tell = _silent) -> BrokerStatus:
        """Stop it if it runs, and start it on what it left."""
        with self._changing(tell):
            self._place(broker_id)
            self._require_zookeeper()
            self._processes.stop([broker_name(broker_id)], tell)
            return self._start_and_await(broker_id)

    def add_broker(self, tell: Tell = _silent) -> BrokerStatus:
        """One more, with the next id; the replicas that exist stay where they are."""
        with self._changing(tell):
            state = self.state()
            self._require_zookeeper()
            next_port = max(place.port for place in state.brokers.values()) + 1
            place = BrokerPlace(next_port if next_port <= PORT_MAX and is_free(next_port) else free_port())
            broker_id = max(state.brokers) + 1
            write_state(self.layout.state, state.with_broker(broker_id, place))
            return self._start_and_await(broker_id)

    def remove_broker(self, broker_id: int, check: Callable[[], None], tell: Tell = _silent) -> None:
        """Stop it if it runs, and forget it; its directory stays.

        ``check`` asks whether it keeps anything, and raises where that speaks against it: while nobody else changes the
        cluster.
        """
        with self._changing(tell):
            self._check_removable(broker_id)
            check()
            self._processes.stop([broker_name(broker_id)], tell)
            write_state(self.layout.state, self.state().without_broker(broker_id))

    # ZooKeeper

    def kill_zookeeper(self) -> int:
        """SIGKILL; returns the process that is no more."""
        pid = self.zookeeper_pid()
        if pid is None:
            raise self._not_running(ZOOKEEPER)
        self._processes.kill(ZOOKEEPER)
        return pid

    def restart_zookeeper(self, tell: Tell = _silent) -> int:
        """Stop it if it runs, and start it where the brokers look for it; returns its process."""
        with self._changing(tell):
            state = self.state()
            self._processes.stop([ZOOKEEPER], tell)
            self._processes.start_zookeeper(state)
            pid = self.zookeeper_pid()
            assert pid is not None
            return pid

    # Steps

    def _plan(self, brokers: int | None, base_port: int | None, settings: Mapping[str, str]) -> ClusterState:
        before = read_state(self.layout.state)
        if before is None and any((self.directory / name).exists() for name in _LEFT_BY_ONE_BROKER):
            raise is_of_one_broker(self.directory)
        return plan(before, brokers, base_port, settings)

    @contextmanager
    def _changing(self, tell: Tell) -> Iterator[None]:
        """A cluster that is there: who asks for another one creates nothing."""
        self.state()
        with self._locked(tell):
            yield

    @contextmanager
    def _locked(self, tell: Tell) -> Iterator[None]:
        self.layout.run.mkdir(parents=True, exist_ok=True)
        lock = os.open(self.layout.change_lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                tell("another command is changing the cluster: waiting until it is done")
                fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)

    def _start_and_await(self, broker_id: int) -> BrokerStatus:
        self._mark(broker_id, is_stopped=False)
        state = self.state()
        self._processes.start_broker(state, broker_id)
        return self._processes.await_start(broker_id, state.brokers[broker_id])

    # Refusing

    def _refuse_if_running(self) -> None:
        if read_state(self.layout.state) is None:
            return
        running = [f"broker {one.id}, process {one.pid}" for one in self.brokers() if one.pid is not None]
        if (pid := self.zookeeper_pid()) is not None:
            running.append(f"ZooKeeper, process {pid}")
        if running:
            raise runs_already(self.directory, "; ".join(running))

    def _require_zookeeper(self) -> None:
        if self.zookeeper_pid() is None:
            raise self._not_running(ZOOKEEPER)

    def _not_running(self, name: str) -> ClusterError:
        """A member of a cluster that does not run at all cannot be started alone."""
        return member_runs_not(self.directory, name) if self.is_running() else runs_not(self.directory)

    def _place(self, broker_id: int) -> BrokerPlace:
        brokers = self.state().brokers
        if broker_id not in brokers:
            raise no_broker(broker_id, brokers)
        return brokers[broker_id]

    def _check_removable(self, broker_id: int) -> None:
        """Raise for one that cannot be removed, whatever it keeps: others have to be there to tell that."""
        self._place(broker_id)
        if len(self.state().brokers) == 1:
            raise last_broker(broker_id)
        if all(one.pid is None for one in self.brokers() if one.id != broker_id):
            raise runs_not(self.directory)

    def _running_pid(self, broker_id: int) -> int:
        self._place(broker_id)
        pid = guarded_pid(self._guard(broker_id))
        if pid is None:
            raise self._not_running(broker_name(broker_id))
        return pid

    def _guard(self, broker_id: int) -> Path:
        return self.layout.guard(broker_name(broker_id))

    def _mark(self, broker_id: int, *, is_stopped: bool) -> None:
        state = self.state()
        write_state(
            self.layout.state, state.with_broker(broker_id, replace(self._place(broker_id), is_stopped=is_stopped))
        )
