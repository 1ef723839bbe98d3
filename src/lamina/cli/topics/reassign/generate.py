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
from lamina.planning.replication_factor import with_replication_factor


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
    all_topics: bool,
    brokers: tuple[int, ...] | None,
    replication_factor: int | None,
    output: str | None,
    as_json: bool,
) -> int:
    """What is on these brokers already stays there, as far as it can. Without --output the plan is what is printed."""
    if (bool(topics), topics_file is not None, all_topics).count(True) != 1:
        raise click.UsageError("--generate needs one of TOPIC…, --topics-file and --all.")
    if brokers is None:
        raise click.UsageError("--generate needs --brokers ID,…")
    names = list(dict.fromkeys(topics)) if topics_file is None else read_from(topics_file, read_topics, "--topics-file")
    layout, under_way = look(cluster)
    for broker_id in brokers:
        if broker_id not in layout.racks:
            raise ClientError(f"there is no broker {broker_id}; `lamina brokers` shows all brokers")
    before = {key: replicas for key, replicas in targets(layout, under_way).items() if all_topics or key[0] in names}
    for name in names:
        if not any(key[0] == name for key in before):
            raise no_topic(name)
    sizes = leader_sizes(layout.leaders, find_sizes(cluster, layout, before.keys()))
    try:
        racks = {one: layout.racks[one] for one in brokers}
        factor = replication_factor
        plan = rebalance(before if factor is None else with_replication_factor(before, racks, factor), racks, sizes)
    except NotEnoughBrokers as error:
        raise ClientError(
            f"more replicas than brokers are named: {names_text(error.keys)}; name more --brokers"
        ) from error
    warn_of_racks(racks)
    moves = moves_between(before, plan)
    if output is not None:
        save(output, plan)
    if as_json or output is not None:
        print_moves(moves, sizes, as_json=as_json)
    else:
        click.echo(plan_text(plan))
    warn(sum_text(moves, sizes) or "these topics are on these brokers already, evenly")
    return FINE
