"""``lamina topics reassign``: what kafka-reassign-partitions does, one module for each action."""

from collections.abc import Mapping

import click

from lamina.cli.options.cluster import as_json_option, cluster_options
from lamina.cli.options.names import topics_argument
from lamina.cli.options.numbers import REPLICATION_FACTOR_MAX, whole
from lamina.cli.reassignment.execution import throttle_option
from lamina.cli.topics.reassign.cancel import cancel
from lamina.cli.topics.reassign.execute import execute
from lamina.cli.topics.reassign.generate import broker_ids, generate
from lamina.cli.topics.reassign.under_way import list_under_way
from lamina.cli.topics.reassign.verify import verify
from lamina.client.cluster import Cluster

_ACTIONS = ("generate", "execute", "verify", "cancel", "list")
_NEEDS_FILE = ("execute", "verify", "cancel")
_ALLOWED: Mapping[str, frozenset[str]] = {
    "topics": frozenset({"generate"}),
    "topics_file": frozenset({"generate"}),
    "all_topics": frozenset({"generate"}),
    "brokers": frozenset({"generate"}),
    "replication_factor": frozenset({"generate"}),
    "output": frozenset({"generate"}),
    "file": frozenset(_NEEDS_FILE),
    "throttle": frozenset({"execute"}),
    "additional": frozenset({"execute"}),
    "save_current": frozenset({"execute"}),
    "wait": frozenset({"execute", "verify"}),
    "preserve_throttles": frozenset({"verify", "cancel", "execute"}),
}
"""With which actions an option means something."""

_SPELLED = {"topics": "TOPIC", "all_topics": "--all"}


@click.command(
    "reassign",
    epilog="""\b
Examples:
  lamina topics reassign --generate --brokers 4,5,6 orders > plan.json
  lamina topics reassign --generate --brokers 1,2,3 --replication-factor 3 --all > plan.json
  lamina topics reassign --execute --file plan.json --throttle 50MB --wait
  lamina topics reassign --verify --file plan.json
  lamina topics reassign --cancel --file plan.json
  lamina topics reassign --list
\b
FILE is that of Kafka's kafka-reassign-partitions:
  {"version": 1, "partitions": [{"topic": "orders", "partition": 0, "replicas": [4, 2, 3]}]}""",
)
@topics_argument(required=False)
@click.option("--generate", is_flag=True, help="Print a plan that spreads topics evenly over --brokers.")
@click.option("--execute", is_flag=True, help="Begin the plan in --file.")
@click.option("--verify", is_flag=True, help="Show how far the plan in --file is; remove the throttle at the end.")
@click.option("--cancel", is_flag=True, help="Go back to the replicas from before the plan in --file.")
@click.option("--list", "list_", is_flag=True, help="Show the partitions that are being reassigned.")
@click.option("--file", metavar="FILE", help="The plan, in Kafka's JSON.")
@click.option("--topics-file", metavar="FILE", help="With --generate: topics in Kafka's JSON, instead of TOPIC…")
@click.option(
    "--brokers", metavar="ID,…", type=broker_ids, help="With --generate: the brokers that are to keep the topics."
)
@click.option(
    "--all",
    "all_topics",
    is_flag=True,
    help="With --generate: all topics, also those that brokers keep for themselves.",
)
@click.option(
    "--replication-factor",
    type=whole(1, REPLICATION_FACTOR_MAX),
    metavar="N",
    help="With --generate: how many replicas each partition is to have.  [default: as many as it has]",
)
@click.option("--output", metavar="FILE", help="With --generate: write the plan to FILE and show what it changes.")
@throttle_option
@click.option("--additional", is_flag=True, help="With --execute: although other partitions are being reassigned.")
@click.option(
    "--save-current", metavar="FILE", help="With --execute: first write the present replicas, as the way back."
)
@click.option("--wait", is_flag=True, help="With --execute and --verify: wait until the plan is complete.")
@click.option("--preserve-throttles", is_flag=True, help="Do not remove throttles.")
@as_json_option
@cluster_options
def reassign(cluster: Cluster, as_json: bool, list_: bool, **given: object) -> int:
    """Give partitions other replicas, with the files of Kafka's kafka-reassign-partitions.

    Reads and writes go on meanwhile. The first replica of a list is the preferred leader.
    """
    given["list"] = list_
    action = _action(given)
    options = {name: value for name, value in given.items() if name not in _ACTIONS and action in _ALLOWED[name]}
    run = {"generate": generate, "execute": execute, "verify": verify, "cancel": cancel, "list": list_under_way}[action]
    return run(cluster, as_json=as_json, **options)  # type: ignore[operator,no-any-return]


def _action(given: Mapping[str, object]) -> str:
    chosen = [name for name in _ACTIONS if given[name]]
    if len(chosen) != 1:
        raise click.UsageError("Give one of --generate, --execute, --verify, --cancel and --list.")
    (action,) = chosen
    for name, actions in _ALLOWED.items():
        if given[name] and action not in actions:
            option = _SPELLED.get(name, f"--{name.replace('_', '-')}")
            raise click.UsageError(f"{option} means nothing with --{action}.")
    if action in _NEEDS_FILE and given["file"] is None:
        raise click.UsageError(f"--{action} needs --file FILE.")
    return action
