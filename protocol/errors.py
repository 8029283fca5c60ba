"""Kafka 4.3's error codes.

Laws
    Each code has one member, one line of text, and a flag whether a retry may succeed (`retriable`).
    `ErrorCode.of` returns UNKNOWN_SERVER_ERROR for a code that is not in the table.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

MESSAGE_CHARS_MAX: Final = 8_000  # four bytes each: below the maximum of a length of two bytes


class ErrorCode(IntEnum):
    """A Kafka error code; an int16 on the wire."""

    UNKNOWN_SERVER_ERROR = -1
    NONE = 0
    OFFSET_OUT_OF_RANGE = 1
    CORRUPT_MESSAGE = 2
    UNKNOWN_TOPIC_OR_PARTITION = 3
    INVALID_FETCH_SIZE = 4
    LEADER_NOT_AVAILABLE = 5
    NOT_LEADER_OR_FOLLOWER = 6
    REQUEST_TIMED_OUT = 7
    BROKER_NOT_AVAILABLE = 8
    REPLICA_NOT_AVAILABLE = 9
    MESSAGE_TOO_LARGE = 10
    STALE_CONTROLLER_EPOCH = 11
    OFFSET_METADATA_TOO_LARGE = 12
    NETWORK_EXCEPTION = 13
    COORDINATOR_LOAD_IN_PROGRESS = 14
    COORDINATOR_NOT_AVAILABLE = 15
    NOT_COORDINATOR = 16
    INVALID_TOPIC_EXCEPTION = 17
    RECORD_LIST_TOO_LARGE = 18
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
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43
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
    UNKNOWN_PRODUCER_ID = 59
    REASSIGNMENT_IN_PROGRESS = 60
    DELEGATION_TOKEN_AUTH_DISABLED = 61
    DELEGATION_TOKEN_NOT_FOUND = 62
    DELEGATION_TOKEN_OWNER_MISMATCH = 63
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = 64
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = 65
    DELEGATION_TOKEN_EXPIRED = 66
    INVALID_PRINCIPAL_TYPE = 67
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
    INCONSISTENT_VOTER_SET = 94
    INVALID_UPDATE_VERSION = 95
    FEATURE_UPDATE_FAILED = 96
    PRINCIPAL_DESERIALIZATION_FAILURE = 97
    SNAPSHOT_NOT_FOUND = 98
    POSITION_OUT_OF_RANGE = 99
    UNKNOWN_TOPIC_ID = 100
    DUPLICATE_BROKER_REGISTRATION = 101
    BROKER_ID_NOT_REGISTERED = 102
    INCONSISTENT_TOPIC_ID = 103
    INCONSISTENT_CLUSTER_ID = 104
    TRANSACTIONAL_ID_NOT_FOUND = 105
    FETCH_SESSION_TOPIC_ID_ERROR = 106
    INELIGIBLE_REPLICA = 107
    NEW_LEADER_ELECTED = 108
    OFFSET_MOVED_TO_TIERED_STORAGE = 109
    FENCED_MEMBER_EPOCH = 110
    UNRELEASED_INSTANCE_ID = 111
    UNSUPPORTED_ASSIGNOR = 112
    STALE_MEMBER_EPOCH = 113
    MISMATCHED_ENDPOINT_TYPE = 114
    UNSUPPORTED_ENDPOINT_TYPE = 115
    UNKNOWN_CONTROLLER_ID = 116
    UNKNOWN_SUBSCRIPTION_ID = 117
    TELEMETRY_TOO_LARGE = 118
    INVALID_REGISTRATION = 119
    TRANSACTION_ABORTABLE = 120
    INVALID_RECORD_STATE = 121
    SHARE_SESSION_NOT_FOUND = 122
    INVALID_SHARE_SESSION_EPOCH = 123
    FENCED_STATE_EPOCH = 124
    INVALID_VOTER_KEY = 125
    DUPLICATE_VOTER = 126
    VOTER_NOT_FOUND = 127
    INVALID_REGULAR_EXPRESSION = 128
    REBOOTSTRAP_REQUIRED = 129
    STREAMS_INVALID_TOPOLOGY = 130
    STREAMS_INVALID_TOPOLOGY_EPOCH = 131
    STREAMS_TOPOLOGY_FENCED = 132
    SHARE_SESSION_LIMIT_REACHED = 133

    @property
    def text(self) -> str:
        """One line for people, and the default `error_message` of responses."""
        return _TEXTS[self]

    @property
    def retriable(self) -> bool:
        """Whether the same request may succeed later, by Kafka's own judgement."""
        return self in _RETRIABLE

    @classmethod
    def of(cls, code: int) -> ErrorCode:
        """The member for a number from the wire; a number of the future is an unknown server error."""
        try:
            return cls(code)
        except ValueError:
            return cls.UNKNOWN_SERVER_ERROR


_TEXTS: Final[dict[ErrorCode, str]] = {
    ErrorCode.UNKNOWN_SERVER_ERROR: "the broker failed in a way that it did not foresee",
    ErrorCode.NONE: "no error",
    ErrorCode.OFFSET_OUT_OF_RANGE: "the offset lies outside what the log holds",
    ErrorCode.CORRUPT_MESSAGE: "the records fail their checksum, size or format checks",
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "this broker has no such topic or partition",
    ErrorCode.INVALID_FETCH_SIZE: "the fetch size is not valid",
    ErrorCode.LEADER_NOT_AVAILABLE: "the partition has no leader at the moment",
    ErrorCode.NOT_LEADER_OR_FOLLOWER: "this broker does not lead, or does not hold, the partition",
    ErrorCode.REQUEST_TIMED_OUT: "the request was not done in its time",
    ErrorCode.BROKER_NOT_AVAILABLE: "the broker is not available",
    ErrorCode.REPLICA_NOT_AVAILABLE: "the replica is not available",
    ErrorCode.MESSAGE_TOO_LARGE: "a batch is larger than the topic takes",
    ErrorCode.STALE_CONTROLLER_EPOCH: "another controller has taken over",
    ErrorCode.OFFSET_METADATA_TOO_LARGE: "the metadata beside a committed offset is too long",
    ErrorCode.NETWORK_EXCEPTION: "the connection broke before the answer came",
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: "the coordinator is still reading its log",
    ErrorCode.COORDINATOR_NOT_AVAILABLE: "no coordinator is available",
    ErrorCode.NOT_COORDINATOR: "another broker coordinates this group",
    ErrorCode.INVALID_TOPIC_EXCEPTION: "the topic name is not valid, or the operation is not allowed on it",
    ErrorCode.RECORD_LIST_TOO_LARGE: "a batch is larger than a segment",
    ErrorCode.NOT_ENOUGH_REPLICAS: "too few replicas are in sync; nothing was written",
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: "written, but to fewer replicas than required",
    ErrorCode.INVALID_REQUIRED_ACKS: "acks must be -1, 0 or 1",
    ErrorCode.ILLEGAL_GENERATION: "that is not the group's generation",
    ErrorCode.INCONSISTENT_GROUP_PROTOCOL: "the member shares no protocol with the group, or names none",
    ErrorCode.INVALID_GROUP_ID: "the group id is not valid",
    ErrorCode.UNKNOWN_MEMBER_ID: "the group has no such member",
    ErrorCode.INVALID_SESSION_TIMEOUT: "the session timeout is outside the broker's bounds",
    ErrorCode.REBALANCE_IN_PROGRESS: "the group rebalances; the member has to join again",
    ErrorCode.INVALID_COMMIT_OFFSET_SIZE: "the commit is too large",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "not allowed on this topic",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "not allowed on this group",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "not allowed on this cluster",
    ErrorCode.INVALID_TIMESTAMP: "a record's timestamp is out of bounds",
    ErrorCode.UNSUPPORTED_SASL_MECHANISM: "the SASL mechanism is not offered",
    ErrorCode.ILLEGAL_SASL_STATE: "the request does not fit the state of the authentication",
    ErrorCode.UNSUPPORTED_VERSION: "this version of the API is not served",
    ErrorCode.TOPIC_ALREADY_EXISTS: "a topic of this name exists",
    ErrorCode.INVALID_PARTITIONS: "the partition count is not valid",
    ErrorCode.INVALID_REPLICATION_FACTOR: "the replication factor is below one or above the number of brokers",
    ErrorCode.INVALID_REPLICA_ASSIGNMENT: "the replica assignment is not valid",
    ErrorCode.INVALID_CONFIG: "a configuration value is not valid",
    ErrorCode.NOT_CONTROLLER: "another broker is the controller",
    ErrorCode.INVALID_REQUEST: "the request contradicts itself or the protocol",
    ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT: "the message format does not allow it",
    ErrorCode.POLICY_VIOLATION: "refused by policy",
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER: "the producer's sequence numbers have a gap",
    ErrorCode.DUPLICATE_SEQUENCE_NUMBER: "the batch was written before, longer ago than the broker remembers",
    ErrorCode.INVALID_PRODUCER_EPOCH: "the producer's epoch is old",
    ErrorCode.INVALID_TXN_STATE: "the transaction is not in a state for this",
    ErrorCode.INVALID_PRODUCER_ID_MAPPING: "the producer id does not belong to this transactional id",
    ErrorCode.INVALID_TRANSACTION_TIMEOUT: "the transaction timeout is above the broker's maximum",
    ErrorCode.CONCURRENT_TRANSACTIONS: "another operation on this transaction is under way",
    ErrorCode.TRANSACTION_COORDINATOR_FENCED: "another transaction coordinator has taken over",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "not allowed on this transactional id",
    ErrorCode.SECURITY_DISABLED: "security is switched off",
    ErrorCode.OPERATION_NOT_ATTEMPTED: "not tried, because another part of the request failed",
    ErrorCode.KAFKA_STORAGE_ERROR: "the disk refused",
    ErrorCode.LOG_DIR_NOT_FOUND: "the broker has no such log directory",
    ErrorCode.SASL_AUTHENTICATION_FAILED: "the credentials were refused",
    ErrorCode.UNKNOWN_PRODUCER_ID: "the broker knows nothing of this producer id",
    ErrorCode.REASSIGNMENT_IN_PROGRESS: "the partition is being reassigned",
    ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED: "delegation tokens are switched off",
    ErrorCode.DELEGATION_TOKEN_NOT_FOUND: "there is no such delegation token",
    ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH: "the delegation token belongs to somebody else",
    ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED: "delegation tokens cannot be asked for on this connection",
    ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED: "not allowed on this delegation token",
    ErrorCode.DELEGATION_TOKEN_EXPIRED: "the delegation token has expired",
    ErrorCode.INVALID_PRINCIPAL_TYPE: "the type of principal is not supported",
    ErrorCode.NON_EMPTY_GROUP: "the group has members",
    ErrorCode.GROUP_ID_NOT_FOUND: "there is no such group",
    ErrorCode.FETCH_SESSION_ID_NOT_FOUND: "there is no such fetch session",
    ErrorCode.INVALID_FETCH_SESSION_EPOCH: "the fetch session expected another epoch",
    ErrorCode.LISTENER_NOT_FOUND: "the leader has no listener of this name",
    ErrorCode.TOPIC_DELETION_DISABLED: "topics cannot be deleted here",
    ErrorCode.FENCED_LEADER_EPOCH: "the client's leader epoch is older than the broker's",
    ErrorCode.UNKNOWN_LEADER_EPOCH: "the client's leader epoch is newer than the broker's",
    ErrorCode.UNSUPPORTED_COMPRESSION_TYPE: "the client does not support the compression of these records",
    ErrorCode.STALE_BROKER_EPOCH: "the broker has registered anew",
    ErrorCode.OFFSET_NOT_AVAILABLE: "the new leader does not know its high watermark yet",
    ErrorCode.MEMBER_ID_REQUIRED: "come back with the member id given here",
    ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE: "the preferred leader is not available",
    ErrorCode.GROUP_MAX_SIZE_REACHED: "the group is full",
    ErrorCode.FENCED_INSTANCE_ID: "another member has taken this group instance id",
    ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE: "no replica may become leader",
    ErrorCode.ELECTION_NOT_NEEDED: "the partition has its leader already",
    ErrorCode.NO_REASSIGNMENT_IN_PROGRESS: "the partition is not being reassigned",
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: "the group still subscribes to this topic",
    ErrorCode.INVALID_RECORD: "a record was refused by the broker's checks",
    ErrorCode.UNSTABLE_OFFSET_COMMIT: "a transaction holds these offsets open",
    ErrorCode.THROTTLING_QUOTA_EXCEEDED: "the quota is used up",
    ErrorCode.PRODUCER_FENCED: "a newer producer has the same transactional id",
    ErrorCode.RESOURCE_NOT_FOUND: "there is no such resource",
    ErrorCode.DUPLICATE_RESOURCE: "the request names a resource twice",
    ErrorCode.UNACCEPTABLE_CREDENTIAL: "the credential does not meet the requirements",
    ErrorCode.INCONSISTENT_VOTER_SET: "the sender or receiver is not among the voters",
    ErrorCode.INVALID_UPDATE_VERSION: "the version of the update is not valid",
    ErrorCode.FEATURE_UPDATE_FAILED: "the features could not be updated",
    ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE: "the forwarded principal cannot be read",
    ErrorCode.SNAPSHOT_NOT_FOUND: "there is no such snapshot",
    ErrorCode.POSITION_OUT_OF_RANGE: "the position lies outside the snapshot",
    ErrorCode.UNKNOWN_TOPIC_ID: "this broker has no topic of this id",
    ErrorCode.DUPLICATE_BROKER_REGISTRATION: "the broker id is in use",
    ErrorCode.BROKER_ID_NOT_REGISTERED: "the broker id is not registered",
    ErrorCode.INCONSISTENT_TOPIC_ID: "the log belongs to another topic id",
    ErrorCode.INCONSISTENT_CLUSTER_ID: "this is another cluster",
    ErrorCode.TRANSACTIONAL_ID_NOT_FOUND: "there is no such transactional id",
    ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR: "the fetch session mixes topic names and ids",
    ErrorCode.INELIGIBLE_REPLICA: "a replica of the new ISR may not be in it",
    ErrorCode.NEW_LEADER_ELECTED: "the partition was changed and has a new leader",
    ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE: "the offset has moved to tiered storage",
    ErrorCode.FENCED_MEMBER_EPOCH: "the member epoch is fenced; give up all partitions and join again",
    ErrorCode.UNRELEASED_INSTANCE_ID: "another member still holds this instance id",
    ErrorCode.UNSUPPORTED_ASSIGNOR: "the group does not support this assignor",
    ErrorCode.STALE_MEMBER_EPOCH: "the member epoch is old; heartbeat first",
    ErrorCode.MISMATCHED_ENDPOINT_TYPE: "the request came to an endpoint of the wrong type",
    ErrorCode.UNSUPPORTED_ENDPOINT_TYPE: "this type of endpoint is not supported",
    ErrorCode.UNKNOWN_CONTROLLER_ID: "there is no such controller",
    ErrorCode.UNKNOWN_SUBSCRIPTION_ID: "the telemetry subscription is unknown or old",
    ErrorCode.TELEMETRY_TOO_LARGE: "the telemetry is larger than the broker takes",
    ErrorCode.INVALID_REGISTRATION: "the controller refused the broker's registration",
    ErrorCode.TRANSACTION_ABORTABLE: "the transaction failed; abort it to go on",
    ErrorCode.INVALID_RECORD_STATE: "the record cannot be acknowledged in its state",
    ErrorCode.SHARE_SESSION_NOT_FOUND: "there is no such share session",
    ErrorCode.INVALID_SHARE_SESSION_EPOCH: "the share session expected another epoch",
    ErrorCode.FENCED_STATE_EPOCH: "the share group's state epoch is another",
    ErrorCode.INVALID_VOTER_KEY: "the voter key belongs to another replica",
    ErrorCode.DUPLICATE_VOTER: "it is a voter already",
    ErrorCode.VOTER_NOT_FOUND: "it is not a voter",
    ErrorCode.INVALID_REGULAR_EXPRESSION: "the regular expression is not valid",
    ErrorCode.REBOOTSTRAP_REQUIRED: "the client's metadata is too old; start again from the bootstrap addresses",
    ErrorCode.STREAMS_INVALID_TOPOLOGY: "the streams topology is not valid",
    ErrorCode.STREAMS_INVALID_TOPOLOGY_EPOCH: "the streams topology epoch is not valid",
    ErrorCode.STREAMS_TOPOLOGY_FENCED: "the streams topology epoch is old",
    ErrorCode.SHARE_SESSION_LIMIT_REACHED: "the broker has no room for another share session",
}

_RETRIABLE: Final = frozenset(
    {
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.LISTENER_NOT_FOUND,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
        ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
        ErrorCode.ELECTION_NOT_NEEDED,
        ErrorCode.UNSTABLE_OFFSET_COMMIT,
        ErrorCode.THROTTLING_QUOTA_EXCEEDED,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
        ErrorCode.SHARE_SESSION_NOT_FOUND,
        ErrorCode.INVALID_SHARE_SESSION_EPOCH,
        ErrorCode.SHARE_SESSION_LIMIT_REACHED,
    }
)


def message(text: str) -> str:
    """Cut the text of an error message to MESSAGE_CHARS_MAX: it may quote a string from the request."""
    return text if len(text) <= MESSAGE_CHARS_MAX else text[: MESSAGE_CHARS_MAX - 1] + "…"
