"""SASL under Kafka's names: who may log in to a listener, by which mechanisms.

Owns the definitions; ``sasl_listeners.py`` reads them for one listener. Must not know what a mechanism says.
"""

from lamina.settings.definition import broker_setting
from lamina.settings.kinds import BOOLEAN, CLASS, INT, LIST, LONG, PASSWORD, STRING, at_least, one_of

SASL_ENABLED_MECHANISMS = broker_setting(
    "sasl.enabled.mechanisms",
    LIST,
    (),
    "How clients may log in on listeners with SASL: `PLAIN`, `SCRAM-SHA-256`, `SCRAM-SHA-512`, "
    "`OAUTHBEARER`. The users of PLAIN "
    'are the options `user_NAME="PASSWORD"` of `listener.name.NAME.plain.sasl.jaas.config`, those of SCRAM are made by '
    "`lamina users` or `kafka-configs`.",
    difference="Kafka's default is GSSAPI, which Lamina does not have",
)
SASL_JAAS_CONFIG = broker_setting(
    "sasl.jaas.config",
    PASSWORD,
    None,
    "What one mechanism of a listener needs, as `listener.name.NAME.MECHANISM.sasl.jaas.config`, all in small "
    'letters: `org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="PASSWORD";`. The classes '
    "are known by their names, none is loaded. Without listener and mechanism it is ignored, as by Kafka.",
)
SASL_MECHANISM_INTER_BROKER_PROTOCOL = broker_setting(
    "sasl.mechanism.inter.broker.protocol",
    STRING,
    None,
    "How brokers log in to each other where the listener that they use has SASL; one of that listener's "
    "`sasl.enabled.mechanisms`. Their name and password are `username` and `password` in its "
    "`listener.name.NAME.MECHANISM.sasl.jaas.config`.",
    difference="Kafka's default is GSSAPI, which Lamina does not have",
)
CONNECTIONS_MAX_REAUTH_MS = broker_setting(
    "connections.max.reauth.ms",
    LONG,
    0,
    "After so long a client of a listener with SASL has to log in again, or its connection is closed at its next "
    "request; 0 for never. For one listener, or one mechanism of it: `listener.name.NAME.connections.max.reauth.ms`, "
    "`listener.name.NAME.MECHANISM.connections.max.reauth.ms`.",
    rule=at_least(0),
)
CONNECTION_FAILED_AUTHENTICATION_DELAY_MS = broker_setting(
    "connection.failed.authentication.delay.ms",
    INT,
    100,
    "How long a client whose login fails waits for the answer and the end of its connection; less than "
    "`connections.max.idle.ms`.",
    rule=at_least(0),
)
SASL_SERVER_MAX_RECEIVE_SIZE = broker_setting(
    "sasl.server.max.receive.size",
    INT,
    512 * 1024,
    "The largest request that is taken of a client that has not logged in yet.",
    rule=at_least(1),
)
_OAUTHBEARER = "org.apache.kafka.common.security.oauthbearer"
SASL_SERVER_CALLBACK_HANDLER_CLASS = broker_setting(
    "sasl.server.callback.handler.class",
    CLASS,
    None,
    "For OAUTHBEARER, as `listener.name.NAME.oauthbearer.sasl.server.callback.handler.class`: Kafka's class that checks"
    " signed tokens. It is known by its name, and not loaded; Lamina checks tokens by itself.",
    rule=one_of(
        f"{_OAUTHBEARER}.OAuthBearerValidatorCallbackHandler",
        f"{_OAUTHBEARER}.secured.OAuthBearerValidatorCallbackHandler",
    ),
)
SASL_OAUTHBEARER_JWKS_ENDPOINT_URL = broker_setting(
    "sasl.oauthbearer.jwks.endpoint.url",
    STRING,
    None,
    "Where the keys are that tokens of OAUTHBEARER are signed with, as a set of JSON web keys: an address of HTTPS or "
    "HTTP, or `file:///PATH`. Tokens count that are signed by RSA, ECDSA or Ed25519.",
)
SASL_OAUTHBEARER_JWKS_ENDPOINT_REFRESH_MS = broker_setting(
    "sasl.oauthbearer.jwks.endpoint.refresh.ms",
    LONG,
    3_600_000,
    "How often the keys are fetched again; a token with an unknown key has them fetched sooner, once a minute at most.",
    rule=at_least(1),
)
SASL_OAUTHBEARER_JWKS_ENDPOINT_RETRY_BACKOFF_MS = broker_setting(
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
    LONG,
    100,
    "How soon they are tried to be fetched again after a failure; twice as long after each further one.",
    rule=at_least(1),
)
SASL_OAUTHBEARER_JWKS_ENDPOINT_RETRY_BACKOFF_MAX_MS = broker_setting(
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
    LONG,
    10_000,
    "How soon at the latest.",
    rule=at_least(1),
)
SASL_OAUTHBEARER_EXPECTED_AUDIENCE = broker_setting(
    "sasl.oauthbearer.expected.audience",
    LIST,
    (),
    "Whom tokens are for: one of these has to be in a token's `aud`. Empty for anybody.",
)
SASL_OAUTHBEARER_EXPECTED_ISSUER = broker_setting(
    "sasl.oauthbearer.expected.issuer", STRING, None, "Who issues tokens, their `iss`; anybody when it is not given."
)
SASL_OAUTHBEARER_CLOCK_SKEW_SECONDS = broker_setting(
    "sasl.oauthbearer.clock.skew.seconds",
    INT,
    30,
    "How much the issuer's clock may differ from this broker's.",
    rule=at_least(0),
)
SASL_OAUTHBEARER_SUB_CLAIM_NAME = broker_setting(
    "sasl.oauthbearer.sub.claim.name", STRING, "sub", "The claim of a token that names the user."
)
SASL_OAUTHBEARER_SCOPE_CLAIM_NAME = broker_setting(
    "sasl.oauthbearer.scope.claim.name", STRING, "scope", "The claim of a token that lists its scopes."
)
LAMINA_SASL_OAUTHBEARER_UNSECURED_TOKENS = broker_setting(
    "lamina.sasl.oauthbearer.unsecured.tokens",
    BOOLEAN,
    False,
    "For tests: OAUTHBEARER takes tokens without a signature, so clients can claim to be anybody.",
    difference="Kafka takes them unless a class is named that checks tokens",
)
LAMINA_MAX_UNAUTHENTICATED_CONNECTIONS = broker_setting(
    "lamina.max.unauthenticated.connections",
    INT,
    5000,
    "How many connections to listeners with SASL may be open at once whose clients have not logged in, and how many to "
    "listeners with TLS that wait for their handshake. Beyond it one of the oldest is closed; a login may take 30 "
    "seconds, a handshake 10.",
    rule=at_least(1),
    difference="Kafka has no such bound",
)

_OF_OAUTHBEARER = frozenset(
    setting.name
    for setting in (
        SASL_OAUTHBEARER_JWKS_ENDPOINT_URL,
        SASL_OAUTHBEARER_JWKS_ENDPOINT_REFRESH_MS,
        SASL_OAUTHBEARER_JWKS_ENDPOINT_RETRY_BACKOFF_MS,
        SASL_OAUTHBEARER_JWKS_ENDPOINT_RETRY_BACKOFF_MAX_MS,
        SASL_OAUTHBEARER_EXPECTED_AUDIENCE,
        SASL_OAUTHBEARER_EXPECTED_ISSUER,
        SASL_OAUTHBEARER_CLOCK_SKEW_SECONDS,
        SASL_OAUTHBEARER_SUB_CLAIM_NAME,
        SASL_OAUTHBEARER_SCOPE_CLAIM_NAME,
        LAMINA_SASL_OAUTHBEARER_UNSECURED_TOKENS,
    )
)
FOR_ONE_MECHANISM = _OF_OAUTHBEARER | {
    SASL_JAAS_CONFIG.name,
    SASL_SERVER_CALLBACK_HANDLER_CLASS.name,
    CONNECTIONS_MAX_REAUTH_MS.name,
}
"""Settings that one mechanism of a listener may have for itself."""
FOR_ONE_LISTENER = _OF_OAUTHBEARER | {
    SASL_ENABLED_MECHANISMS.name,
    CONNECTIONS_MAX_REAUTH_MS.name,
    SASL_SERVER_MAX_RECEIVE_SIZE.name,
}
