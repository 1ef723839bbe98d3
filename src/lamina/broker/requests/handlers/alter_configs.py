"""AlterConfigs (key 33), versions 0-2, and IncrementalAlterConfigs (key 44), versions 0-1.

Behaviour: configs of topics, of this broker, and of all brokers (the empty name) are changed in one change for
all resources that are fine; they hold when the answer goes out, and after a restart. AlterConfigs replaces all
that is set on a resource; IncrementalAlterConfigs sets, deletes, and adds to or takes from lists. A bad value is
INVALID_CONFIG on a topic, even one that is not there, and INVALID_REQUEST on a broker, as in Kafka; so is a broker's
read-only setting. With `validate_only` nothing is changed.
IncrementalAlterConfigs also sets the levels of this broker's loggers, at once and until it stops.
Version notes: the versions of each differ in their encoding only.
Not done: other resources (client metrics) are an INVALID_REQUEST.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lamina.broker.metadata.config_changes import ResourceChange, change_configs
from lamina.broker.metadata.metadata import Metadata
from lamina.broker.requests import logger_configs
from lamina.broker.requests.api import Api
from lamina.broker.requests.request import Request
from lamina.broker.turns import in_turns
from lamina.clocks import Clocks
from lamina.errors import ErrorCode, InvalidRequest, KafkaError
from lamina.image.configs import ConfigOperation, OperationType, alter_configs
from lamina.image.image import ConfigResource
from lamina.wire.building import Shape, response_shape

ALTER_CONFIGS = 33
INCREMENTAL_ALTER_CONFIGS = 44


_Alter = Callable[[ConfigResource, Mapping[str, str]], Mapping[str, str]]


async def handle(metadata: Metadata, clocks: Clocks, request: Request, message: Any) -> Any:
    alteration = _replacing if request.api_key == ALTER_CONFIGS else _altering
    loggers = [resource for resource in message.resources if _is_of_loggers(request, resource)]
    changes = [
        ResourceChange(resource.resource_type, resource.resource_name, alteration(resource.configs))
        for resource in message.resources
        if not _is_of_loggers(request, resource)
    ]
    of_loggers = iter(_alter_loggers(metadata.node_id, loggers, validate_only=message.validate_only))
    of_others = iter(await change_configs(metadata, changes, clocks, validate_only=message.validate_only))
    errors = [next(of_loggers if _is_of_loggers(request, resource) else of_others) for resource in message.resources]
    shape = response_shape(request.api_key, request.api_version)
    one = shape.of("responses")
    both = zip(message.resources, errors, strict=True)
    responses = [_response(one, resource, error) async for resource, error in in_turns(both, clocks)]
    return shape(responses=tuple(responses))


def _is_of_loggers(request: Request, resource: Any) -> bool:
    return request.api_key == INCREMENTAL_ALTER_CONFIGS and resource.resource_type == logger_configs.RESOURCE_TYPE


def _alter_loggers(node_id: int, resources: Sequence[Any], *, validate_only: bool) -> list[KafkaError | None]:
    named = Counter(resource.resource_name for resource in resources)
    errors: list[KafkaError | None] = []
    for resource in resources:
        try:
            if named[resource.resource_name] > 1:
                raise InvalidRequest(f"the loggers of {resource.resource_name!r} are named more than once")
            operations = [_operation(config) for config in resource.configs]
            logger_configs.check_logger_resource(resource.resource_name, node_id)
            logger_configs.alter_levels(operations, validate_only=validate_only)
            errors.append(None)
        except KafkaError as error:
            errors.append(error)
    return errors


def _replacing(configs: Sequence[Any]) -> _Alter:
    """What is set afterwards is what the request names; the rest goes."""

    def alter(resource: ConfigResource, current: Mapping[str, str]) -> Mapping[str, str]:
        operations = [ConfigOperation(config.name, OperationType.SET, config.value) for config in configs]
        return alter_configs(resource, {}, operations)

    return alter


def _altering(configs: Sequence[Any]) -> _Alter:
    """What is set afterwards is what was set, with each operation done to it."""

    def alter(resource: ConfigResource, current: Mapping[str, str]) -> Mapping[str, str]:
        return alter_configs(resource, current, [_operation(config) for config in configs])

    return alter


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


ALTER_API = Api(ALTER_CONFIGS, "AlterConfigs", range(3), error_response)
INCREMENTAL_API = Api(INCREMENTAL_ALTER_CONFIGS, "IncrementalAlterConfigs", range(2), error_response)
