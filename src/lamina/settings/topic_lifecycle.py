"""How topics come and go.

Owns the broker's settings for making, describing and deleting topics. Must not know how they are read.
"""

from lamina.settings.definition import broker_setting
from lamina.settings.kinds import BOOLEAN, INT, at_least

AUTO_CREATE_TOPICS_ENABLE = broker_setting(
    "auto.create.topics.enable", BOOLEAN, True, "Whether a topic is made when a client first asks for it."
)
DELETE_TOPIC_ENABLE = broker_setting("delete.topic.enable", BOOLEAN, True, "Whether topics can be deleted.")
NUM_PARTITIONS = broker_setting(
    "num.partitions", INT, 1, "Partitions of a topic whose maker does not say.", rule=at_least(1)
)
DEFAULT_REPLICATION_FACTOR = broker_setting(
    "default.replication.factor", INT, 1, "Replicas of a topic whose maker does not say.", rule=at_least(1)
)
MAX_REQUEST_PARTITION_SIZE_LIMIT = broker_setting(
    "max.request.partition.size.limit",
    INT,
    2000,
    "Partitions that one answer of DescribeTopicPartitions tells of; the client asks for the rest.",
    rule=at_least(1),
)
