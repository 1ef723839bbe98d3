"""The brokers of a cluster that runs: whether they are who they should be, of one version, and agree on the time.

Each is found through Kafka's protocol and asked through its admin listener. Must not change anything.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lamina.cli.doctor.finding import Finding, fine, problem, warning
from lamina.cli.options.admin import token_from
from lamina.client.admin_listener import AdminListener, find_admin_listener
from lamina.client.cluster import Cluster
from lamina.client.errors import ClientError
from lamina.clocks import SYSTEM_CLOCKS, Clocks

APART_MS = 1_000
"""Retention and the times of records go by each leader's clock: so far apart, people notice."""
_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class MemberFacts:
    """``id`` is the one that the cluster knows it by, ``own_id`` the one that it gives itself."""

    id: int
    refusal: str | None = None
    """Why it could not be asked."""
    own_id: int | None = None
    cluster_id: str | None = None
    version: str | None = None
    clock_ahead_ms: float = 0.0
    """Of this machine's clock, with half the time that the question took as its error."""
    clock_error_ms: float = 0.0
    complaints: tuple[str, ...] = ()
    """Why it is not ready, and what it warns of."""


def judge_members(members: Sequence[MemberFacts]) -> Iterator[Finding]:
    answering = [member for member in members if member.refusal is None]
    yield _judge_answers(members)
    if answering:
        yield _judge_readiness(answering)
        yield _judge_ids(answering)
        yield _judge_versions(answering)
    if len(answering) > 1:
        yield _judge_clocks(answering)


def _judge_answers(members: Sequence[MemberFacts]) -> Finding:
    silent = [member for member in members if member.refusal is not None]
    what = f"{len(members) - len(silent)} of {len(members)} answer on their admin listeners"
    if silent:
        reasons = "; ".join(f"broker {member.id}: {member.refusal}" for member in silent)
        return warning("brokers", f"{what}: {reasons}", "make lamina.admin.listeners of each reachable from here")
    return fine("brokers", what)


def _judge_readiness(members: Sequence[MemberFacts]) -> Finding:
    """What several brokers complain of alike is told once."""
    by_complaint: defaultdict[str, list[str]] = defaultdict(list)
    for member in members:
        for complaint in member.complaints:
            by_complaint[complaint].append(str(member.id))
    if not by_complaint:
        return fine("readiness", "all are ready, without warnings")
    told = [
        f"{'broker' if len(ids) == 1 else 'brokers'} {', '.join(ids)}: {complaint}"
        for complaint, ids in by_complaint.items()
    ]
    return warning("readiness", "; ".join(told), _advice(" ".join(by_complaint)))


def _advice(complaints: str) -> str:
    if "ZooKeeper does not answer" in complaints:
        return "start ZooKeeper; `lamina doctor --zookeeper HOST:PORT,…` asks its servers"
    if "is nearly full" in complaints:
        return "free some space there: writes then go on by themselves"
    return "the log of that broker says more"


def _judge_ids(members: Sequence[MemberFacts]) -> Finding:
    strangers = [member for member in members if member.own_id != member.id]
    if strangers:
        what = "; ".join(f"broker {one.id} says that it is broker {one.own_id}" for one in strangers)
        return problem("ids", what, "correct lamina.admin.advertised.listeners: two brokers name the same address")
    clusters = sorted({str(member.cluster_id) for member in members})
    if len(clusters) > 1:
        return problem("ids", f"brokers of clusters {', '.join(clusters)}", "give each cluster a chroot of its own")
    ids = ", ".join(str(member.id) for member in members)
    return fine("ids", f"{ids} in cluster {clusters[0]}")


def _judge_versions(members: Sequence[MemberFacts]) -> Finding:
    versions = sorted({str(member.version) for member in members})
    if len(versions) > 1:
        told = ", ".join(f"broker {member.id} {member.version}" for member in members)
        return warning("versions", told, "bring all brokers to the same version, one after the other")
    return fine("versions", f"lamina {versions[0]} everywhere")


def _judge_clocks(members: Sequence[MemberFacts]) -> Finding:
    first = min(members, key=lambda member: member.clock_ahead_ms)
    last = max(members, key=lambda member: member.clock_ahead_ms)
    apart_ms = last.clock_ahead_ms - first.clock_ahead_ms
    error_ms = first.clock_error_ms + last.clock_error_ms
    what = f"at most {apart_ms / 1000:.3f} s apart (± {error_ms / 1000:.3f} s)"
    if apart_ms - error_ms > APART_MS:
        return warning(
            "clocks",
            f"{what}: broker {last.id} is ahead of broker {first.id}",
            "run chrony or systemd-timesyncd on all",
        )
    return fine("clocks", what)


def check_members(cluster: Cluster) -> Iterator[Finding]:
    """Raises ClientError where no broker answers."""
    nodes = cluster.answer(cluster.admin().describe_cluster()).nodes
    return judge_members([_member(cluster, node.id) for node in sorted(nodes, key=lambda node: int(node.id))])


def _member(cluster: Cluster, broker_id: int) -> MemberFacts:
    try:
        return ask_member(broker_id, find_admin_listener(cluster, str(broker_id), token_from(None), _SECONDS))
    except ClientError as error:
        return MemberFacts(broker_id, str(error))


def ask_member(broker_id: int, listener: AdminListener, clocks: Clocks = SYSTEM_CLOCKS) -> MemberFacts:
    # The first question has the broker load what answers it.
    listener.get("healthz")
    sent_ns = clocks.wall_ns()
    told = listener.get("v1", "brokers")
    took_ns = clocks.wall_ns() - sent_ns
    health = listener.get_health("readyz")
    own = next((row for row in told["brokers"] if row["is_this_broker"]), None)
    if own is None:
        return MemberFacts(broker_id, "it is not registered in its cluster")
    middle_ms = (sent_ns + took_ns / 2) / 1_000_000
    return MemberFacts(
        broker_id,
        own_id=own["node_id"],
        cluster_id=told["cluster_id"],
        version=own["version"],
        clock_ahead_ms=own["replication"]["now_ms"] - middle_ms,
        clock_error_ms=took_ns / 2 / 1_000_000,
        complaints=(*health["reasons"], *health["warnings"]),
    )
