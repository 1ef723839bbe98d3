"""Every name that Kafka 4.1 knows is on exactly one of the three lists."""

import pytest

from lamina.settings.definition import Setting
from lamina.settings.ignored import BROKER_IGNORED
from lamina.settings.lists import (
    AREAS,
    BROKER_SETTINGS,
    TOPIC_SETTINGS,
    broker_ignored,
    broker_refusal,
    nearest_broker_name,
    nearest_topic_name,
)
from lamina.settings.refused import BROKER_REFUSED


def _names(text: str) -> list[str]:
    return text.split()


KAFKA_TOPIC_NAMES = _names("""
    cleanup.policy compression.gzip.level compression.lz4.level compression.type compression.zstd.level
    delete.retention.ms file.delete.delay.ms flush.messages flush.ms
    follower.replication.throttled.replicas index.interval.bytes leader.replication.throttled.replicas
    local.retention.bytes local.retention.ms max.compaction.lag.ms max.message.bytes
    message.timestamp.after.max.ms message.timestamp.before.max.ms message.timestamp.type
    min.cleanable.dirty.ratio min.compaction.lag.ms min.insync.replicas preallocate
    remote.log.copy.disable remote.log.delete.on.disable remote.storage.enable retention.bytes
    retention.ms segment.bytes segment.index.bytes segment.jitter.ms segment.ms
    unclean.leader.election.enable
""")

# One of each family that the broker's list has in Kafka 4.1, and of those that 3.9 still had.
KAFKA_BROKER_NAMES = _names("""
    node.id process.roles broker.id log.dirs log.dir listeners advertised.listeners
    listener.security.protocol.map controller.listener.names controller.quorum.voters
    controller.quorum.bootstrap.servers controller.quorum.election.timeout.ms
    controller.quota.window.num controller.socket.timeout.ms metadata.log.dir
    metadata.log.max.snapshot.interval.ms metadata.max.idle.interval.ms zookeeper.connect
    zookeeper.clientCnxnSocket zookeeper.metadata.migration.enable zookeeper.set.acl
    zookeeper.ssl.keystore.location num.network.threads num.io.threads background.threads
    socket.send.buffer.bytes socket.request.max.bytes queued.max.requests message.max.bytes
    log.segment.bytes log.roll.ms log.roll.hours log.roll.jitter.ms log.roll.jitter.hours
    log.retention.ms log.retention.minutes log.retention.hours log.retention.bytes
    log.retention.check.interval.ms log.cleanup.policy log.cleaner.enable log.cleaner.threads
    log.cleaner.max.compaction.lag.ms log.cleaner.min.compaction.lag.ms log.index.size.max.bytes
    log.index.interval.bytes log.flush.interval.messages log.flush.interval.ms
    log.flush.scheduler.interval.ms log.flush.offset.checkpoint.interval.ms
    log.flush.start.offset.checkpoint.interval.ms log.segment.delete.delay.ms log.preallocate
    log.message.timestamp.type log.message.timestamp.before.max.ms log.message.timestamp.after.max.ms
    log.message.format.version log.local.retention.ms log.initial.task.delay.ms
    log.dir.failure.timeout.ms num.recovery.threads.per.data.dir num.partitions
    default.replication.factor auto.create.topics.enable min.insync.replicas
    unclean.leader.election.enable compression.type replica.fetch.max.bytes replica.lag.time.max.ms
    num.replica.fetchers inter.broker.listener.name inter.broker.protocol.version
    security.inter.broker.protocol group.initial.rebalance.delay.ms group.consumer.session.timeout.ms
    group.share.session.timeout.ms group.streams.session.timeout.ms share.coordinator.threads
    offsets.topic.num.partitions offsets.topic.replication.factor transaction.state.log.min.isr
    transaction.max.timeout.ms transactional.id.expiration.ms producer.id.expiration.ms
    producer.id.expiration.check.interval.ms fetch.max.bytes max.incremental.fetch.session.cache.slots
    metric.reporters metrics.num.samples kafka.metrics.reporters telemetry.max.bytes
    auto.include.jmx.reporter quota.window.num client.quota.callback.class password.encoder.secret
    delegation.token.secret.key delegation.token.master.key authorizer.class.name super.users
    allow.everyone.if.no.acl.found principal.builder.class connections.max.reauth.ms
    sasl.enabled.mechanisms sasl.mechanism.inter.broker.protocol sasl.mechanism.controller.protocol
    sasl.jaas.config ssl.keystore.location ssl.client.auth ssl.principal.mapping.rules
    security.providers create.topic.policy.class.name alter.config.policy.class.name
    remote.log.storage.system.enable remote.log.manager.thread.pool.size remote.fetch.max.wait.ms
    rlmm.config.remote.log.metadata.topic.num.partitions config.providers config.providers.file.class
    leader.replication.throttled.rate
""")


@pytest.mark.parametrize("name", KAFKA_BROKER_NAMES)
def test_each_of_kafkas_broker_names_is_on_one_list(name: str) -> None:
    lists = [name in BROKER_SETTINGS, broker_ignored(name) is not None, broker_refusal(name) is not None]
    assert lists.count(True) == 1


@pytest.mark.parametrize(
    "name",
    [
        "sasl.mechanism.controller.protocol",
        "sasl.login.refresh.buffer.seconds",
        "listener.name.b.sasl.login.read.timeout.ms",
    ],
)
def test_what_kafka_files_with_logins_have_and_nothing_here_needs_is_ignored(name: str) -> None:
    """The first is in every file of a KRaft node with SASL; the others are how Java logs in."""
    assert broker_ignored(name) is not None
    assert broker_refusal(name) is None
    assert broker_refusal("sasl.login.class") is not None


def test_a_topic_has_the_names_that_kafka_knows_and_no_others() -> None:
    assert [name for name, setting in sorted(TOPIC_SETTINGS.items()) if not setting.hidden] == KAFKA_TOPIC_NAMES


def test_no_name_is_written_on_two_lists() -> None:
    names = [*BROKER_SETTINGS]
    names += [name for family in BROKER_IGNORED for name in family.names]
    names += [name for refusal in BROKER_REFUSED for name in refusal.names]
    assert sorted(names) == sorted(set(names))


def test_a_topics_setting_is_ignored_for_the_reason_of_its_pair() -> None:
    ignored = {name: setting for name, setting in TOPIC_SETTINGS.items() if setting.unread}
    assert sorted(ignored) == _names("""
        local.retention.bytes local.retention.ms remote.log.copy.disable remote.log.delete.on.disable
        remote.storage.enable
    """)
    assert all(setting.pair is None or setting.pair.unread == setting.unread for setting in ignored.values())


def test_every_constant_has_the_name_of_its_setting() -> None:
    """So that a reader is found by either."""
    for _, module in AREAS:
        for constant, value in vars(module).items():
            if isinstance(value, Setting):
                assert constant == value.name.upper().replace(".", "_")


def test_every_definition_has_a_sentence() -> None:
    for setting in (*BROKER_SETTINGS.values(), *TOPIC_SETTINGS.values()):
        assert setting.doc.endswith("."), setting.name
        assert setting.default is None or setting.parse(setting.format(setting.default)) == setting.default


@pytest.mark.parametrize(
    "name",
    [
        "listener.name.internal.ssl.engine.factory.class",
        "listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config",
        "listener.name.client.sasl.enabled.mechanisms",
        "listener.name.client.principal.builder.class",
    ],
)
def test_a_security_line_for_one_listener_is_refused_too(name: str) -> None:
    assert broker_refusal(name) is not None


@pytest.mark.parametrize(
    "name", ["listener.name.internal.socket.request.max.bytes", "listener.name.a.message.max.bytes"]
)
def test_another_line_for_one_listener_is_ignored(name: str) -> None:
    assert broker_ignored(name) is not None


def test_the_nearest_name_is_found() -> None:
    assert nearest_broker_name("log.retention.hour") == "log.retention.hours"
    assert nearest_broker_name("num.partition") == "num.partitions"
    assert nearest_broker_name("zzzzzzzz") is None
    assert nearest_topic_name("retentions.ms") == "retention.ms"


def test_a_name_from_the_other_side_of_a_pair_points_across() -> None:
    assert nearest_broker_name("segment.index.bytes") == "log.index.size.max.bytes"
    assert nearest_topic_name("log.roll.hours") == "segment.ms"
