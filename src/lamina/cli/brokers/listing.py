"""``lamina brokers`` without more: who is in the cluster."""

import click

from lamina.cli.outcome import FINE
from lamina.cli.printing.tables import Row, print_json, print_table
from lamina.client.cluster import Cluster


def list_brokers(cluster: Cluster, *, as_json: bool) -> int:
    admin = cluster.admin()
    answer = cluster.answer(admin.describe_cluster())
    rows: list[Row] = [
        {
            "type": "broker",
            "id": node.id,
            "host": node.host,
            "port": node.port,
            "rack": node.rack,
            "controller": answer.controller is not None and node.id == answer.controller.id,
            "cluster_id": answer.cluster_id,
        }
        for node in sorted(answer.nodes, key=lambda node: int(node.id))
    ]
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
