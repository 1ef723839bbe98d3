"""Whether a client may do something: what every handler and guard asks before anything else is looked at.

Owns the decisions made so far, which are dropped when access rules change, and the audit: what was denied is told in
one line of JSON each, and at the level of debugging what was allowed too. Whoever writes logs finds the same as
``told`` of the record. Must not know which API asks what.
"""

import json
import logging
from collections.abc import Callable
from uuid import UUID

from lamina.broker.loggers import LEVELS
from lamina.broker.metadata.listener import MetadataListener
from lamina.broker.requests.request import Request
from lamina.clocks import Clocks
from lamina.image.diff import AccessRules
from lamina.image.image import Image
from lamina.security.access_index import ANY_HOST, ANYBODY, CLUSTER_NAME, IMPLIED_BY, AccessIndex
from lamina.security.acls import OPERATIONS_ON, AccessRule, Operation, Permission, ResourceType

audit = logging.getLogger("lamina.audit")

MOST_DECISIONS = 100_000
"""Clients choose names, so there is no natural end: some 30 MB, or 60 MB where all names are as long as any is
that is kept."""
_LONGEST_NAME = 249
"""Of a topic, in characters. Longer names are decided on each time."""
MOST_DENIALS_TOLD = 100
"""Of one request: a stranger may ask for thousands of names at a time."""
_ANY = None
"""In place of a name: on any resource of the type. Nothing that a client sends is that."""

_Question = tuple[str, str, Operation, ResourceType, str | None]
"""Principal, address, and what is to be done with which resource."""


class _Told(dict[str, str | None]):
    """A line of the audit, made by whoever writes it."""

    def __str__(self) -> str:
        return json.dumps(self, ensure_ascii=False)


class Authorizer(MetadataListener):
    def __init__(self, index: AccessIndex, image: Callable[[], Image], clocks: Clocks) -> None:
        """``index`` has no rules yet: they come with the metadata. ``image`` is what clients are told."""
        self.clocks = clocks
        """For whoever asks about many things, in turns of the loop."""
        self._index = index
        self._image = image
        self._rules: AccessRules = {}
        """As the index has them, for the audit."""
        self._decisions: dict[_Question, bool] = {}
        self._allowed = set[_Question]()
        """Those of them that are allowed and of which the audit is told nothing, until a logger's level is changed."""
        self._levels_set = LEVELS.times_set

    def rules_changed(self, changed: AccessRules, rules: AccessRules) -> None:
        self._rules = rules
        self._index.replace(changed)
        self._forget()

    def allows(self, request: Request, operation: Operation, type_: ResourceType, name: str) -> bool:
        """And tells the audit."""
        client = request.client
        question = (client.principal, client.host, operation, type_, name)
        if question in self._allowed and self._levels_set == LEVELS.times_set:
            return True
        is_allowed = self._decisions.get(question)
        if is_allowed is None:
            is_allowed = self._decide(request, operation, type_, name)
        self._tell(request, operation, type_, name, is_allowed)
        if self._levels_set != LEVELS.times_set:
            self._levels_set = LEVELS.times_set
            self._allowed.clear()
        if is_allowed and question in self._decisions and not audit.isEnabledFor(logging.DEBUG):
            self._allowed.add(question)
        return is_allowed

    def allows_filtering(self, request: Request, operation: Operation, type_: ResourceType, name: str) -> bool:
        """Of what was not asked for by its name: that it is left out is not worth telling (S59)."""
        client = request.client
        is_allowed = self._decisions.get((client.principal, client.host, operation, type_, name))
        return self._decide(request, operation, type_, name) if is_allowed is None else is_allowed

    def allows_on_any(self, request: Request, operation: Operation, type_: ResourceType) -> bool:
        """Whether there can be a resource of the type on which this is allowed (S53)."""
        client = request.client
        key = (client.principal, client.host, operation, type_, _ANY)
        is_allowed = self._decisions.get(key)
        if is_allowed is None:
            is_allowed = self._index.allows_on_any(client.principal, client.host, operation, type_)
            self._keep(key, is_allowed)
        self._tell(request, operation, type_, _ANY, is_allowed)
        return is_allowed

    def allows_on_cluster(self, request: Request, operation: Operation) -> bool:
        return self.allows(request, operation, ResourceType.CLUSTER, CLUSTER_NAME)

    def operations(self, request: Request, type_: ResourceType, name: str) -> int:
        """What the client may do there, one bit for each operation (KIP-430)."""
        allowed = (
            operation for operation in OPERATIONS_ON[type_] if self.allows_filtering(request, operation, type_, name)
        )
        return sum(1 << operation for operation in allowed)

    def operations_on_cluster(self, request: Request) -> int:
        """None where the cluster may not be described (S57)."""
        if not self.allows_filtering(request, Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME):
            return 0
        return self.operations(request, ResourceType.CLUSTER, CLUSTER_NAME)

    def topic_name(self, topic_id: UUID | None) -> str | None:
        """Of the topic with an id, if there is one: rules are about names."""
        topics, name = self._image().topics, self._image().topic_names.get(b"" if topic_id is None else topic_id.bytes)
        return None if name is None or topics[name].is_being_deleted else name

    def has_partition(self, topic: str, index: int) -> bool:
        found = self._image().topics.get(topic)
        return found is not None and not found.is_being_deleted and 0 <= index < len(found.partitions)

    def _decide(self, request: Request, operation: Operation, type_: ResourceType, name: str) -> bool:
        principal, host = request.client.principal, request.client.host
        is_allowed = self._index.allows(principal, host, operation, type_, name)
        self._keep((principal, host, operation, type_, name), is_allowed)
        return is_allowed

    def _keep(self, question: _Question, is_allowed: bool) -> None:
        if len(question[-1] or "") > _LONGEST_NAME:
            return
        if len(self._decisions) >= MOST_DECISIONS:
            self._forget()
        self._decisions[question] = is_allowed

    def _forget(self) -> None:
        self._decisions.clear()
        self._allowed.clear()

    # The audit

    def _tell(
        self, request: Request, operation: Operation, type_: ResourceType, name: str | None, is_allowed: bool
    ) -> None:
        level = logging.DEBUG if is_allowed else logging.INFO
        if not audit.isEnabledFor(level):
            return
        denials = request.denials_told
        if not is_allowed:
            denied = (operation, type_, name)
            if denials is None:
                denials = request.denials_told = set()
            if len(denials) >= MOST_DENIALS_TOLD or denied in denials:
                return
            denials.add(denied)
        client = request.client
        told = _Told(
            event="authorization",
            decision="allowed" if is_allowed else "denied",
            principal=client.principal,
            host=client.host,
            operation=operation.name,
            resource_type=type_.name,
            resource=_shown(name),
            request=request.counters.api,
            listener=request.listener_name,
            client_id=_shown(request.client_id),
            rule=self._reason(client.principal, client.host, operation, type_, name, is_allowed),
        )
        if not is_allowed and len(denials or ()) == MOST_DENIALS_TOLD:
            told["further"] = "denials of this request are not told"
        audit.log(level, told, extra={"told": told})

    def _reason(
        self, principal: str, host: str, operation: Operation, type_: ResourceType, name: str | None, is_allowed: bool
    ) -> str:
        """The rule that decided, or that there was none."""
        if self._index.is_super_user(principal):
            return "super user"
        if name is None:
            return "the rules of all resources"
        permission = Permission.ALLOW if is_allowed else Permission.DENY
        patterns = self._index.patterns_about(type_, name)
        found = [(pattern, rule) for pattern in patterns for rule in self._rules.get(pattern, ())]
        for pattern, rule in found:
            if rule.permission is permission and _is_about(rule, principal, host, operation, is_allowed):
                return (
                    f"{permission.name} {rule.principal} {rule.operation.name} from {rule.host} "
                    f"on {pattern.pattern.name} {pattern.name}"
                )
        return "no rule allows it" if found else "no rule is about it"


def _shown(name: str | None) -> str | None:
    """As much of what a client chose as any topic's name may have."""
    return name if name is None or len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}…"


def _is_about(rule: AccessRule, principal: str, host: str, operation: Operation, is_allowed: bool) -> bool:
    if rule.principal not in (principal, ANYBODY) or rule.host not in (host, ANY_HOST):
        return False
    if rule.operation in (operation, Operation.ALL):
        return True
    return is_allowed and rule.operation in IMPLIED_BY.get(operation, ())
