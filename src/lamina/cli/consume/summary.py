"""The account that ``consume`` gives: what was read, from where to where, and which offsets had no record.

Must not know how records are read.
"""

from collections.abc import Sequence

from lamina.cli.printing.tables import Row
from lamina.cli.printing.text import MANY_RECORDS, bytes_text, counted, offsets_text
from lamina.client.partition_range import PartitionRange

_PARTITIONS_SHOWN = 8
_GAPS_SHOWN = 3


def summary_row(topic: str, ranges: Sequence[PartitionRange], seconds: float) -> Row:
    return {
        "type": "summary",
        "topic": topic,
        "records": sum(each.records for each in ranges),
        "bytes": sum(each.size_bytes for each in ranges),
        "missing": sum(each.missing for each in ranges),
        "seconds": round(seconds, 6),
        "partitions": [
            {
                "partition": each.partition,
                "records": each.records,
                "start_offset": each.start,
                "end_offset": each.position,
                "missing": each.missing,
                "gap_count": each.gap_count,
                "gaps": [{"start_offset": start, "end_offset": end} for start, end in each.gaps],
            }
            for each in ranges
        ],
    }


def why_nothing(topic: str, group: str, ranges: Sequence[PartitionRange]) -> str:
    """Why a member of a group read no record."""
    if not ranges:
        return f"group {group} gave no partition of {topic} to this member: others have them all"
    return (
        f"group {group} is at the end of {topic} already; `lamina groups reset-offsets {group} --topic {topic} "
        "--to-earliest --execute` has it read all again"
    )


def summary_text(topic: str, ranges: Sequence[PartitionRange], seconds: float) -> str:
    """Of a few records only where they were: how fast they came says nothing."""
    records = sum(each.records for each in ranges)
    what = counted(records, "record")
    took = ""
    if records >= MANY_RECORDS:
        what += f" ({bytes_text(sum(each.size_bytes for each in ranges))})"
        took = f" in {seconds:.2f} s"
    read = [each for each in ranges if each.position > each.start]
    places = [f"partition {each.partition} {_where(each)}" for each in read[:_PARTITIONS_SHOWN]]
    if len(read) > _PARTITIONS_SHOWN:
        rest = read[_PARTITIONS_SHOWN:]
        missing = sum(each.missing for each in rest)
        places.append(f"and {len(rest)} more partitions" + (f", {_without_record(missing)}" if missing else ""))
    return f"Read {what} from {topic}{took}{': ' if places else ''}{', '.join(places)}"


def _where(each: PartitionRange) -> str:
    noun = "offset" if each.position - each.start == 1 else "offsets"
    text = f"{noun} {offsets_text(each.start, each.position)}"
    if not each.missing:
        return text
    shown = [offsets_text(start, end) for start, end in each.gaps[:_GAPS_SHOWN]]
    if each.gap_count > len(shown):
        shown.append(f"and {each.gap_count - len(shown):,} more gaps")
    return f"{text} ({_without_record(each.missing)}: {', '.join(shown)})"


def _without_record(offsets: int) -> str:
    return f"{counted(offsets, 'offset')} without a record"
