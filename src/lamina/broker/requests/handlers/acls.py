"""DescribeAcls, CreateAcls and DeleteAcls (keys 29 to 31), versions 1-3.

Behaviour: access rules are listed by a filter, made one by one, and deleted by filters (S54, S55); those of one request
are one change, which holds on all brokers within a second, for open connections too. A rule that is there already is
made once more without an error. What cannot be a rule is INVALID_REQUEST, also where Kafka says UNKNOWN_SERVER_ERROR; a
number 0 in place of a type, a pattern, an operation or a permission ends the connection, as in Kafka. Without an
authorizer SECURITY_DISABLED for each rule and filter: consoles take this for "no access rules here".
Version notes: the versions differ in their encoding only.
"""

from collections.abc import Iterable, Mapping
from itertools import groupby, islice
from typing import Any

from lamina.broker.metadata.metadata import Metadata
from lamina.broker.requests.api import Api
from lamina.broker.requests.request import CloseConnection, Request
from lamina.broker.threads import Threads
from lamina.errors import ErrorCode, KafkaError, PolicyViolation, SecurityDisabled
from lamina.image.changes import set_acls
from lamina.image.features import check_keeps_security
from lamina.image.image import Image
from lamina.security.acl_filters import Acl, AclFilter, matching, new_acl
from lamina.security.acls import AccessRule, ResourcePattern
from lamina.wire.api_keys import CREATE_ACLS, DELETE_ACLS, DESCRIBE_ACLS
from lamina.wire.building import Shape, response_shape

_VERSIONS = range(1, 4)
MOST_RULES = 100_000
"""More are refused: each broker keeps them all in memory."""
MOST_UNNAMED = 100
"""Filters of one request that name no resource: each looks at all rules."""
MOST_DELETED = 10_000
"""By one filter, as in Kafka."""

Acls = Mapping[ResourcePattern, frozenset[AccessRule]]


def handle_disabled(_request: Request, _message: Any) -> Any:
    raise SecurityDisabled("this broker has no authorizer: everybody may do everything")


# Describe


async def describe(metadata: Metadata, message_thread: Threads, request: Request, message: Any) -> Any:
    wanted, acls = _filter(message), metadata.image.acls
    found = await message_thread.compute(lambda: list(matching(acls, wanted)))
    shape = response_shape(DESCRIBE_ACLS, request.api_version)
    resource_shape = shape.of("resources")
    acl_shape = resource_shape.of("acls")
    return shape(
        error_code=ErrorCode.NONE,
        error_message=None,
        resources=tuple(
            resource_shape(
                resource_type=pattern.type,
                resource_name=pattern.name,
                pattern_type=pattern.pattern,
                acls=tuple(
                    acl_shape(
                        principal=rule.principal,
                        host=rule.host,
                        operation=rule.operation,
                        permission_type=rule.permission,
                    )
                    for _, rule in of_pattern
                ),
            )
            for pattern, of_pattern in groupby(found, key=lambda acl: acl.pattern)
        ),
    )


# Create


async def create(metadata: Metadata, request: Request, message: Any) -> Any:
    outcomes = [_created(one) for one in message.creations]
    wanted = [one for one in outcomes if isinstance(one, Acl)]
    refused: KafkaError | None = None

    def change(image: Image) -> Image:
        nonlocal refused
        check_keeps_security(image)
        acls = _with_more(image.acls, wanted)
        grown = sum(map(len, acls.values())) - sum(len(image.acls.get(pattern, ())) for pattern in acls)
        if grown and sum(map(len, image.acls.values())) + grown > MOST_RULES:
            refused = PolicyViolation(f"there can be {MOST_RULES} access rules, and that would be more")
            return image
        return set_acls(image, acls) if grown else image

    if wanted:
        await metadata.change(change)
    shape = response_shape(CREATE_ACLS, request.api_version)
    result = shape.of("results")
    errors = (one if isinstance(one, KafkaError) else refused for one in outcomes)
    return shape(results=tuple(result(**_told(error)) for error in errors))


def _created(one: Any) -> Acl | KafkaError:
    numbers = (one.resource_type, one.resource_pattern_type, one.operation, one.permission_type)
    _check_known(numbers)
    try:
        return new_acl(
            one.resource_type,
            one.resource_name,
            one.resource_pattern_type,
            one.principal,
            one.host,
            one.operation,
            one.permission_type,
        )
    except KafkaError as error:
        return error.without_frames()


def _with_more(acls: Acls, wanted: Iterable[Acl]) -> dict[ResourcePattern, frozenset[AccessRule]]:
    more: dict[ResourcePattern, set[AccessRule]] = {}
    for pattern, rule in wanted:
        more.setdefault(pattern, set(acls.get(pattern, ()))).add(rule)
    return {pattern: frozenset(rules) for pattern, rules in more.items()}


# Delete


async def delete(metadata: Metadata, message_thread: Threads, request: Request, message: Any) -> Any:
    filters = [_filter(one) for one in message.filters]
    if sum(one.name is None for one in filters) > MOST_UNNAMED:
        raise PolicyViolation(f"one request may have {MOST_UNNAMED} filters that look at all rules")
    deleted: list[list[Acl]] = []

    async def change(image: Image) -> Image:
        check_keeps_security(image)
        deleted[:] = await message_thread.compute(
            lambda: [list(islice(matching(image.acls, one), MOST_DELETED)) for one in filters]
        )
        fewer: dict[ResourcePattern, set[AccessRule]] = {}
        for pattern, rule in (acl for some in deleted for acl in some):
            fewer.setdefault(pattern, set(image.acls[pattern])).discard(rule)
        return set_acls(image, {pattern: frozenset(rules) for pattern, rules in fewer.items()}) if fewer else image

    await metadata.change(change)
    shape = response_shape(DELETE_ACLS, request.api_version)
    result = shape.of("filter_results")
    return shape(
        filter_results=tuple(
            result(**_told(None), matching_acls=tuple(_deleted(result.of("matching_acls"), acl) for acl in some))
            for some in deleted
        )
    )


def _deleted(shape: Shape, acl: Acl) -> Any:
    pattern, rule = acl
    return shape(
        **_told(None),
        resource_type=pattern.type,
        resource_name=pattern.name,
        pattern_type=pattern.pattern,
        principal=rule.principal,
        host=rule.host,
        operation=rule.operation,
        permission_type=rule.permission,
    )


# All of them


def _filter(one: Any) -> AclFilter:
    _check_known((one.resource_type_filter, one.pattern_type_filter, one.operation, one.permission_type))
    return AclFilter(
        one.resource_type_filter,
        one.resource_name_filter,
        one.pattern_type_filter,
        one.principal_filter,
        one.host_filter,
        one.operation,
        one.permission_type,
    )


def _check_known(numbers: Iterable[int]) -> None:
    if 0 in numbers:
        raise CloseConnection("asked for access rules by a number 0, which stands for what is not known")


def _told(error: KafkaError | None) -> dict[str, Any]:
    if error is None:
        return {"error_code": ErrorCode.NONE, "error_message": None}
    return {"error_code": error.code, "error_message": str(error)}


def describe_error(request: Request, message: Any, error: KafkaError) -> Any:
    return response_shape(DESCRIBE_ACLS, request.api_version)(**_told(error), resources=())


def create_error(request: Request, message: Any, error: KafkaError) -> Any:
    shape = response_shape(CREATE_ACLS, request.api_version)
    return shape(results=(shape.of("results")(**_told(error)),) * len(message.creations))


def delete_error(request: Request, message: Any, error: KafkaError) -> Any:
    shape = response_shape(DELETE_ACLS, request.api_version)
    result = shape.of("filter_results")(**_told(error), matching_acls=())
    return shape(filter_results=(result,) * len(message.filters))


DESCRIBE_API = Api(DESCRIBE_ACLS, "DescribeAcls", _VERSIONS, describe_error)
CREATE_API = Api(CREATE_ACLS, "CreateAcls", _VERSIONS, create_error, is_for_controller=True)
DELETE_API = Api(DELETE_ACLS, "DeleteAcls", _VERSIONS, delete_error, is_for_controller=True)
