"""Which broker of a cluster answers, as it is asked."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lamina.cli.doctor.probe import Answering, identify
from lamina.peer.addresses import Address
from lamina.peer.limits import Limits
from tests.broker.cluster.members import BROKERS, CLIENTS, PORTS, Members, MemoryConnector


@pytest.fixture
def members(tmp_path: Path) -> Iterator[Members]:
    members = Members(tmp_path)
    yield members
    members.close()


@pytest.mark.parametrize("listener", [CLIENTS, BROKERS])
def test_each_broker_is_known_by_its_own_id_whoever_is_the_controller(members: Members, listener: str) -> None:
    for node_id in (1, 2):
        members.start(node_id)
    members.run_until(lambda: all(len(one.image.brokers) == 2 for one in members.up.values()))

    async def ask(node_id: int) -> Answering:
        address = Address(f"broker-{node_id}", PORTS[listener])
        connection = await MemoryConnector(members, "doctor").connect(address, Limits())
        await connection.negotiate()
        return await identify(connection)

    cluster_id = members.up[1].image.cluster_id
    assert [members.finish(ask(node_id)) for node_id in (1, 2)] == [
        Answering(True, 1, cluster_id),
        Answering(True, 2, cluster_id),
    ]
