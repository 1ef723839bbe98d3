"""The brokers of a cluster as rows of a table, as JSON, and as sentences on what is wrong.

Must not know where they are shown.
"""

from collections.abc import Iterator, Sequence

from lamina.cli.printing.tables import Row
from lamina.cli.printing.text import bytes_text, counted
from lamina.cluster.broker_figures import BrokerView
from lamina.cluster.broker_status import BrokerState, ZooKeeperStatus
from lamina.cluster.layout import ZOOKEEPER, broker_name, command_for
from lamina.cluster.local_cluster import LocalCluster

HEADINGS = ("id", "port", "state", "role", "leads", "under-replicated", "lag")
RATE_HEADINGS = ("in/s", "out/s")
"""With these still few enough for a terminal of 80 columns, if one heading takes two lines; --json has the rest."""


def state_of(view: BrokerView) -> BrokerState:
    """A broker that runs and does not answer hangs, or is paused."""
    is_silent = view.status.state is BrokerState.RUNNING and view.figures is None
    return BrokerState.NO_ANSWER if is_silent else view.status.state


def cells(view: BrokerView) -> tuple[str, ...]:
    status, figures = view.status, view.figures
    known = ("", "", "", "")
    if figures is not None:
        known = (
            "controller" if figures.is_controller else "",
            str(figures.leader_partitions),
            str(figures.under_replicated_partitions),
            str(figures.replica_max_lag),
        )
    return str(status.id), status.address.rpartition(":")[2], state_of(view), *known


def rate_cells(view: BrokerView) -> tuple[str, str]:
    rates = view.rates
    return ("", "") if rates is None else (bytes_text(rates.in_bytes), bytes_text(rates.out_bytes))


def zookeeper_cells(zookeeper: ZooKeeperStatus) -> tuple[str, ...]:
    """Under the same headings."""
    return "", str(zookeeper.port), zookeeper.state, ZOOKEEPER, "", "", ""


def pid_cell(pid: int | None) -> str:
    return "" if pid is None else str(pid)


def broker_row(view: BrokerView) -> Row:
    status, figures, rates = view.status, view.figures, view.rates
    return {
        "type": "cluster_broker",
        "id": status.id,
        "address": status.address,
        "state": state_of(view),
        "pid": status.pid,
        "admin": None if status.started is None else status.started.admin_address,
        "version": None if status.started is None else status.started.version,
        "controller": None if figures is None else figures.is_controller,
        "leader_partitions": None if figures is None else figures.leader_partitions,
        "under_replicated_partitions": None if figures is None else figures.under_replicated_partitions,
        "under_min_isr_partitions": None if figures is None else figures.under_min_isr_partitions,
        "replica_max_lag": None if figures is None else figures.replica_max_lag,
        "low_log_dirs": None if figures is None else list(figures.low_log_dirs),
        "in_bytes_per_second": None if rates is None else round(rates.in_bytes),
        "out_bytes_per_second": None if rates is None else round(rates.out_bytes),
    }


def cluster_row(cluster: LocalCluster) -> Row:
    state, zookeeper = cluster.state(), cluster.zookeeper()
    return {
        "type": "cluster",
        "data_dir": str(cluster.directory),
        "bootstrap_servers": cluster.bootstrap_servers(),
        "zookeeper": cluster.zookeeper_address(),
        "zookeeper_state": zookeeper.state,
        "zookeeper_pid": zookeeper.pid,
        "brokers": len(state.brokers),
        "supervisor_pid": cluster.supervisor_pid(),
    }


def troubles(cluster: LocalCluster, zookeeper: ZooKeeperStatus, views: Sequence[BrokerView]) -> Iterator[str]:
    """What somebody should know, one sentence each."""
    log = cluster.layout.log(ZOOKEEPER)
    if zookeeper.state is BrokerState.NO_ANSWER:
        yield f"ZooKeeper (process {zookeeper.pid}) runs and does not answer; its log is {log}"
    elif zookeeper.state is not BrokerState.RUNNING:
        restart = command_for(cluster.directory, f"restart {ZOOKEEPER}")
        yield f"ZooKeeper is {zookeeper.state}: `{restart}` starts it; its log is {log}"
    for view in views:
        broker_id = view.status.id
        log = cluster.layout.log(broker_name(broker_id))
        if view.status.state is BrokerState.DEAD:
            restart = command_for(cluster.directory, f"restart {broker_id}")
            yield f"broker {broker_id} is dead: `{restart}` starts it; its log is {log}"
        elif view.status.state is BrokerState.LEFT:
            remove = command_for(cluster.directory, f"remove-broker {broker_id}")
            restart = command_for(cluster.directory, f"restart {broker_id}")
            yield f"broker {broker_id} was taken out of the cluster: `{remove}` forgets it, `{restart}` brings it back"
        elif state_of(view) is BrokerState.NO_ANSWER:
            yield f"broker {broker_id} (process {view.status.pid}) runs and does not answer; its log is {log}"
        elif view.figures is not None and view.figures.is_session_lost:
            yield f"broker {broker_id} cannot reach ZooKeeper: it refuses writes with acks 0 and 1"
        for path in () if view.figures is None else view.figures.low_log_dirs:
            yield f"broker {broker_id} writes nothing to {path}: its disk is nearly full (lamina.disk.free.min.bytes)"
    figures = [view.figures for view in views if view.figures is not None]
    offline = max((one.offline_partitions for one in figures), default=0)
    if offline:
        yield f"{counted(offline, 'partition')} without a leader: nothing is written there or read"
    lacking = sum(one.under_min_isr_partitions for one in figures)
    if lacking:
        yield f"{counted(lacking, 'partition')} below min.insync.replicas: writes with acks=all are refused there"
