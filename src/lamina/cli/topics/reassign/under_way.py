"""``lamina topics reassign --list``: what is under way."""

from lamina.cli.outcome import FINE, warn
from lamina.cli.printing.tables import Row, print_json, print_table
from lamina.cli.reassignment.showing import ids_text
from lamina.client.cluster import Cluster
from lamina.client.reassignments import find_reassignments
from lamina.topic_partition import name_of


def list_under_way(cluster: Cluster, *, as_json: bool) -> int:
    found = sorted(find_reassignments(cluster).items())
    for key, one in found if as_json else ():
        row: Row = {
            "type": "reassignment_under_way",
            "topic": key[0],
            "partition": key[1],
            "replicas": [*one.replicas],
            "adding_replicas": [*one.adding],
            "removing_replicas": [*one.removing],
        }
        print_json(row)
    if not as_json:
        table = [(name_of(key), *map(ids_text, (one.replicas, one.adding, one.removing))) for key, one in found]
        print_table(("partition", "replicas", "adding", "removing"), table)
    if not found:
        warn("no partition is being reassigned")
    return FINE
