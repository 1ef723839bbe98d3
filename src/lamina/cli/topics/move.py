"""``lamina topics move``."""

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import click

from lamina.cli.options.cluster import as_json_option, cluster_options
from lamina.cli.options.names import topics_argument
from lamina.cli.options.numbers import PARTITION_MAX, whole
from lamina.cli.outcome import FINE, Attempts, warn
from lamina.cli.printing.progress import bar
from lamina.cli.printing.tables import Row, print_json, print_table
from lamina.cli.printing.text import bytes_text
from lamina.cli.topics.lookup import describe_all
from lamina.cli.usage import Complete
from lamina.client.cluster import Cluster
from lamina.client.errors import ClientError, Unreachable
from lamina.topic_partition import TopicPartition

if TYPE_CHECKING:
    from lamina.client.log_directories import Described, LogDirectories

_CHOICE = re.compile(r"(?P<topic>[^:]+)(:(?P<partitions>[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*))?")
_BROKERS = re.compile(r"[0-9]+(,[0-9]+)*")
_MISSING_AT_MOST = 4
"""How often in a row a partition is seen neither moving nor moved before it is given up."""


@click.command(
    "move",
    epilog="""\b
Examples:
  lamina topics move orders --to /disk2/kafka
  lamina topics move orders:0,3-5 --to /disk2/kafka --broker 2
  lamina topics move orders:0 --to /disk1/kafka
\b
The last one cancels the move of orders-0 if that is still in /disk1/kafka.
`lamina configs set --broker 1 replica.alter.log.dirs.io.max.bytes.per.second=50MB` limits the rate.""",
)
@topics_argument()
@click.option("--to", "path", metavar="DIR", required=True, help="The log directory, as the broker has it in log.dirs.")
@click.option(
    "--broker",
    "broker_id",
    metavar="N",
    type=whole(largest=PARTITION_MAX),
    help="The broker. Not needed where only one has replicas of the partitions.",
)
@click.option("--no-wait", is_flag=True, help="End as soon as the broker has begun; it goes on by itself.")
@as_json_option
@cluster_options
def move(
    cluster: Cluster, topics: tuple[str, ...], path: str, broker_id: int | None, no_wait: bool, as_json: bool
) -> int:
    """Move partitions to another log directory of the same broker, while they are written and read.

    TOPIC:PARTITIONS moves some of them: orders:0,3-5. Ctrl-C ends the command, not the move.
    """
    from lamina.client.log_directories import LogDirectories

    if _BROKERS.fullmatch(path):
        names = " ".join(dict.fromkeys(_choice(one)[0] for one in topics))
        raise Complete(
            "--to names a log directory of the same broker, such as /disk2/kafka; to other brokers: "
            f"`lamina topics reassign --generate --brokers {path} {names} > plan.json`, then --execute"
        )
    attempts = Attempts(cluster)
    kept_on = _find(cluster, [_choice(one) for one in topics], attempts)
    if not kept_on:
        return attempts.status
    broker_id = _only_broker(kept_on) if broker_id is None else broker_id
    partitions = [key for key, brokers in kept_on.items() if broker_id in brokers]
    for topic, index in sorted(kept_on.keys() - set(partitions)):
        attempts.fail(f"{topic}-{index}", ClientError(f"broker {broker_id} has no replica of it"))
    if not partitions:  # There may be no such broker: it would be waited for in vain.
        return attempts.status
    directories = LogDirectories(cluster, broker_id)
    before = directories.described(partitions)
    if path not in before.paths:
        raise ClientError(f"broker {broker_id} has no log directory {path}; it has {', '.join(before.paths)}")
    refused = directories.move(partitions, path)
    for (topic, index), error in sorted(refused.items()):
        attempts.fail(f"{topic}-{index}", error)
    begun = [key for key in partitions if key not in refused]
    after = before if no_wait else _await(directories, begun, before, path)
    outcomes = {key: _outcome(key, before, after, path, waited=not no_wait) for key in begun}
    for topic, index in (key for key, outcome in outcomes.items() if outcome == "failed"):
        attempts.fail(f"{topic}-{index}", ClientError(f"it was not moved; the log of broker {broker_id} says why"))
    _print([_row(key, broker_id, before, path, outcome) for key, outcome in outcomes.items()], as_json=as_json)
    return attempts.status or FINE


def _choice(text: str) -> tuple[str, list[int] | None]:
    """A topic and its partitions; ``None`` for all."""
    found = _CHOICE.fullmatch(text)
    if found is None:
        raise click.BadParameter(f"{text!r} is not of the form TOPIC or TOPIC:0,3-5", param_hint="TOPIC")
    if found["partitions"] is None:
        return found["topic"], None
    indexes: list[int] = []
    for part in found["partitions"].split(","):
        first, _, last = part.partition("-")
        end = int(last or first)
        if end > PARTITION_MAX or int(first) > end:
            raise click.BadParameter(f"there are no partitions {part}", param_hint="TOPIC")
        indexes += range(int(first), end + 1)
    return found["topic"], indexes


def _find(
    cluster: Cluster, choices: Sequence[tuple[str, list[int] | None]], attempts: Attempts
) -> dict[TopicPartition, tuple[int, ...]]:
    """Who has replicas of each partition."""
    described = {topic.name: topic for topic in describe_all(cluster, [name for name, _ in choices], attempts)}
    kept_on: dict[TopicPartition, tuple[int, ...]] = {}
    for name, indexes in choices:
        if name not in described:
            continue
        partitions = {one.id: one for one in described[name].partitions}
        for index in sorted(partitions) if indexes is None else indexes:
            if index in partitions:
                kept_on[name, index] = tuple(replica.id for replica in partitions[index].replicas)
            else:
                count = len(partitions)
                error = ClientError(f"topic '{name}' has {count} partitions and no {index}")
                attempts.fail(f"{name}-{index}", error)
    return kept_on


def _only_broker(kept_on: dict[TopicPartition, tuple[int, ...]]) -> int:
    brokers = sorted({broker_id for some in kept_on.values() for broker_id in some})
    if len(brokers) > 1:
        raise click.UsageError(
            f"Give --broker: brokers {', '.join(map(str, brokers))} have replicas of these partitions."
        )
    return brokers[0]


def _await(
    directories: "LogDirectories", keys: Sequence[TopicPartition], before: "Described", path: str
) -> "Described":
    """Until each is there, or is not moving any more."""
    if not keys:
        return before
    missing = dict.fromkeys(keys, 0)

    with bar("moved") as advance:

        def is_over(now: "Described") -> bool:
            done = total = left = 0
            for key in keys:
                size_bytes = now.logs[key].size_bytes if key in now.logs else 0
                total += size_bytes
                if _is_at(now, key, path):
                    done += size_bytes
                elif key in now.futures:
                    done += min(now.futures[key].size_bytes, size_bytes)
                    missing[key] = 0
                    left += 1
                else:
                    missing[key] += 1
                    left += missing[key] < _MISSING_AT_MOST
            advance(done, total)
            return not left

        try:
            return directories.watch(keys, is_over)
        except Unreachable:
            raise
        except KeyboardInterrupt:
            warn("the broker goes on moving; to cancel, move the partitions to the directory where they are")
            raise


def _is_at(described: "Described", key: TopicPartition, path: str) -> bool:
    return key in described.logs and described.logs[key].path == path


def _outcome(key: TopicPartition, before: "Described", after: "Described", path: str, *, waited: bool) -> str:
    if _is_at(before, key, path):
        return "cancelled" if key in before.futures else "there"
    if not waited:
        return "moving"
    return "moved" if _is_at(after, key, path) else "failed"


def _row(key: TopicPartition, broker_id: int, before: "Described", path: str, outcome: str) -> Row:
    log = before.logs.get(key)
    return {
        "type": "move",
        "topic": key[0],
        "partition": key[1],
        "broker": broker_id,
        "from": None if log is None else log.path,
        "to": path,
        "bytes": None if log is None else log.size_bytes,
        "outcome": outcome,
    }


def _print(rows: Iterable[Row], *, as_json: bool) -> None:
    if as_json:
        for row in rows:
            print_json(row)
        return
    print_table(
        ("partition", "broker", "from", "to", "size", "outcome"),
        [
            (
                f"{row['topic']}-{row['partition']}",
                str(row["broker"]),
                str(row["from"] or ""),
                str(row["to"]),
                "" if row["bytes"] is None else bytes_text(float(str(row["bytes"]))),
                str(row["outcome"]),
            )
            for row in rows
        ],
    )
