"""Three brokers that reach each other, ZooKeeper and their clients through a proxy only.

Each advertises ports of the proxy, and is given another one for ZooKeeper. They are started as those of
`lamina cluster`; what is different is appended to their command lines. Must not know what is done to links.
"""

import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from lamina.cluster.broker_settings import BROKERS, CLIENTS
from lamina.cluster.layout import broker_name
from lamina.cluster.ports import HOST, free_port
from tests.cluster.links import ZOOKEEPER
from tests.cluster.proxy import Proxy
from tests.cluster.three_brokers import ALL, ThreeBrokers


class _Ports(NamedTuple):
    brokers: int
    """Where it listens for other brokers."""
    clients_by_proxy: int
    brokers_by_proxy: int
    zookeeper_by_proxy: int


class ProxiedBrokers(ThreeBrokers):
    """``prefixes``: words in front of the command of a broker, which end by running what follows them."""

    def __init__(self, directory: Path, proxy: Proxy, settings: Mapping[str, str] | None = None) -> None:
        super().__init__(directory, settings, self._program)
        self.prefixes: dict[int, Sequence[str]] = {}
        self.own_settings: dict[int, Mapping[str, str]] = {}
        """Of one broker, from its next start on."""
        self._proxy = proxy
        self._ports: dict[int, _Ports] = {}

    @property
    def bootstrap(self) -> str:
        return ",".join(f"{HOST}:{self._ports[broker_id].clients_by_proxy}" for broker_id in ALL)

    def address(self, broker_id: int) -> str:
        return f"{HOST}:{self._ports[broker_id].clients_by_proxy}"

    def kill(self, *broker_ids: int, is_refused: bool = False) -> None:
        """``is_refused``: the proxy refuses who connects to them until they start again, as their machines would.

        Else it takes connections and ends them, as if nobody could tell whether the brokers are gone.
        """
        super().kill(*broker_ids)
        for broker_id in broker_ids if is_refused else ():
            self._proxy.refuse(broker_name(broker_id))

    def restart(self, *broker_ids: int) -> None:
        for broker_id in broker_ids:
            self._proxy.accept(broker_name(broker_id))
        super().restart(*broker_ids)

    def log_dirs(self, broker_id: int) -> list[Path]:
        own = self.own_settings.get(broker_id, {}).get("log.dirs")
        return super().log_dirs(broker_id) if own is None else [Path(one) for one in own.split(",")]

    def _program(self, broker_id: int) -> Sequence[str]:
        ports = self._ports_of(broker_id)
        own = self.cluster.state().brokers[broker_id].port
        settings = {
            "listeners": f"{CLIENTS}://{HOST}:{own},{BROKERS}://{HOST}:{ports.brokers}",
            "advertised.listeners": f"{CLIENTS}://{HOST}:{ports.clients_by_proxy},"
            f"{BROKERS}://{HOST}:{ports.brokers_by_proxy}",
            "zookeeper.connect": f"{HOST}:{ports.zookeeper_by_proxy}",
            **self.own_settings.get(broker_id, {}),
        }
        words = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
        program = [*self.prefixes.get(broker_id, ()), sys.executable, "-m", "lamina"]
        # What is appended wins over what `lamina cluster` gives.
        run = f'exec {shlex.join(program)} "$@" {shlex.join(words)}'
        return ("sh", "-c", run, "lamina")

    def _ports_of(self, broker_id: int) -> _Ports:
        """The same in all of its lives."""
        if broker_id not in self._ports:
            name, state = broker_name(broker_id), self.cluster.state()
            brokers = free_port()
            self._ports[broker_id] = _Ports(
                brokers,
                self._proxy.open_port(name, state.brokers[broker_id].port),
                self._proxy.open_port(name, brokers),
                self._proxy.open_port(ZOOKEEPER, state.zookeeper_port, sender=name),
            )
        return self._ports[broker_id]
