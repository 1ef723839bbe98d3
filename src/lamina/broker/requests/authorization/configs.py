"""What requests about configs check: each resource by its type, and brokers as the cluster.

Must not know any config.
"""

from typing import Any

from lamina.broker.requests.api import Handler
from lamina.broker.requests.authorization.authorizer import Authorizer
from lamina.broker.requests.authorization.guards import Guarding, denial
from lamina.broker.requests.logger_configs import RESOURCE_TYPE as BROKER_LOGGER
from lamina.broker.requests.request import Request
from lamina.broker.turns import in_turns
from lamina.errors import KafkaError
from lamina.image.image import ResourceType as ConfigType
from lamina.security.access_index import CLUSTER_NAME
from lamina.security.acls import Operation, ResourceType

_CLIENT_METRICS = 16
_RESOURCES = {
    ConfigType.TOPIC: ResourceType.TOPIC,
    ConfigType.GROUP: ResourceType.GROUP,
    ConfigType.BROKER: ResourceType.CLUSTER,
    BROKER_LOGGER: ResourceType.CLUSTER,
    _CLIENT_METRICS: ResourceType.CLUSTER,
}


def refusal(authorizer: Authorizer, request: Request, operation: Operation, resource: Any) -> KafkaError | None:
    """Why a request may not touch the configs of this resource. What kinds there are, the handler says."""
    type_ = _RESOURCES.get(resource.resource_type)
    if type_ is None:
        return None
    name = CLUSTER_NAME if type_ is ResourceType.CLUSTER else resource.resource_name
    return None if authorizer.allows(request, operation, type_, name) else denial(operation, type_)


def alter_configs(guarding: Guarding) -> Handler:
    api, handle, authorizer = guarding.api, guarding.handle, guarding.authorizer

    async def guarded(request: Request, message: Any) -> Any:
        allowed, refused = [], []
        async for resource in in_turns(message.resources, authorizer.clocks):
            error = refusal(authorizer, request, Operation.ALTER_CONFIGS, resource)
            if error is None:
                allowed.append(resource)
            else:
                of_one = api.error_response(request, message.replace(resources=(resource,)), error)
                refused += of_one.responses
        if not refused:
            return await handle(request, message)
        response = await handle(request, message.replace(resources=tuple(allowed)))
        return response.replace(responses=(*response.responses, *refused))

    return guarded
