"""JoinGroup (key 11), versions 0-9.

Behaviour: the group's shard decides; the answer comes when the members of the next generation are known. A client that
goes away meanwhile is answered at once, and its member stays for its session.
Version notes: without a rebalance timeout (v0) it is the session's; from v4 a new member is first told its id
(MEMBER_ID_REQUIRED); static members from v5; the leader may be told to keep the assignment (v9). A null protocol name
is an empty one below v7.
"""

from typing import Any
from uuid import uuid4

from lamina.broker.coordination.group_coordinator import GroupCoordinator
from lamina.broker.requests.api import Api
from lamina.broker.requests.request import Request
from lamina.coordinators.group_requests import Client, JoinRequest, JoinResponse
from lamina.errors import ErrorCode, KafkaError, RebalanceInProgress
from lamina.wire.api_keys import JOIN_GROUP as API_KEY
from lamina.wire.building import response_shape
from lamina.wire.encoder import milliseconds

_NAME_CHARACTERS = 255
"""A new member's id begins with its client's name, of which this much tells enough: a longer id cannot be stored."""
_FIRST_WITH_REQUIRED_ID = 4
_FIRST_TO_SKIP = 9
_FIRST_WITH_NULL_PROTOCOL = 7


def handle(groups: GroupCoordinator, request: Request, message: Any) -> Any:
    session_timeout_ms = milliseconds(message.session_timeout)
    client = client_of(request)
    instance_id = getattr(message, "group_instance_id", None)
    join = JoinRequest(
        message.group_id,
        message.member_id,
        instance_id,
        client,
        message.protocol_type,
        tuple((protocol.name, bytes(protocol.metadata)) for protocol in message.protocols),
        session_timeout_ms,
        milliseconds(message.rebalance_timeout) if hasattr(message, "rebalance_timeout") else session_timeout_ms,
        new_member_id=f"{(instance_id or client.client_id)[:_NAME_CHARACTERS]}-{uuid4()}",
        requires_known_member_id=request.api_version >= _FIRST_WITH_REQUIRED_ID,
        may_skip_assignment=request.api_version >= _FIRST_TO_SKIP,
        reason=getattr(message, "reason", None) or "",
    )
    shard = groups.shard_of(message.group_id)
    pending = shard.ask(lambda machine, waiter, now: machine.join(join, waiter, now))
    if not pending.is_ready:
        request.park(lambda: pending.give_up(RebalanceInProgress("the client is gone")))
    return pending.then(lambda response: _response(request, response))


def client_of(request: Request) -> Client:
    """Who asks, as the group coordinator stores it."""
    host, _, _ = request.client.peer.rpartition(":")
    return Client(request.client_id or "", f"/{host}")


def _response(request: Request, response: JoinResponse) -> Any:
    shape = response_shape(API_KEY, request.api_version)
    member_shape = shape.of("members")
    protocol = response.protocol
    if protocol is None and request.api_version < _FIRST_WITH_NULL_PROTOCOL:
        protocol = ""
    return shape(
        error_code=ErrorCode.NONE if response.error is None else response.error.code,
        generation_id=response.generation,
        protocol_type=response.protocol_type,
        protocol_name=protocol,
        leader=response.leader,
        skip_assignment=response.skip_assignment,
        member_id=response.member_id,
        members=tuple(
            member_shape(member_id=member.member_id, group_instance_id=member.instance_id, metadata=member.metadata)
            for member in response.members
        ),
    )


def error_response(request: Request, message: Any, error: KafkaError) -> Any:
    return _response(request, JoinResponse(message.member_id, error=error))


API = Api(API_KEY, "JoinGroup", range(10), error_response)
