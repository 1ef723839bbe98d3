"""The processes of a cluster on this machine: one after the other started, waited for and stopped.

Owns how long is waited, and notice of the end of what this process started. Must not write the cluster's state, nor
know who changes it.
"""

import signal
import subprocess
from collections.abc import Callable, Iterable

from lamina.clocks import Clocks, pause
from lamina.cluster.broker_command import ProgramOf, broker_command
from lamina.cluster.broker_status import BrokerState, BrokerStatus, has_left, last_words, read_started
from lamina.cluster.errors import ClusterError
from lamina.cluster.guarded_process import guarded_pid, send_signal, start_guarded
from lamina.cluster.layout import ZOOKEEPER, Layout, broker_name, command_for, member_argument, member_text
from lamina.cluster.ports import HOST
from lamina.cluster.state import BrokerPlace, ClusterState
from lamina.cluster.zookeeper_server import INSTALL, ZooKeeperServer, class_path
from lamina.pipeline.java import NoJava, find_java

START_SECONDS = 120.0
STOP_SECONDS = 60.0
"""A broker that is stopped hands over what it leads and flushes its logs."""
PATIENCE_SECONDS = 5.0
KILL_SECONDS = 10.0
_POLL_SECONDS = 0.02

Tell = Callable[[str], None]
"""Given one sentence after the other for whoever waits."""


class Processes:
    def __init__(self, layout: Layout, clocks: Clocks, program_of: ProgramOf) -> None:
        self._layout = layout
        self._program_of = program_of
        self._clocks = clocks
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        """Brokers that this process started: it has to take notice when they end."""
        self._zookeeper: ZooKeeperServer | None = None
        """Where this process started it."""

    def status(self, broker_id: int, place: BrokerPlace) -> BrokerStatus:
        name, address = broker_name(broker_id), f"{HOST}:{place.port}"
        pid = guarded_pid(self._layout.guard(name))
        if pid is None:
            by_itself = BrokerState.LEFT if has_left(self._layout.log(name)) else BrokerState.DEAD
            return BrokerStatus(broker_id, address, BrokerState.STOPPED if place.is_stopped else by_itself)
        started = read_started(self._layout.started(name), pid)
        state = BrokerState.STARTING if started is None else BrokerState.RUNNING
        return BrokerStatus(broker_id, address, state, pid, started, self._layout.data(name))

    # Starting

    def start_zookeeper(self, state: ClusterState) -> None:
        """Returns once it answers."""
        self.reap()
        java = self.find_zookeeper()
        self._zookeeper = ZooKeeperServer(str(self._layout.data(ZOOKEEPER)), state.zookeeper_port, java)
        self._zookeeper.start()

    def find_zookeeper(self) -> str:
        """The Java that it runs on; raises where it, or the server itself, is not installed."""
        class_path()
        try:
            return find_java("ZooKeeper", INSTALL).path
        except NoJava as error:
            raise ClusterError(str(error)) from error

    def start_broker(self, state: ClusterState, broker_id: int) -> None:
        """Returns at once."""
        self.reap()
        name, layout, zookeeper = broker_name(broker_id), self._layout, f"{HOST}:{state.zookeeper_port}"
        program, port = self._program_of(broker_id), state.brokers[broker_id].port
        command = broker_command(program, broker_id, port, layout.data(name), zookeeper, state.settings)
        self._children[name] = start_guarded(
            command, layout.guard(name), out=layout.started(name), log=layout.log(name)
        )

    def await_start(self, broker_id: int, place: BrokerPlace) -> BrokerStatus:
        """Until clients can connect."""
        log = self._layout.log(broker_name(broker_id))
        deadline = self._clocks.monotonic_seconds() + START_SECONDS
        while self._clocks.monotonic_seconds() < deadline:
            status = self.status(broker_id, place)
            if status.state is BrokerState.RUNNING:
                return status
            if status.state is not BrokerState.STARTING:
                raise ClusterError(f"broker {broker_id} did not start: {last_words(log)} (its log is {log})")
            pause(_POLL_SECONDS)
        raise ClusterError(f"broker {broker_id} was not ready within {START_SECONDS:.0f} s: see {log}")

    # Ending

    def stop_all(self, state: ClusterState, tell: Tell) -> None:
        """Brokers first, all at once; then ZooKeeper."""
        self.stop([broker_name(broker_id) for broker_id in state.brokers], tell)
        self.stop([ZOOKEEPER], tell)

    def stop(self, names: Iterable[str], tell: Tell) -> None:
        """With SIGTERM; one that takes long is told, and one that does not end in time is killed."""
        names = [name for name in names if send_signal(self._layout.guard(name), signal.SIGTERM)]
        begun = self._clocks.monotonic_seconds()
        if not self._await_ends(names, begun + PATIENCE_SECONDS):
            for name in self._running(names):
                kill = command_for(self._layout.directory, f"kill {member_argument(name)}")
                tell(f"{member_text(name)} does not end yet: `{kill}` kills it")
        if not self._await_ends(names, begun + STOP_SECONDS):
            for name in self._running(names):
                self.kill(name)
                late = f"{member_text(name)} did not end within {STOP_SECONDS:.0f} s and was killed"
                tell(f"{late}; its log is {self._layout.log(name)}")

    def kill(self, name: str) -> None:
        """Returns once it has ended."""
        send_signal(self._layout.guard(name), signal.SIGKILL)
        if not self._await_ends([name], self._clocks.monotonic_seconds() + KILL_SECONDS):
            raise ClusterError(
                f"{member_text(name)} did not end within {KILL_SECONDS:.0f} s of SIGKILL: is its disk stuck?"
            )

    def _await_ends(self, names: Iterable[str], deadline: float) -> bool:
        """Whether all of them ended in time."""
        while self._running(names):
            if self._clocks.monotonic_seconds() > deadline:
                return False
            pause(_POLL_SECONDS)
        self.reap()
        return True

    def _running(self, names: Iterable[str]) -> list[str]:
        return [name for name in names if guarded_pid(self._layout.guard(name)) is not None]

    def reap(self) -> None:
        """Take notice of the end of what this process started, whoever ended it. A guard is free a moment before."""
        for name, child in list(self._children.items()):
            if guarded_pid(self._layout.guard(name)) is None:
                child.wait()
                del self._children[name]
        if self._zookeeper is not None and guarded_pid(self._layout.guard(ZOOKEEPER)) is None:
            self._zookeeper.stop()
            self._zookeeper = None
