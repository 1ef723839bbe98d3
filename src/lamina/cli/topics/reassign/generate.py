"""``lamina topics reassign --generate``: a plan that spreads topics evenly over brokers."""

from collections.abc import Sequence

import click

from lamina.cli.outcome import FINE, warn
from lamina.cli.reassignment.following import look
from lamina.cli.reassignment.plan_file import plan_text, read_from, read_topics, save
from lamina.cli.reassignment.showing import names_text, print_moves, sum_text, warn_of_racks
from lamina.client.cluster import Cluster
from lamina.client.errors import ClientError, no_topic
from lamina.client.layout import find_sizes
from lamina.client.reassignments import targets
from lamina.planning.copying import leader_sizes
from lamina.planning.moves import moves_between
from lamina.planning.rebalance import rebalance
from lamina.planning.replicas import NotEnoughBrokers


def broker_ids(given: str) -> tuple[int, ...]:
    """The type of an option."""
    parts = [part.strip() for part in given.split(",")]
    if not all(part.isascii() and part.isdigit() and len(part) < 10 for part in parts):
        raise click.BadParameter(f"{given!r} is not of the form 1,2,3")
    ids = tuple(map(int, parts))
    if len(set(ids)) < len(ids):
        raise click.BadParameter(f"{given!r} names a broker twice")
    return ids


def generate(
    cluster: Cluster,
    *,
    topics: Sequence[str],
    topics_file: str | None,
    brokers: tuple[int, ...] | None,
    output: str | None,
    as_json: bool,
) -> int:
    """What is on these brokers already stays there, as far as it can. Without --output the plan is what is printed."""
    if bool(topics) == (topics_file is not None):
        raise click.UsageError("--generate needs TOPIC… or --topics-file, not both.")
    if brokers is None:
        raise click.UsageError("--generate needs --brokers ID,…")
    names = list(dict.fromkeys(topics)) if topics_file is None else read_from(topics_file, read_topics, "--topics-file")
    layout, under_way = look(cluster)
    for broker_id in brokers:
        if broker_id not in layout.racks:
            raise ClientError(f"there is no broker {broker_id}; `lamina brokers` shows all brokers")
    before = {key: replicas for key, replicas in targets(layout, under_way).items() if key[0] in names}
    for name in names:
        if not any(key[0] == name for key in before):
            raise no_topic(name)
    sizes = leader_sizes(layout.leaders, find_sizes(cluster, layout, before.keys()))
    try:
        plan = rebalance(before, {one: layout.racks[one] for one in brokers}, sizes)
    except NotEnoughBrokers as error:
        raise ClientError(
            f"more replicas than brokers are named: {names_text(error.keys)}; name more --brokers"
        ) from error
    warn_of_racks({one: layout.racks[one] for one in brokers})
    moves = moves_between(before, plan)
    if output is not None:
        save(output, plan)
    if as_json or output is not None:
        print_moves(moves, sizes, as_json=as_json)
    else:
        click.echo(plan_text(plan))
    warn(sum_text(moves, sizes) or "these topics are on these brokers already, evenly")
    return FINE
