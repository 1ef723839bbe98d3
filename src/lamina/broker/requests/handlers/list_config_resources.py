"""ListConfigResources (key 74), versions 0-1.

Behaviour: the names of what configs can be set on: every topic, every broker, the loggers of every broker, and the
groups on which something is set; of the types that are asked for, or of all, in turns of the loop. A type that no
version knows is UNSUPPORTED_VERSION.
Version notes: v0 lists client metrics alone, as which it was made (KIP-714), v1 has types (KIP-1142).
Not done: there are no client metrics to list.
"""

from collections.abc import Iterator
from typing import Any

from lamina.broker.metadata.metadata import Metadata
from lamina.broker.requests.api import Api
from lamina.broker.requests.logger_configs import RESOURCE_TYPE as BROKER_LOGGER
from lamina.broker.requests.request import Request
from lamina.broker.turns import in_turns
from lamina.clocks import Clocks
from lamina.errors import ErrorCode, KafkaError, UnsupportedVersion
from lamina.image.image import Image, ResourceType
from lamina.wire.api_keys import LIST_CONFIG_RESOURCES as API_KEY
from lamina.wire.building import response_shape

_CLIENT_METRICS = 16
_TYPES_BY_VERSION = (
    frozenset({_CLIENT_METRICS}),
    frozenset({ResourceType.TOPIC, ResourceType.BROKER, BROKER_LOGGER, _CLIENT_METRICS, ResourceType.GROUP}),
)


async def handle(metadata: Metadata, clocks: Clocks, request: Request, message: Any) -> Any:
    known = _TYPES_BY_VERSION[request.api_version]
    asked = frozenset(getattr(message, "resource_types", ())) or known
    unknown = asked - known
    if unknown:
        raise UnsupportedVersion(f"version {request.api_version} knows no resource of type {min(unknown)}")
    shape = response_shape(API_KEY, request.api_version)
    resource_shape = shape.of("config_resources")
    resources = [
        resource_shape(resource_name=name, resource_type=kind)
        async for kind, name in in_turns(_resources(metadata.image), clocks)
        if kind in asked
    ]
    return shape(error_code=ErrorCode.NONE, config_resources=tuple(resources))


def _resources(image: Image) -> Iterator[tuple[int, str]]:
    for resource in image.configs:
        if resource.type is ResourceType.GROUP:
            yield resource
    for broker_id in image.brokers:
        yield BROKER_LOGGER, str(broker_id)
        yield ResourceType.BROKER, str(broker_id)
    for topic in image.topics.values():
        if not topic.is_being_deleted:
            yield ResourceType.TOPIC, topic.name


def error_response(request: Request, message: Any, error: KafkaError) -> Any:
    shape = response_shape(API_KEY, request.api_version)
    return shape(error_code=error.code, config_resources=())


API = Api(API_KEY, "ListConfigResources", range(2), error_response)
