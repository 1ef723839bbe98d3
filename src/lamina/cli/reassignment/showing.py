"""A plan and what came of it, as tables and as JSON.

Must not know how a plan is made or executed.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from lamina.cli.outcome import warn
from lamina.cli.printing.tables import Row, print_json, print_table
from lamina.cli.printing.text import bytes_text, cell, counted
from lamina.planning.copying import Progress
from lamina.planning.moves import Assignments, Move, Replicas, copied_bytes
from lamina.planning.spread import Racks
from lamina.topic_partition import TopicPartition, name_of


def print_moves(moves: Iterable[Move], sizes: Mapping[TopicPartition, int], *, as_json: bool) -> None:
    if as_json:
        for move in moves:
            print_json(
                {
                    "type": "partition_move",
                    **_named(move.key),
                    "replicas": [*move.before],
                    "new_replicas": [*move.after],
                    "copied_bytes": move.copied_bytes(sizes),
                }
            )
        return
    table = (
        (name_of(move.key), ids_text(move.before), ids_text(move.after), bytes_text(move.copied_bytes(sizes)))
        for move in moves
    )
    print_table(("partition", "replicas", "new replicas", "to copy"), table)


def print_brokers(before: Assignments, after: Assignments, racks: Racks, *, as_json: bool) -> None:
    """How many replicas each broker has, and how many partitions it is to lead, before and after."""
    counts = [Counter(one for replicas in plan.values() for one in replicas) for plan in (before, after)]
    leaders = [Counter(replicas[0] for replicas in plan.values()) for plan in (before, after)]
    rows: list[Row] = [
        {
            "type": "broker_load",
            "broker": broker_id,
            "rack": racks.get(broker_id),
            "replicas": counts[0][broker_id],
            "new_replicas": counts[1][broker_id],
            "preferred_leaders": leaders[0][broker_id],
            "new_preferred_leaders": leaders[1][broker_id],
        }
        for broker_id in sorted({*racks, *counts[0]})
    ]
    if as_json:
        for row in rows:
            print_json(row)
        return
    headings = ("broker", "rack", "replicas", "→", "leaders", "→")
    print_table(headings, [tuple(cell(value) for field, value in row.items() if field != "type") for row in rows])


def print_progress(progress: Progress, left_seconds: float | None) -> None:
    """As JSON."""
    print_json(
        {
            "type": "move_progress",
            "partitions": progress.partitions,
            "completed": progress.completed,
            "total_bytes": progress.total_bytes,
            "copied_bytes": progress.copied_bytes,
            "seconds_left": None if left_seconds is None else round(left_seconds, 1),
        }
    )


def print_states(
    states: Mapping[TopicPartition, str],
    wanted: Assignments,
    current: Mapping[TopicPartition, Replicas],
    *,
    as_json: bool,
) -> None:
    """What came of a plan."""
    rows: list[Row] = [
        {
            "type": "reassignment",
            **_named(key),
            "state": state,
            "replicas": [*current.get(key, ())],
            "new_replicas": [*wanted[key]],
        }
        for key, state in states.items()
    ]
    if as_json:
        for row in rows:
            print_json(row)
        return
    table = [
        (name_of(key), state.replace("_", " "), ids_text(current.get(key, ())), ids_text(wanted[key]))
        for key, state in states.items()
    ]
    print_table(("partition", "state", "replicas", "wanted"), table)


def warn_of_racks(racks: Racks) -> None:
    """Where some brokers have a rack and others have none; Kafka's tool refuses that."""
    without = sorted(one for one, rack in racks.items() if rack is None)
    if without and len(without) < len(racks):
        warn(
            f"broker {without[0]} has no rack and others have one: racks are not looked at; set broker.rack everywhere"
        )


def sum_text(moves: Sequence[Move], sizes: Mapping[TopicPartition, int]) -> str:
    """What a plan costs."""
    copied = sum(1 for move in moves if move.added)
    led = sum(1 for move in moves if move.before[0] != move.after[0])
    fewer = sum(1 for move in moves if len(move.after) < len(move.before))
    parts = [
        f"{counted(copied, 'partition')} to copy to other brokers ({bytes_text(copied_bytes(moves, sizes))})",
        f"{counted(led, 'partition')} to get another preferred leader",
        f"{counted(fewer, 'partition')} to keep fewer replicas",
    ]
    return ", ".join(part for part, number in zip(parts, (copied, led, fewer), strict=True) if number)


def names_text(keys: Iterable[TopicPartition], most: int = 3) -> str:
    """The first of them."""
    every = [name_of(key) for key in keys]
    shown = ", ".join(every[:most])
    return shown if len(every) <= most else f"{shown} and {len(every) - most:,} more"


def ids_text(replicas: Iterable[int]) -> str:
    return ",".join(map(str, replicas))


def _named(key: TopicPartition) -> Row:
    return {"topic": key[0], "partition": key[1]}
