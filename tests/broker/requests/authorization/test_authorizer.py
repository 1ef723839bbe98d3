"""What the authorizer keeps of its decisions, and what clients cannot make of it."""

from typing import Any

import pytest

from lamina.broker.requests.authorization.authorizer import Authorizer
from lamina.security.acls import Operation, ResourceType
from tests.broker.requests.authorization.world import ALICE, TOPIC, World

DESCRIBE, WRITE = Operation.DESCRIBE, Operation.WRITE
KAFKAS_LONGEST = 249


class Asked:
    """Counts what is decided anew."""

    def __init__(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        self.names: list[str] = []
        decide = Authorizer._decide

        def counted(authorizer: Authorizer, request: Any, operation: Operation, type_: ResourceType, name: str) -> bool:
            self.names.append(name)
            return decide(authorizer, request, operation, type_, name)

        monkeypatch.setattr(Authorizer, "_decide", counted)
        self._world = world

    def ask(self, name: str) -> None:
        partition = {"partition_index": 0, "timestamp": -1}
        self._world.ask(2, 7, topics=[{"name": name, "partitions": [partition]}])


@pytest.mark.parametrize("is_allowed", [True, False])
def test_names_that_no_topic_can_have_are_not_kept(
    world: World, monkeypatch: pytest.MonkeyPatch, *, is_allowed: bool
) -> None:
    if is_allowed:
        world.allow((DESCRIBE, TOPIC, "*"))
    asked = Asked(world, monkeypatch)
    longest, longer = "n" * KAFKAS_LONGEST, "n" * (KAFKAS_LONGEST + 1)
    for name in (longest, longest, longer, longer):
        asked.ask(name)
    assert asked.names == [longest, longer, longer]


def test_a_topic_without_a_name_decides_on_no_other_s53(world: World) -> None:
    world.allow((WRITE, TOPIC, "orders"))
    partition = {"index": 0, "records": b""}
    answer = world.ask(0, 9, acks=-1, topic_data=[{"name": "", "partition_data": [partition]}])
    assert answer.responses[0].partition_responses[0].error_code == 29
    # Whoever may write to some topic may have a producer id.
    assert world.ask(22, 4, user=ALICE, transactional_id=None).error_code == 0
