"""SASL under Kafka's names: who may log in to a listener, by which mechanisms.

Owns the definitions; ``sasl_listeners.py`` reads them for one listener. Must not know what a mechanism says.
"""

from lamina.settings.definition import broker_setting
from lamina.settings.kinds import INT, LIST, LONG, PASSWORD, STRING, at_least

SASL_ENABLED_MECHANISMS = broker_setting(
    "sasl.enabled.mechanisms",
    LIST,
    (),
    "How clients may log in on listeners with SASL: `PLAIN`, `SCRAM-SHA-256`, `SCRAM-SHA-512`. The users of PLAIN "
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
LAMINA_MAX_UNAUTHENTICATED_CONNECTIONS = broker_setting(
    "lamina.max.unauthenticated.connections",
    INT,
    5000,
    "How many connections to listeners with SASL may be open at once whose clients have not logged in. Beyond it the "
    "oldest of them is closed; each has 30 seconds.",
    rule=at_least(1),
    difference="Kafka has no such bound",
)

FOR_ONE_MECHANISM = frozenset({SASL_JAAS_CONFIG.name, CONNECTIONS_MAX_REAUTH_MS.name})
"""Settings that one mechanism of a listener may have for itself."""
FOR_ONE_LISTENER = frozenset(
    {SASL_ENABLED_MECHANISMS.name, CONNECTIONS_MAX_REAUTH_MS.name, SASL_SERVER_MAX_RECEIVE_SIZE.name}
)
