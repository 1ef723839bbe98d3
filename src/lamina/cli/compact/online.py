"""Asking a running broker to compact, and waiting for it.

Must not know how a log is compacted.
"""

from typing import Any

import click

from lamina.cli.cleaner.status import waits_for
from lamina.cli.compact.figures import print_blockers, print_figures
from lamina.cli.near_topics import suggesting_topics
from lamina.cli.outcome import FINE, INTERRUPTED, SOMETHING_WRONG, warn
from lamina.cli.printing.progress import ProgressLine
from lamina.cli.printing.tables import print_json
from lamina.cli.printing.text import bytes_text, counted
from lamina.client.admin_listener import AdminListener
from lamina.client.errors import ClientError
from lamina.clocks import pause
from lamina.topic_partition import name_of

_POLL_SECONDS = 0.2

Passes = dict[tuple[str, int], dict[str, Any]]


def compact_online(
    listener: AdminListener, topics: tuple[str, ...], partition: int | None, *, roll: bool, wait: bool, as_json: bool
) -> int:
    wanted: list[tuple[str, int]] = []
    under_way: set[tuple[str, int]] = set()
    since: dict[str, int] = {}
    status = FINE
    for topic in dict.fromkeys(topics):
        body: dict[str, Any] = {"roll": roll} if partition is None else {"roll": roll, "partition": partition}
        with suggesting_topics(listener, topic):
            answer = listener.post("v1", "topics", topic, "compact", body=body)
        since[topic] = answer["since"]
        for row in answer["partitions"]:
            if row["is_wanted"]:
                wanted.append((topic, row["partition"]))
                if row["is_under_way"]:
                    under_way.add((topic, row["partition"]))
            if as_json and not wait:
                print_json({"type": "compaction", "topic": topic, **row})
            elif not row["is_wanted"]:
                warn(f"{topic}-{row['partition']}: {row['reason']}")
    if not wait:
        if wanted and not as_json:
            what = counted(len(wanted), "partition")
            click.echo(f"Requested the compaction of {what}; `lamina cleaner status` shows the progress.")
        return status
    try:
        passes = _await(listener, wanted, under_way, since)
    except KeyboardInterrupt:
        warn("the broker goes on compacting; `lamina cleaner status` shows the progress")
        return INTERRUPTED
    for one in passes.values():
        if one["outcome"] != "cleaned":
            status = SOMETHING_WRONG
            warn(f"{one['topic']}-{one['partition']} was not compacted: {one['reason']}")
    _show(listener, [one for one in passes.values() if one["outcome"] == "cleaned"], as_json=as_json)
    return status


def _await(
    listener: AdminListener, wanted: list[tuple[str, int]], under_way: set[tuple[str, int]], since: dict[str, int]
) -> Passes:
    """Wait until each has had the pass that was asked for, showing how far they are.

    One that was ``under_way`` before ends first. It may leave nothing to do: then it is what came of it.
    """
    found: Passes = {}
    forsaken: dict[tuple[str, int], str] = {}
    told: set[str] = set()
    progress = ProgressLine()
    topics = list(dict.fromkeys(topic for topic, _ in wanted))
    try:
        while True:
            for topic in topics:
                passes: dict[tuple[str, int], list[dict[str, Any]]] = {key: [] for key in wanted}
                for one in listener.pages("passes", "v1", "cleaner", "history", topic=topic, since=str(since[topic])):
                    passes.get((topic, one["partition"]), []).insert(0, one)
                for key, ended in passes.items():
                    comes_first = key in under_way and key not in forsaken
                    if len(ended) > comes_first:
                        found.setdefault(key, ended[:2][-1] if key in under_way else ended[0])
            left = [key for key in wanted if key not in found]
            if not left:
                return dict(sorted(found.items()))
            for key in left:
                if key in forsaken:
                    raise ClientError(f"{name_of(key)} was not compacted: {forsaken[key]}")
            forsaken = _look(listener, left, found, progress, told)
            pause(_POLL_SECONDS)
    finally:
        progress.clear()


def _look(
    listener: AdminListener, left: list[tuple[str, int]], found: Passes, progress: ProgressLine, told: set[str]
) -> dict[tuple[str, int], str]:
    """Show how far it is, and say once what passes wait for.

    Returns those for which no pass comes any more, unless it has just ended, and why.
    """
    rows = {
        (row["topic"], row["partition"]): row
        for topic in dict.fromkeys(topic for topic, _ in left)
        for row in listener.pages("partitions", "v1", "cleaner", topic=topic)
    }
    for topic, partition in left:
        if (topic, partition) not in rows:
            raise ClientError(f"{topic}-{partition} is gone, or is no longer compacted")
    for waited in {waits_for(rows[key]) for key in left} - {None, *told}:
        assert waited is not None
        told.add(waited)
        progress.clear()
        warn(waited)
    open_rows = [row for row in rows.values() if row["phase"] is not None]
    done = sum(row["done_bytes"] for row in open_rows)
    total = sum(row["total_bytes"] for row in open_rows)
    progress.show(
        lambda: (
            f"{len(found)} of {len(found) + len(left)} partitions compacted; {_bar(done, total)} "
            f"{bytes_text(done)} of {bytes_text(total)}"
        )
    )
    return {
        key: rows[key]["error"] or "the broker gave up"
        for key in left
        if not rows[key]["is_wanted"] and rows[key]["phase"] is None
    }


def _bar(done: int, total: int, width: int = 24) -> str:
    filled = width * done // total if total else 0
    return "█" * filled + "░" * (width - filled)


def _show(listener: AdminListener, passes: list[dict[str, Any]], *, as_json: bool) -> None:
    held_back = {
        (row["topic"], row["partition"]): row.get("held_back", [])
        for topic in dict.fromkeys(one["topic"] for one in passes)
        for row in listener.pages("partitions", "v1", "cleaner", topic=topic)
    }
    if as_json:
        for one in passes:
            print_json({"type": "pass", **one, "held_back": held_back.get((one["topic"], one["partition"]), [])})
        return
    print_figures({**one, "total_seconds": one["seconds"]["total"]} for one in passes)
    for one in passes:
        print_blockers(one, held_back.get((one["topic"], one["partition"]), []))
