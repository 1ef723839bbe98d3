"""DescribeCluster (key 60), versions 0-2.

Behaviour: the cluster's id, its controller, and its live brokers that have this listener. If asked,
the answer says what the client may do to the cluster; everything, where there is no authorizer. A broker whose session
is not proven tells no controller: there may be another one, or none. (Metadata goes on to tell the last one, of which
clients ask what they want to change.)
Version notes: v1 asks for brokers (1) or controllers (2); only brokers are told here. v2 tells which are fenced:
none, since only live brokers are registered.
"""

from typing import Any

from lamina.broker.metadata.metadata import Metadata
from lamina.broker.partitions.cluster import Lease
from lamina.broker.requests.api import Api
from lamina.broker.requests.authorized_operations import ALL_ON_CLUSTER, NOT_ASKED
from lamina.broker.requests.request import Request
from lamina.errors import ErrorCode, KafkaError, MismatchedEndpointType, UnsupportedEndpointType
from lamina.image.image import NO_CONTROLLER
from lamina.wire.api_keys import DESCRIBE_CLUSTER as API_KEY
from lamina.wire.building import response_shape

BROKERS = 1
CONTROLLERS = 2


def handle(metadata: Metadata, lease: Lease, request: Request, message: Any) -> Any:
    asked = getattr(message, "endpoint_type", BROKERS)
    if asked == CONTROLLERS:
        raise MismatchedEndpointType("this is a broker's listener: it tells brokers, not controllers")
    if asked != BROKERS:
        raise UnsupportedEndpointType(f"there is no endpoint type {asked}")
    shape = response_shape(API_KEY, request.api_version)
    broker_shape = shape.of("brokers")
    image = metadata.image
    return shape(
        error_code=ErrorCode.NONE,
        error_message=None,
        endpoint_type=BROKERS,
        cluster_id=image.cluster_id,
        controller_id=image.controller_on(request.listener_name) if lease.is_proven() else NO_CONTROLLER,
        brokers=tuple(
            broker_shape(broker_id=broker.id, host=endpoint.host, port=endpoint.port, rack=broker.rack, is_fenced=False)
            for broker in image.brokers.values()
            if (endpoint := broker.endpoints.get(request.listener_name)) is not None
        ),
        cluster_authorized_operations=(ALL_ON_CLUSTER if message.include_cluster_authorized_operations else NOT_ASKED),
    )


def error_response(request: Request, message: Any, error: KafkaError) -> Any:
    return response_shape(API_KEY, request.api_version)(
        error_code=error.code,
        error_message=str(error),
        endpoint_type=BROKERS,
        cluster_id="",
        controller_id=NO_CONTROLLER,
        brokers=(),
        cluster_authorized_operations=NOT_ASKED,
    )


API = Api(API_KEY, "DescribeCluster", range(3), error_response)
