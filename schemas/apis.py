"""Which messages go into the table: every version that kio has of each API named here.

Owns the choice: what Lamina offers, and what brokers of one cluster say to each other.
"""

API_KEYS = (
    *(0, 1, 2, 3),  # records, metadata
    *range(8, 37),  # offsets, groups, topics, transactions, access rules, configs, log directories, SASL
    37,  # CreatePartitions
    *(42, 43, 44, 45, 46, 47),  # DeleteGroups to OffsetDelete
    *(48, 49, 50, 51),  # client quotas, SCRAM credentials
    *(56, 57, 58),  # AlterPartition, UpdateFeatures, Envelope
    *(60, 61, 64, 65, 66, 67, 68, 69),  # DescribeCluster to ConsumerGroupDescribe
    *(74, 75),  # ListConfigResources, DescribeTopicPartitions
)

CONTROLLED_SHUTDOWN = 7

BEFORE_KAFKA_4 = {
    CONTROLLED_SHUTDOWN: """\
ControlledShutdownRequest 3-3
 broker_id int32
 broker_epoch int64 default=-1
ControlledShutdownResponse 3-3
 error_code error_code
 remaining_partitions []RemainingPartition
  topic_name string
  partition_index int32
""",
}
"""What brokers tell a controller without KRaft, in the table's own notation. Kafka 4 dropped it, and kio follows it."""

FOLLOW_METADATA = 10_000

OURS = {
    FOLLOW_METADATA: """\
FollowMetadataRequest 0-0
 broker_id int32
 broker_epoch int64
 controller_epoch int32
 version int64
 max_wait timedelta_i32
 report bytes
FollowMetadataResponse 0-0
 error_code error_code
 error_message string null default=null
 controller_epoch int32
 version int64
 is_full bool
 changes bytes
""",
}
"""What Kafka has no message for: a broker asks the controller for changes after a version, and reports what it did."""
