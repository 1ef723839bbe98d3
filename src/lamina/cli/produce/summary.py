"""The account that ``produce`` gives: a line for a person, or an object. Must not know how records are sent."""

from lamina.cli.printing.tables import Row
from lamina.cli.printing.text import MANY_RECORDS, bytes_text, counted, offsets_text, per_second, rate_text
from lamina.client.deliveries import Deliveries, Landed

_PARTITIONS_SHOWN = 8


def summary_row(topic: str, deliveries: Deliveries, seconds: float) -> Row:
    return {
        "type": "summary",
        "topic": topic,
        "records": deliveries.records,
        "bytes": deliveries.size_bytes,
        "not_delivered": deliveries.sent - deliveries.records,
        "seconds": round(seconds, 6),
        "records_per_second": round(per_second(deliveries.records, seconds), 1),
        "bytes_per_second": round(per_second(deliveries.size_bytes, seconds), 1),
        "partitions": [
            {
                "partition": partition,
                "records": landed.records,
                "start_offset": landed.first_offset,
                "end_offset": None if landed.last_offset is None else landed.last_offset + 1,
            }
            for partition, landed in sorted(deliveries.landed.items())
        ],
    }


def summary_text(topic: str, deliveries: Deliveries, seconds: float) -> str:
    """Of a few records only where they are: how fast they went says nothing."""
    what = counted(deliveries.records, "record")
    took = ""
    if deliveries.records >= MANY_RECORDS:
        what += f" ({bytes_text(deliveries.size_bytes)})"
        took = f" in {seconds:.2f} s ({rate_text(deliveries.records, deliveries.size_bytes, seconds)})"
    landed = sorted(deliveries.landed.items())
    places = [f"partition {partition} {_where(each)}" for partition, each in landed[:_PARTITIONS_SHOWN]]
    if len(landed) > _PARTITIONS_SHOWN:
        places.append(f"and {len(landed) - _PARTITIONS_SHOWN} more partitions")
    return f"Delivered {what} to {topic}{took}{': ' if places else ''}{', '.join(places)}"


def _where(landed: Landed) -> str:
    if landed.first_offset is None or landed.last_offset is None:
        return f"({counted(landed.records, 'record')}, offsets unknown)"
    noun = "offset" if landed.first_offset == landed.last_offset else "offsets"
    return f"{noun} {offsets_text(landed.first_offset, landed.last_offset + 1)}"
