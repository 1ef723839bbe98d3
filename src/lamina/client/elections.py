"""Elections of leaders that somebody asks for.

Must not know any command.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from lamina.client.cluster import Cluster
from lamina.client.errors import Refused
from lamina.topic_partition import TopicPartition

if TYPE_CHECKING:
    from confluent_kafka import KafkaError

NOT_NEEDED = "ELECTION_NOT_NEEDED"


def elect_leaders(
    cluster: Cluster, wanted: Iterable[TopicPartition] | None, *, unclean: bool = False
) -> dict[TopicPartition, Refused | None]:
    """Why nobody was elected, for each partition; ``None`` where somebody was. All that need one for ``None``."""
    from confluent_kafka import ElectionType
    from confluent_kafka import TopicPartition as Asked

    election_type = ElectionType.UNCLEAN if unclean else ElectionType.PREFERRED
    partitions = None if wanted is None else [Asked(*key) for key in wanted]
    answer: dict[Asked, KafkaError | None] = cluster.answer(cluster.admin().elect_leaders(election_type, partitions))
    return {
        (str(one.topic), int(one.partition)): None if error is None else Refused(error)
        for one, error in sorted(answer.items(), key=lambda item: (item[0].topic, item[0].partition))
    }
