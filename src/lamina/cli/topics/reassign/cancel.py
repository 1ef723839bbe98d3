"""``lamina topics reassign --cancel``: back to the replicas from before."""

from lamina.cli.outcome import Attempts, warn
from lamina.cli.reassignment.execution import remove_throttle
from lamina.cli.reassignment.following import look
from lamina.cli.reassignment.plan_file import read_from, read_plan
from lamina.cli.reassignment.showing import print_states
from lamina.client.cluster import Cluster
from lamina.client.reassignments import alter_reassignments
from lamina.topic_partition import name_of

_CANCELLED = "cancelled"


def cancel(cluster: Cluster, *, file: str, preserve_throttles: bool, as_json: bool) -> int:
    """Only what is still under way can be cancelled; the rest of the plan is passed over, as by Kafka's tool."""
    wanted = read_from(file, read_plan, "--file")
    layout, under_way = look(cluster)
    keys = sorted(key for key in wanted if key in under_way)
    attempts = Attempts(cluster)
    refused = alter_reassignments(cluster, dict.fromkeys(keys))
    for key, error in sorted(refused.items(), key=lambda one: one[0]):
        attempts.fail(name_of(key), error)
    cancelled = [key for key in keys if key not in refused]
    origins = {key: under_way[key].origin for key in cancelled}
    print_states(dict.fromkeys(cancelled, _CANCELLED), wanted, origins, as_json=as_json)
    if not keys:
        warn("nothing of this plan is under way")
    _, left = look(cluster)
    if not left and not preserve_throttles and remove_throttle(cluster, layout, {key[0] for key in wanted}):
        warn("removed the throttle")
    return attempts.status
