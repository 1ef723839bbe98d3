"""Where a broker listens and what it tells clients to connect to.

Owns the definitions; ``listeners.py`` reads them. Must not know which protocols are built.
"""

from lamina.settings.authorization import PRINCIPALS
from lamina.settings.definition import Update, broker_setting
from lamina.settings.kinds import INT, LIST, LONG, STRING, at_least, one_of
from lamina.settings.log_config import INT_MAX, MEBIBYTE

LISTENERS = broker_setting(
    "listeners",
    LIST,
    ("PLAINTEXT://127.0.0.1:9092",),
    "Where the broker listens: `NAME://host:port`; an empty host means every address.",
    difference="Kafka's default is `PLAINTEXT://:9092`, every address",
)
ADVERTISED_LISTENERS = broker_setting(
    "advertised.listeners",
    LIST,
    (),
    "Where clients are told to connect, when that differs from `listeners`.",
)
LISTENER_SECURITY_PROTOCOL_MAP = broker_setting(
    "listener.security.protocol.map",
    LIST,
    ("PLAINTEXT:PLAINTEXT", "SSL:SSL", "SASL_PLAINTEXT:SASL_PLAINTEXT", "SASL_SSL:SASL_SSL"),
    "The protocol that each listener's name stands for: `NAME:PROTOCOL`.",
)
CONTROLLER_LISTENER_NAMES = broker_setting(
    "controller.listener.names",
    LIST,
    (),
    "Listeners meant for a KRaft controller; Lamina has none and opens none of these.",
)
LAMINA_ADMIN_LISTENERS = broker_setting(
    "lamina.admin.listeners",
    LIST,
    ("127.0.0.1:9644",),
    "Where the broker answers people and monitors over HTTP: `host:port`; port 0 takes a free one, and so does the "
    "default when 9644 is taken and the broker's own port is 0. `https://host:port` speaks TLS, by `ssl.*` or "
    "`listener.name.admin.ssl.*`. Empty for nowhere.",
    difference="Kafka has no such setting",
)
LAMINA_ADMIN_ADVERTISED_LISTENERS = broker_setting(
    "lamina.admin.advertised.listeners",
    LIST,
    (),
    "Where tools are told to find `lamina.admin.listeners`, when that differs: `host:port` or `https://host:port`. A "
    "running broker shows the addresses that hold.",
    difference="Kafka has no such setting",
)
LAMINA_ADMIN_AUTHENTICATION = broker_setting(
    "lamina.admin.authentication",
    STRING,
    "auto",
    "Who may read at the admin listener: `required`, whoever has a token; `none`, everybody, but nothing about "
    "records; `auto`, as `required` where a listener of the broker asks clients who they are, or access rules are "
    "checked. Changes always need the operator's token.",
    rule=one_of("auto", "required", "none"),
    difference="Kafka has no such setting",
)
LAMINA_ADMIN_VIEWERS = broker_setting(
    "lamina.admin.viewers",
    STRING,
    "",
    "Principals that may read everything at an `https://` admin listener by their certificates, without a token, "
    "divided by semicolons: `User:CN=monitor`.",
    rule=PRINCIPALS,
    difference="Kafka has no such setting",
)
LAMINA_ADMIN_OPERATORS = broker_setting(
    "lamina.admin.operators",
    STRING,
    "",
    "Those that may change something there, too.",
    rule=PRINCIPALS,
    difference="Kafka has no such setting",
)
INTER_BROKER_LISTENER_NAME = broker_setting(
    "inter.broker.listener.name",
    STRING,
    None,
    "The listener that brokers use; beside others it accepts beyond `max.connections`. When it is not given, a member "
    "of a cluster opens a listener `BROKERS` for them, on a free port.",
    difference="Kafka's brokers use the listener that clients use, when it is not given",
)
SECURITY_INTER_BROKER_PROTOCOL = broker_setting(
    "security.inter.broker.protocol",
    STRING,
    "PLAINTEXT",
    "The protocol, and so the listener of that name, that brokers use; `inter.broker.listener.name` names any other "
    "listener, and both together are refused.",
    rule=one_of("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
    difference="With `PLAINTEXT` a member of a cluster opens a listener `BROKERS` for them, on a free port",
)
SOCKET_LISTEN_BACKLOG_SIZE = broker_setting(
    "socket.listen.backlog.size", INT, 50, "Connections that may wait to be accepted.", rule=at_least(1)
)
SOCKET_REQUEST_MAX_BYTES = broker_setting(
    "socket.request.max.bytes",
    INT,
    100 * MEBIBYTE,
    "The largest request that is taken; a client that announces more is disconnected.",
    rule=at_least(1),
)
QUEUED_MAX_REQUEST_BYTES = broker_setting(
    "queued.max.request.bytes",
    LONG,
    256 * MEBIBYTE,
    "Memory for requests that are still arriving; beyond it the broker stops reading large ones.",
    rule=at_least(MEBIBYTE),
    difference="Kafka's default is no limit (-1)",
)
CONNECTIONS_MAX_IDLE_MS = broker_setting(
    "connections.max.idle.ms",
    LONG,
    600_000,
    "A connection over which nothing went for so long is closed, unless its request is waiting here; -1 for never.",
    rule=at_least(-1),
)
LAMINA_SLOW_REQUEST_MS = broker_setting(
    "lamina.slow.request.ms",
    LONG,
    1000,
    "A request that takes so long, a fetch's own waiting not counted, gets a line in the log; -1 for none.",
    update=Update.CLUSTER_WIDE,
    rule=at_least(-1),
    difference="Kafka has no such setting",
)
MAX_CONNECTIONS = broker_setting(
    "max.connections",
    INT,
    INT_MAX,
    "How many connections may be open at once; then no other is accepted until one closes. On the brokers' listener, "
    "if there are others, one is: the connection elsewhere that was silent longest is closed for it. For one listener: "
    "`listener.name.NAME.max.connections`.",
    update=Update.CLUSTER_WIDE,
    rule=at_least(0),
)
MAX_CONNECTIONS_PER_IP = broker_setting(
    "max.connections.per.ip",
    INT,
    INT_MAX,
    "How many connections one address may have; more are closed at once. 0 only together with overrides.",
    update=Update.CLUSTER_WIDE,
    rule=at_least(0),
)
MAX_CONNECTIONS_PER_IP_OVERRIDES = broker_setting(
    "max.connections.per.ip.overrides",
    STRING,
    "",
    "Other limits for single addresses or host names: `host:number`. A name is looked up when it is set.",
    update=Update.CLUSTER_WIDE,
)
MAX_CONNECTION_CREATION_RATE = broker_setting(
    "max.connection.creation.rate",
    INT,
    INT_MAX,
    "How many connections are accepted in a second, the brokers' listener beside others excepted; more have to wait. "
    "For one listener: `listener.name.NAME.max.connection.creation.rate`.",
    update=Update.CLUSTER_WIDE,
    rule=at_least(0),
)
FETCH_MAX_BYTES = broker_setting(
    "fetch.max.bytes", INT, 55 * MEBIBYTE, "The most that one Fetch answer carries.", rule=at_least(1024)
)
MAX_INCREMENTAL_FETCH_SESSION_CACHE_SLOTS = broker_setting(
    "max.incremental.fetch.session.cache.slots",
    INT,
    1000,
    "How many fetch sessions are remembered.",
    rule=at_least(0),
)
REQUEST_TIMEOUT_MS = broker_setting(
    "request.timeout.ms",
    INT,
    30_000,
    "How long a transaction's change, or its markers, wait until every in-sync replica has them. Then whoever asked is "
    "told to ask again.",
    rule=at_least(1),
)
