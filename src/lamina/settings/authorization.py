"""Access rules: whether requests are checked by them, and who is above them.

Owns the broker's settings for that. Must not know rules, nor who asks.
"""

import re

from lamina.settings.definition import broker_setting
from lamina.settings.kinds import BOOLEAN, CLASS, STRING, TRIMMED, Rule
from lamina.settings.values import BrokerSettings

_SECOND = re.compile(r",\s*User:")
STANDARD_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
ACL_AUTHORIZER = "kafka.security.authorizer.AclAuthorizer"


def principals(text: str) -> tuple[str, ...]:
    """Those of a list that is divided by semicolons, because distinguished names hold commas (S48)."""
    return tuple(entry for entry in (part.strip(TRIMMED) for part in text.split(";")) if entry)


def _are_principals(text: str) -> bool:
    """A comma before another principal divides nothing: it would be a part of the first one's name."""
    return all(":" in entry and all(entry.split(":", 1)) and not _SECOND.search(entry) for entry in principals(text))


PRINCIPALS = Rule("principals such as User:admin, divided by semicolons", _are_principals)

AUTHORIZER_CLASS_NAME = broker_setting(
    "authorizer.class.name",
    CLASS,
    None,
    "Check each request by the access rules (ACLs) of the cluster: Kafka's `StandardAuthorizer`, or `AclAuthorizer`, "
    "by its full name. Without it everybody may do everything.",
    rule=Rule(
        f"{STANDARD_AUTHORIZER} or {ACL_AUTHORIZER}",
        lambda name: name in ("", STANDARD_AUTHORIZER, ACL_AUTHORIZER),
        (STANDARD_AUTHORIZER, ACL_AUTHORIZER),
    ),
    difference="Lamina loads no classes: both names stand for its own authorizer, which decides as Kafka's do",
)
SUPER_USERS = broker_setting(
    "super.users",
    STRING,
    "",
    "Principals that may do everything, divided by semicolons, such as `User:admin;User:CN=broker,O=Acme`.",
    rule=PRINCIPALS,
)
ALLOW_EVERYONE_IF_NO_ACL_FOUND = broker_setting(
    "allow.everyone.if.no.acl.found",
    BOOLEAN,
    False,
    "Whether everybody may use a resource that no access rule is about.",
    difference="this makes nobody a broker",
)
LAMINA_AUDIT_LOG = broker_setting(
    "lamina.audit.log",
    STRING,
    None,
    "A file for what was denied, and what was allowed where the logger `lamina.audit` is at `DEBUG`: one JSON object "
    "on each line. Without it they go where the broker logs.",
)


def lets_nobody_begin(settings: BrokerSettings) -> bool:
    """Whether there is nobody who may do anything, or add an access rule, while there are no rules."""
    if not settings.get(AUTHORIZER_CLASS_NAME):
        return False
    return not principals(settings[SUPER_USERS]) and not settings[ALLOW_EVERYONE_IF_NO_ACL_FOUND]


def authorization_warnings(settings: BrokerSettings) -> tuple[str, ...]:
    """What an operator should know of before nobody is let in."""
    if not lets_nobody_begin(settings):
        return ()
    return (
        f"{SUPER_USERS.name}: names nobody: while there are no access rules nobody may do anything, not even add the "
        f"first rule; name an administrator, such as {SUPER_USERS.name}=User:admin",
    )
