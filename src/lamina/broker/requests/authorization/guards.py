"""Guards: what stands before a handler and lets through what its client may do.

Owns the forms that a check can take. A guard looks at the request alone, before the handler does: what is not allowed
is told as that, whether it exists or not (S59). Of a request with several entries the handler gets those that are
allowed, and the others come back with their error, told by the API's own answer for errors. However many entries there
are, the loop is not held up: they are decided on in turns, and answers of many entries are made on a thread. Must not
know any API.
"""

from collections.abc import Awaitable, Callable, Collection, Iterable
from typing import Any, NamedTuple, TypeVar

from lamina.broker.requests.api import Api, Handler
from lamina.broker.requests.authorization.authorizer import Authorizer
from lamina.broker.requests.request import Request
from lamina.broker.threads import Threads
from lamina.broker.turns import in_turns
from lamina.clocks import Clocks
from lamina.errors import (
    ClusterAuthorizationFailed,
    GroupAuthorizationFailed,
    KafkaError,
    TopicAuthorizationFailed,
    TransactionalIdAuthorizationFailed,
)
from lamina.security.access_index import CLUSTER_NAME
from lamina.security.acls import Operation, ResourceType
from lamina.wire.answer_entries import names_entries

AT_ONCE = 256
"""To decide on one that nobody has asked about takes two microseconds, and to tell of its denial twenty."""

T = TypeVar("T")


class Guarding(NamedTuple):
    """What a guard is made of."""

    api: Api
    handle: Handler
    authorizer: Authorizer
    message_thread: Threads

    def apart(self, named: Any, work: Callable[[], T]) -> "T | Awaitable[T]":
        """What is made of all that a request names: where that is much, on a thread."""
        return self.message_thread.compute(work) if names_entries(named, AT_ONCE) else work()

    def refusal(self, request: Request, message: Any, error: KafkaError) -> Any:
        """The response that tells this error of everything that the request names, now or awaited."""
        return self.apart(message, lambda: self.api.error_response(request, message, error))


Guard = Callable[[Guarding], Handler]
NameOf = Callable[[Any], str]
"""Of a request or of an entry: the name of what it is about."""

_ERRORS: dict[ResourceType, type[KafkaError]] = {
    ResourceType.TOPIC: TopicAuthorizationFailed,
    ResourceType.GROUP: GroupAuthorizationFailed,
    ResourceType.CLUSTER: ClusterAuthorizationFailed,
    ResourceType.TRANSACTIONAL_ID: TransactionalIdAuthorizationFailed,
}
_WORDS = {
    ResourceType.TOPIC: "the topic",
    ResourceType.GROUP: "the group",
    ResourceType.CLUSTER: "the cluster",
    ResourceType.TRANSACTIONAL_ID: "the transactional id",
}


def denial(operation: Operation, type_: ResourceType) -> KafkaError:
    """It names nothing: the client knows what it asked for, and need not learn what there is."""
    of_brokers = ": the principals of brokers belong into super.users" if operation is Operation.CLUSTER_ACTION else ""
    return _ERRORS[type_](f"{operation.name} on {_WORDS[type_]} is not allowed{of_brokers}")


def check(authorizer: Authorizer, request: Request, operation: Operation, type_: ResourceType, name: str) -> None:
    if not authorizer.allows(request, operation, type_, name):
        raise denial(operation, type_)


class Need(NamedTuple):
    """What the whole request needs."""

    operation: Operation
    type: ResourceType
    name_of: NameOf


def on_cluster(operation: Operation) -> Need:
    return Need(operation, ResourceType.CLUSTER, lambda _: CLUSTER_NAME)


def needing(*needs: Need) -> Guard:
    """Each in this order; the first that is not met is told to every part of the request."""

    def guard(guarding: Guarding) -> Handler:
        handle, authorizer = guarding.handle, guarding.authorizer

        def guarded(request: Request, message: Any) -> Any:
            for operation, type_, name_of in needs:
                check(authorizer, request, operation, type_, name_of(message))
            return handle(request, message)

        return guarded

    return guard


def each(operation: Operation, type_: ResourceType, entries: str, results: str, name_of: NameOf) -> Guard:
    """Each entry of a request by its name; ``entries`` is a field of the request, ``results`` one of the response."""

    def guard(guarding: Guarding) -> Handler:
        handle, authorizer = guarding.handle, guarding.authorizer

        def answer(request: Request, message: Any, allowed: tuple[Any, ...], denied: tuple[Any, ...]) -> Any:
            if not denied:
                return handle(request, message)
            refusal = guarding.refusal(request, message.replace(**{entries: denied}), denial(operation, type_))
            if not allowed:
                return refusal
            return with_refusal(handle(request, message.replace(**{entries: allowed})), refusal, results)

        def guarded(request: Request, message: Any) -> Any:
            return with_divided(
                authorizer.clocks,
                getattr(message, entries) or (),
                lambda one: authorizer.allows(request, operation, type_, name_of(one)),
                lambda allowed, denied: answer(request, message, allowed, denied),
            )

        return guarded

    return guard


def told(change: Callable[[Authorizer, Request, Any], Any]) -> Guard:
    """Nothing is refused, and the response told without what the client may not see."""

    def guard(guarding: Guarding) -> Handler:
        handle, authorizer = guarding.handle, guarding.authorizer

        def guarded(request: Request, message: Any) -> Any:
            return changed(handle(request, message), lambda response: change(authorizer, request, response))

        return guarded

    return guard


def both(outer: Guard, inner: Guard) -> Guard:
    return lambda guarding: outer(guarding._replace(handle=inner(guarding)))


def divided(every: Iterable[Any], is_allowed: Callable[[Any], bool]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    allowed: list[Any] = []
    denied: list[Any] = []
    for one in every:
        (allowed if is_allowed(one) else denied).append(one)
    return tuple(allowed), tuple(denied)


Divided = Callable[[tuple[Any, ...], tuple[Any, ...]], Any]
"""What follows from what is allowed and what is denied."""


def with_divided(clocks: Clocks, every: Collection[Any], is_allowed: Callable[[Any], bool], then: Divided) -> Any:
    """As ``divided``; many in turns of the loop."""
    if len(every) > AT_ONCE:
        return _divided_in_turns(clocks, every, is_allowed, then)
    return then(*divided(every, is_allowed))


async def _divided_in_turns(
    clocks: Clocks, every: Iterable[Any], is_allowed: Callable[[Any], bool], then: Divided
) -> Any:
    allowed: list[Any] = []
    denied: list[Any] = []
    async for one in in_turns(every, clocks):
        (allowed if is_allowed(one) else denied).append(one)
    return await awaited(then(tuple(allowed), tuple(denied)))


def with_refusal(response: Any, refusal: Any, entries: str) -> Any:
    """The response of a handler with the entries of a refusal at its end; both may be awaited."""

    def joined(told: Any, refused: Any) -> Any:
        return told.replace(**{entries: (*getattr(told, entries), *getattr(refused, entries))})

    return changed(response, lambda told: changed(refusal, lambda refused: joined(told, refused)))


def changed(response: Any, change: Callable[[Any], Any]) -> Any:
    """The response of a handler with a change, now or when it is there; the change may take turns of the loop."""
    if isinstance(response, Awaitable):
        return _changed_later(response, change)
    return change(response)


async def _changed_later(response: Awaitable[Any], change: Callable[[Any], Any]) -> Any:
    return await awaited(change(await response))


async def awaited(answer: Any) -> Any:
    """What is there at once, or comes later."""
    return await answer if isinstance(answer, Awaitable) else answer
