"""Every message, all its versions in one definition. Made from kio by `make schemas`; not to be edited.

`lamina.wire.schemas` says how it is read.
"""

MESSAGES = {
    0: """\
ProduceRequest 3-13
 transactional_id string null default=null
 acks int16
 timeout timedelta_i32
 topic_data []TopicProduceData
  name string 3-12
  topic_id uuid 13+
  partition_data []PartitionProduceData
   index int32
   records records null
ProduceResponse 3-13
 responses []TopicProduceResponse
  name string 3-12
  topic_id uuid 13+
  partition_responses []PartitionProduceResponse
   index int32
   error_code error_code
   base_offset int64
   log_append_time datetime_i64 null default=null
   log_start_offset int64 5+ default=-1
   record_errors []BatchIndexAndErrorMessage 8+
    batch_index int32
    batch_index_error_message string null default=null
   error_message string 8+ null default=null
   current_leader LeaderIdAndEpoch 10+ tag=0 default={}
    leader_id int32 default=-1
    leader_epoch int32 default=-1
 throttle_time timedelta_i32 default=0
 node_endpoints []NodeEndpoint 10+ tag=0 default=[]
  node_id int32
  host string
  port int32
  rack string null default=null
""",
    1: """\
FetchRequest 4-18
 cluster_id string 12+ null tag=0 default=null
 replica_id int32 4-14 default=-1
 replica_state ReplicaState 15+ tag=1 default={}
  replica_id int32 default=-1
  replica_epoch int64 default=-1
 max_wait timedelta_i32
 min_bytes int32
 max_bytes int32 default=2147483647
 isolation_level int8 default=0
 session_id int32 7+ default=0
 session_epoch int32 7+ default=-1
 topics []FetchTopic
  topic string 4-12
  topic_id uuid 13+
  partitions []FetchPartition
   partition int32
   current_leader_epoch int32 9+ default=-1
   fetch_offset int64
   last_fetched_epoch int32 12+ default=-1
   log_start_offset int64 5+ default=-1
   partition_max_bytes int32
   replica_directory_id uuid 17+ tag=0 default=null
   high_watermark int64 18+ tag=1 default=9223372036854775807
 forgotten_topics_data []ForgottenTopic 7+
  topic string 7-12
  topic_id uuid 13+
  partitions []int32 default=[]
 rack_id string 11+ default=""
FetchResponse 4-18
 throttle_time timedelta_i32
 error_code error_code 7+
 session_id int32 7+ default=0
 responses []FetchableTopicResponse
  topic string 4-12
  topic_id uuid 13+
  partitions []PartitionData
   partition_index int32
   error_code error_code
   high_watermark int64
   last_stable_offset int64 default=-1
   log_start_offset int64 5+ default=-1
   diverging_epoch EpochEndOffset 12+ tag=0 default={}
    epoch int32 default=-1
    end_offset int64 default=-1
   current_leader LeaderIdAndEpoch 12+ tag=1 default={}
    leader_id int32 default=-1
    leader_epoch int32 default=-1
   snapshot_id SnapshotId 12+ tag=2 default={}
    end_offset int64 default=-1
    epoch int32 default=-1
   aborted_transactions []AbortedTransaction null
    producer_id int64
    first_offset int64
   preferred_read_replica int32 11+ default=-1
   records records null
 node_endpoints []NodeEndpoint 16+ tag=0 default=[]
  node_id int32
  host string
  port int32
  rack string null default=null
""",
    2: """\
ListOffsetsRequest 1-11
 replica_id int32
 isolation_level int8 2+
 topics []ListOffsetsTopic
  name string
  partitions []ListOffsetsPartition
   partition_index int32
   current_leader_epoch int32 4+ default=-1
   timestamp int64
 timeout timedelta_i32 10+
ListOffsetsResponse 1-11
 throttle_time timedelta_i32 2+
 topics []ListOffsetsTopicResponse
  name string
  partitions []ListOffsetsPartitionResponse
   partition_index int32
   error_code error_code
   timestamp int64 default=-1
   offset int64 default=-1
   leader_epoch int32 4+ default=-1
""",
    3: """\
MetadataRequest 0-13
 topics []MetadataRequestTopic null=1+
  topic_id uuid 10+
  name string null=10+
 allow_auto_topic_creation bool 4+ default=true
 include_cluster_authorized_operations bool 8-10
 include_topic_authorized_operations bool 8+
MetadataResponse 0-13
 throttle_time timedelta_i32 3+
 brokers []MetadataResponseBroker
  node_id int32
  host string
  port int32
  rack string 1+ null default=null
 cluster_id string 2+ null default=null
 controller_id int32 1+ default=-1
 topics []MetadataResponseTopic
  error_code error_code
  name string null=12+
  topic_id uuid 10+
  is_internal bool 1+ default=false
  partitions []MetadataResponsePartition
   error_code error_code
   partition_index int32
   leader_id int32
   leader_epoch int32 7+ default=-1
   replica_nodes []int32 default=[]
   isr_nodes []int32 default=[]
   offline_replicas []int32 5+ default=[]
  topic_authorized_operations int32 8+ default=-2147483648
 cluster_authorized_operations int32 8-10 default=-2147483648
 error_code error_code 13+
""",
    7: """\
ControlledShutdownRequest 3-3
 broker_id int32
 broker_epoch int64 default=-1
ControlledShutdownResponse 3-3
 error_code error_code
 remaining_partitions []RemainingPartition
  topic_name string
  partition_index int32
""",
    8: """\
OffsetCommitRequest 2-10
 group_id string
 generation_id_or_member_epoch int32 default=-1
 member_id string
 retention_time timedelta_i64 2-4 default=-1
 group_instance_id string 7+ null default=null
 topics []OffsetCommitRequestTopic
  name string 2-9
  topic_id uuid 10+
  partitions []OffsetCommitRequestPartition
   partition_index int32
   committed_offset int64
   committed_leader_epoch int32 6+ default=-1
   committed_metadata string null
OffsetCommitResponse 2-10
 throttle_time timedelta_i32 3+
 topics []OffsetCommitResponseTopic
  name string 2-9
  topic_id uuid 10+
  partitions []OffsetCommitResponsePartition
   partition_index int32
   error_code error_code
""",
    9: """\
OffsetFetchRequest 1-10
 group_id string 1-7
 topics []OffsetFetchRequestTopic 1-7 null=2-7
  name string
  partition_indexes []int32 default=[]
 groups []OffsetFetchRequestGroup 8+
  group_id string
  member_id string 9+ null default=null
  member_epoch int32 9+ default=-1
  topics []OffsetFetchRequestTopics null
   name string 8-9
   topic_id uuid 10+
   partition_indexes []int32 default=[]
 require_stable bool 7+ default=false
OffsetFetchResponse 1-10
 throttle_time timedelta_i32 3+
 topics []OffsetFetchResponseTopic 1-7
  name string
  partitions []OffsetFetchResponsePartition
   partition_index int32
   committed_offset int64
   committed_leader_epoch int32 5-7 default=-1
   metadata string null
   error_code error_code
 error_code error_code 2-7 default=0
 groups []OffsetFetchResponseGroup 8+
  group_id string
  topics []OffsetFetchResponseTopics
   name string 8-9
   topic_id uuid 10+
   partitions []OffsetFetchResponsePartitions
    partition_index int32
    committed_offset int64
    committed_leader_epoch int32 default=-1
    metadata string null
    error_code error_code
  error_code error_code default=0
""",
    10: """\
FindCoordinatorRequest 0-6
 key string 0-3
 key_type int8 1+ default=0
 coordinator_keys []string 4+ default=[]
FindCoordinatorResponse 0-6
 throttle_time timedelta_i32 1+
 error_code error_code 0-3
 error_message string 1-3 null
 node_id int32 0-3
 host string 0-3
 port int32 0-3
 coordinators []Coordinator 4+
  key string
  node_id int32
  host string
  port int32
  error_code error_code
  error_message string null
""",
    11: """\
JoinGroupRequest 0-9
 group_id string
 session_timeout timedelta_i32
 rebalance_timeout timedelta_i32 1+ default=-1
 member_id string
 group_instance_id string 5+ null default=null
 protocol_type string
 protocols []JoinGroupRequestProtocol
  name string
  metadata bytes
 reason string 8+ null default=null
JoinGroupResponse 0-9
 throttle_time timedelta_i32 2+
 error_code error_code
 generation_id int32 default=-1
 protocol_type string 7+ null default=null
 protocol_name string null=7+
 leader string
 skip_assignment bool 9+ default=false
 member_id string
 members []JoinGroupResponseMember
  member_id string
  group_instance_id string 5+ null default=null
  metadata bytes
""",
    12: """\
HeartbeatRequest 0-4
 group_id string
 generation_id int32
 member_id string
 group_instance_id string 3+ null default=null
HeartbeatResponse 0-4
 throttle_time timedelta_i32 1+
 error_code error_code
""",
    13: """\
LeaveGroupRequest 0-5
 group_id string
 member_id string 0-2
 members []MemberIdentity 3+
  member_id string
  group_instance_id string null default=null
  reason string 5+ null default=null
LeaveGroupResponse 0-5
 throttle_time timedelta_i32 1+
 error_code error_code
 members []MemberResponse 3+
  member_id string
  group_instance_id string null
  error_code error_code
""",
    14: """\
SyncGroupRequest 0-5
 group_id string
 generation_id int32
 member_id string
 group_instance_id string 3+ null default=null
 protocol_type string 5+ null default=null
 protocol_name string 5+ null default=null
 assignments []SyncGroupRequestAssignment
  member_id string
  assignment bytes
SyncGroupResponse 0-5
 throttle_time timedelta_i32 1+
 error_code error_code
 protocol_type string 5+ null default=null
 protocol_name string 5+ null default=null
 assignment bytes
""",
    15: """\
DescribeGroupsRequest 0-6
 groups []string default=[]
 include_authorized_operations bool 3+
DescribeGroupsResponse 0-6
 throttle_time timedelta_i32 1+
 groups []DescribedGroup
  error_code error_code
  error_message string 6+ null default=null
  group_id string
  group_state string
  protocol_type string
  protocol_data string
  members []DescribedGroupMember
   member_id string
   group_instance_id string 4+ null default=null
   client_id string
   client_host string
   member_metadata bytes
   member_assignment bytes
  authorized_operations int32 3+ default=-2147483648
""",
    16: """\
ListGroupsRequest 0-5
 states_filter []string 4+ default=[]
 types_filter []string 5+ default=[]
ListGroupsResponse 0-5
 throttle_time timedelta_i32 1+
 error_code error_code
 groups []ListedGroup
  group_id string
  protocol_type string
  group_state string 4+
  group_type string 5+
""",
    17: """\
SaslHandshakeRequest 0-1
 mechanism string
SaslHandshakeResponse 0-1
 error_code error_code
 mechanisms []string default=[]
""",
    18: """\
ApiVersionsRequest 0-4
 client_software_name string 3+
 client_software_version string 3+
ApiVersionsResponse 0-4
 error_code error_code
 api_keys []ApiVersion
  api_key int16
  min_version int16
  max_version int16
 throttle_time timedelta_i32 1+
 supported_features []SupportedFeatureKey 3+ tag=0 default=[]
  name string
  min_version int16
  max_version int16
 finalized_features_epoch int64 3+ tag=1 default=-1
 finalized_features []FinalizedFeatureKey 3+ tag=2 default=[]
  name string
  max_version_level int16
  min_version_level int16
 zk_migration_ready bool 3+ tag=3 default=false
""",
    19: """\
CreateTopicsRequest 2-7
 topics []CreatableTopic
  name string
  num_partitions int32
  replication_factor int16
  assignments []CreatableReplicaAssignment
   partition_index int32
   broker_ids []int32 default=[]
  configs []CreatableTopicConfig
   name string
   value string null
 timeout timedelta_i32 default=60000
 validate_only bool default=false
CreateTopicsResponse 2-7
 throttle_time timedelta_i32
 topics []CreatableTopicResult
  name string
  topic_id uuid 7+
  error_code error_code
  error_message string null
  topic_config_error_code int16 5+ tag=0 default=0
  num_partitions int32 5+ default=-1
  replication_factor int16 5+ default=-1
  configs []CreatableTopicConfigs 5+ null
   name string
   value string null
   read_only bool
   config_source int8 default=-1
   is_sensitive bool
""",
    20: """\
DeleteTopicsRequest 1-6
 topic_names []string 1-5 default=[]
 topics []DeleteTopicState 6+
  name string null default=null
  topic_id uuid
 timeout timedelta_i32
DeleteTopicsResponse 1-6
 throttle_time timedelta_i32
 responses []DeletableTopicResult
  name string null=6+
  topic_id uuid 6+
  error_code error_code
  error_message string 5+ null default=null
""",
    21: """\
DeleteRecordsRequest 0-2
 topics []DeleteRecordsTopic
  name string
  partitions []DeleteRecordsPartition
   partition_index int32
   offset int64
 timeout timedelta_i32
DeleteRecordsResponse 0-2
 throttle_time timedelta_i32
 topics []DeleteRecordsTopicResult
  name string
  partitions []DeleteRecordsPartitionResult
   partition_index int32
   low_watermark int64
   error_code error_code
""",
    22: """\
InitProducerIdRequest 0-6
 transactional_id string null
 transaction_timeout timedelta_i32
 producer_id int64 3+ default=-1
 producer_epoch int16 3+ default=-1
 enable2_pc bool 6+ default=false
 keep_prepared_txn bool 6+ default=false
InitProducerIdResponse 0-6
 throttle_time timedelta_i32
 error_code error_code
 producer_id int64 default=-1
 producer_epoch int16
 ongoing_txn_producer_id int64 6+ default=-1
 ongoing_txn_producer_epoch int16 6+ default=-1
""",
    23: """\
OffsetForLeaderEpochRequest 2-4
 replica_id int32 3+ default=-2
 topics []OffsetForLeaderTopic
  topic string
  partitions []OffsetForLeaderPartition
   partition int32
   current_leader_epoch int32 default=-1
   leader_epoch int32
OffsetForLeaderEpochResponse 2-4
 throttle_time timedelta_i32
 topics []OffsetForLeaderTopicResult
  topic string
  partitions []EpochEndOffset
   error_code error_code
   partition int32
   leader_epoch int32 default=-1
   end_offset int64 default=-1
""",
    24: """\
AddPartitionsToTxnRequest 0-5
 v3_and_below_transactional_id string 0-3
 v3_and_below_producer_id int64 0-3
 v3_and_below_producer_epoch int16 0-3
 v3_and_below_topics []AddPartitionsToTxnTopic 0-3
  name string
  partitions []int32 default=[]
 transactions []AddPartitionsToTxnTransaction 4+
  transactional_id string
  producer_id int64
  producer_epoch int16
  verify_only bool default=false
  topics []AddPartitionsToTxnTopic
AddPartitionsToTxnResponse 0-5
 throttle_time timedelta_i32
 results_by_topic_v3_and_below []AddPartitionsToTxnTopicResult 0-3
  name string
  results_by_partition []AddPartitionsToTxnPartitionResult
   partition_index int32
   partition_error_code error_code
 error_code error_code 4+
 results_by_transaction []AddPartitionsToTxnResult 4+
  transactional_id string
  topic_results []AddPartitionsToTxnTopicResult
""",
    25: """\
AddOffsetsToTxnRequest 0-4
 transactional_id string
 producer_id int64
 producer_epoch int16
 group_id string
AddOffsetsToTxnResponse 0-4
 throttle_time timedelta_i32
 error_code error_code
""",
    26: """\
EndTxnRequest 0-5
 transactional_id string
 producer_id int64
 producer_epoch int16
 committed bool
EndTxnResponse 0-5
 throttle_time timedelta_i32
 error_code error_code
 producer_id int64 5+ default=-1
 producer_epoch int16 5+ default=-1
""",
    27: """\
WriteTxnMarkersRequest 1-2
 markers []WritableTxnMarker
  producer_id int64
  producer_epoch int16
  transaction_result bool
  topics []WritableTxnMarkerTopic
   name string
   partition_indexes []int32 default=[]
  coordinator_epoch int32
  transaction_version int8 2+ default=0
WriteTxnMarkersResponse 1-2
 markers []WritableTxnMarkerResult
  producer_id int64
  topics []WritableTxnMarkerTopicResult
   name string
   partitions []WritableTxnMarkerPartitionResult
    partition_index int32
    error_code error_code
""",
    28: """\
TxnOffsetCommitRequest 0-5
 transactional_id string
 group_id string
 producer_id int64
 producer_epoch int16
 generation_id int32 3+ default=-1
 member_id string 3+ default=""
 group_instance_id string 3+ null default=null
 topics []TxnOffsetCommitRequestTopic
  name string
  partitions []TxnOffsetCommitRequestPartition
   partition_index int32
   committed_offset int64
   committed_leader_epoch int32 2+ default=-1
   committed_metadata string null
TxnOffsetCommitResponse 0-5
 throttle_time timedelta_i32
 topics []TxnOffsetCommitResponseTopic
  name string
  partitions []TxnOffsetCommitResponsePartition
   partition_index int32
   error_code error_code
""",
    29: """\
DescribeAclsRequest 1-3
 resource_type_filter int8
 resource_name_filter string null
 pattern_type_filter int8 default=3
 principal_filter string null
 host_filter string null
 operation int8
 permission_type int8
DescribeAclsResponse 1-3
 throttle_time timedelta_i32
 error_code error_code
 error_message string null
 resources []DescribeAclsResource
  resource_type int8
  resource_name string
  pattern_type int8 default=3
  acls []AclDescription
   principal string
   host string
   operation int8
   permission_type int8
""",
    30: """\
CreateAclsRequest 1-3
 creations []AclCreation
  resource_type int8
  resource_name string
  resource_pattern_type int8 default=3
  principal string
  host string
  operation int8
  permission_type int8
CreateAclsResponse 1-3
 throttle_time timedelta_i32
 results []AclCreationResult
  error_code error_code
  error_message string null
""",
    31: """\
DeleteAclsRequest 1-3
 filters []DeleteAclsFilter
  resource_type_filter int8
  resource_name_filter string null
  pattern_type_filter int8 default=3
  principal_filter string null
  host_filter string null
  operation int8
  permission_type int8
DeleteAclsResponse 1-3
 throttle_time timedelta_i32
 filter_results []DeleteAclsFilterResult
  error_code error_code
  error_message string null
  matching_acls []DeleteAclsMatchingAcl
   error_code error_code
   error_message string null
   resource_type int8
   resource_name string
   pattern_type int8 default=3
   principal string
   host string
   operation int8
   permission_type int8
""",
    32: """\
DescribeConfigsRequest 1-4
 resources []DescribeConfigsResource
  resource_type int8
  resource_name string
  configuration_keys []string null default=[]
 include_synonyms bool default=false
 include_documentation bool 3+ default=false
DescribeConfigsResponse 1-4
 throttle_time timedelta_i32
 results []DescribeConfigsResult
  error_code error_code
  error_message string null
  resource_type int8
  resource_name string
  configs []DescribeConfigsResourceResult
   name string
   value string null
   read_only bool
   config_source int8 default=-1
   is_sensitive bool
   synonyms []DescribeConfigsSynonym
    name string
    value string null
    source int8
   config_type int8 3+ default=0
   documentation string 3+ null
""",
    33: """\
AlterConfigsRequest 0-2
 resources []AlterConfigsResource
  resource_type int8
  resource_name string
  configs []AlterableConfig
   name string
   value string null
 validate_only bool
AlterConfigsResponse 0-2
 throttle_time timedelta_i32
 responses []AlterConfigsResourceResponse
  error_code error_code
  error_message string null
  resource_type int8
  resource_name string
""",
    34: """\
AlterReplicaLogDirsRequest 1-2
 dirs []AlterReplicaLogDir
  path string
  topics []AlterReplicaLogDirTopic
   name string
   partitions []int32 default=[]
AlterReplicaLogDirsResponse 1-2
 throttle_time timedelta_i32
 results []AlterReplicaLogDirTopicResult
  topic_name string
  partitions []AlterReplicaLogDirPartitionResult
   partition_index int32
   error_code error_code
""",
    35: """\
DescribeLogDirsRequest 1-5
 topics []DescribableLogDirTopic null
  topic string
  partitions []int32 default=[]
DescribeLogDirsResponse 1-5
 throttle_time timedelta_i32
 error_code error_code 3+
 results []DescribeLogDirsResult
  error_code error_code
  log_dir string
  topics []DescribeLogDirsTopic
   name string
   partitions []DescribeLogDirsPartition
    partition_index int32
    partition_size int64
    offset_lag int64
    is_future_key bool
  total_bytes int64 4+ default=-1
  usable_bytes int64 4+ default=-1
  is_cordoned bool 5+ default=false
""",
    36: """\
SaslAuthenticateRequest 0-2
 auth_bytes bytes
SaslAuthenticateResponse 0-2
 error_code error_code
 error_message string null
 auth_bytes bytes
 session_lifetime timedelta_i64 1+ default=0
""",
    37: """\
CreatePartitionsRequest 0-3
 topics []CreatePartitionsTopic
  name string
  count int32
  assignments []CreatePartitionsAssignment null
   broker_ids []int32 default=[]
 timeout timedelta_i32
 validate_only bool
CreatePartitionsResponse 0-3
 throttle_time timedelta_i32
 results []CreatePartitionsTopicResult
  name string
  error_code error_code
  error_message string null default=null
""",
    42: """\
DeleteGroupsRequest 0-2
 groups_names []string default=[]
DeleteGroupsResponse 0-2
 throttle_time timedelta_i32
 results []DeletableGroupResult
  group_id string
  error_code error_code
""",
    43: """\
ElectLeadersRequest 0-2
 election_type int8 1+
 topic_partitions []TopicPartitions null
  topic string
  partitions []int32 default=[]
 timeout timedelta_i32 default=60000
ElectLeadersResponse 0-2
 throttle_time timedelta_i32
 error_code error_code 1+
 replica_election_results []ReplicaElectionResult
  topic string
  partition_result []PartitionResult
   partition_id int32
   error_code error_code
   error_message string null
""",
    44: """\
IncrementalAlterConfigsRequest 0-1
 resources []AlterConfigsResource
  resource_type int8
  resource_name string
  configs []AlterableConfig
   name string
   config_operation int8
   value string null
 validate_only bool
IncrementalAlterConfigsResponse 0-1
 throttle_time timedelta_i32
 responses []AlterConfigsResourceResponse
  error_code error_code
  error_message string null
  resource_type int8
  resource_name string
""",
    45: """\
AlterPartitionReassignmentsRequest 0-1
 timeout timedelta_i32 default=60000
 allow_replication_factor_change bool 1+ default=true
 topics []ReassignableTopic
  name string
  partitions []ReassignablePartition
   partition_index int32
   replicas []int32 null default=null
AlterPartitionReassignmentsResponse 0-1
 throttle_time timedelta_i32
 allow_replication_factor_change bool 1+ default=true
 error_code error_code
 error_message string null
 responses []ReassignableTopicResponse
  name string
  partitions []ReassignablePartitionResponse
   partition_index int32
   error_code error_code
   error_message string null
""",
    46: """\
ListPartitionReassignmentsRequest 0-0
 timeout timedelta_i32 default=60000
 topics []ListPartitionReassignmentsTopics null
  name string
  partition_indexes []int32 default=[]
ListPartitionReassignmentsResponse 0-0
 throttle_time timedelta_i32
 error_code error_code
 error_message string null
 topics []OngoingTopicReassignment
  name string
  partitions []OngoingPartitionReassignment
   partition_index int32
   replicas []int32 default=[]
   adding_replicas []int32 default=[]
   removing_replicas []int32 default=[]
""",
    47: """\
OffsetDeleteRequest 0-0
 group_id string
 topics []OffsetDeleteRequestTopic
  name string
  partitions []OffsetDeleteRequestPartition
   partition_index int32
OffsetDeleteResponse 0-0
 error_code error_code
 throttle_time timedelta_i32
 topics []OffsetDeleteResponseTopic
  name string
  partitions []OffsetDeleteResponsePartition
   partition_index int32
   error_code error_code
""",
    48: """\
DescribeClientQuotasRequest 0-1
 components []ComponentData
  entity_type string
  match_type int8
  match string null
 strict bool
DescribeClientQuotasResponse 0-1
 throttle_time timedelta_i32
 error_code error_code
 error_message string null
 entries []EntryData null
  entity []EntityData
   entity_type string
   entity_name string null
  values []ValueData
   key string
   value float64
""",
    49: """\
AlterClientQuotasRequest 0-1
 entries []EntryData
  entity []EntityData
   entity_type string
   entity_name string null
  ops []OpData
   key string
   value float64
   remove bool
 validate_only bool
AlterClientQuotasResponse 0-1
 throttle_time timedelta_i32
 entries []EntryData
  error_code error_code
  error_message string null
  entity []EntityData
   entity_type string
   entity_name string null
""",
    50: """\
DescribeUserScramCredentialsRequest 0-0
 users []UserName null
  name string
DescribeUserScramCredentialsResponse 0-0
 throttle_time timedelta_i32
 error_code error_code
 error_message string null
 results []DescribeUserScramCredentialsResult
  user string
  error_code error_code
  error_message string null
  credential_infos []CredentialInfo
   mechanism int8
   iterations int32
""",
    51: """\
AlterUserScramCredentialsRequest 0-0
 deletions []ScramCredentialDeletion
  name string
  mechanism int8
 upsertions []ScramCredentialUpsertion
  name string
  mechanism int8
  iterations int32
  salt bytes
  salted_password bytes
AlterUserScramCredentialsResponse 0-0
 throttle_time timedelta_i32
 results []AlterUserScramCredentialsResult
  user string
  error_code error_code
  error_message string null
""",
    56: """\
AlterPartitionRequest 2-3
 broker_id int32
 broker_epoch int64 default=-1
 topics []TopicData
  topic_id uuid
  partitions []PartitionData
   partition_index int32
   leader_epoch int32
   new_isr []int32 2-2 default=[]
   new_isr_with_epochs []BrokerState 3+
    broker_id int32
    broker_epoch int64 default=-1
   leader_recovery_state int8 default=0
   partition_epoch int32
AlterPartitionResponse 2-3
 throttle_time timedelta_i32
 error_code error_code
 topics []TopicData
  topic_id uuid
  partitions []PartitionData
   partition_index int32
   error_code error_code
   leader_id int32
   leader_epoch int32
   isr []int32 default=[]
   leader_recovery_state int8 default=0
   partition_epoch int32
""",
    57: """\
UpdateFeaturesRequest 0-2
 timeout timedelta_i32 default=60000
 feature_updates []FeatureUpdateKey
  feature string
  max_version_level int16
  allow_downgrade bool 0-0
  upgrade_type int8 1+ default=1
 validate_only bool 1+ default=false
UpdateFeaturesResponse 0-2
 throttle_time timedelta_i32
 error_code error_code
 error_message string null
 results []UpdatableFeatureResult 0-1
  feature string
  error_code error_code
  error_message string null
""",
    58: """\
EnvelopeRequest 0-0
 request_data bytes
 request_principal bytes null
 client_host_address bytes
EnvelopeResponse 0-0
 response_data bytes null default=null
 error_code error_code
""",
    60: """\
DescribeClusterRequest 0-2
 include_cluster_authorized_operations bool
 endpoint_type int8 1+ default=1
 include_fenced_brokers bool 2+
DescribeClusterResponse 0-2
 throttle_time timedelta_i32
 error_code error_code
 error_message string null default=null
 endpoint_type int8 1+ default=1
 cluster_id string
 controller_id int32 default=-1
 brokers []DescribeClusterBroker
  broker_id int32
  host string
  port int32
  rack string null default=null
  is_fenced bool 2+
 cluster_authorized_operations int32 default=-2147483648
""",
    61: """\
DescribeProducersRequest 0-0
 topics []TopicRequest
  name string
  partition_indexes []int32 default=[]
DescribeProducersResponse 0-0
 throttle_time timedelta_i32
 topics []TopicResponse
  name string
  partitions []PartitionResponse
   partition_index int32
   error_code error_code
   error_message string null default=null
   active_producers []ProducerState
    producer_id int64
    producer_epoch int32
    last_sequence int32 default=-1
    last_timestamp int64 default=-1
    coordinator_epoch int32
    current_txn_start_offset int64 default=-1
""",
    64: """\
UnregisterBrokerRequest 0-0
 broker_id int32
UnregisterBrokerResponse 0-0
 throttle_time timedelta_i32
 error_code error_code
 error_message string null
""",
    65: """\
DescribeTransactionsRequest 0-0
 transactional_ids []string default=[]
DescribeTransactionsResponse 0-0
 throttle_time timedelta_i32
 transaction_states []TransactionState
  error_code error_code
  transactional_id string
  transaction_state string
  transaction_timeout timedelta_i32
  transaction_start_time datetime_i64
  producer_id int64
  producer_epoch int16
  topics []TopicData
   topic string
   partitions []int32 default=[]
""",
    66: """\
ListTransactionsRequest 0-2
 state_filters []string default=[]
 producer_id_filters []int64 default=[]
 duration_filter int64 1+ default=-1
 transactional_id_pattern string 2+ null default=null
ListTransactionsResponse 0-2
 throttle_time timedelta_i32
 error_code error_code
 unknown_state_filters []string default=[]
 transaction_states []TransactionState
  transactional_id string
  producer_id int64
  transaction_state string
""",
    67: """\
AllocateProducerIdsRequest 0-0
 broker_id int32
 broker_epoch int64 default=-1
AllocateProducerIdsResponse 0-0
 throttle_time timedelta_i32
 error_code error_code
 producer_id_start int64
 producer_id_len int32
""",
    68: """\
ConsumerGroupHeartbeatRequest 0-1
 group_id string
 member_id string
 member_epoch int32
 instance_id string null default=null
 rack_id string null default=null
 rebalance_timeout timedelta_i32 default=-1
 subscribed_topic_names []string null default=null
 subscribed_topic_regex string 1+ null default=null
 server_assignor string null default=null
 topic_partitions []TopicPartitions null
  topic_id uuid
  partitions []int32 default=[]
ConsumerGroupHeartbeatResponse 0-1
 throttle_time timedelta_i32
 error_code error_code
 error_message string null default=null
 member_id string null default=null
 member_epoch int32
 heartbeat_interval timedelta_i32
 assignment Assignment null default=null
  topic_partitions []TopicPartitions
   topic_id uuid
   partitions []int32 default=[]
""",
    69: """\
ConsumerGroupDescribeRequest 0-1
 group_ids []string default=[]
 include_authorized_operations bool
ConsumerGroupDescribeResponse 0-1
 throttle_time timedelta_i32
 groups []DescribedGroup
  error_code error_code
  error_message string null default=null
  group_id string
  group_state string
  group_epoch int32
  assignment_epoch int32
  assignor_name string
  members []Member
   member_id string
   instance_id string null default=null
   rack_id string null default=null
   member_epoch int32
   client_id string
   client_host string
   subscribed_topic_names []string default=[]
   subscribed_topic_regex string null default=null
   assignment Assignment
    topic_partitions []TopicPartitions
     topic_id uuid
     topic_name string
     partitions []int32 default=[]
   target_assignment Assignment
   member_type int8 1+ default=-1
  authorized_operations int32 default=-2147483648
""",
    74: """\
ListConfigResourcesRequest 0-1
 resource_types []int8 1+ default=[]
ListConfigResourcesResponse 0-1
 throttle_time timedelta_i32
 error_code error_code
 config_resources []ConfigResource
  resource_name string
  resource_type int8 1+ default=16
""",
    75: """\
DescribeTopicPartitionsRequest 0-0
 topics []TopicRequest
  name string
 response_partition_limit int32 default=2000
 cursor Cursor null default=null
  topic_name string
  partition_index int32
DescribeTopicPartitionsResponse 0-0
 throttle_time timedelta_i32
 topics []DescribeTopicPartitionsResponseTopic
  error_code error_code
  name string null
  topic_id uuid
  is_internal bool default=false
  partitions []DescribeTopicPartitionsResponsePartition
   error_code error_code
   partition_index int32
   leader_id int32
   leader_epoch int32 default=-1
   replica_nodes []int32 default=[]
   isr_nodes []int32 default=[]
   eligible_leader_replicas []int32 null default=null
   last_known_elr []int32 null default=null
   offline_replicas []int32 default=[]
  topic_authorized_operations int32 default=-2147483648
 next_cursor Cursor null default=null
  topic_name string
  partition_index int32
""",
    10000: """\
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
    10001: """\
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
    10002: """\
KeepLeaseRequest 0-0
 lease_id uuid
 is_over bool default=false
KeepLeaseResponse 0-0
 throttle_time timedelta_i32
 error_code error_code
 error_message string null default=null
""",
}
