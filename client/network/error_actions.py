"""The rules behind verdicts.py: for each API of the client, the codes that it may answer with and what they mean. Pure.

Laws
    An API's own rules have the last word over those that it shares with its kind.
    A code that a broker may answer with stands here also when the default would say the same: the table is the
    documentation.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from rota.protocol.errors import ErrorCode as E


class Verdict(Enum):
    """What to do next."""

    OK = "no error"
    RETRY = "ask the same broker again after a while"
    REFRESH = "read metadata, then ask whoever leads now"
    REDISCOVER = "find the coordinator, then ask it"
    REJOIN = "the membership is over or must be renewed: join again"
    RESET = "the position is not in the log: ask auto_offset_reset"
    FATAL = "asking again does not help: tell the caller"


Rules = dict[Verdict, tuple[E, ...]]

_LED: Final[Rules] = {  # asked of a partition's leader
    Verdict.REFRESH: (
        E.UNKNOWN_TOPIC_OR_PARTITION,
        E.LEADER_NOT_AVAILABLE,
        E.NOT_LEADER_OR_FOLLOWER,
        E.REPLICA_NOT_AVAILABLE,
        E.KAFKA_STORAGE_ERROR,
        E.LISTENER_NOT_FOUND,
        E.FENCED_LEADER_EPOCH,
        E.UNKNOWN_TOPIC_ID,
        E.INCONSISTENT_TOPIC_ID,
    ),
    Verdict.RETRY: (E.REQUEST_TIMED_OUT, E.UNKNOWN_LEADER_EPOCH),
    Verdict.FATAL: (E.INVALID_TOPIC_EXCEPTION, E.TOPIC_AUTHORIZATION_FAILED, E.UNSUPPORTED_FOR_MESSAGE_FORMAT),
}
_COORDINATED: Final[Rules] = {  # asked of a group's coordinator
    Verdict.REDISCOVER: (E.COORDINATOR_NOT_AVAILABLE, E.NOT_COORDINATOR),
    Verdict.RETRY: (E.COORDINATOR_LOAD_IN_PROGRESS,),
    Verdict.FATAL: (E.INVALID_GROUP_ID, E.GROUP_AUTHORIZATION_FAILED),
}
_MEMBER: Final[Rules] = {  # asked by a member of a group
    Verdict.REJOIN: (E.ILLEGAL_GENERATION, E.UNKNOWN_MEMBER_ID, E.REBALANCE_IN_PROGRESS),
    Verdict.FATAL: (E.FENCED_INSTANCE_ID,),
}
_CONTROLLED: Final[Rules] = {  # asked of the controller
    Verdict.REFRESH: (E.NOT_CONTROLLER,),
    Verdict.RETRY: (E.REQUEST_TIMED_OUT, E.THROTTLING_QUOTA_EXCEEDED),
    Verdict.FATAL: (E.CLUSTER_AUTHORIZATION_FAILED, E.POLICY_VIOLATION, E.INVALID_REQUEST),
}
_CONFIGURED: Final[Rules] = {
    Verdict.FATAL: (
        E.INVALID_CONFIG,
        E.INVALID_REQUEST,
        E.UNKNOWN_TOPIC_OR_PARTITION,
        E.TOPIC_AUTHORIZATION_FAILED,
        E.CLUSTER_AUTHORIZATION_FAILED,
        E.INVALID_TOPIC_EXCEPTION,
    )
}

RULES: Final[dict[str, tuple[Rules, ...]]] = {
    "Produce": (
        _LED,
        {
            Verdict.RETRY: (E.CORRUPT_MESSAGE, E.NOT_ENOUGH_REPLICAS, E.NOT_ENOUGH_REPLICAS_AFTER_APPEND),
            Verdict.FATAL: (
                E.MESSAGE_TOO_LARGE,
                E.RECORD_LIST_TOO_LARGE,
                E.INVALID_REQUIRED_ACKS,
                E.CLUSTER_AUTHORIZATION_FAILED,
                E.INVALID_TIMESTAMP,
                E.POLICY_VIOLATION,
                E.OUT_OF_ORDER_SEQUENCE_NUMBER,
                E.DUPLICATE_SEQUENCE_NUMBER,
                E.INVALID_PRODUCER_EPOCH,
                E.INVALID_TXN_STATE,
                E.INVALID_PRODUCER_ID_MAPPING,
                E.UNKNOWN_PRODUCER_ID,
                E.UNSUPPORTED_COMPRESSION_TYPE,
                E.INVALID_RECORD,
                E.PRODUCER_FENCED,
                E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
                E.TRANSACTION_ABORTABLE,
            ),
        },
    ),
    "Fetch": (
        _LED,
        {
            Verdict.REFRESH: (E.OFFSET_NOT_AVAILABLE,),
            Verdict.RETRY: (
                E.UNKNOWN_SERVER_ERROR,
                E.FETCH_SESSION_ID_NOT_FOUND,
                E.INVALID_FETCH_SESSION_EPOCH,
                E.FETCH_SESSION_TOPIC_ID_ERROR,
            ),
            Verdict.RESET: (E.OFFSET_OUT_OF_RANGE,),
            Verdict.FATAL: (
                E.CORRUPT_MESSAGE,
                E.UNSUPPORTED_COMPRESSION_TYPE,
                E.OFFSET_MOVED_TO_TIERED_STORAGE,
                E.INCONSISTENT_CLUSTER_ID,
            ),
        },
    ),
    "ListOffsets": (
        _LED,
        {Verdict.REFRESH: (E.OFFSET_NOT_AVAILABLE, E.UNKNOWN_LEADER_EPOCH, E.UNKNOWN_SERVER_ERROR)},
    ),
    "Metadata": (
        {
            Verdict.RETRY: (
                E.UNKNOWN_TOPIC_OR_PARTITION,
                E.LEADER_NOT_AVAILABLE,
                E.LISTENER_NOT_FOUND,
                E.UNKNOWN_TOPIC_ID,
                E.REBOOTSTRAP_REQUIRED,
            ),
            Verdict.FATAL: (
                E.INVALID_TOPIC_EXCEPTION,
                E.TOPIC_AUTHORIZATION_FAILED,
                E.CLUSTER_AUTHORIZATION_FAILED,
                E.INVALID_REPLICATION_FACTOR,
                E.INVALID_REQUEST,
            ),
        },
    ),
    "OffsetCommit": (
        _COORDINATED,
        _MEMBER,
        {
            Verdict.RETRY: (E.UNKNOWN_TOPIC_OR_PARTITION,),
            Verdict.REFRESH: (E.UNKNOWN_TOPIC_ID,),
            Verdict.REDISCOVER: (E.REQUEST_TIMED_OUT,),
            Verdict.REJOIN: (E.STALE_MEMBER_EPOCH,),
            Verdict.FATAL: (E.OFFSET_METADATA_TOO_LARGE, E.INVALID_COMMIT_OFFSET_SIZE, E.TOPIC_AUTHORIZATION_FAILED),
        },
    ),
    "OffsetFetch": (
        _COORDINATED,
        {
            Verdict.RETRY: (E.UNSTABLE_OFFSET_COMMIT,),
            Verdict.REFRESH: (E.UNKNOWN_TOPIC_ID,),
            Verdict.REJOIN: (E.UNKNOWN_MEMBER_ID, E.STALE_MEMBER_EPOCH),
            Verdict.FATAL: (E.UNKNOWN_TOPIC_OR_PARTITION, E.TOPIC_AUTHORIZATION_FAILED),
        },
    ),
    "FindCoordinator": (
        {
            Verdict.RETRY: (E.COORDINATOR_LOAD_IN_PROGRESS, E.COORDINATOR_NOT_AVAILABLE, E.NOT_COORDINATOR),
            Verdict.FATAL: (
                E.INVALID_GROUP_ID,
                E.GROUP_AUTHORIZATION_FAILED,
                E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
                E.INVALID_REQUEST,
            ),
        },
    ),
    "JoinGroup": (
        _COORDINATED,
        _MEMBER,
        {
            Verdict.REJOIN: (E.MEMBER_ID_REQUIRED,),
            Verdict.FATAL: (
                E.INCONSISTENT_GROUP_PROTOCOL,
                E.INVALID_SESSION_TIMEOUT,
                E.GROUP_MAX_SIZE_REACHED,
                E.UNSUPPORTED_VERSION,
            ),
        },
    ),
    "Heartbeat": (_COORDINATED, _MEMBER),
    "LeaveGroup": (_COORDINATED, {Verdict.FATAL: (E.UNKNOWN_MEMBER_ID, E.FENCED_INSTANCE_ID, E.ILLEGAL_GENERATION)}),
    "SyncGroup": (_COORDINATED, _MEMBER, {Verdict.FATAL: (E.INCONSISTENT_GROUP_PROTOCOL,)}),
    "DescribeGroups": (_COORDINATED, {Verdict.FATAL: (E.GROUP_ID_NOT_FOUND,)}),
    "ListGroups": (
        {
            Verdict.RETRY: (E.COORDINATOR_LOAD_IN_PROGRESS, E.COORDINATOR_NOT_AVAILABLE, E.NOT_COORDINATOR),
            Verdict.FATAL: (E.CLUSTER_AUTHORIZATION_FAILED,),
        },
    ),
    "ApiVersions": ({Verdict.FATAL: (E.UNSUPPORTED_VERSION, E.INVALID_REQUEST)},),
    "CreateTopics": (
        _CONTROLLED,
        {
            Verdict.FATAL: (
                E.TOPIC_ALREADY_EXISTS,
                E.INVALID_TOPIC_EXCEPTION,
                E.INVALID_PARTITIONS,
                E.INVALID_REPLICATION_FACTOR,
                E.INVALID_REPLICA_ASSIGNMENT,
                E.INVALID_CONFIG,
                E.TOPIC_AUTHORIZATION_FAILED,
            )
        },
    ),
    "DeleteTopics": (
        _CONTROLLED,
        {
            Verdict.FATAL: (
                E.UNKNOWN_TOPIC_OR_PARTITION,
                E.UNKNOWN_TOPIC_ID,
                E.INVALID_TOPIC_EXCEPTION,
                E.TOPIC_DELETION_DISABLED,
                E.TOPIC_AUTHORIZATION_FAILED,
            )
        },
    ),
    "DeleteRecords": (_LED, {Verdict.FATAL: (E.OFFSET_OUT_OF_RANGE, E.POLICY_VIOLATION)}),
    "InitProducerId": (
        _COORDINATED,
        {
            Verdict.RETRY: (E.CONCURRENT_TRANSACTIONS, E.REQUEST_TIMED_OUT),
            Verdict.FATAL: (
                E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
                E.CLUSTER_AUTHORIZATION_FAILED,
                E.INVALID_PRODUCER_EPOCH,
                E.PRODUCER_FENCED,
                E.INVALID_TRANSACTION_TIMEOUT,
                E.UNSUPPORTED_VERSION,
                E.TRANSACTION_ABORTABLE,
            ),
        },
    ),
    "OffsetForLeaderEpoch": (
        _LED,
        {Verdict.REFRESH: (E.OFFSET_NOT_AVAILABLE, E.UNKNOWN_LEADER_EPOCH, E.UNKNOWN_SERVER_ERROR)},
    ),
    "DescribeConfigs": (_CONFIGURED,),
    "AlterConfigs": (_CONTROLLED, _CONFIGURED),
    "IncrementalAlterConfigs": (_CONTROLLED, _CONFIGURED),
    "DescribeLogDirs": ({Verdict.FATAL: (E.CLUSTER_AUTHORIZATION_FAILED, E.KAFKA_STORAGE_ERROR, E.LOG_DIR_NOT_FOUND)},),
    "CreatePartitions": (
        _CONTROLLED,
        {
            Verdict.FATAL: (
                E.UNKNOWN_TOPIC_OR_PARTITION,
                E.INVALID_TOPIC_EXCEPTION,
                E.INVALID_PARTITIONS,
                E.INVALID_REPLICA_ASSIGNMENT,
                E.INVALID_REPLICATION_FACTOR,
                E.REASSIGNMENT_IN_PROGRESS,
                E.TOPIC_AUTHORIZATION_FAILED,
            )
        },
    ),
    "DeleteGroups": (_COORDINATED, {Verdict.FATAL: (E.NON_EMPTY_GROUP, E.GROUP_ID_NOT_FOUND)}),
    "ElectLeaders": (
        _CONTROLLED,
        {
            Verdict.FATAL: (
                E.ELECTION_NOT_NEEDED,
                E.PREFERRED_LEADER_NOT_AVAILABLE,
                E.ELIGIBLE_LEADERS_NOT_AVAILABLE,
                E.UNKNOWN_TOPIC_OR_PARTITION,
            )
        },
    ),
    "OffsetDelete": (
        _COORDINATED,
        {
            Verdict.FATAL: (
                E.GROUP_SUBSCRIBED_TO_TOPIC,
                E.NON_EMPTY_GROUP,
                E.GROUP_ID_NOT_FOUND,
                E.UNKNOWN_TOPIC_OR_PARTITION,
                E.TOPIC_AUTHORIZATION_FAILED,
            )
        },
    ),
    "ConsumerGroupDescribe": (_COORDINATED, {Verdict.FATAL: (E.GROUP_ID_NOT_FOUND, E.UNSUPPORTED_VERSION)}),
    "DescribeCluster": ({Verdict.FATAL: (E.CLUSTER_AUTHORIZATION_FAILED, E.MISMATCHED_ENDPOINT_TYPE)},),
    "DescribeProducers": (_LED,),
}
