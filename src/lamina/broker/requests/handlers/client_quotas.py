"""DescribeClientQuotas and AlterClientQuotas (keys 48 and 49), versions 0-1.

Behaviour: quotas of users, client ids, both together, and addresses, in the metadata. An alteration's entries are made
together in one change; what is wrong with one is INVALID_REQUEST for it alone, and an entity that is named twice is not
altered. Quotas hold on each broker by itself. A quota of an address is for one as it is written, not for a host's name.
Where an older broker of the cluster could not keep them, UNSUPPORTED_VERSION.
Version notes: the versions differ in their encoding only.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from lamina.broker.metadata.metadata import Metadata
from lamina.broker.requests.api import Api
from lamina.broker.requests.request import Request
from lamina.broker.turns import in_turns
from lamina.clocks import Clocks
from lamina.errors import ErrorCode, InvalidRequest, KafkaError
from lamina.image.changes import set_quotas
from lamina.image.features import check_keeps_security
from lamina.image.image import Image
from lamina.security.quota_filters import FilterComponent, QuotaFilter
from lamina.security.quotas import QuotaEntity, QuotaOperation, alter_quotas, entity_text, quota_entity
from lamina.wire.api_keys import ALTER_CLIENT_QUOTAS, DESCRIBE_CLIENT_QUOTAS
from lamina.wire.building import Shape, response_shape

_VERSIONS = range(2)


# Describe


async def describe(metadata: Metadata, clocks: Clocks, request: Request, message: Any) -> Any:
    components = [FilterComponent(one.entity_type, one.match_type, one.match) for one in message.components]
    wanted = QuotaFilter(components, is_strict=message.strict)
    shape = response_shape(DESCRIBE_CLIENT_QUOTAS, request.api_version)
    entries = [
        _entry(shape.of("entries"), entity, quotas)
        async for entity, quotas in in_turns(metadata.image.quotas.items(), clocks)
        if wanted.matches(entity)
    ]
    return shape(error_code=ErrorCode.NONE, error_message=None, entries=tuple(entries))


def _entry(shape: Shape, entity: QuotaEntity, quotas: Mapping[str, float]) -> Any:
    value_shape = shape.of("values")
    return shape(
        entity=_entity(shape, entity),
        values=tuple(value_shape(key=key, value=value) for key, value in sorted(quotas.items())),
    )


def _entity(shape: Shape, entity: QuotaEntity) -> tuple[Any, ...]:
    entity_shape = shape.of("entity")
    return tuple(entity_shape(entity_type=entity_type, entity_name=name) for entity_type, name in entity)


def describe_error(request: Request, message: Any, error: KafkaError) -> Any:
    return response_shape(DESCRIBE_CLIENT_QUOTAS, request.api_version)(
        error_code=error.code, error_message=str(error), entries=None
    )


# Alter


async def alter(metadata: Metadata, clocks: Clocks, request: Request, message: Any) -> Any:
    entities = [_named(entry) for entry in message.entries]
    times = Counter(entity for entity in entities if not isinstance(entity, KafkaError))
    errors: list[KafkaError | None] = []

    async def change(image: Image) -> Image:
        check_keeps_security(image)
        errors.clear()
        altered: dict[QuotaEntity, Mapping[str, float]] = {}
        async for entity, entry in in_turns(list(zip(entities, message.entries, strict=True)), clocks):
            try:
                if isinstance(entity, KafkaError):
                    raise entity
                if times[entity] > 1:
                    raise InvalidRequest(f"{entity_text(entity)} is named more than once")
                altered[entity] = alter_quotas(entity, image.quotas.get(entity, {}), _operations(entry))
                errors.append(None)
            except KafkaError as error:
                errors.append(error.without_frames())
        return set_quotas(image, altered)

    if message.validate_only:
        await change(metadata.image)
    else:
        await metadata.change(change)
    return _altered(request, message, errors)


def _named(entry: Any) -> QuotaEntity | KafkaError:
    try:
        return quota_entity((one.entity_type, one.entity_name) for one in entry.entity)
    except KafkaError as error:
        return error.without_frames()


def _operations(entry: Any) -> list[QuotaOperation]:
    return [QuotaOperation(one.key, None if one.remove else one.value) for one in entry.ops]


def _altered(request: Request, message: Any, errors: Sequence[KafkaError | None]) -> Any:
    shape = response_shape(ALTER_CLIENT_QUOTAS, request.api_version)
    one = shape.of("entries")
    entity_shape = one.of("entity")
    entries = [
        one(
            error_code=ErrorCode.NONE if error is None else error.code,
            error_message=None if error is None else str(error),
            entity=tuple(
                entity_shape(entity_type=named.entity_type, entity_name=named.entity_name) for named in entry.entity
            ),
        )
        for entry, error in zip(message.entries, errors, strict=True)
    ]
    return shape(entries=tuple(entries))


def alter_error(request: Request, message: Any, error: KafkaError) -> Any:
    return _altered(request, message, [error] * len(message.entries))


DESCRIBE_API = Api(DESCRIBE_CLIENT_QUOTAS, "DescribeClientQuotas", _VERSIONS, describe_error)
ALTER_API = Api(ALTER_CLIENT_QUOTAS, "AlterClientQuotas", _VERSIONS, alter_error, is_for_controller=True)
