"""What a cluster is started as: what its directory holds, and what is asked for now.

Must not start anything, nor write it down.
"""

from collections.abc import Mapping

from lamina.cluster.broker_settings import merge_settings, usual_settings
from lamina.cluster.errors import ClusterError
from lamina.cluster.ports import free_port, is_free
from lamina.cluster.state import BrokerPlace, ClusterState
from lamina.settings.listeners import PORT_MAX

DEFAULT_BROKERS = 3
DEFAULT_BASE_PORT = 9092


def plan(
    before: ClusterState | None, brokers: int | None, base_port: int | None, settings: Mapping[str, str]
) -> ClusterState:
    """``None`` is as before; ``settings`` are added to those of before, and win. Raises SettingError for bad ones."""
    if before is None:
        brokers = DEFAULT_BROKERS if brokers is None else brokers
        base_port = DEFAULT_BASE_PORT if base_port is None else base_port
        before = ClusterState(free_port(), {}, usual_settings(brokers))
    merged = merge_settings(before.settings, settings)
    count = len(before.brokers) if brokers is None else brokers
    if count < len(before.brokers):
        raise ClusterError(
            f"this cluster has {len(before.brokers)} brokers, and `up` removes none: leave out --brokers {count}, "
            "start a new cluster with another --data-dir DIR, or see `lamina cluster remove-broker --help`"
        )
    # Nothing runs: nobody knows the old port, so another one is as good.
    zookeeper_port = before.zookeeper_port if is_free(before.zookeeper_port) else free_port()
    places = {broker_id: BrokerPlace(port) for broker_id, port in _ports(before, count, base_port).items()}
    _check_ports(places)
    return ClusterState(zookeeper_port, places, merged)


def _ports(before: ClusterState, count: int, base_port: int | None) -> dict[int, int]:
    """From the base on; a base of 0 takes free ones. Without a base the ports that the brokers had."""
    new = range(max(before.brokers, default=0) + 1, max(before.brokers, default=0) + 1 + count - len(before.brokers))
    ids = [*before.brokers, *new]
    if base_port == 0:
        return {broker_id: free_port() for broker_id in ids}
    if base_port is not None:
        return {broker_id: base_port + broker_id - 1 for broker_id in ids}
    ports = {broker_id: place.port for broker_id, place in before.brokers.items()}
    for broker_id in ids:
        ports.setdefault(broker_id, max(ports.values()) + 1)
    return ports


def _check_ports(places: Mapping[int, BrokerPlace]) -> None:
    highest = max(place.port for place in places.values())
    if highest > PORT_MAX:
        raise ClusterError(
            f"{len(places)} brokers would need ports up to {highest}, and the highest is {PORT_MAX}: choose a lower "
            "--base-port P"
        )
    for broker_id, place in places.items():
        if not is_free(place.port):
            raise ClusterError(
                f"port {place.port}, which broker {broker_id} would get, is taken by another program: stop that, "
                "or choose other ports with --base-port P (0 takes free ones)"
            )
