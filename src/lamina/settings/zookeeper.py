"""The ensemble that makes a broker a member of a cluster.

Owns its settings. Without ``zookeeper.connect`` none of them has an effect. Must not know how they are used.
"""

from lamina.settings.definition import broker_setting
from lamina.settings.kinds import BOOLEAN, INT, PASSWORD, STRING, at_least, one_of

_PEM = "PEM"
_ONLY_PEM = "Kafka reads Java's own formats too"
_DIGEST = "Kafka takes it from Java's login file"

ZOOKEEPER_CONNECT = broker_setting(
    "zookeeper.connect",
    STRING,
    None,
    "The servers of the cluster's ZooKeeper, `host:port,host:port`, with a path at the end (`/chroot`) below which the "
    "cluster keeps everything; made when it is not there. Without it a broker is a cluster by itself.",
)
ZOOKEEPER_SESSION_TIMEOUT_MS = broker_setting(
    "zookeeper.session.timeout.ms",
    INT,
    6000,
    "A broker of which ZooKeeper hears nothing for this long is dead to the others, and its partitions get other "
    "leaders. The servers may grant another time.",
    rule=at_least(1),
    difference="Kafka's default is `18000`: a failed broker is replaced later there",
)
ZOOKEEPER_CONNECTION_TIMEOUT_MS = broker_setting(
    "zookeeper.connection.timeout.ms",
    INT,
    None,
    "How long the start waits for ZooKeeper; `zookeeper.session.timeout.ms` when it is not given.",
    rule=at_least(1),
)
ZOOKEEPER_SET_ACL = broker_setting(
    "zookeeper.set.acl",
    BOOLEAN,
    False,
    "Whether what brokers write to ZooKeeper can be changed only with their credentials, `lamina.zookeeper.digest`.",
)
LAMINA_ZOOKEEPER_DIGEST = broker_setting(
    "lamina.zookeeper.digest",
    PASSWORD,
    None,
    "The credentials for ZooKeeper's digest authentication, `user:password`, the same on all brokers.",
    difference=_DIGEST,
)
ZOOKEEPER_SSL_CLIENT_ENABLE = broker_setting(
    "zookeeper.ssl.client.enable", BOOLEAN, False, "Whether the connection to ZooKeeper is encrypted."
)
ZOOKEEPER_SSL_TRUSTSTORE_LOCATION = broker_setting(
    "zookeeper.ssl.truststore.location",
    STRING,
    None,
    "A file with the certificates that ZooKeeper's is checked against; without it, those that the system trusts.",
)
ZOOKEEPER_SSL_TRUSTSTORE_TYPE = broker_setting(
    "zookeeper.ssl.truststore.type", STRING, _PEM, "Its format.", rule=one_of(_PEM), difference=_ONLY_PEM
)
ZOOKEEPER_SSL_KEYSTORE_LOCATION = broker_setting(
    "zookeeper.ssl.keystore.location",
    STRING,
    None,
    "A file with this broker's certificate and its private key, where ZooKeeper asks for one.",
)
ZOOKEEPER_SSL_KEYSTORE_PASSWORD = broker_setting(
    "zookeeper.ssl.keystore.password", PASSWORD, None, "The password of the private key."
)
ZOOKEEPER_SSL_KEYSTORE_TYPE = broker_setting(
    "zookeeper.ssl.keystore.type", STRING, _PEM, "Its format.", rule=one_of(_PEM), difference=_ONLY_PEM
)
ZOOKEEPER_SSL_ENDPOINT_IDENTIFICATION_ALGORITHM = broker_setting(
    "zookeeper.ssl.endpoint.identification.algorithm",
    STRING,
    "HTTPS",
    "Whether the host's name must be in ZooKeeper's certificate (`HTTPS`) or need not (empty).",
    rule=one_of("HTTPS", ""),
)
BROKER_ID_GENERATION_ENABLE = broker_setting(
    "broker.id.generation.enable",
    BOOLEAN,
    True,
    "Whether a member of a cluster whose `node.id` is not given gets one from ZooKeeper, and keeps it.",
)
RESERVED_BROKER_MAX_ID = broker_setting(
    "reserved.broker.max.id",
    INT,
    1000,
    "Generated ids are above this one; those that are given may not be, unless none are generated.",
    rule=at_least(0),
)
