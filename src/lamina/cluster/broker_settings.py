"""The settings of the brokers of a cluster on this machine: those that it gives itself, and those that people give.

Owns that a setting is checked, as `lamina serve` does it, before it is kept. Must not know how a broker is started.
"""

from collections.abc import Mapping

from lamina.cluster.ports import HOST
from lamina.settings.definition import SettingError
from lamina.settings.resolve import check_given, resolve_broker
from lamina.settings.values import Source

CLIENTS, BROKERS = "PLAINTEXT", "BROKERS"
"""Names of the two listeners: requests of other brokers are served on the second one alone."""
USUAL_REPLICATION_FACTOR = 3

GIVEN_BY_CLUSTER = frozenset(
    {
        "advertised.listeners",
        "broker.id",
        "inter.broker.listener.name",
        "lamina.admin.advertised.listeners",
        "lamina.admin.listeners",
        "lamina.data.dir",
        "listener.security.protocol.map",
        "listeners",
        "log.dir",
        "log.dirs",
        "node.id",
        "zookeeper.connect",
    }
)
"""Each broker has its own, or they must agree with what the commands of a cluster rely on."""


def own_settings(broker_id: int, port: int) -> dict[str, str]:
    """What `lamina cluster` gives to a broker; where its data lies and its ZooKeeper are options of its command."""
    return {
        "node.id": str(broker_id),
        "listeners": f"{CLIENTS}://{HOST}:{port},{BROKERS}://{HOST}:0",
        "listener.security.protocol.map": f"{CLIENTS}:PLAINTEXT,{BROKERS}:PLAINTEXT",
        "inter.broker.listener.name": BROKERS,
        "lamina.admin.listeners": f"{HOST}:0",
    }


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


def merge_settings(kept: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    """What is kept from now on: ``given`` wins. Raises SettingError for what no broker would start with.

    What a broker would only warn of is left out: it would do so at every start.
    """
    for name in given:
        if name in GIVEN_BY_CLUSTER:
            raise SettingError(f"{name} is given by lamina cluster: leave it out")
    # Lamina once kept whatever was given.
    merged = {name: value for name, value in kept.items() if name not in GIVEN_BY_CLUSTER} | dict(given)
    flags = {"lamina.data.dir": ".", "zookeeper.connect": HOST}
    resolve_broker(flags=flags, sets=merged | own_settings(1, 0))
    return {name: value for name, value in merged.items() if check_given(name, value, Source.SET) is None}


def warnings_of(given: Mapping[str, str]) -> list[str]:
    """One for each name that has no effect."""
    found = (check_given(name, value, Source.SET) for name, value in given.items())
    return [warning for warning in found if warning is not None]
