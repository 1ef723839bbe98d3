"""The brokers of a cluster as rows of a table, as JSON, and as sentences on what is wrong.

Must not know where they are shown.
"""

from collections.abc import Iterator, Sequence

from lamina.cli.printing.tables import Row
from lamina.cli.printing.text import bytes_text, counted
from lamina.cluster.broker_figures import BrokerView
from lamina.cluster.broker_status import BrokerState
from lamina.cluster.layout import ZOOKEEPER, broker_name, command_for
from lamina.cluster.local_cluster import LocalCluster

HEADINGS = ("id", "port", "state", "role", "leads", "in sync", "lag", "in/s", "out/s")
"""Few enough for a terminal of 80 columns; --json has the rest."""
NO_ANSWER = "no answer"


def state_text(view: BrokerView) -> str:
    """A broker that runs and does not answer hangs, or is paused."""
    is_silent = view.status.state is BrokerState.RUNNING and view.figures is None
    return NO_ANSWER if is_silent else view.status.state.value


def cells(view: BrokerView) -> tuple[str, ...]:
    figures, rates = view.figures, view.rates
    known = ("", "", "", "")
    if figures is not None:
        in_sync = figures.leader_partitions - figures.under_replicated_partitions
        role = "controller" if figures.is_controller else ""
        known = (role, str(figures.leader_partitions), str(in_sync), str(figures.replica_max_lag))
    port = view.status.address.rpartition(":")[2]
    shown = ("", "") if rates is None else (bytes_text(rates.in_bytes), bytes_text(rates.out_bytes))
    return str(view.status.id), port, state_text(view), *known, *shown


def broker_row(view: BrokerView) -> Row:
    status, figures, rates = view.status, view.figures, view.rates
    return {
        "type": "cluster_broker",
        "id": status.id,
        "address": status.address,
        "state": state_text(view),
        "pid": status.pid,
        "admin": None if status.started is None else status.started.admin_address,
        "version": None if status.started is None else status.started.version,
        "controller": None if figures is None else figures.is_controller,
        "leader_partitions": None if figures is None else figures.leader_partitions,
        "under_replicated_partitions": None if figures is None else figures.under_replicated_partitions,
        "under_min_isr_partitions": None if figures is None else figures.under_min_isr_partitions,
        "replica_max_lag": None if figures is None else figures.replica_max_lag,
        "in_bytes_per_second": None if rates is None else round(rates.in_bytes),
        "out_bytes_per_second": None if rates is None else round(rates.out_bytes),
    }


def cluster_row(cluster: LocalCluster) -> Row:
    state = cluster.state()
    return {
        "type": "cluster",
        "data_dir": str(cluster.directory),
        "bootstrap_servers": cluster.bootstrap_servers(),
        "zookeeper": cluster.zookeeper_address(),
        "zookeeper_pid": cluster.zookeeper_pid(),
        "brokers": len(state.brokers),
        "supervisor_pid": cluster.supervisor_pid(),
    }


def troubles(cluster: LocalCluster, views: Sequence[BrokerView]) -> Iterator[str]:
    """What somebody should know, one sentence each."""
    if cluster.zookeeper_pid() is None:
        log = cluster.layout.log(ZOOKEEPER)
        restart = command_for(cluster.directory, f"restart {ZOOKEEPER}")
        yield f"ZooKeeper is dead: `{restart}` starts it; its log is {log}"
    for view in views:
        broker_id = view.status.id
        log = cluster.layout.log(broker_name(broker_id))
        if view.status.state is BrokerState.DEAD:
            restart = command_for(cluster.directory, f"restart {broker_id}")
            yield f"broker {broker_id} is dead: `{restart}` starts it; its log is {log}"
        elif state_text(view) == NO_ANSWER:
            yield f"broker {broker_id} (process {view.status.pid}) runs and does not answer; its log is {log}"
        elif view.figures is not None and view.figures.is_session_lost:
            yield f"broker {broker_id} cannot reach ZooKeeper: it refuses writes with acks 0 and 1"
    figures = [view.figures for view in views if view.figures is not None]
    offline = max((one.offline_partitions for one in figures), default=0)
    if offline:
        yield f"{counted(offline, 'partition')} without a leader: nothing is written there or read"
    lacking = sum(one.under_min_isr_partitions for one in figures)
    if lacking:
        yield f"{counted(lacking, 'partition')} below min.insync.replicas: writes with acks=all are refused there"
