"""Files with the keys of Kafka's own are read unchanged."""

from lamina.settings.broker import LOG_DIRS, NODE_ID
from lamina.settings.listeners import Listener, advertised_listeners
from lamina.settings.log_config import LogConfig
from lamina.settings.properties import load
from lamina.settings.resolve import resolve_broker
from lamina.settings.topic_config import topic_config
from lamina.settings.zookeeper_options import ZooKeeperOptions, zookeeper_options

KRAFT = b"""\
############## Roles ##############
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=localhost:9093
controller.quorum.voters=1@localhost:9093

############## Sockets ##############
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600

############## Logs ##############
log.dirs=/var/lib/kraft-combined-logs
num.partitions=1
num.recovery.threads.per.data.dir=1
offsets.topic.replication.factor=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
#log.flush.interval.messages=10000
#log.flush.interval.ms=1000
log.retention.hours=168
#log.retention.bytes=1073741824
log.segment.bytes=1073741824
log.retention.check.interval.ms=300000
"""

ZOOKEEPER = b"""\
# the number of this broker
broker.id=0
delete.topic.enable = true
port=9092
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600
log.dirs=/var/lib/kafka-a, \\
         /var/lib/kafka-b
num.partitions=1
num.recovery.threads.per.data.dir=1
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
log.retention.hours=24
log.segment.bytes=536870912
log.retention.check.interval.ms=300000
log.cleaner.enable=true
zookeeper.connect=localhost:2181
zookeeper.connection.timeout.ms=18000
group.initial.rebalance.delay.ms=0
"""


def test_a_kraft_file_is_read_unchanged() -> None:
    settings = resolve_broker(file=load(KRAFT))
    assert settings[NODE_ID] == 1
    assert settings[LOG_DIRS] == ("/var/lib/kraft-combined-logs",)
    assert advertised_listeners(settings) == (Listener("PLAINTEXT", "PLAINTEXT", "localhost", 9092),)
    assert topic_config(settings, {}) == LogConfig()
    assert all(": ignored, " in warning for warning in settings.warnings)


def test_a_file_from_the_days_of_zookeeper_is_read_unchanged() -> None:
    settings = resolve_broker(file=load(ZOOKEEPER))
    assert settings[NODE_ID] == 0
    assert settings[LOG_DIRS] == ("/var/lib/kafka-a", "/var/lib/kafka-b")
    assert topic_config(settings, {}) == LogConfig(segment_bytes=512 * 1024 * 1024, retention_ms=24 * 3_600_000)
    assert zookeeper_options(settings) == ZooKeeperOptions(("localhost:2181",), connection_timeout_ms=18_000)
    assert all(": ignored, " in warning for warning in settings.warnings)
