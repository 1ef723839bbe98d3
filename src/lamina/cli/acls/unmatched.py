"""Access rules that no request could ever match, which brokers take as Kafka's do.

Owns the sentences that refuse them, each with what was probably meant. Must not know any cluster.
"""

import click

from lamina.cli.acls.resources import word_of
from lamina.errors import InvalidTopic
from lamina.image.topic_names import MAX_LENGTH, check_topic_name
from lamina.security.access_index import ANY_HOST, ANY_NAME
from lamina.security.acl_filters import Acl
from lamina.security.acls import OPERATIONS_ON, Operation, PatternType, ResourcePattern, ResourceType
from lamina.security.hosts import rule_host

_USER = "User:"


def matching_host(text: str) -> str:
    """An address as brokers know it. Raises for a name or a network."""
    host = text if text == ANY_HOST else rule_host(text)
    if host is None:
        raise click.UsageError(
            f"{text!r} is no address: rules compare addresses such as 10.0.0.7, not names or networks; "
            "leave it out for all addresses"
        )
    return host


def refuse_unmatched(acl: Acl) -> None:
    pattern, rule = acl
    _check_principal(rule.principal)
    _check_operation(pattern, rule.operation)
    if pattern.type is ResourceType.TOPIC:
        _check_topic(pattern)
    if pattern.type is ResourceType.USER and pattern.name != ANY_NAME:
        _check_principal(pattern.name)


def literal_stars(acl: Acl) -> list[str]:
    """What ends in a star, and is a name like any other: maybe a pattern was meant."""
    pattern, rule = acl
    return [one for one in (pattern.name, rule.principal.partition(":")[2]) if one.endswith("*") and one != ANY_NAME]


def _check_principal(principal: str) -> None:
    """Brokers make no other principals; there is no class of one's own to make them."""
    name = principal.partition(":")[2]
    if not principal.startswith(_USER):
        raise click.UsageError(f"{principal!r}: every principal here is of the type User: {_USER}{name or 'alice'}")
    if name != name.strip():
        raise click.UsageError(f"{principal!r}: no user's name begins or ends with a space: {_USER}{name.strip()}")


def _check_operation(pattern: ResourcePattern, operation: Operation) -> None:
    known = OPERATIONS_ON[pattern.type]
    if operation is not Operation.ALL and operation not in known:
        words = ", ".join(word_of(one) for one in known)
        raise click.UsageError(
            f"there is no {word_of(operation)} on {word_of(pattern.type)} {pattern.name}: use {words} or All"
        )


def _check_topic(pattern: ResourcePattern) -> None:
    name, is_prefix = pattern.name, pattern.pattern is PatternType.PREFIXED
    if name == ANY_NAME:
        if is_prefix:
            raise click.UsageError(
                "no topic's name begins with a star: leave --resource-pattern-type out for all topics"
            )
        return
    try:
        # A name may go on where a prefix ends: "." is one.
        check_topic_name(f"{name}x"[:MAX_LENGTH] if is_prefix else name)
    except InvalidTopic as error:
        prefix = name.rstrip(ANY_NAME)
        meant = f"; for all that begin with it: --topic {prefix} --resource-pattern-type prefixed"
        raise click.UsageError(f"{error}{meant if prefix != name else ''}") from None
