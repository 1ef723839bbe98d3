"""The command line of one broker of a cluster on this machine: the one place that knows its listeners and defaults.

Must not start it.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from lamina.cluster.ports import HOST

CLIENTS, BROKERS = "PLAINTEXT", "BROKERS"
"""Names of the two listeners: requests of other brokers are served on the second one alone."""
USUAL_REPLICATION_FACTOR = 3

ProgramOf = Callable[[int], Sequence[str]]
"""The words that run `lamina` for a broker, before its command."""


def lamina_program(_broker_id: int) -> Sequence[str]:
    return (sys.executable, "-m", "lamina")


def broker_command(
    program: Sequence[str],
    broker_id: int,
    port: int,
    data_directory: Path,
    zookeeper: str,
    settings: Mapping[str, str],
) -> list[str]:
    """``settings`` win over what is said here."""
    own = {
        "node.id": str(broker_id),
        "listeners": f"{CLIENTS}://{HOST}:{port},{BROKERS}://{HOST}:0",
        "listener.security.protocol.map": f"{CLIENTS}:PLAINTEXT,{BROKERS}:PLAINTEXT",
        "inter.broker.listener.name": BROKERS,
        "lamina.admin.listeners": f"{HOST}:0",
        **settings,
    }
    return [
        *(*program, "serve", "--data-dir", str(data_directory), "--zookeeper", zookeeper),
        *(word for name, value in own.items() for word in ("--set", f"{name}={value}")),
    ]


def usual_settings(brokers: int) -> dict[str, str]:
    """What somebody who asks for so many brokers expects: copies, and a majority that must have a record."""
    copies = min(brokers, USUAL_REPLICATION_FACTOR)
    return {
        "default.replication.factor": str(copies),
        "min.insync.replicas": "2" if copies == USUAL_REPLICATION_FACTOR else "1",
        "offsets.topic.replication.factor": str(copies),
        "transaction.state.log.replication.factor": str(copies),
        "transaction.state.log.min.isr": "2" if copies == USUAL_REPLICATION_FACTOR else "1",
    }
