"""Kafka's settings that are accepted and do nothing here.

Owns the second of three lists (honoured, ignored, refused): names that a Kafka file may carry and that change
nothing, each with the reason that is shown once at start. When code begins to read one, its definition is written and
the name leaves this list; a test fails while it is in both.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Family:
    """Names that share a fate; a prefix stands for every name that begins with it and is on no other list."""

    reason: str
    names: frozenset[str] = frozenset()
    prefixes: tuple[str, ...] = ()

    def __contains__(self, name: str) -> bool:
        return name in self.names or name.startswith(self.prefixes)


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_NOT_READ = "nothing in Lamina reads it yet"

BROKER_IGNORED = (
    Family(
        "Lamina has no KRaft quorum",
        _names("""
            process.roles initial.broker.registration.timeout.ms broker.heartbeat.interval.ms
            broker.session.timeout.ms server.max.startup.time.ms eligible.leader.replicas.enable
            early.start.listeners sasl.mechanism.controller.protocol
        """),
        ("controller.", "metadata.", "internal.metadata."),
    ),
    Family(
        "it is about how Java logs in to other brokers; Lamina does that in its own way",
        _names("""
            sasl.login.refresh.window.factor sasl.login.refresh.window.jitter sasl.login.refresh.min.period.seconds
            sasl.login.refresh.buffer.seconds sasl.login.connect.timeout.ms sasl.login.read.timeout.ms
            sasl.login.retry.backoff.ms sasl.login.retry.backoff.max.ms
        """),
    ),
    Family(
        "Lamina speaks to ZooKeeper in its own way",
        _names("zookeeper.max.in.flight.requests zookeeper.clientCnxnSocket zookeeper.sync.time.ms"),
        ("zookeeper.metadata.migration.",),
    ),
    Family(
        "TLS is OpenSSL's, which chooses this itself",
        _names("""
            ssl.protocol ssl.provider ssl.keymanager.algorithm ssl.trustmanager.algorithm
            ssl.secure.random.implementation
        """),
    ),
    Family("brokers have one listener for each other", _names("control.plane.listener.name")),
    Family(
        "one event loop does this work",
        _names("""
            num.network.threads num.io.threads background.threads
            queued.max.requests group.coordinator.threads
            group.coordinator.background.threads
        """),
    ),
    Family(
        "Lamina has no purgatories",
        _names("""
            fetch.purgatory.purge.interval.requests producer.purgatory.purge.interval.requests
            delete.records.purgatory.purge.interval.requests
        """),
    ),
    Family(
        "Lamina has no share groups or streams groups",
        prefixes=("group.share.", "group.streams.", "share.", "errors.deadletterqueue."),
    ),
    Family(
        "Lamina has no tiered storage",
        _names("""
            remote.fetch.max.wait.ms remote.list.offsets.request.timeout.ms
            log.remote.copy.lag.ms log.remote.copy.lag.bytes
        """),
        ("remote.log.", "rsm.config.", "rlmm.config."),
    ),
    Family(
        "metrics are served another way",
        _names("metric.reporters auto.include.jmx.reporter telemetry.max.bytes"),
        ("metrics.", "kafka.metrics.", "log4j."),
    ),
    Family("it belongs to another product", prefixes=("confluent.", "cruise.control.")),
    Family(
        "Kafka itself has dropped it",
        _names("""
            port host.name advertised.host.name advertised.port inter.broker.protocol.version
            log.message.format.version log.message.timestamp.difference.max.ms
            log.message.downconversion.enable group.coordinator.new.enable offsets.commit.required.acks
            quota.producer.default quota.consumer.default
        """),
        ("password.encoder.",),
    ),
    Family(
        _NOT_READ,
        _names("""
            controlled.shutdown.enable
            controlled.shutdown.max.retries controlled.shutdown.retry.backoff.ms
            cordoned.log.dirs log.dir.failure.timeout.ms
            log.initial.task.delay.ms
            producer.id.expiration.check.interval.ms
            socket.connection.setup.timeout.max.ms socket.connection.setup.timeout.ms
            socket.receive.buffer.bytes socket.send.buffer.bytes
            unclean.leader.election.interval.ms unstable.api.versions.enable
            unstable.feature.versions.enable
        """),
    ),
    Family(
        _NOT_READ,
        _names("""
            group.coordinator.append.linger.ms group.coordinator.cached.buffer.max.bytes
            group.coordinator.rebalance.protocols
            offsets.load.buffer.size replica.socket.receive.buffer.bytes
            transaction.state.log.load.buffer.size transaction.two.phase.commit.enable
        """),
    ),
)
