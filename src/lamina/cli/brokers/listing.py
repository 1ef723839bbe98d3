"""``lamina brokers`` without more: who is in the cluster."""

import click

from lamina.cli.outcome import FINE, warn
from lamina.cli.printing.tables import Row, print_json, print_table
from lamina.client.cluster import Cluster
from lamina.client.controller import controller_id
from lamina.peer.view import NO_CONTROLLER


def list_brokers(cluster: Cluster, *, as_json: bool) -> int:
    admin = cluster.admin()
    answer = cluster.answer(admin.describe_cluster())
    controller = controller_id(cluster, NO_CONTROLLER if answer.controller is None else answer.controller.id)
    rows: list[Row] = [
        {
            "type": "broker",
            "id": node.id,
            "host": node.host,
            "port": node.port,
            "rack": node.rack,
            "controller": node.id == controller,
            "cluster_id": answer.cluster_id,
        }
        for node in sorted(answer.nodes, key=lambda node: int(node.id))
    ]
    if controller == NO_CONTROLLER:
        warn(
            "no broker is known as the controller now, so no metadata changes; `lamina doctor` says more, with "
            f"--bootstrap-server {cluster.bootstrap_servers}"
        )
    if as_json:
        for row in rows:
            print_json(row)
        return FINE
    print_table(
        ("id", "address", "rack", "controller"),
        [
            (str(row["id"]), f"{row['host']}:{row['port']}", str(row["rack"] or ""), "yes" if row["controller"] else "")
            for row in rows
        ],
    )
    click.echo(f"cluster {answer.cluster_id}")
    return FINE
