"""The options that name resources and operations, with Kafka's names for both.

Owns how they are read and shown. Must not know what is asked of a cluster.
"""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import click

from lamina.cli.options.cluster import add_parameters, with_parameters
from lamina.security.access_index import CLUSTER_NAME
from lamina.security.acl_filters import Acl
from lamina.security.acls import Operation, PatternType, Permission, ResourceType


class Resource(NamedTuple):
    type: ResourceType
    name: str


def word_of(one: Operation | PatternType | Permission | ResourceType) -> str:
    """Kafka's way to write it: ``DescribeConfigs``, ``Literal``."""
    return one.name.title().replace("_", "")


OPERATIONS = {word_of(operation).lower(): operation for operation in list(Operation)[1:]}
PATTERNS = {word_of(pattern).lower(): pattern for pattern in PatternType}

_NAMED = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "transactional_id": ResourceType.TRANSACTIONAL_ID,
    "delegation_token": ResourceType.DELEGATION_TOKEN,
    "user_principal": ResourceType.USER,
}
_OPTIONS = (
    click.option("--topic", metavar="TOPIC", multiple=True, help="A topic; '*' for all."),
    click.option("--group", metavar="GROUP", multiple=True, help="A consumer group; '*' for all."),
    click.option("--transactional-id", metavar="ID", multiple=True, help="A transactional id; '*' for all."),
    click.option("--delegation-token", metavar="TOKEN", multiple=True, help="A delegation token; '*' for all."),
    click.option("--user-principal", metavar="PRINCIPAL", multiple=True, help="A user, such as User:alice."),
    click.option("--cluster", "on_cluster", is_flag=True, help="The cluster itself."),
)


def resource_options(command: Callable[..., int]) -> Callable[..., int]:
    """Adds them; the command is given ``resources`` in their place."""

    def with_resources(*args: Any, on_cluster: bool, **rest: Any) -> int:
        resources = [Resource(type_, name) for option, type_ in _NAMED.items() for name in rest.pop(option)]
        if on_cluster:
            resources.append(Resource(ResourceType.CLUSTER, CLUSTER_NAME))
        return command(*args, resources=resources, **rest)

    return with_parameters(command, with_resources, *_OPTIONS)


def operation_option(default_help: str) -> Callable[[Callable[..., int]], Callable[..., int]]:
    option = click.option(
        "--operation",
        "operations",
        multiple=True,
        metavar="OPERATION",
        type=_Word(OPERATIONS, "an operation"),
        help=f"Read, Write, Describe, All, …; {default_help}.",
    )
    return lambda command: add_parameters(command, option)


def pattern_option(default: str, *words: str) -> Callable[[Callable[..., int]], Callable[..., int]]:
    option = click.option(
        "--resource-pattern-type",
        "pattern",
        metavar="PATTERN",
        default=default,
        show_default=True,
        type=_Word({word: PATTERNS[word] for word in words}, "a type of pattern"),
        help=f"How names are meant: {', '.join(words)}.",
    )
    return lambda command: add_parameters(command, option)


class _Word(click.ParamType[Any]):
    """One of some words, in any case, with or without dashes and underscores."""

    name = "word"

    def __init__(self, words: dict[str, Any], noun: str) -> None:
        self._words = words
        self._noun = noun

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        found = self._words.get(value.lower().replace("-", "").replace("_", ""))
        if found is None:
            known = ", ".join(word_of(one) for one in self._words.values())
            self.fail(f"{value!r} is not {self._noun}: {known}", param, ctx)
        return found


def acl_row(acl: Acl) -> dict[str, Any]:
    pattern, rule = acl
    return {
        "type": "acl",
        "resource_type": word_of(pattern.type),
        "resource": pattern.name,
        "pattern_type": word_of(pattern.pattern),
        "principal": rule.principal,
        "host": rule.host,
        "operation": word_of(rule.operation),
        "permission": word_of(rule.permission),
    }


def sentence(acl: Acl) -> str:
    row = acl_row(acl)
    prefix = "names that begin with " if acl.pattern.pattern is PatternType.PREFIXED else ""
    where = "" if acl.rule.host == "*" else f" from {acl.rule.host}"
    return (
        f"{row['permission'].lower()} {row['principal']} {row['operation']} on {row['resource_type']} "
        f"{prefix}{row['resource']}{where}"
    )


def in_order(acls: Iterable[Acl]) -> list[Acl]:
    return sorted(acls, key=lambda acl: (acl.pattern, acl.rule))
