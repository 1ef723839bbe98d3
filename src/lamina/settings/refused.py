"""Kafka's settings that stop the start because what they ask for is not built.

Owns the third of three lists (honoured, ignored, refused): to ignore a security line would open the broker. A value
that asks for nothing (an empty one, or one of ``harmless``) is let through. Must not show a refused value: it may be a
secret.
"""

import re
from dataclasses import dataclass

from lamina.settings.kinds import TRIMMED


@dataclass(frozen=True, slots=True)
class Refusal:
    """Names that ask for one missing thing."""

    reason: str
    names: frozenset[str] = frozenset()
    prefixes: tuple[str, ...] = ()
    harmless: frozenset[str] = frozenset()

    def __contains__(self, name: str) -> bool:
        return name in self.names or name.startswith(self.prefixes)

    def asks_for_something(self, text: str) -> bool:
        trimmed = text.strip(TRIMMED).lower()
        return trimmed != "" and trimmed not in self.harmless


_NO_SASL = "Lamina does not have this part of SASL, and leaving it out could open the broker"
_NO_SASL_CLASSES = "Lamina runs no Java classes; it has SASL's mechanisms itself"
_NO_PLUGIN = "Lamina runs no Java classes, and the check that this one makes would be missing"

BROKER_REFUSED = (
    Refusal("Lamina runs no Java classes, and TLS is OpenSSL's", frozenset({"ssl.engine.factory.class"})),
    Refusal("Lamina runs no Java classes, and TLS is OpenSSL's", prefixes=("security.providers",)),
    Refusal("Lamina leaves this to Python's TLS, and leaving it out could weaken it", prefixes=("zookeeper.ssl.",)),
    Refusal(
        _NO_SASL_CLASSES,
        frozenset(
            {
                "sasl.client.callback.handler.class",
                "sasl.login.callback.handler.class",
                "sasl.login.class",
            }
        ),
    ),
    Refusal("Lamina has no GSSAPI", prefixes=("sasl.kerberos.",)),
    Refusal(_NO_SASL, prefixes=("sasl.", "delegation.token.")),
    Refusal(
        "Lamina builds principals as Kafka's DefaultKafkaPrincipalBuilder does, and runs no other class",
        frozenset({"principal.builder.class"}),
        harmless=frozenset({"org.apache.kafka.common.security.authenticator.defaultkafkaprincipalbuilder"}),
    ),
    Refusal(
        _NO_PLUGIN,
        frozenset(
            {
                "create.topic.policy.class.name",
                "alter.config.policy.class.name",
                "client.quota.callback.class",
            }
        ),
    ),
    Refusal(
        "Lamina asks no provider for values, and would take the place of a secret for the secret",
        prefixes=("config.providers",),
    ),
    Refusal(
        "Lamina has no tiered storage",
        frozenset({"remote.log.storage.system.enable"}),
        harmless=frozenset({"false"}),
    ),
)

_SECURITY_WORD = re.compile(
    r"\b(m?tls|ssl|sasl|scram|jaas|kerberos|oauth(bearer)?|secur(e|ity)|auth(orizer|orization|entication)?|acls?"
    r"|principals?|super\.users?|keystore|truststore)\b",
    re.IGNORECASE,
)
_OF_A_LISTENER = "listener.name."
_HARMLESS = frozenset({"", "plaintext", "none", "false"})


def sounds_like_security(name: str, text: str) -> bool:
    """Whether an unknown name, given this value, was probably meant to protect the broker."""
    is_security = name.startswith(_OF_A_LISTENER) or _SECURITY_WORD.search(name) is not None
    return is_security and text.strip(TRIMMED).lower() not in _HARMLESS
