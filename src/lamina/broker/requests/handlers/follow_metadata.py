"""FollowMetadata (key 10000, Lamina's own), version 0: how the controller's changes reach a broker.

Behaviour: takes a broker's report and answers with the changes that it has not followed yet; the whole image for a
broker that followed another controller, or too long ago. Where there is nothing new the answer waits up to `max_wait`.
NOT_CONTROLLER where this broker is not the controller; STALE_BROKER_EPOCH for a registration that is not the last one.
"""

from datetime import timedelta
from typing import Any

from lamina.broker.metadata.follow_messages import LONGEST_WAIT_MS, FollowRequest, FollowResponse
from lamina.broker.metadata.member import Member
from lamina.broker.metadata.reports import encode_report, parse_report
from lamina.broker.requests.api import Api
from lamina.broker.requests.request import Request
from lamina.broker.threads import Threads
from lamina.clocks import Clocks
from lamina.errors import ErrorCode, InvalidRequest, KafkaError, error_from_code
from lamina.peer.call import MessageCall
from lamina.wire.api_keys import FOLLOW_METADATA
from lamina.wire.building import response_shape

_LINE_END = b"\n"
_LARGE_BYTES = 32 * 1024
"""Of a report that tells of so many replicas that the loop would be held up for more than a millisecond."""


async def handle(member: Member, message_thread: Threads, clocks: Clocks, request: Request, message: Any) -> Any:
    data = bytes(message.report)
    try:
        is_large = len(data) > _LARGE_BYTES
        report = await message_thread.compute(lambda: parse_report(data)) if is_large else parse_report(data)
    except ValueError as error:
        raise InvalidRequest(f"a report cannot be read: {error}") from None
    max_wait_ms = min(int(message.max_wait / timedelta(milliseconds=1)), LONGEST_WAIT_MS)
    asked = FollowRequest(message.controller_epoch, message.version, max_wait_ms, report)
    began_ns = clocks.monotonic_ns()
    try:
        answer = await member.follow(message.broker_id, message.broker_epoch, asked, request.client)
    finally:
        if request.waits is not None:
            # A long poll is slow by intent, also where it ends because the controller is another one by now.
            request.waits.parked_ns += clocks.monotonic_ns() - began_ns
    return response_shape(FOLLOW_METADATA, request.api_version)(
        error_code=ErrorCode.NONE,
        error_message=None,
        controller_epoch=answer.controller_epoch,
        version=answer.version,
        is_full=answer.is_full,
        changes=_LINE_END.join(answer.lines),
    )


def follow_call(broker_id: int, broker_epoch: int, asked: FollowRequest) -> MessageCall:
    """What a broker sends."""
    return MessageCall(
        FOLLOW_METADATA,
        range(1),
        wait_ms=asked.max_wait_ms,
        broker_id=broker_id,
        broker_epoch=broker_epoch,
        controller_epoch=asked.controller_epoch,
        version=asked.version,
        max_wait=timedelta(milliseconds=asked.max_wait_ms),
        report=encode_report(asked.report),
    )


def answer_in(response: Any) -> FollowResponse:
    """What came back. Raises its error."""
    if response.error_code != ErrorCode.NONE:
        raise error_from_code(response.error_code, response.error_message or "the controller refused")
    changes = bytes(response.changes)
    lines = changes.split(_LINE_END) if changes else []
    return FollowResponse(response.controller_epoch, response.version, response.is_full, lines)


def error_response(request: Request, _message: Any, error: KafkaError) -> Any:
    return response_shape(FOLLOW_METADATA, request.api_version)(
        error_code=error.code, error_message=str(error), controller_epoch=-1, version=-1, is_full=False, changes=b""
    )


API = Api(FOLLOW_METADATA, "FollowMetadata", range(1), error_response, is_for_brokers=True)
