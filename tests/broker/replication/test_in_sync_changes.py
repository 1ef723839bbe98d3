"""Changes of in-sync sets on their way to the controller: R53, R55."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any
from uuid import UUID

from lamina.broker.counters import Counters, Place, ReplicationCounters
from lamina.broker.partitions.leader import InSyncProposal
from lamina.broker.replication.in_sync_changes import MOST_IN_A_REQUEST, InSyncChanges, StoredInSync
from lamina.errors import ErrorCode, NetworkError
from lamina.peer.call import MessageCall
from lamina.wire.codec import SIZE_BYTES, parse_request, parse_response
from lamina.wire.headers import parse_request_header
from tests.peer.loops import SkippingLoop, run
from tests.peer.responses import response_frame

ALTER_PARTITION = 56
TOPIC = UUID(int=5)


def change(partition_epoch: int = 8) -> InSyncProposal:
    return InSyncProposal(3, partition_epoch, {1: 10, 2: 20})


class Controller:
    """Stores what it is asked for, unless a test has it refuse."""

    def __init__(self) -> None:
        self.requests: list[Any] = []
        self.answers: list[Exception | int] = []
        """What comes before success: an error, or the error code of the whole answer."""
        self.partition_errors: dict[int, int] = {}
        self.is_silent_of: set[int] = set()
        """Partitions that its answers leave out."""
        self.counters = Counters()
        self.go = asyncio.Event()
        self.go.set()

    async def ask(self, call: MessageCall) -> Any:
        frame = call.encode(3, 1, "test")[SIZE_BYTES:]
        header = parse_request_header(frame)
        request = parse_request(ALTER_PARTITION, 3, frame[header.body_at :])
        self.requests.append(request)
        await self.go.wait()
        failure = self.answers.pop(0) if self.answers else 0
        if isinstance(failure, Exception):
            raise failure
        topics = [{"topic_id": topic.topic_id, "partitions": self._answers(topic)} for topic in request.topics]
        frame = response_frame(ALTER_PARTITION, 3, 1, error_code=failure, topics=topics)
        return parse_response(ALTER_PARTITION, 3, frame[SIZE_BYTES:])[1]

    def _answers(self, topic: Any) -> list[dict[str, Any]]:
        return [self._answer(one) for one in topic.partitions if one.partition_index not in self.is_silent_of]

    def _answer(self, asked: Any) -> dict[str, Any]:
        return {
            "partition_index": asked.partition_index,
            "error_code": self.partition_errors.get(asked.partition_index, 0),
            "leader_id": 1,
            "leader_epoch": asked.leader_epoch,
            "isr": [member.broker_id for member in asked.new_isr_with_epochs],
            "partition_epoch": asked.partition_epoch + 1,
        }

    def indexes(self) -> list[list[int]]:
        return [
            [one.partition_index for topic in request.topics for one in topic.partitions] for request in self.requests
        ]


Scenario = Callable[[SkippingLoop, InSyncChanges, Controller], Coroutine[Any, Any, None]]


def scene(scenario: Scenario) -> None:
    async def main(loop: SkippingLoop) -> None:
        controller = Controller()
        changes = InSyncChanges(1, lambda: 77, controller.ask, controller.counters)
        await scenario(loop, changes, controller)
        await changes.stop()

    run(main)


async def turns(loop: SkippingLoop, seconds: float = 0) -> None:
    loop.skip(seconds)
    for _ in range(20):
        await asyncio.sleep(0)


def test_r53_a_change_is_sent_and_what_is_stored_comes_back() -> None:
    async def scenario(loop: SkippingLoop, changes: InSyncChanges, controller: Controller) -> None:
        stored: list[StoredInSync] = []
        changes.propose(TOPIC, 4, change(), stored.append)
        await turns(loop)
        assert stored == [StoredInSync(0, 3, (1, 2), 9)]
        (request,) = controller.requests
        assert (request.broker_id, request.broker_epoch) == (1, 77)
        ((topic_id, (one,)),) = [(topic.topic_id, topic.partitions) for topic in request.topics]
        assert (topic_id, one.partition_index, one.leader_epoch, one.partition_epoch) == (TOPIC, 4, 3, 8)
        assert [(m.broker_id, m.broker_epoch) for m in one.new_isr_with_epochs] == [(1, 10), (2, 20)]

    scene(scenario)


def test_r53_a_change_of_which_the_controller_says_nothing_is_told_as_an_error() -> None:
    """Else its leader would wait for word of it for ever, and propose no other."""

    async def scenario(loop: SkippingLoop, changes: InSyncChanges, controller: Controller) -> None:
        stored: list[StoredInSync] = []
        controller.is_silent_of = {4}
        for index in (4, 5):
            changes.propose(TOPIC, index, change(), stored.append)
        await turns(loop)
        assert [one.error_code for one in stored] == [ErrorCode.UNKNOWN_SERVER_ERROR, 0]
        assert controller.counters.unexpected[Place.REPLICATION] == 0

    scene(scenario)


def test_r53_one_request_is_in_flight_and_what_is_wanted_meanwhile_goes_together() -> None:
    async def scenario(loop: SkippingLoop, changes: InSyncChanges, controller: Controller) -> None:
        controller.go.clear()
        stored: list[StoredInSync] = []
        for index in range(4):
            changes.propose(TOPIC, index, change(), stored.append)
            await turns(loop)
        assert controller.indexes() == [[0]]
        controller.go.set()
        await turns(loop)
        assert controller.indexes() == [[0], [1, 2, 3]]
        assert len(stored) == 4

    scene(scenario)


def test_a_request_holds_no_more_than_one_turn_of_the_loop_takes() -> None:
    async def scenario(loop: SkippingLoop, changes: InSyncChanges, controller: Controller) -> None:
        stored: list[StoredInSync] = []
        for index in range(2 * MOST_IN_A_REQUEST + 1):
            changes.propose(TOPIC, index, change(), stored.append)
        await turns(loop)
        assert [len(indexes) for indexes in controller.indexes()] == [MOST_IN_A_REQUEST, MOST_IN_A_REQUEST, 1]
        assert len(stored) == 2 * MOST_IN_A_REQUEST + 1

    scene(scenario)


def test_r53_what_fails_as_a_whole_is_tried_again_after_50_ms_for_ever() -> None:
    async def scenario(loop: SkippingLoop, changes: InSyncChanges, controller: Controller) -> None:
        controller.answers = [NetworkError("gone"), int(ErrorCode.NOT_CONTROLLER), NetworkError("gone")]
        stored: list[StoredInSync] = []
        changes.propose(TOPIC, 0, change(), stored.append)
        for attempt in range(1, 4):
            await turns(loop)
            assert len(controller.requests) == attempt
            await turns(loop, 0.051)
        assert [one.error_code for one in stored] == [0]

    scene(scenario)


def test_r53_what_our_own_code_fails_at_is_tried_again_too() -> None:
    async def scenario(loop: SkippingLoop, changes: InSyncChanges, controller: Controller) -> None:
        controller.answers = [ValueError("a bug")]
        stored: list[StoredInSync] = []
        changes.propose(TOPIC, 0, change(), stored.append)
        await turns(loop)
        assert controller.counters.unexpected == {Place.REPLICATION: 1}
        await turns(loop, 0.051)
        assert [one.error_code for one in stored] == [0]

    scene(scenario)


def test_r55_one_who_fails_when_it_is_told_takes_nothing_from_the_others() -> None:
    async def scenario(loop: SkippingLoop, changes: InSyncChanges, controller: Controller) -> None:
        stored: list[StoredInSync] = []

        def fail(_: StoredInSync) -> None:
            raise ValueError("a bug")

        for index, on_stored in enumerate((fail, stored.append)):
            changes.propose(TOPIC, index, change(), on_stored)
        await turns(loop)
        assert (controller.indexes(), len(stored)) == ([[0, 1]], 1)
        assert controller.counters.unexpected == {Place.REPLICATION: 1}
        changes.propose(TOPIC, 2, change(), stored.append)
        await turns(loop)
        assert len(stored) == 2

    scene(scenario)


def test_r55_a_refusal_goes_back_to_who_wanted_it_and_asking_again_does_not_spin() -> None:
    async def scenario(loop: SkippingLoop, changes: InSyncChanges, controller: Controller) -> None:
        controller.partition_errors[0] = ErrorCode.INVALID_UPDATE_VERSION
        stored: list[StoredInSync] = []

        def again(told: StoredInSync) -> None:
            stored.append(told)
            changes.propose(TOPIC, 0, change(), again)

        changes.propose(TOPIC, 0, change(), again)
        await turns(loop)
        assert [one.error_code for one in stored] == [ErrorCode.INVALID_UPDATE_VERSION]
        await turns(loop, 0.051)
        assert len(controller.requests) == 2

    scene(scenario)


def test_r55_what_was_replaced_meanwhile_is_not_answered() -> None:
    async def scenario(loop: SkippingLoop, changes: InSyncChanges, controller: Controller) -> None:
        controller.go.clear()
        stored: list[str] = []
        for index in range(2):
            changes.propose(TOPIC, index, change(), lambda _: stored.append("old"))
        await turns(loop)
        changes.propose(TOPIC, 0, change(partition_epoch=9), lambda _: stored.append("new"))
        controller.go.set()
        await turns(loop)
        assert (controller.indexes(), stored) == ([[0, 1], [0]], ["old", "new"])

    scene(scenario)


def test_what_is_stored_is_counted_as_shrunk_or_expanded() -> None:
    counters = ReplicationCounters()
    for growth in (1, -1, -2, 0):
        counters.count_in_sync_change(growth)
    assert (counters.isr_expands, counters.isr_shrinks) == (1, 2)
