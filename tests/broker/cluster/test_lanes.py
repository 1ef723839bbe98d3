"""What brokers ask each other does not wait behind what takes long."""

from lamina.broker.requests.remote_verification import Question
from lamina.coordinators.decision import Producer, SendMarkers
from lamina.errors import ErrorCode
from tests.broker.cluster.conftest import NewMembers


def test_r76_a_verification_does_not_wait_behind_a_marker_whose_commit_takes_long(new_members: NewMembers) -> None:
    """Its partition may wait for a follower that is away, and has nothing to do with whoever writes elsewhere."""
    members = new_members(replica_lag_time_max_ms="60000")
    for node_id in (1, 2, 3):
        members.start(node_id)
    members.create(1, "t", [[2, 3]])
    members.run_until(lambda: members.leads(2, "t") and members.produce(2, "t") == ErrorCode.NONE)
    asking, asked = members.up[1].parts, members.up[2].parts
    members.isolate(3)
    log = asked.partitions.get("t", 0).log
    end = log.log_end_offset
    marker = SendMarkers("x", Producer(7, 0), 0, False, frozenset({("t", 0)}), 0, needs_producer_id=False)
    writing = members.loop.create_task(asking.transactions.markers._remote.write(marker, {2: marker.partitions}))
    members.run_until(lambda: log.log_end_offset == end + 1)
    question = Question("y", 8, 0, (("t", 0),), may_add=False)
    answers = members.finish(asking.verification._remote.verify(2, question))
    error = answers["t", 0]
    assert error is not None
    assert error.code == ErrorCode.NOT_COORDINATOR, "nobody has made the topic of transactions here"
    assert not writing.done()
    members.heal()
    members.run_until(writing.done)
    assert writing.result() == {("t", 0): ErrorCode.NONE}
