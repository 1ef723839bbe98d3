"""``lamina groups describe``."""

from typing import Any

import click

from lamina.cli.groups.lookup import all_groups, assigned, describe_all, protocol_of, state_of
from lamina.cli.options.cluster import as_json_option, cluster_options
from lamina.cli.options.names import groups_argument
from lamina.cli.outcome import Attempts, warn
from lamina.cli.printing.tables import Value, print_json, print_table
from lamina.client.cluster import Cluster


@click.command(
    "describe",
    epilog="""\b
Examples:
  lamina groups describe
  lamina groups describe billing shipping --json""",
)
@groups_argument(required=False)
@as_json_option
@cluster_options
def describe(cluster: Cluster, groups: tuple[str, ...], as_json: bool) -> int:
    """Show groups with their state, members and assignments; all groups if none is named."""
    attempts = Attempts(cluster)
    names = groups or [group.group_id for group in all_groups(cluster, attempts)]
    count = 0
    for group in describe_all(cluster, names, attempts):
        count += 1
        if as_json:
            print_json(_row(group))
        else:
            _print(group)
    if not count and not groups and not attempts.status:
        warn("there are no groups")
    return attempts.status


def _row(group: Any) -> dict[str, Value]:
    coordinator = group.coordinator
    return {
        "type": "group",
        "group": group.group_id,
        "state": state_of(group),
        "protocol": protocol_of(group),
        "simple": group.is_simple_consumer_group,
        "assignor": group.partition_assignor or None,
        "coordinator": {"id": coordinator.id, "host": coordinator.host, "port": coordinator.port},
        "members": [
            {
                "member_id": member.member_id,
                "client_id": member.client_id,
                "host": member.host.lstrip("/"),
                "instance_id": member.group_instance_id,
                "assignment": _assignment(member.assignment),
                "target_assignment": None
                if member.target_assignment is None
                else _assignment(member.target_assignment),
            }
            for member in sorted(group.members, key=lambda member: member.member_id)
        ],
    }


def _assignment(assignment: Any) -> Value:
    return {topic: [*numbers] for topic, numbers in assigned(assignment.topic_partitions).items()}


def _print(group: Any) -> None:
    row = _row(group)
    coordinator = group.coordinator
    click.echo(
        f"{group.group_id}  (state {row['state']}, protocol {row['protocol']}, assignor {row['assignor'] or 'none'}, "
        f"coordinator {coordinator.id} at {coordinator.host}:{coordinator.port})"
    )
    members: Any = row["members"]
    table = [
        (
            member["client_id"],
            member["host"],
            member["member_id"],
            member["instance_id"] or "",
            _partitions_text(member["assignment"]),
            _awaited_text(member["assignment"], member["target_assignment"]),
        )
        for member in members
    ]
    print_table(("client id", "host", "member id", "instance id", "assignment", "target assignment"), table)
    if not table:
        click.echo("  no members")
    click.echo()


def _partitions_text(assignment: dict[str, list[int]]) -> str:
    return " ".join(f"{topic}:{','.join(map(str, numbers))}" for topic, numbers in assignment.items())


def _awaited_text(assignment: dict[str, list[int]], target: dict[str, list[int]] | None) -> str:
    """Where a member is going, while it is not there."""
    return "" if target is None or target == assignment else _partitions_text(target) or "none"
