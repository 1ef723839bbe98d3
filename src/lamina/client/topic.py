"""One topic as a producer or a consumer needs it: its partitions, how large a batch may be, where logs begin and end.

Nothing here makes a topic except :func:`create`. Must not know any command.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lamina.client.cluster import BROKER_SECONDS, LEADER_AWAY, REQUEST_SECONDS, UNANSWERED, answer_of
from lamina.client.errors import ClientError, Refused, sentence
from lamina.clocks import SYSTEM_CLOCKS, Clocks

if TYPE_CHECKING:
    from concurrent.futures import Future

    from confluent_kafka.admin import AdminClient, ListOffsetsResultInfo, OffsetSpec

_UNKNOWN = "UNKNOWN_TOPIC_OR_PART"
_NO_OFFSET = -1


@dataclass(frozen=True, slots=True)
class Topic:
    name: str
    partitions: tuple[int, ...]


def find(admin: "AdminClient", name: str) -> Topic | None:
    """``None`` when the cluster has no such topic; asking does not make it."""
    from confluent_kafka import KafkaException, TopicCollection

    answer = admin.describe_topics(TopicCollection([name]), request_timeout=REQUEST_SECONDS)[name]
    try:
        described = answer.result(REQUEST_SECONDS)
    except KafkaException as error:
        if error.args[0].name() == _UNKNOWN:
            return None
        raise ClientError(f"topic {name}: {sentence(error.args[0])}") from error
    except ValueError as error:
        raise ClientError(f"topic {name!r}: {error}") from error
    return Topic(name, tuple(sorted(partition.id for partition in described.partitions)))


def create(admin: "AdminClient", name: str, partitions: int = -1, config: Mapping[str, str] | None = None) -> None:
    """Make a topic; without a number of partitions as the cluster's defaults say."""
    from confluent_kafka.admin import NewTopic

    new = NewTopic(name, num_partitions=partitions, replication_factor=-1, config=dict(config or {}))
    answer_of(admin.create_topics([new])[name])


def delete(admin: "AdminClient", name: str) -> None:
    answer_of(admin.delete_topics([name])[name])


@dataclass(frozen=True, slots=True)
class Rules:
    """What a topic demands of records."""

    max_message_bytes: int | None
    """The largest batch; ``None`` when the cluster does not tell."""
    is_compacted: bool
    """Then every record needs a key."""
    min_insync_replicas: int | None = None


def rules_of(admin: "AdminClient", name: str) -> Rules:
    from confluent_kafka.admin import ConfigResource

    resource = ConfigResource(ConfigResource.Type.TOPIC, name)
    try:
        entries = answer_of(admin.describe_configs([resource])[resource])
    except ClientError:
        return Rules(None, is_compacted=False)
    values = {name: entry.value for name, entry in entries.items() if entry.value is not None}
    policies = [policy.strip() for policy in values.get("cleanup.policy", "").split(",")]
    largest, least = (values.get(key) for key in ("max.message.bytes", "min.insync.replicas"))
    return Rules(
        None if largest is None else int(largest), "compact" in policies, None if least is None else int(least)
    )


class Offsets:
    """Where the logs of some partitions begin and end; every question is one request to each broker."""

    def __init__(
        self,
        admin: "AdminClient",
        topic: str,
        partitions: Collection[int],
        *,
        read_committed: bool,
        clocks: Clocks = SYSTEM_CLOCKS,
    ) -> None:
        self._clocks = clocks
        self._admin = admin
        self._topic = topic
        self._partitions = partitions
        self._read_committed = read_committed

    def first(self) -> dict[int, int]:
        from confluent_kafka.admin import OffsetSpec

        return self._ask(OffsetSpec.earliest())  # type: ignore[no-untyped-call]

    def end(self) -> dict[int, int]:
        """The high watermarks, or with ``read_committed`` the last stable offsets."""
        from confluent_kafka.admin import OffsetSpec

        return self._ask(OffsetSpec.latest())  # type: ignore[no-untyped-call]

    def at(self, timestamp_ms: int, end: Mapping[int, int]) -> dict[int, int]:
        """The first record of that time or later; the end where there is none."""
        from confluent_kafka.admin import OffsetSpec

        found = self._ask(OffsetSpec.for_timestamp(timestamp_ms))
        return {partition: end[partition] if offset == _NO_OFFSET else offset for partition, offset in found.items()}

    def _ask(self, spec: "OffsetSpec") -> dict[int, int]:
        from confluent_kafka import IsolationLevel, TopicPartition

        level = IsolationLevel.READ_COMMITTED if self._read_committed else IsolationLevel.READ_UNCOMMITTED
        asked = {TopicPartition(self._topic, partition): spec for partition in self._partitions}
        if not asked:
            return {}
        found: dict[int, int] = {}
        began = self._clocks.monotonic_seconds()
        # A leader that died is the leader until its session ends: whoever leads by then is asked.
        while asked and self._clocks.monotonic_seconds() - began < REQUEST_SECONDS:
            answers = self._admin.list_offsets(asked, isolation_level=level, request_timeout=BROKER_SECONDS)
            found |= {tp.partition: offset for tp, future in answers.items() if (offset := _offset(future)) is not None}
            asked = {tp: spec for tp in asked if tp.partition not in found}
        if asked:
            names = ", ".join(f"{tp.topic}-{tp.partition}" for tp in asked)
            raise ClientError(f"{names}: no leader answers; `lamina topics describe {self._topic}` shows who leads")
        return found


def _offset(future: "Future[ListOffsetsResultInfo]") -> int | None:
    """``None`` while the leader is away, or is being elected."""
    try:
        offset = int(answer_of(future).offset)
    except Refused as error:
        if error.name in LEADER_AWAY:
            return None
        raise
    return None if offset == UNANSWERED else offset
