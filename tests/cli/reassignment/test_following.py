"""What came of a plan, judged as by kafka-reassign-partitions --verify."""

from lamina.cli.reassignment.following import COMPLETE, DIFFERENT, IN_PROGRESS, MISSING, states_of
from lamina.client.layout import Layout, Placed
from lamina.client.reassignments import Reassignment


def test_a_partition_is_on_its_way_there_or_somewhere_else() -> None:
    placed = {index: Placed(replicas, 1, frozenset({1})) for index, replicas in enumerate([(1, 2), (1, 2, 3), (1, 2)])}
    layout = Layout({1: None, 2: None, 3: None}, {("t", index): one for index, one in placed.items()})
    under_way = {("t", 1): Reassignment((1, 2, 3), adding=(2,), removing=(3,))}
    wanted = {("t", 0): (1, 2), ("t", 1): (1, 2), ("t", 2): (2, 1), ("t", 3): (1,)}
    assert states_of(wanted, layout, under_way) == {
        ("t", 0): COMPLETE,
        ("t", 1): IN_PROGRESS,
        ("t", 2): DIFFERENT,
        ("t", 3): MISSING,
    }
    assert states_of({("t", 1): (3, 1)}, layout, under_way) == {("t", 1): DIFFERENT}
