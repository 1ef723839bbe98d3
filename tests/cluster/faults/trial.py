"""A cluster behind a proxy that is hurt while clients work, and what is kept of it."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random

from lamina.clocks import pause
from lamina.cluster.layout import ZOOKEEPER, broker_name
from lamina.log.files import Disk
from lamina.log.verify.directory import prepare, verify
from lamina.log.verify.findings import Finding, Severity
from tests.cluster import links
from tests.cluster.faults.kafka_clients import KafkaConsumer, KafkaProducer
from tests.cluster.faults.load import Load
from tests.cluster.faults.store_watch import StoreWatch
from tests.cluster.faults.story import Story
from tests.cluster.proxied_brokers import ProxiedBrokers
from tests.cluster.proxy import Proxy
from tests.cluster.three_brokers import ALL
from tests.cluster.verifiable_consumer import VerifiableConsumer
from tests.cluster.verifiable_producer import VerifiableProducer
from tests.history.events import Partition

SESSION_MS = 6000
SETTINGS = {
    "zookeeper.session.timeout.ms": str(SESSION_MS),
    "transaction.state.log.num.partitions": "3",
    "offsets.topic.num.partitions": "3",
}
"""The session is what brokers have by default."""
ELECTED_SECONDS = 10.0
SOON_ELECTED_SECONDS = 3.0
"""Where whoever connects to the broker before is refused: less than a session."""
FULL_IN_SYNC_SECONDS = 60.0


class Trial:
    def __init__(
        self, directory: Path, kept: Path, seed: int, wanted: int, settings: Mapping[str, str] | None = None
    ) -> None:
        self.random = Random(seed)
        self.wanted = wanted
        """So many records each load has acknowledged at last."""
        self.story = Story(kept)
        self.proxy = Proxy()
        self.brokers = ProxiedBrokers(directory, self.proxy, {**SETTINGS, **(settings or {})})
        self.watch: StoreWatch
        """Of ZooKeeper, while the cluster runs."""

    @contextmanager
    def running(self) -> Iterator["Trial"]:
        """Logs of brokers are kept whatever happens."""
        try:
            with self.proxy, self.brokers.running(), self._watching():
                yield self
            assert self.watch.broken == []
            self._verify_logs()
        finally:
            layout = self.brokers.cluster.layout
            self.story.keep(*(layout.log(name) for name in (*map(broker_name, ALL), ZOOKEEPER)))
            self.story.close()

    @contextmanager
    def _watching(self) -> Iterator[None]:
        address = self.brokers.cluster.zookeeper_address()
        with StoreWatch(address, self.story.now_ms, self.story.tell) as self.watch:
            try:
                yield
            finally:
                # A broker that is cut off or paused could not say good-bye.
                self.proxy.heal()
                self.brokers.resume_all()

    def _verify_logs(self) -> None:
        """As `lamina verify` does, when all brokers have stopped."""
        for broker_id in ALL:
            found = self.damage(broker_id)
            assert found == [], f"broker {broker_id}: {found}"

    def damage(self, broker_id: int) -> list[Finding]:
        """What `lamina verify` calls an error in the logs of a broker that does not run."""
        disk = Disk()
        found: list[Finding] = []
        for log_dir in self.brokers.log_dirs(broker_id):
            verification = prepare(disk, str(log_dir), lambda _: False)
            verify(disk, verification, lambda _: None)
            found += [one for one in verification.findings.kept if one.severity is Severity.ERROR]
        return found

    # Topics and load

    def create_topic(
        self, topic: str, partitions: int = 1, leaders: Sequence[int] | None = None, **configs: str
    ) -> None:
        self.brokers.create_topic(topic, partitions, leaders, **configs)
        self.see_topic(topic, partitions)

    def see_topic(self, topic: str, partitions: int = 1) -> None:
        """From now on its leaders are watched."""
        self.watch.watch(topic, partitions)
        self.story.within(ELECTED_SECONDS, f"{topic} is seen", lambda: (topic, partitions - 1) in self.watch.states)

    def consumer(self, topic: str, partitions: int = 1) -> VerifiableConsumer:
        """Of committed records."""
        name = f"consumer of {topic}"
        return VerifiableConsumer(
            self.brokers.bootstrap, topic, partitions, name, self.story.now_ms, isolation="read_committed"
        )

    def load(self, topic: str, partitions: int = 1, value_bytes: int = 0) -> Load:
        return Load(self.brokers, self.story, topic, partitions, self.wanted, value_bytes, self._protocol())

    def kafka_producer(self, topic: str) -> KafkaProducer:
        return KafkaProducer(self.brokers.bootstrap, topic, self.story)

    def kafka_consumer(self, topic: str, read_as: Callable[[bytes], bytes] = bytes.rstrip) -> KafkaConsumer:
        """Of committed records."""
        return KafkaConsumer(self.brokers.bootstrap, topic, self.story, self._protocol(), read_as)

    def _protocol(self) -> str:
        return self.random.choice(["classic", "consumer"])

    def wait(self, seconds: float) -> None:
        """While clients work."""
        pause(seconds)

    # What happens to brokers

    def kill(self, *broker_ids: int, is_refused: bool | None = None) -> float:
        """Returns when. Whether who connects to them is refused then is drawn, where it is not said."""
        at_ms = self.story.now_ms()
        is_refused = self.random.random() < 0.5 if is_refused is None else is_refused
        known = "is refused" if is_refused else "cannot tell that they are gone"
        self.story.tell(f"SIGKILL to {_text(broker_ids)}; who connects there {known}")
        self.brokers.kill(*broker_ids, is_refused=is_refused)
        return at_ms

    def stop(self, broker_id: int) -> None:
        self.story.tell(f"SIGTERM to broker {broker_id}")
        self.brokers.stop(broker_id)

    def restart(self, *broker_ids: int) -> None:
        self.story.tell(f"starting {_text(broker_ids)}")
        self.brokers.restart(*broker_ids)
        self.story.tell(f"started {_text(broker_ids)}")

    def pause(self, broker_id: int) -> None:
        self.story.tell(f"SIGSTOP to broker {broker_id}")
        self.brokers.pause(broker_id)

    def resume(self, broker_id: int) -> None:
        self.story.tell(f"SIGCONT to broker {broker_id}")
        self.brokers.resume(broker_id)

    def isolate(self, broker_id: int, others: Collection[int], *, from_zookeeper: bool) -> float:
        """From other brokers, not from clients. Returns when."""
        at_ms = self.story.now_ms()
        parties = [broker_name(other) for other in others] + [links.ZOOKEEPER] * from_zookeeper
        self.story.tell(f"cutting off broker {broker_id} from {', '.join(parties)}")
        self.proxy.isolate(broker_name(broker_id), parties)
        return at_ms

    def heal(self) -> None:
        self.story.tell("healing all links")
        self.proxy.heal()

    # What has to follow

    def await_new_leader(self, partition: Partition, other_than: int, seconds: float = ELECTED_SECONDS) -> int:
        self.story.within(
            seconds,
            f"another than broker {other_than} leads {partition[0]}-{partition[1]}",
            lambda: self.watch.leader(partition) not in (other_than, -1),
            lambda: self.watch.states[partition],
        )
        return self.watch.leader(partition)

    def await_in_sync(
        self, topic: str, partitions: int, brokers: Collection[int] = ALL, seconds: float = FULL_IN_SYNC_SECONDS
    ) -> None:
        keys = [(topic, one) for one in range(partitions)]
        self.story.within(
            seconds,
            f"{_text(tuple(brokers))} in sync in {topic}",
            lambda: all(self.watch.in_sync(key) == frozenset(brokers) for key in keys),
            lambda: [str(self.watch.states[key]) for key in keys],
        )

    def await_resumed(
        self, producer: VerifiableProducer, partition: int, since_ms: float, seconds: float = ELECTED_SECONDS
    ) -> None:
        """A record that was sent after a moment is acknowledged, so soon after that moment."""
        self.story.within(
            seconds + 60,
            f"partition {partition} takes records again",
            lambda: producer.resumed_ms(partition, since_ms) is not None,
            lambda: producer.errors,
        )
        resumed_ms = producer.resumed_ms(partition, since_ms)
        assert resumed_ms is not None
        took = (resumed_ms - since_ms) / 1000
        self.story.tell(f"the first of them was acknowledged {took:.1f} s after it was hurt")
        assert took <= seconds, (
            f"partition {partition} took records again after {took:.1f} s, and {seconds:g} s are allowed"
        )


def _text(broker_ids: Collection[int]) -> str:
    return f"{'brokers' if len(broker_ids) > 1 else 'broker'} {', '.join(map(str, broker_ids))}"
