"""How far copying is, from sizes of replicas."""

from lamina.planning.copying import Progress, progress_of, seconds_left
from lamina.planning.moves import Move

FIRST = Move(("t", 0), (1, 2), (3, 2))
SECOND = Move(("t", 1), (1, 2), (3, 4))
REORDERED = Move(("t", 2), (1, 2), (2, 1))
MOVES = [FIRST, SECOND, REORDERED]
LEADERS = {("t", 0): 2, ("t", 1): 1, ("t", 2): 1}
SIZES = {(2, ("t", 0)): 100, (1, ("t", 1)): 1000, (3, ("t", 1)): 250, (4, ("t", 1)): 2000}


def test_what_is_complete_counts_whole_and_what_is_under_way_as_far_as_it_is_copied() -> None:
    """Old segments may not be gone yet where a replica is larger than its leader's."""
    assert progress_of(MOVES, {("t", 1)}, LEADERS, SIZES) == Progress(3, 2, 2100, 1350)


def test_of_partitions_whose_leader_does_not_tell_only_their_number_is_known() -> None:
    assert progress_of(MOVES, {("t", 1)}, {}, {}) == Progress(3, 2, 0, 0)
    assert not progress_of(MOVES, {("t", 1)}, {}, {}).is_complete
    assert progress_of(MOVES, (), {}, {}).is_complete


def test_the_rest_takes_as_long_as_its_bytes_at_the_pace_so_far() -> None:
    progress = Progress(3, 2, 2100, 1350)
    assert seconds_left(progress, 600, 10) == 10
    assert seconds_left(progress, 1350, 10) is None
    assert seconds_left(progress, 0, 0) is None
