"""What a broker reports: as bytes, and until when."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from lamina.broker.metadata.applied import Applied
from lamina.broker.metadata.reports import OwnFacts, Report, encode_report, parse_report
from lamina.broker.partitions.cluster import Cluster, OwnCluster
from lamina.controller.election import LogEnd
from lamina.image.changes import (
    create_topic,
    mark_deleted,
    mark_made,
    register_broker,
    remove_topic,
    set_partitions,
)
from lamina.image.image import Image
from lamina.image.topic import NO_LEADER
from tests.image.steps import CLUSTER_ID, broker, topic_id

ME, MY_EPOCH = 1, 12
partitions = st.tuples(st.text(max_size=3), st.integers(0, 9))
reports = st.builds(
    Report,
    is_ready=st.booleans(),
    is_draining=st.booleans(),
    made=st.frozensets(partitions),
    lost=st.frozensets(partitions),
    removed=st.frozensets(partitions),
    offline=st.frozensets(partitions),
    deleted=st.frozensets(st.binary(min_size=16, max_size=16)),
    ends=st.none() | st.dictionaries(partitions, st.builds(LogEnd, st.integers(-1, 9), st.integers(0, 9))),
)


def own_facts() -> OwnFacts:
    cluster = Cluster(ME, 1000, OwnCluster())
    cluster.broker_epoch = MY_EPOCH
    return OwnFacts(cluster)


@given(reports)
def test_a_report_reads_as_it_was_written(report: Report) -> None:
    if report.ends == {}:
        report = replace(report, ends=None)
    assert parse_report(encode_report(report)) == report


def test_a_fact_is_told_until_the_image_shows_it() -> None:
    image = create_topic(Image(CLUSTER_ID), "t", topic_id(1), [(ME, 2)])
    facts = own_facts()
    facts.did(Applied(made=[("t", 0)]), image)
    assert facts.report(image, ()).made == {("t", 0)}
    assert facts.report(image, ()).made == {("t", 0)}, "told again until it is stored"
    made = mark_made(image, ME, [("t", 0)])
    assert facts.report(made, ()).made == frozenset()
    facts.did(Applied(lost=[("t", 0)]), made)
    assert facts.report(made, ()).lost == {("t", 0)}
    assert facts.report(image, ()).lost == frozenset(), "the controller gave it up"


def test_what_a_failed_directory_may_have_of_a_deleted_topic_is_offline_while_the_topic_is_there() -> None:
    image = mark_deleted(mark_made(create_topic(Image(CLUSTER_ID), "t", topic_id(1), [(ME, 2)]), ME, [("t", 0)]), "t")
    facts = own_facts()
    facts.did(Applied(deleted=[image.topics["t"]], left=[(("t", 0), topic_id(1))]), image)
    report = facts.report(image, ())
    assert (report.deleted, report.offline) == (frozenset(), frozenset([("t", 0)])), (
        "this broker still has something of it"
    )
    assert facts.report(remove_topic(image, "t"), ()).offline == frozenset()


def test_what_was_removed_is_told_until_nobody_counts_on_it() -> None:
    image = mark_made(create_topic(Image(CLUSTER_ID), "t", topic_id(1), [(ME, 2)]), ME, [("t", 0)])
    moved = set_partitions(image, {("t", 0): replace(image.topics["t"].partitions[0], replicas=(2, 3), leader=2)})
    facts = own_facts()
    facts.did(Applied(removed=[("t", 0)]), moved)
    assert facts.report(moved, ()).removed == {("t", 0)}
    facts.did(Applied(made=[("t", 0)]), image)
    assert facts.report(image, ()).removed == frozenset(), "it has it again"
    facts.did(Applied(removed=[("t", 0)]), moved)
    unmade = set_partitions(moved, {("t", 0): replace(moved.topics["t"].partitions[0], made_on=())})
    assert facts.report(unmade, ()).removed == frozenset()


def test_a_directory_that_was_made_for_a_replica_of_others_is_not_told_of() -> None:
    """The reassignment was cancelled meanwhile: no controller would take it in."""
    image = create_topic(Image(CLUSTER_ID), "t", topic_id(1), [(ME, 2)])
    facts = own_facts()
    facts.did(Applied(made=[("t", 0)]), image)
    cancelled = set_partitions(image, {("t", 0): replace(image.topics["t"].partitions[0], replicas=(2, 3), leader=2)})
    assert facts.report(cancelled, ()).made == frozenset()


def test_a_fact_is_not_told_of_another_topic_that_has_the_name_by_then() -> None:
    image = create_topic(Image(CLUSTER_ID), "t", topic_id(1), [(ME, 2)])
    facts = own_facts()
    facts.did(Applied(made=[("t", 0)]), image)
    made_again = create_topic(remove_topic(image, "t"), "t", topic_id(2), [(ME, 2)])
    assert facts.report(made_again, ()).made == frozenset()


def test_a_deletion_is_told_until_nobody_waits_for_it() -> None:
    image = mark_deleted(create_topic(Image(CLUSTER_ID), "t", topic_id(1), [(ME, 2)]), "t")
    facts = own_facts()
    facts.did(Applied(deleted=[image.topics["t"]]), image)
    assert facts.report(image, ()).deleted == {topic_id(1)}
    gone = remove_topic(image, "t")
    waits = replace(gone, deletions={topic_id(1): (ME,)})
    assert facts.report(waits, ()).deleted == {topic_id(1)}
    assert facts.report(gone, ()).deleted == frozenset()


def test_what_is_offline_is_told_whole() -> None:
    facts = own_facts()
    assert facts.report(Image(CLUSTER_ID), [("t", 0), ("t", 1)]).offline == {("t", 0), ("t", 1)}
    assert facts.report(Image(CLUSTER_ID), []).offline == frozenset()


def test_an_unclean_stop_is_told_until_an_election_has_answered_it() -> None:
    """Told to the next controller it would cost this broker an in-sync set that it has joined since."""
    ends = {("t", 0): LogEnd(0, 5), ("t", 1): LogEnd(0, 6), ("t", 2): LogEnd(0, 7), ("gone", 0): LogEnd(0, 8)}
    facts = own_facts()
    facts.ends = ends
    image = create_topic(Image(CLUSTER_ID), "t", topic_id(1), [(ME, 2), (2, ME), (ME,)])
    waiting = replace(image.topics["t"].partitions[0], leader=NO_LEADER)
    dropped = replace(image.topics["t"].partitions[1], leader=NO_LEADER, isr=(2,))
    image = set_partitions(image, {("t", 0): waiting, ("t", 1): dropped})
    assert facts.report(image, ()).ends == ends, "the controller has not heard of this start"
    ghost = register_broker(image, replace(broker(ME), epoch=11))
    assert facts.report(ghost, ()).ends == ends, "what it knows is the registration before"
    registered = register_broker(image, replace(broker(ME), epoch=MY_EPOCH))
    assert facts.report(registered, ()).ends == {("t", 0): LogEnd(0, 5)}
    elected = set_partitions(registered, {("t", 0): replace(waiting, leader=2)})
    assert facts.report(elected, ()).ends is None
