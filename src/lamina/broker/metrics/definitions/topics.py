"""What producers and consumers do, by topic."""

from lamina.broker.metrics.metric import counter

_TOPIC = "kafka.server:type=BrokerTopicMetrics,name={},topic=*"

TOPIC_IN_MESSAGES = counter(
    "lamina_topic_in_messages_total",
    "Records that producers sent and the broker took, retries of known batches included.",
    "topic",
    kafka=_TOPIC.format("MessagesInPerSec"),
)
TOPIC_IN_BYTES = counter(
    "lamina_topic_in_bytes_total",
    "Bytes of the batches that producers sent and the broker took.",
    "topic",
    kafka=_TOPIC.format("BytesInPerSec"),
)
TOPIC_OUT_BYTES = counter(
    "lamina_topic_out_bytes_total",
    "Bytes of the batches in answers to consumers. How many records they hold is not known: as in Kafka, "
    "batches leave unopened.",
    "topic",
    kafka=_TOPIC.format("BytesOutPerSec"),
)
TOPIC_REJECTED_BYTES = counter(
    "lamina_topic_rejected_bytes_total",
    "Bytes of batches that were larger than `max.message.bytes`.",
    "topic",
    kafka=_TOPIC.format("BytesRejectedPerSec"),
)
TOPIC_PRODUCE_REQUESTS = counter(
    "lamina_topic_produce_requests_total",
    "Batches that producers sent, one for each partition of a request.",
    "topic",
    kafka=_TOPIC.format("TotalProduceRequestsPerSec"),
)
TOPIC_PRODUCE_FAILURES = counter(
    "lamina_topic_produce_failures_total",
    "Those of them that were refused or failed, whatever the cause.",
    "topic",
    kafka=_TOPIC.format("FailedProduceRequestsPerSec"),
)
TOPIC_FETCH_REQUESTS = counter(
    "lamina_topic_fetch_requests_total",
    "Partitions that Fetch answers were made from.",
    "topic",
    kafka=_TOPIC.format("TotalFetchRequestsPerSec"),
)
TOPIC_FETCH_FAILURES = counter(
    "lamina_topic_fetch_failures_total",
    "Those of them that got an error.",
    "topic",
    kafka=_TOPIC.format("FailedFetchRequestsPerSec"),
)
