"""The events of Kafka's verifiable tools: what the consumer read as a part of a history, whether its group went on from
its commits, and what the producer was not acknowledged.

Pure. Must not know processes.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable

from tests.history.events import Assigned, Partition, Read
from tests.peers.tool_process import Event

_CLOSED = ("Cannot perform operation after producer has been closed", "Producer closed while send in progress")
"""What the tool's own producer says to a record that comes while, or after, the tool closes it."""


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


def unacknowledged(events: Iterable[Event]) -> list[str]:
    """Which records of a producer that has stopped were not acknowledged: in sentences.

    The tool closes its producer on one thread while another goes on to send: the next record after the last one may
    find it closed. That one is counted as sent and nobody else has seen it; whether its error is still said is chance.
    """
    events = list(events)
    (summary,) = (event for event in events if event["name"] == "tool_data")
    acked = {_number(event) for event in events if event["name"] == "producer_send_success"}
    failed = {_number(event): event for event in events if event["name"] == "producer_send_error"}
    last = len(acked)
    if last in failed and failed[last]["message"] in _CLOSED:
        del failed[last]
    silent = set(range(summary["sent"])) - acked - {last, *failed}
    return [
        *(f"record {number} failed: {event['exception']}: {event['message']}" for number, event in failed.items()),
        *(f"record {number} has no answer" for number in sorted(silent)),
    ]


def _number(event: Event) -> int:
    return int(str(event["value"]).partition(".")[2])


def _place(event: Event) -> Partition:
    return event["topic"], event["partition"]
