"""The events of Kafka's verifiable consumer as a part of a history, and whether its group went on from its commits.

Pure. Must not know processes.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable

from tests.history.events import Assigned, Partition, Read
from tests.peers.tool_process import Event


def moves_of(reader: str, events: Iterable[Event], at_ms: Callable[[Event], float]) -> list[Assigned | Read]:
    """It may be given again what it did not commit; what it was not given it must not go past."""
    moves: list[Assigned | Read] = []
    ends: dict[Partition, int] = {}
    """Up to where it has read what it was assigned so far."""
    new: set[Partition] = set()
    for event in events:
        if event["name"] == "partitions_assigned":
            new |= {_place(one) for one in event["partitions"]}
        elif event["name"] == "record_data":
            place, offset = _place(event), event["offset"]
            if place not in ends:
                moves.append(Assigned(reader, place, 0))
            elif place in new and offset < ends[place]:
                moves.append(Assigned(reader, place, offset))
            new.discard(place)
            ends[place] = offset + 1
            if event["value"] is not None:
                moves.append(Read(reader, place, offset, str(event["value"]).rstrip().encode(), at_ms(event)))
    return moves


def sent_back(events: Iterable[Event]) -> list[str]:
    """Where it was given a partition again from before what it had committed: in sentences."""
    committed: dict[Partition, int] = defaultdict(int)
    new: set[Partition] = set()
    found = []
    for event in events:
        if event["name"] == "partitions_assigned":
            new |= {_place(one) for one in event["partitions"]}
        elif event["name"] == "offsets_committed" and event["success"]:
            committed |= {_place(one): one["offset"] for one in event["offsets"]}
        elif event["name"] == "record_data" and _place(event) in new:
            place = _place(event)
            new.remove(place)
            if event["offset"] < committed[place]:
                found.append(f"{place[0]}-{place[1]}: committed {committed[place]}, given {event['offset']}")
    return found


def _place(event: Event) -> Partition:
    return event["topic"], event["partition"]
