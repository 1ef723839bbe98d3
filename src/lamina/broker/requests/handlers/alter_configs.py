"""AlterConfigs (key 33), versions 0-2, and IncrementalAlterConfigs (key 44), versions 0-1.

Behaviour: configs of topics, of this broker, and of all brokers (the empty name) are changed in one change for
all resources that are fine; they hold when the answer goes out, and after a restart. AlterConfigs replaces all
that is set on a resource; IncrementalAlterConfigs sets, deletes, and adds to or takes from lists. A bad value is
INVALID_CONFIG on a topic, even one that is not there, and INVALID_REQUEST on a broker, as in Kafka; so is a broker's
read-only setting. With `validate_only` nothing is changed.
IncrementalAlterConfigs also sets the levels of this broker's loggers, at once and until it stops.
In a cluster the controller decides, but a broker whose own certificates are changed first looks whether it could use
them: a request that names such a one among others is then not attempted at all.
Version notes: the versions of each differ in their encoding only.
Not done: other resources (client metrics) are an INVALID_REQUEST.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from lamina.broker.metadata.config_changes import ResourceChange, change_configs, check_own_keys
from lamina.broker.metadata.metadata import Metadata
from lamina.broker.requests import logger_configs
from lamina.broker.requests.api import Api
from lamina.broker.requests.authorization.authorizer import Authorizer
from lamina.broker.requests.request import Request
from lamina.broker.turns import in_turns
from lamina.clocks import Clocks
from lamina.errors import ErrorCode, InvalidRequest, KafkaError, OperationNotAttempted
from lamina.image.configs import ConfigOperation, OperationType, alter_configs
from lamina.image.image import ConfigResource, ResourceType
from lamina.security.access_index import CLUSTER_NAME
from lamina.security.acls import Operation
from lamina.security.acls import ResourceType as AclResource
from lamina.wire.api_keys import ALTER_CONFIGS, INCREMENTAL_ALTER_CONFIGS
from lamina.wire.building import Shape, response_shape


async def handle(metadata: Metadata, clocks: Clocks, request: Request, message: Any) -> Any:
    alter = _replace if request.api_key == ALTER_CONFIGS else _alter
    loggers = []
    changes = []
    async for resource in in_turns(message.resources, clocks):
        if _is_of_loggers(request, resource):
            loggers.append(resource)
        else:
            changes.append(_change(alter, resource))
    of_loggers = iter(await _alter_loggers(metadata.node_id, loggers, clocks, validate_only=message.validate_only))
    # Levels alone can be set while no controller is there.
    errors = await change_configs(metadata, changes, clocks, validate_only=message.validate_only) if changes else []
    of_others = iter(errors)
    shape = response_shape(request.api_key, request.api_version)
    one = shape.of("responses")
    responses = []
    async for resource in in_turns(message.resources, clocks):
        error = next(of_loggers if _is_of_loggers(request, resource) else of_others)
        responses.append(_response(one, resource, error))
    return shape(responses=tuple(responses))


async def check_here(metadata: Metadata, authorizer: Authorizer | None, request: Request, message: Any) -> Any:
    """What to answer instead of asking the controller, or None: only this broker sees its own files (S5)."""
    alter = _replace if request.api_key == ALTER_CONFIGS else _alter
    refused: dict[int, KafkaError] = {}
    for index, resource in enumerate(message.resources):
        if resource.resource_type == ResourceType.BROKER and resource.resource_name == str(metadata.node_id):
            # Files are not looked at for who may not change anything: the controller tells them so.
            if authorizer is not None and not authorizer.allows_filtering(
                request, Operation.ALTER_CONFIGS, AclResource.CLUSTER, CLUSTER_NAME
            ):
                return None
            try:
                await check_own_keys(metadata, _change(alter, resource))
            except KafkaError as error:
                refused[index] = error.without_frames()
    if not refused:
        return None
    shape = response_shape(request.api_key, request.api_version)
    other = OperationNotAttempted("another resource of the request cannot be changed")
    return shape(
        responses=tuple(
            _response(shape.of("responses"), resource, refused.get(index, other))
            for index, resource in enumerate(message.resources)
        )
    )


def _change(alter: Callable[..., Mapping[str, str]], resource: Any) -> ResourceChange:
    names = tuple(config.name for config in resource.configs)
    return ResourceChange(resource.resource_type, resource.resource_name, partial(alter, resource.configs), names)


def _is_of_loggers(request: Request, resource: Any) -> bool:
    return request.api_key == INCREMENTAL_ALTER_CONFIGS and resource.resource_type == logger_configs.RESOURCE_TYPE


def _concerns_loggers_alone(message: Any) -> bool:
    """Levels of loggers are a broker's own: no other broker can set them."""
    return all(resource.resource_type == logger_configs.RESOURCE_TYPE for resource in message.resources)


async def _alter_loggers(
    node_id: int, resources: Sequence[Any], clocks: Clocks, *, validate_only: bool
) -> list[KafkaError | None]:
    named = Counter(resource.resource_name for resource in resources)
    errors: list[KafkaError | None] = []
    async for resource in in_turns(resources, clocks):
        try:
            if named[resource.resource_name] > 1:
                raise InvalidRequest(f"the loggers of {resource.resource_name!r} are named more than once")
            operations = [_operation(config) for config in resource.configs]
            logger_configs.check_logger_resource(resource.resource_name, node_id)
            logger_configs.alter_levels(operations, validate_only=validate_only)
            errors.append(None)
        except KafkaError as error:
            errors.append(error.without_frames())
    return errors


def _replace(configs: Sequence[Any], resource: ConfigResource, current: Mapping[str, str]) -> Mapping[str, str]:
    """What is set afterwards is what the request names; the rest goes."""
    operations = [ConfigOperation(config.name, OperationType.SET, config.value) for config in configs]
    return alter_configs(resource, {}, operations)


def _alter(configs: Sequence[Any], resource: ConfigResource, current: Mapping[str, str]) -> Mapping[str, str]:
    """What is set afterwards is what was set, with each operation done to it."""
    return alter_configs(resource, current, [_operation(config) for config in configs])


def _operation(config: Any) -> ConfigOperation:
    try:
        return ConfigOperation(config.name, OperationType(config.config_operation), config.value)
    except ValueError:
        raise InvalidRequest(f"{config.name}: there is no operation {config.config_operation}") from None


def _response(shape: Shape, resource: Any, error: KafkaError | None) -> Any:
    return shape(
        error_code=ErrorCode.NONE if error is None else error.code,
        error_message=None if error is None else str(error),
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


def error_response(request: Request, message: Any, error: KafkaError) -> Any:
    shape = response_shape(request.api_key, request.api_version)
    one = shape.of("responses")
    return shape(responses=tuple(_response(one, resource, error) for resource in message.resources))


ALTER_API = Api(ALTER_CONFIGS, "AlterConfigs", range(3), error_response, is_for_controller=True)
INCREMENTAL_API = Api(
    INCREMENTAL_ALTER_CONFIGS,
    "IncrementalAlterConfigs",
    range(2),
    error_response,
    is_for_controller=True,
    stays_here=_concerns_loggers_alone,
)
