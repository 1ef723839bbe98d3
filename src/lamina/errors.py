"""Kafka's error codes as exceptions.

Owns the numbers and names of the protocol's errors. The core raises them; a handler turns them into its own
reply. Every error carries one sentence for a person; it never carries a protocol message. Must not know any
other room.
"""

from collections.abc import Iterator
from enum import IntEnum
from typing import ClassVar, Self

_MAX_CHARACTERS = 1000


class ErrorCode(IntEnum):
    """The protocol's error codes that Lamina gives, or acts upon when another broker gives them."""

    UNKNOWN_SERVER_ERROR = -1
    NONE = 0
    OFFSET_OUT_OF_RANGE = 1
    CORRUPT_MESSAGE = 2
    UNKNOWN_TOPIC_OR_PARTITION = 3
    LEADER_NOT_AVAILABLE = 5
    NOT_LEADER_OR_FOLLOWER = 6
    REQUEST_TIMED_OUT = 7
    REPLICA_NOT_AVAILABLE = 9
    MESSAGE_TOO_LARGE = 10
    OFFSET_METADATA_TOO_LARGE = 12
    NETWORK_EXCEPTION = 13
    COORDINATOR_LOAD_IN_PROGRESS = 14
    COORDINATOR_NOT_AVAILABLE = 15
    NOT_COORDINATOR = 16
    INVALID_TOPIC_EXCEPTION = 17
    NOT_ENOUGH_REPLICAS = 19
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20
    INVALID_REQUIRED_ACKS = 21
    ILLEGAL_GENERATION = 22
    INCONSISTENT_GROUP_PROTOCOL = 23
    INVALID_GROUP_ID = 24
    UNKNOWN_MEMBER_ID = 25
    INVALID_SESSION_TIMEOUT = 26
    REBALANCE_IN_PROGRESS = 27
    INVALID_COMMIT_OFFSET_SIZE = 28
    TOPIC_AUTHORIZATION_FAILED = 29
    GROUP_AUTHORIZATION_FAILED = 30
    CLUSTER_AUTHORIZATION_FAILED = 31
    INVALID_TIMESTAMP = 32
    UNSUPPORTED_SASL_MECHANISM = 33
    ILLEGAL_SASL_STATE = 34
    UNSUPPORTED_VERSION = 35
    TOPIC_ALREADY_EXISTS = 36
    INVALID_PARTITIONS = 37
    INVALID_REPLICATION_FACTOR = 38
    INVALID_REPLICA_ASSIGNMENT = 39
    INVALID_CONFIG = 40
    NOT_CONTROLLER = 41
    INVALID_REQUEST = 42
    POLICY_VIOLATION = 44
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45
    DUPLICATE_SEQUENCE_NUMBER = 46
    INVALID_PRODUCER_EPOCH = 47
    INVALID_TXN_STATE = 48
    INVALID_PRODUCER_ID_MAPPING = 49
    INVALID_TRANSACTION_TIMEOUT = 50
    CONCURRENT_TRANSACTIONS = 51
    TRANSACTION_COORDINATOR_FENCED = 52
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53
    SECURITY_DISABLED = 54
    OPERATION_NOT_ATTEMPTED = 55
    KAFKA_STORAGE_ERROR = 56
    LOG_DIR_NOT_FOUND = 57
    SASL_AUTHENTICATION_FAILED = 58
    REASSIGNMENT_IN_PROGRESS = 60
    NON_EMPTY_GROUP = 68
    GROUP_ID_NOT_FOUND = 69
    FETCH_SESSION_ID_NOT_FOUND = 70
    INVALID_FETCH_SESSION_EPOCH = 71
    LISTENER_NOT_FOUND = 72
    TOPIC_DELETION_DISABLED = 73
    FENCED_LEADER_EPOCH = 74
    UNKNOWN_LEADER_EPOCH = 75
    UNSUPPORTED_COMPRESSION_TYPE = 76
    STALE_BROKER_EPOCH = 77
    OFFSET_NOT_AVAILABLE = 78
    MEMBER_ID_REQUIRED = 79
    PREFERRED_LEADER_NOT_AVAILABLE = 80
    GROUP_MAX_SIZE_REACHED = 81
    FENCED_INSTANCE_ID = 82
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83
    ELECTION_NOT_NEEDED = 84
    NO_REASSIGNMENT_IN_PROGRESS = 85
    GROUP_SUBSCRIBED_TO_TOPIC = 86
    INVALID_RECORD = 87
    UNSTABLE_OFFSET_COMMIT = 88
    THROTTLING_QUOTA_EXCEEDED = 89
    PRODUCER_FENCED = 90
    RESOURCE_NOT_FOUND = 91
    DUPLICATE_RESOURCE = 92
    UNACCEPTABLE_CREDENTIAL = 93
    INVALID_UPDATE_VERSION = 95
    FEATURE_UPDATE_FAILED = 96
    UNKNOWN_TOPIC_ID = 100
    BROKER_ID_NOT_REGISTERED = 102
    INCONSISTENT_TOPIC_ID = 103
    TRANSACTIONAL_ID_NOT_FOUND = 105
    FETCH_SESSION_TOPIC_ID_ERROR = 106
    INELIGIBLE_REPLICA = 107
    NEW_LEADER_ELECTED = 108
    FENCED_MEMBER_EPOCH = 110
    UNRELEASED_INSTANCE_ID = 111
    UNSUPPORTED_ASSIGNOR = 112
    STALE_MEMBER_EPOCH = 113
    MISMATCHED_ENDPOINT_TYPE = 114
    UNSUPPORTED_ENDPOINT_TYPE = 115
    INVALID_REGISTRATION = 119
    TRANSACTION_ABORTABLE = 120
    INVALID_REGULAR_EXPRESSION = 128


class KafkaError(Exception):
    """An error that a client is told about by its code."""

    code: ClassVar[ErrorCode] = ErrorCode.UNKNOWN_SERVER_ERROR

    def __str__(self) -> str:
        """Its sentence, cut where it grows too long for an answer: a client's own words may be quoted in it."""
        sentence = super().__str__()
        return sentence if len(sentence) <= _MAX_CHARACTERS else f"{sentence[:_MAX_CHARACTERS]}…"

    def without_frames(self) -> Self:
        """The error as an entry of an answer that is still being made.

        A frame on its way down holds the entries, and so the error would hold itself: only the garbage collector could
        free it, which would walk the frames of all entries on the loop.
        """
        self.__cause__ = self.__context__ = None
        return self.with_traceback(None)


class OffsetOutOfRange(KafkaError):
    code = ErrorCode.OFFSET_OUT_OF_RANGE


class CorruptMessage(KafkaError):
    """A batch whose bytes are not what its header says."""

    code = ErrorCode.CORRUPT_MESSAGE


class UnknownTopicOrPartition(KafkaError):
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


class LeaderNotAvailable(KafkaError):
    code = ErrorCode.LEADER_NOT_AVAILABLE


class NotLeaderOrFollower(KafkaError):
    """Another broker leads the partition; the client looks up which."""

    code = ErrorCode.NOT_LEADER_OR_FOLLOWER


class RequestTimedOut(KafkaError):
    code = ErrorCode.REQUEST_TIMED_OUT


class ReplicaNotAvailable(KafkaError):
    code = ErrorCode.REPLICA_NOT_AVAILABLE


class LogDirNotFound(KafkaError):
    code = ErrorCode.LOG_DIR_NOT_FOUND


class NetworkError(KafkaError):
    """A broker cannot be reached, or its connection ended before it answered."""

    code = ErrorCode.NETWORK_EXCEPTION


class MalformedResponse(KafkaError):
    """What came back is no response of Kafka's protocol. Never sent to a client, so it has no code of its own."""


class MessageTooLarge(KafkaError):
    code = ErrorCode.MESSAGE_TOO_LARGE


class InvalidTopic(KafkaError):
    """A name that no topic may have."""

    code = ErrorCode.INVALID_TOPIC_EXCEPTION


class TopicAlreadyExists(KafkaError):
    code = ErrorCode.TOPIC_ALREADY_EXISTS


class InvalidPartitions(KafkaError):
    """A number of partitions that a topic cannot have."""

    code = ErrorCode.INVALID_PARTITIONS


class InvalidReplicationFactor(KafkaError):
    code = ErrorCode.INVALID_REPLICATION_FACTOR


class InvalidReplicaAssignment(KafkaError):
    code = ErrorCode.INVALID_REPLICA_ASSIGNMENT


class ReassignmentInProgress(KafkaError):
    """The replicas of a partition are changing: what depends on them has to wait."""

    code = ErrorCode.REASSIGNMENT_IN_PROGRESS


class NoReassignmentInProgress(KafkaError):
    """There is none that could be cancelled."""

    code = ErrorCode.NO_REASSIGNMENT_IN_PROGRESS


class InvalidConfig(KafkaError):
    code = ErrorCode.INVALID_CONFIG


class InvalidRequest(KafkaError):
    """A request that contradicts itself, whatever the state of the cluster."""

    code = ErrorCode.INVALID_REQUEST


class ThrottlingQuotaExceeded(KafkaError):
    """A client's changes come faster than its quota allows: it may ask again after the time that it is told."""

    code = ErrorCode.THROTTLING_QUOTA_EXCEEDED


class PolicyViolation(KafkaError):
    code = ErrorCode.POLICY_VIOLATION


class OutOfOrderSequence(KafkaError):
    code = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


class DuplicateSequence(KafkaError):
    """The batch is in the log already: to its producer that is as good as a success."""

    code = ErrorCode.DUPLICATE_SEQUENCE_NUMBER


class InvalidProducerEpoch(KafkaError):
    code = ErrorCode.INVALID_PRODUCER_EPOCH


class InvalidTransactionState(KafkaError):
    code = ErrorCode.INVALID_TXN_STATE


class TransactionCoordinatorFenced(KafkaError):
    code = ErrorCode.TRANSACTION_COORDINATOR_FENCED


class SecurityDisabled(KafkaError):
    """A question about access rules where there are none."""

    code = ErrorCode.SECURITY_DISABLED


class StorageError(KafkaError):
    """The disk failed an operation; its directory is offline."""

    code = ErrorCode.KAFKA_STORAGE_ERROR


class UnsupportedCompression(KafkaError):
    code = ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


class UnknownTopicId(KafkaError):
    code = ErrorCode.UNKNOWN_TOPIC_ID


class RecordsRejected(KafkaError):
    """A client's batch breaks a rule; ``record_errors`` names records by their index in it (fact 8)."""

    def __init__(self, message: str, record_errors: tuple[tuple[int, str], ...] = ()) -> None:
        super().__init__(message)
        self.record_errors = record_errors


class InvalidRecord(RecordsRejected):
    code = ErrorCode.INVALID_RECORD


class InvalidTimestamp(RecordsRejected):
    code = ErrorCode.INVALID_TIMESTAMP


class UnknownServerError(KafkaError):
    """The broker's own fault; its log says more."""


class NotEnoughReplicas(KafkaError):
    code = ErrorCode.NOT_ENOUGH_REPLICAS


class NotEnoughReplicasAfterAppend(KafkaError):
    code = ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND


class NotController(KafkaError):
    """Another broker is the controller; the client looks up which."""

    code = ErrorCode.NOT_CONTROLLER


class ListenerNotFound(KafkaError):
    """The leader has no address on the listener that was asked through."""

    code = ErrorCode.LISTENER_NOT_FOUND


class OffsetNotAvailable(KafkaError):
    """A new leader does not know its high watermark yet."""

    code = ErrorCode.OFFSET_NOT_AVAILABLE


class InvalidRequiredAcks(KafkaError):
    code = ErrorCode.INVALID_REQUIRED_ACKS


class FencedLeaderEpoch(KafkaError):
    code = ErrorCode.FENCED_LEADER_EPOCH


class UnknownLeaderEpoch(KafkaError):
    code = ErrorCode.UNKNOWN_LEADER_EPOCH


class InconsistentTopicId(KafkaError):
    code = ErrorCode.INCONSISTENT_TOPIC_ID


class FetchSessionError(KafkaError):
    """Told once for a whole Fetch answer: the client starts a new session."""


class FetchSessionIdNotFound(FetchSessionError):
    code = ErrorCode.FETCH_SESSION_ID_NOT_FOUND


class InvalidFetchSessionEpoch(FetchSessionError):
    code = ErrorCode.INVALID_FETCH_SESSION_EPOCH


class FetchSessionTopicIdError(FetchSessionError):
    code = ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


class TopicDeletionDisabled(KafkaError):
    code = ErrorCode.TOPIC_DELETION_DISABLED


class UnsupportedVersion(KafkaError):
    """A version, or a part of an API, that this broker does not offer."""

    code = ErrorCode.UNSUPPORTED_VERSION


class MismatchedEndpointType(KafkaError):
    """Asked of a broker what only a controller's listener tells."""

    code = ErrorCode.MISMATCHED_ENDPOINT_TYPE


class UnsupportedEndpointType(KafkaError):
    code = ErrorCode.UNSUPPORTED_ENDPOINT_TYPE


class OffsetMetadataTooLarge(KafkaError):
    code = ErrorCode.OFFSET_METADATA_TOO_LARGE


class CoordinatorLoadInProgress(KafkaError):
    """The coordinator reads its log; the client tries again."""

    code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


class CoordinatorNotAvailable(KafkaError):
    code = ErrorCode.COORDINATOR_NOT_AVAILABLE


class NotCoordinator(KafkaError):
    """Another broker, or none yet, coordinates this; the client looks it up again."""

    code = ErrorCode.NOT_COORDINATOR


class IllegalGeneration(KafkaError):
    code = ErrorCode.ILLEGAL_GENERATION


class InconsistentGroupProtocol(KafkaError):
    code = ErrorCode.INCONSISTENT_GROUP_PROTOCOL


class InvalidGroupId(KafkaError):
    code = ErrorCode.INVALID_GROUP_ID


class UnknownMemberId(KafkaError):
    code = ErrorCode.UNKNOWN_MEMBER_ID


class InvalidSessionTimeout(KafkaError):
    code = ErrorCode.INVALID_SESSION_TIMEOUT


class RebalanceInProgress(KafkaError):
    code = ErrorCode.REBALANCE_IN_PROGRESS


class InvalidCommitOffsetSize(KafkaError):
    code = ErrorCode.INVALID_COMMIT_OFFSET_SIZE


class NonEmptyGroup(KafkaError):
    code = ErrorCode.NON_EMPTY_GROUP


class GroupIdNotFound(KafkaError):
    code = ErrorCode.GROUP_ID_NOT_FOUND


class MemberIdRequired(KafkaError):
    """A new member is told its id and asked to join again with it."""

    code = ErrorCode.MEMBER_ID_REQUIRED


class GroupMaxSizeReached(KafkaError):
    code = ErrorCode.GROUP_MAX_SIZE_REACHED


class FencedInstanceId(KafkaError):
    """Another member has taken the place of this static one."""

    code = ErrorCode.FENCED_INSTANCE_ID


class GroupSubscribedToTopic(KafkaError):
    code = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC


class UnstableOffsetCommit(KafkaError):
    """A transaction that commits this offset is not over."""

    code = ErrorCode.UNSTABLE_OFFSET_COMMIT


class FencedMemberEpoch(KafkaError):
    code = ErrorCode.FENCED_MEMBER_EPOCH


class UnreleasedInstanceId(KafkaError):
    code = ErrorCode.UNRELEASED_INSTANCE_ID


class UnsupportedAssignor(KafkaError):
    code = ErrorCode.UNSUPPORTED_ASSIGNOR


class StaleMemberEpoch(KafkaError):
    code = ErrorCode.STALE_MEMBER_EPOCH


class InvalidRegularExpression(KafkaError):
    code = ErrorCode.INVALID_REGULAR_EXPRESSION


class InvalidProducerIdMapping(KafkaError):
    """A producer id that its transactional id does not have, or no longer."""

    code = ErrorCode.INVALID_PRODUCER_ID_MAPPING


class InvalidTransactionTimeout(KafkaError):
    code = ErrorCode.INVALID_TRANSACTION_TIMEOUT


class ConcurrentTransactions(KafkaError):
    """The transaction before this one is not over; the client tries again."""

    code = ErrorCode.CONCURRENT_TRANSACTIONS


class OperationNotAttempted(KafkaError):
    """Another part of the same request was wrong, so nothing of it was done."""

    code = ErrorCode.OPERATION_NOT_ATTEMPTED


class ProducerFenced(KafkaError):
    """A newer producer has the transactional id."""

    code = ErrorCode.PRODUCER_FENCED


class TransactionalIdNotFound(KafkaError):
    code = ErrorCode.TRANSACTIONAL_ID_NOT_FOUND


class TransactionAbortable(KafkaError):
    """The client can go on with its transactional id once it has aborted."""

    code = ErrorCode.TRANSACTION_ABORTABLE


class TransactionalIdAuthorizationFailed(KafkaError):
    """Transactional records without a transactional id."""

    code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


class StaleBrokerEpoch(KafkaError):
    """The broker has registered again since, or is not registered."""

    code = ErrorCode.STALE_BROKER_EPOCH


class InvalidRegistration(KafkaError):
    """A broker that cannot take part in this cluster, because it does not support a level that is finalized."""

    code = ErrorCode.INVALID_REGISTRATION


class BrokerIdNotRegistered(KafkaError):
    """Nobody in the cluster knows a broker of this id."""

    code = ErrorCode.BROKER_ID_NOT_REGISTERED


class PreferredLeaderNotAvailable(KafkaError):
    code = ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE


class EligibleLeadersNotAvailable(KafkaError):
    """No replica is online that could lead."""

    code = ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE


class ElectionNotNeeded(KafkaError):
    code = ErrorCode.ELECTION_NOT_NEEDED


class IneligibleReplica(KafkaError):
    """A replica that cannot be in sync: it is away, about to stop, or has restarted since it caught up."""

    code = ErrorCode.INELIGIBLE_REPLICA


class NewLeaderElected(KafkaError):
    """The change is made, and another broker leads because of it."""

    code = ErrorCode.NEW_LEADER_ELECTED


class InvalidUpdateVersion(KafkaError):
    """A level that a feature cannot be set to, or a partition's state that is older than the current one."""

    code = ErrorCode.INVALID_UPDATE_VERSION


class FeatureUpdateFailed(KafkaError):
    code = ErrorCode.FEATURE_UPDATE_FAILED


class TopicAuthorizationFailed(KafkaError):
    code = ErrorCode.TOPIC_AUTHORIZATION_FAILED


class GroupAuthorizationFailed(KafkaError):
    code = ErrorCode.GROUP_AUTHORIZATION_FAILED


class ResourceNotFound(KafkaError):
    code = ErrorCode.RESOURCE_NOT_FOUND


class UnsupportedSaslMechanism(KafkaError):
    """The listener has logins, and not by this mechanism."""

    code = ErrorCode.UNSUPPORTED_SASL_MECHANISM


class IllegalSaslState(KafkaError):
    """A step of a login where none is due: before or after it, or on a listener without logins."""

    code = ErrorCode.ILLEGAL_SASL_STATE


class SaslAuthenticationFailed(KafkaError):
    """A login was refused, or a broker could not show that it knows the user."""

    code = ErrorCode.SASL_AUTHENTICATION_FAILED


class SslAuthenticationFailed(KafkaError):
    """One side of a TLS connection does not take the other for what it should be; the protocol has no code for it."""


class DuplicateResource(KafkaError):
    """Something is named twice where once is meant."""

    code = ErrorCode.DUPLICATE_RESOURCE


class UnacceptableCredential(KafkaError):
    code = ErrorCode.UNACCEPTABLE_CREDENTIAL


class ClusterAuthorizationFailed(KafkaError):
    """Another broker allows this client nothing that is about the cluster as a whole, such as creating topics."""

    code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def _coded_classes(parent: type[KafkaError]) -> Iterator[tuple[ErrorCode, type[KafkaError]]]:
    for child in parent.__subclasses__():
        if "code" in vars(child):
            yield child.code, child
        yield from _coded_classes(child)


_CLASSES = dict(_coded_classes(KafkaError))


def error_from_code(code: int, sentence: str) -> KafkaError:
    """The error that another broker gave by its code; `UnknownServerError` for a code that has no class here."""
    try:
        named = ErrorCode(code)
    except ValueError:
        return UnknownServerError(f"{sentence} (error {code})")
    return _CLASSES.get(named, UnknownServerError)(f"{sentence} ({named.name})")
