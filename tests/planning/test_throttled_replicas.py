"""Which replicas a throttle names, in the form that the settings of topics have."""

from lamina.planning.moves import Move
from lamina.planning.throttled_replicas import ThrottledReplicas, throttled_brokers, throttled_replicas

MOVES = [
    Move(("b", 10), (1, 2), (3, 2)),
    Move(("b", 2), (2,), (1, 3)),
    Move(("a", 0), (1, 2), (2, 1)),
    Move(("c", 0), (4, 5), (4,)),
]


def test_old_replicas_lead_and_new_ones_follow() -> None:
    """R79; nothing is copied where replicas only change their order or go."""
    assert throttled_replicas(MOVES) == {"b": ThrottledReplicas("2:2,10:1,10:2", "2:1,2:3,10:3")}
    assert throttled_brokers(MOVES) == {1, 2, 3}
