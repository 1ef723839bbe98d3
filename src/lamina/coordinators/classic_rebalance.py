"""The rebalance of a classic group: all members are told to join again, and those that do are the next generation.

Owns how long the group waits for its members: the initial delay, the rebalance timeout, and the time to ask for an
assignment. Must not know why a rebalance is due.
"""

from lamina.coordinators.classic_state import ClassicState, GroupDecision, InitialRebalance, State
from lamina.coordinators.decision import Now
from lamina.errors import RebalanceInProgress

_SHORTEST_WAIT_MS = 1_000
"""How long a group waits for static members, even if they ask for no rebalance timeout."""


def rebalance(group: ClassicState, now: Now, decision: GroupDecision) -> None:
    """A member joined, left or changed: begin a rebalance, or complete the one that is under way."""
    if group.state is State.PREPARING_REBALANCE:
        complete_if_joined(group, now, decision)
        return
    if group.state is State.COMPLETING_REBALANCE:
        _take_back_assignments(group, now, decision)
    group.syncing.clear()
    decision.cancel_timer(group.timer("sync"))
    was_empty = group.state is State.EMPTY
    group.transition_to(State.PREPARING_REBALANCE, now)
    if was_empty:
        _await_first(group, now, decision)
        return
    decision.set_timer(group.timer("join"), now.monotonic_ms + group.members.rebalance_timeout_ms)
    complete_if_joined(group, now, decision)


def _take_back_assignments(group: ClassicState, now: Now, decision: GroupDecision) -> None:
    for member in group.members:
        member.assignment = b""
        if member.syncs is not None:
            decision.reply(member.syncs, RebalanceInProgress(f"{group.group_id} is rebalancing"))
            member.syncs = None
            # While it waited nothing was expected of it, and its session may have run out.
            group.renew_session(member, now, decision)


def _await_first(group: ClassicState, now: Now, decision: GroupDecision) -> None:
    delay_ms = group.settings.initial_rebalance_delay_ms
    if not delay_ms:
        _complete_join(group, now, decision)
        return
    group.initial = InitialRebalance(max(group.members.rebalance_timeout_ms - delay_ms, 0))
    decision.set_timer(group.timer("join"), now.monotonic_ms + delay_ms)


def complete_if_joined(group: ClassicState, now: Now, decision: GroupDecision) -> None:
    if group.state is State.PREPARING_REBALANCE and group.initial is None and group.members.have_all_joined:
        _complete_join(group, now, decision)


def complete_without_pending(group: ClassicState, now: Now, decision: GroupDecision) -> None:
    """A member id was not used in time. If all others have joined, that ends even the initial delay, as in Kafka."""
    if group.state is State.PREPARING_REBALANCE and group.members.have_all_joined:
        _complete_join(group, now, decision)


def on_join_timer(group: ClassicState, now: Now, decision: GroupDecision) -> None:
    if group.state is not State.PREPARING_REBALANCE:
        return
    initial = group.initial
    if initial is not None and initial.has_grown and initial.remaining_ms:
        delay_ms = min(group.settings.initial_rebalance_delay_ms, initial.remaining_ms)
        initial.remaining_ms -= delay_ms
        initial.has_grown = False
        decision.set_timer(group.timer("join"), now.monotonic_ms + delay_ms)
        return
    _complete_join(group, now, decision)


def _complete_join(group: ClassicState, now: Now, decision: GroupDecision) -> None:
    """Begin the next generation with those who joined; static members that did not stay in it."""
    decision.cancel_timer(group.timer("join"))
    for member in [one for one in group.members if one.joins is None and one.instance_id is None]:
        group.remove(member, decision)
    if group.members and not group.members.elect_joined_leader():
        # Only static members are left and none has come: they are given as long again.
        wait_ms = max(group.members.rebalance_timeout_ms, _SHORTEST_WAIT_MS)
        decision.set_timer(group.timer("join"), now.monotonic_ms + wait_ms)
        return
    group.initial = None
    group.generation += 1
    if group.members:
        _begin_generation(group, now, decision)
        return
    group.protocol = None
    group.subscribed_topics = None
    group.transition_to(State.EMPTY, now)
    decision.records.append(group.record())


def _begin_generation(group: ClassicState, now: Now, decision: GroupDecision) -> None:
    group.protocol = group.members.vote()
    group.update_subscribed_topics()
    group.transition_to(State.COMPLETING_REBALANCE, now)
    for member in group.members:
        member.is_new = False
        if member.joins is not None:
            decision.reply(member.joins, group.join_response(member))
            member.joins = None
        group.renew_session(member, now, decision)
        group.syncing.add(member.member_id)
    decision.set_timer(group.timer("sync"), now.monotonic_ms + group.members.rebalance_timeout_ms)


def on_sync_timer(group: ClassicState, now: Now, decision: GroupDecision) -> None:
    """Those who were told of the generation and never asked for their part are gone."""
    if group.state not in (State.COMPLETING_REBALANCE, State.STABLE):
        return
    late = [member for member in group.members if member.member_id in group.syncing]
    for member in late:
        group.remove(member, decision)
    if late:
        rebalance(group, now, decision)
