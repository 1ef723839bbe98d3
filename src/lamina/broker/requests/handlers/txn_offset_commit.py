"""TxnOffsetCommit (key 28), versions 0-5.

Behaviour: offsets that a group has read up to, committed with a producer's transaction: they are not seen
before it commits, and never if it aborts. Up to 256 partitions are one batch; more are several, in turns of the loop.
Version notes: before v2 a coordinator that loads is COORDINATOR_NOT_AVAILABLE; from v3 the member is checked as in
OffsetCommit; TRANSACTION_ABORTABLE from v4; with v5 (transaction version 2) the group's partition becomes part of the
transaction here, before that AddOffsetsToTxn did so.
"""

from typing import Any

from lamina.broker.coordination.group_coordinator import GroupCoordinator
from lamina.broker.coordination.shard import DecisionTooLarge
from lamina.broker.metadata.metadata import Metadata
from lamina.broker.requests.api import Api
from lamina.broker.requests.handlers.offset_commit import (
    Known,
    are_many,
    batches,
    note,
    sort_in_turns,
    sort_partitions,
)
from lamina.broker.requests.offset_outcomes import one_outcome, response_in_turns, response_with
from lamina.broker.requests.request import Request
from lamina.broker.requests.transaction_verification import TransactionVerification
from lamina.broker.turns import Turns
from lamina.clocks import Clocks
from lamina.coordinators.group_requests import TransactionalCommitRequest
from lamina.errors import ErrorCode, InvalidCommitOffsetSize, InvalidGroupId, KafkaError
from lamina.wire.api_keys import TXN_OFFSET_COMMIT as API_KEY

_FIRST_WITH_LOADING = 2
_NO_GENERATION = -1


async def handle(
    metadata: Metadata,
    groups: GroupCoordinator,
    verification: TransactionVerification,
    clocks: Clocks,
    request: Request,
    message: Any,
) -> Any:
    if not message.group_id:
        raise InvalidGroupId("a group must have a name")
    if are_many(message):
        return await _handle_in_turns(metadata, groups, verification, clocks, request, message)
    known, outcome = sort_partitions(metadata, message)
    if known:
        note(known, await _commit(groups, verification, request, message, known), outcome)
    return response_with(API_KEY, request, message, outcome)


async def _handle_in_turns(
    metadata: Metadata,
    groups: GroupCoordinator,
    verification: TransactionVerification,
    clocks: Clocks,
    request: Request,
    message: Any,
) -> Any:
    """As above, for many partitions: some of them at a time, each time in the same open transaction."""
    turns = Turns(clocks)
    known, outcome = await sort_in_turns(metadata, message, turns)
    for some in batches(known):
        note(some, await _commit(groups, verification, request, message, some), outcome)
        await turns.step()
    return await response_in_turns(API_KEY, request, message, outcome, turns)


async def _commit(
    groups: GroupCoordinator, verification: TransactionVerification, request: Request, message: Any, known: Known
) -> list[KafkaError | None]:
    commit = TransactionalCommitRequest(
        message.group_id,
        message.transactional_id,
        message.producer_id,
        message.producer_epoch,
        getattr(message, "member_id", ""),
        getattr(message, "generation_id", _NO_GENERATION),
        getattr(message, "group_instance_id", None),
        tuple(one for _, one in known),
        request.api_version,
    )
    shard = groups.shard_of(message.group_id)
    guard = await verification.verify_commit(shard.log.partition, commit)
    try:
        errors: list[KafkaError | None] = await shard.ask(
            lambda machine, waiter, now: machine.commit_in_transaction(commit, waiter, now), guard
        )
    except DecisionTooLarge as error:
        raise InvalidCommitOffsetSize(str(error)) from error
    return errors


def error_response(request: Request, message: Any, error: KafkaError) -> Any:
    code = error.code
    if code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and request.api_version < _FIRST_WITH_LOADING:
        code = ErrorCode.COORDINATOR_NOT_AVAILABLE
    return response_with(API_KEY, request, message, one_outcome(message, code))


API = Api(API_KEY, "TxnOffsetCommit", range(6), error_response)
