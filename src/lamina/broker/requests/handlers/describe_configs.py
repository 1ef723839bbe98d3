"""DescribeConfigs (key 32), versions 1-4.

Behaviour: what holds on a topic, on a group, on this broker, or, for the broker with the empty name, what was set
on all brokers while running; each with its source, and with synonyms and documentation if asked. Also the level of each
of this broker's loggers. No names or an empty list asks for all. Sensitive values are null.
`inter.broker.protocol.version` is told although it cannot be set: it is the release whose protocol is spoken, and
consoles look for it.
Version notes: types and documentation from v3.
Not done: other resources (client metrics) are an INVALID_REQUEST.
"""

from collections.abc import Mapping
from typing import Any

from lamina.broker.cleaner.cleaner import Cleaner
from lamina.broker.metadata.config_changes import find_resource
from lamina.broker.metadata.metadata import Metadata
from lamina.broker.requests import logger_configs
from lamina.broker.requests.api import Api
from lamina.broker.requests.authorization.authorizer import Authorizer
from lamina.broker.requests.authorization.configs import refusal
from lamina.broker.requests.config_entries import (
    ConfigEntry,
    broker_entries,
    default_entries,
    group_entries,
    not_compacted,
    topic_entries,
)
from lamina.broker.requests.encoded_entries import response_around
from lamina.broker.requests.request import Request, Response
from lamina.broker.threads import Threads
from lamina.broker.turns import in_turns
from lamina.clocks import Clocks
from lamina.errors import ErrorCode, InvalidRequest, KafkaError
from lamina.image.image import ResourceType
from lamina.image.topic_names import check_topic_name
from lamina.security.acls import Operation
from lamina.wire.api_keys import DESCRIBE_CONFIGS as API_KEY
from lamina.wire.building import Shape, response_shape
from lamina.wire.codec import encode_entity


async def handle(
    metadata: Metadata,
    cleaner: Cleaner,
    actual_values: Mapping[str, str],
    message_thread: Threads,
    clocks: Clocks,
    authorizer: Authorizer | None,
    request: Request,
    message: Any,
) -> Response:
    shape = response_shape(API_KEY, request.api_version)
    encoded = []
    # A console asks for every topic at once. As bytes they are nothing that the garbage collector looks through.
    async for resource in in_turns(message.resources, clocks):
        refused = None if authorizer is None else refusal(authorizer, request, Operation.DESCRIBE_CONFIGS, resource)
        if refused is not None:
            result = _failed(shape.of("results"), resource, refused)
        else:
            result = _result(metadata, cleaner, actual_values, shape.of("results"), message, resource)
        if result.error_code:
            request.failed(result.error_code)
        encoded.append(encode_entity(result))
    return await response_around(request, shape, "results", encoded, message_thread)


def _result(
    metadata: Metadata, cleaner: Cleaner, actual_values: Mapping[str, str], shape: Shape, message: Any, resource: Any
) -> Any:
    try:
        entries = _entries(metadata, cleaner, actual_values, resource.resource_type, resource.resource_name)
    except KafkaError as error:
        return _failed(shape, resource, error)
    asked = resource.configuration_keys
    config_shape = shape.of("configs")
    with_documentation = getattr(message, "include_documentation", False)
    return shape(
        error_code=ErrorCode.NONE,
        error_message=None,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=tuple(
            _config(config_shape, entry, message.include_synonyms, with_documentation)
            for entry in entries
            if not asked or entry.name in asked
        ),
    )


def _entries(
    metadata: Metadata, cleaner: Cleaner, actual_values: Mapping[str, str], resource_type: int, name: str
) -> list[ConfigEntry]:
    if resource_type == logger_configs.RESOURCE_TYPE:
        logger_configs.check_logger_resource(name, metadata.node_id)
        return logger_configs.logger_entries()
    if resource_type == ResourceType.TOPIC:
        check_topic_name(name)
    resource = find_resource(metadata, metadata.image, resource_type, name)
    if resource.type is ResourceType.BROKER and resource.name not in ("", str(metadata.node_id)):
        raise InvalidRequest(f"this is broker {metadata.node_id}, not {resource.name}: ask that one for its configs")
    configs = metadata.image.configs_of(resource)
    if resource.type is ResourceType.TOPIC:
        return [*topic_entries(metadata.settings, configs), *_compaction(metadata, cleaner, name)]
    if resource.type is ResourceType.GROUP:
        return group_entries(metadata.settings, configs)
    return broker_entries(metadata.settings, actual_values) if resource.name else default_entries(configs)


def _compaction(metadata: Metadata, cleaner: Cleaner, topic: str) -> list[ConfigEntry]:
    """A compacted topic that is not being compacted says so where people look."""
    why_not = cleaner.why_not() if metadata.config_of(topic).compact else None
    return [] if why_not is None else [not_compacted(why_not)]


def _config(shape: Shape, entry: ConfigEntry, with_synonyms: bool, with_documentation: bool) -> Any:
    synonym_shape = shape.of("synonyms")
    synonyms = entry.synonyms if with_synonyms else ()
    return shape(
        name=entry.name,
        value=entry.value,
        read_only=entry.is_read_only,
        config_source=entry.source,
        is_sensitive=entry.is_sensitive,
        synonyms=tuple(synonym_shape(name=one.name, value=one.value, source=one.source) for one in synonyms),
        config_type=entry.type,
        documentation=entry.documentation if with_documentation else None,
    )


def _failed(shape: Shape, resource: Any, error: KafkaError) -> Any:
    return shape(
        error_code=error.code,
        error_message=str(error),
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=(),
    )


def error_response(request: Request, message: Any, error: KafkaError) -> Any:
    shape = response_shape(API_KEY, request.api_version)
    return shape(
        results=tuple(_failed(shape.of("results"), resource, error) for resource in message.resources),
    )


API = Api(API_KEY, "DescribeConfigs", range(1, 5), error_response)
