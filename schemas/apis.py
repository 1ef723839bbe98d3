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

FOLLOW_METADATA, LEND_SEGMENTS, KEEP_LEASE = 10_000, 10_001, 10_002

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
    LEND_SEGMENTS: """\
LendSegmentsRequest 0-0
 topic string
 topic_id uuid
 partition int32
 current_leader_epoch int32 default=-1
 start_offset int64
 end_offset int64
 isolation_level int8 default=0
 boot_id string default=""
LendSegmentsResponse 0-0
 throttle_time timedelta_i32
 error_code error_code
 error_message string null default=null
 node_id int32
 lease_id uuid
 lease timedelta_i32
 folder string
 topic_id uuid
 leader_epoch int32
 end_offset int64
 segments []LentSegment
  base_offset int64
  start_position int64
  end_position int64
  inode int64
 aborted_transactions []LentAbortedTransaction
  producer_id int64
  first_offset int64
  last_offset int64
""",
    KEEP_LEASE: """\
KeepLeaseRequest 0-0
 lease_id uuid
 is_over bool default=false
KeepLeaseResponse 0-0
 throttle_time timedelta_i32
 error_code error_code
 error_message string null default=null
""",
}
"""What Kafka has no message for: a broker asks the controller for changes after a version, and reports what it did; a
reader asks for files, and renews or ends what it was lent."""
