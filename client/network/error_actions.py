"""What an error code means for the client that sent the request: one table of (API, code). Pure.

Laws
    Every code that a broker may answer to a request of this client has an action in the table, also when the default
    would be the same: the table is the documentation. The actions are those of Kafka's Java client.
    A code that an API does not list is RETRY when Kafka calls it retriable, FATAL otherwise. A code that this library
    does not know is UNKNOWN_SERVER_ERROR.
    An API's own entries override the entries that it shares with APIs of its kind.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from rota.protocol.errors import ErrorCode
from rota.protocol.errors import ErrorCode as E
from rota.protocol.registry import APIS


class ErrorAction(Enum):
    """What the client does after an error code."""

    OK = "no error"
    RETRY = "ask the same broker again after a while"
    REFRESH = "read metadata, then ask the new leader"
    REDISCOVER = "find the coordinator, then ask it"
    REJOIN = "the membership is over or must be renewed: join again"
    RESET = "the position is not in the log: ask auto_offset_reset"
    ABORT = "the transaction has failed: it can only be aborted"
    FATAL = "a retry does not help: raise it to the caller"


CodesByAction = dict[ErrorAction, tuple[E, ...]]

_LEADER: Final[CodesByAction] = {  # APIs that a partition's leader serves
    ErrorAction.REFRESH: (
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
    ErrorAction.RETRY: (E.REQUEST_TIMED_OUT, E.UNKNOWN_LEADER_EPOCH),
    ErrorAction.FATAL: (E.INVALID_TOPIC_EXCEPTION, E.TOPIC_AUTHORIZATION_FAILED, E.UNSUPPORTED_FOR_MESSAGE_FORMAT),
}
_COORDINATED: Final[CodesByAction] = {  # APIs that a group's coordinator serves
    ErrorAction.REDISCOVER: (E.COORDINATOR_NOT_AVAILABLE, E.NOT_COORDINATOR),
    ErrorAction.RETRY: (E.COORDINATOR_LOAD_IN_PROGRESS,),
    ErrorAction.FATAL: (E.INVALID_GROUP_ID, E.GROUP_AUTHORIZATION_FAILED),
}
_MEMBER: Final[CodesByAction] = {  # APIs that a member of a group calls
    ErrorAction.REJOIN: (E.ILLEGAL_GENERATION, E.UNKNOWN_MEMBER_ID, E.REBALANCE_IN_PROGRESS),
    ErrorAction.FATAL: (E.FENCED_INSTANCE_ID,),
}
_TRANSACTIONAL: Final[CodesByAction] = {  # APIs that the coordinator of a transactional id serves
    ErrorAction.REDISCOVER: (E.COORDINATOR_NOT_AVAILABLE, E.NOT_COORDINATOR),
    ErrorAction.RETRY: (E.COORDINATOR_LOAD_IN_PROGRESS, E.CONCURRENT_TRANSACTIONS, E.REQUEST_TIMED_OUT),
    ErrorAction.ABORT: (E.TRANSACTION_ABORTABLE, E.UNKNOWN_PRODUCER_ID, E.INVALID_PRODUCER_ID_MAPPING),
    ErrorAction.FATAL: (
        E.INVALID_PRODUCER_EPOCH,
        E.PRODUCER_FENCED,
        E.INVALID_TXN_STATE,
        E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        E.UNSUPPORTED_VERSION,
    ),
}
_CONTROLLED: Final[CodesByAction] = {  # APIs that the controller serves
    ErrorAction.REFRESH: (E.NOT_CONTROLLER,),
    ErrorAction.RETRY: (E.REQUEST_TIMED_OUT, E.THROTTLING_QUOTA_EXCEEDED),
    ErrorAction.FATAL: (E.CLUSTER_AUTHORIZATION_FAILED, E.POLICY_VIOLATION, E.INVALID_REQUEST),
}
_CONFIGURED: Final[CodesByAction] = {
    ErrorAction.FATAL: (
        E.INVALID_CONFIG,
        E.INVALID_REQUEST,
        E.UNKNOWN_TOPIC_OR_PARTITION,
        E.TOPIC_AUTHORIZATION_FAILED,
        E.CLUSTER_AUTHORIZATION_FAILED,
        E.INVALID_TOPIC_EXCEPTION,
    )
}

ACTIONS: Final[dict[str, tuple[CodesByAction, ...]]] = {
    "Produce": (
        _LEADER,
        {
            ErrorAction.RETRY: (
                E.CORRUPT_MESSAGE,
                E.NOT_ENOUGH_REPLICAS,
                E.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
                E.CONCURRENT_TRANSACTIONS,
            ),
            ErrorAction.FATAL: (
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
        _LEADER,
        {
            ErrorAction.REFRESH: (E.OFFSET_NOT_AVAILABLE,),
            ErrorAction.RETRY: (
                E.UNKNOWN_SERVER_ERROR,
                E.FETCH_SESSION_ID_NOT_FOUND,
                E.INVALID_FETCH_SESSION_EPOCH,
                E.FETCH_SESSION_TOPIC_ID_ERROR,
            ),
            ErrorAction.RESET: (E.OFFSET_OUT_OF_RANGE,),
            ErrorAction.FATAL: (
                E.CORRUPT_MESSAGE,
                E.UNSUPPORTED_COMPRESSION_TYPE,
                E.OFFSET_MOVED_TO_TIERED_STORAGE,
                E.INCONSISTENT_CLUSTER_ID,
            ),
        },
    ),
    "ListOffsets": (
        _LEADER,
        {ErrorAction.REFRESH: (E.OFFSET_NOT_AVAILABLE, E.UNKNOWN_LEADER_EPOCH, E.UNKNOWN_SERVER_ERROR)},
    ),
    "Metadata": (
        {
            ErrorAction.RETRY: (
                E.UNKNOWN_TOPIC_OR_PARTITION,
                E.LEADER_NOT_AVAILABLE,
                E.LISTENER_NOT_FOUND,
                E.UNKNOWN_TOPIC_ID,
                E.REBOOTSTRAP_REQUIRED,
            ),
            ErrorAction.FATAL: (
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
            ErrorAction.RETRY: (E.UNKNOWN_TOPIC_OR_PARTITION,),
            ErrorAction.REFRESH: (E.UNKNOWN_TOPIC_ID,),
            ErrorAction.REDISCOVER: (E.REQUEST_TIMED_OUT,),
            ErrorAction.REJOIN: (E.STALE_MEMBER_EPOCH,),
            ErrorAction.FATAL: (
                E.OFFSET_METADATA_TOO_LARGE,
                E.INVALID_COMMIT_OFFSET_SIZE,
                E.TOPIC_AUTHORIZATION_FAILED,
            ),
        },
    ),
    "OffsetFetch": (
        _COORDINATED,
        {
            ErrorAction.RETRY: (E.UNSTABLE_OFFSET_COMMIT,),
            ErrorAction.REFRESH: (E.UNKNOWN_TOPIC_ID,),
            ErrorAction.REJOIN: (E.UNKNOWN_MEMBER_ID, E.STALE_MEMBER_EPOCH),
            ErrorAction.FATAL: (E.UNKNOWN_TOPIC_OR_PARTITION, E.TOPIC_AUTHORIZATION_FAILED),
        },
    ),
    "FindCoordinator": (
        {
            ErrorAction.RETRY: (E.COORDINATOR_LOAD_IN_PROGRESS, E.COORDINATOR_NOT_AVAILABLE, E.NOT_COORDINATOR),
            ErrorAction.FATAL: (
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
            ErrorAction.REJOIN: (E.MEMBER_ID_REQUIRED,),
            ErrorAction.FATAL: (
                E.INCONSISTENT_GROUP_PROTOCOL,
                E.INVALID_SESSION_TIMEOUT,
                E.GROUP_MAX_SIZE_REACHED,
                E.UNSUPPORTED_VERSION,
            ),
        },
    ),
    "Heartbeat": (_COORDINATED, _MEMBER),
    "ConsumerGroupHeartbeat": (
        _COORDINATED,
        {
            ErrorAction.REJOIN: (E.FENCED_MEMBER_EPOCH, E.UNKNOWN_MEMBER_ID, E.GROUP_ID_NOT_FOUND),
            ErrorAction.FATAL: (
                E.FENCED_INSTANCE_ID,
                E.UNRELEASED_INSTANCE_ID,
                E.GROUP_MAX_SIZE_REACHED,
                E.INVALID_REGULAR_EXPRESSION,
                E.INVALID_REQUEST,
                E.TOPIC_AUTHORIZATION_FAILED,
                E.UNSUPPORTED_ASSIGNOR,
                E.UNSUPPORTED_VERSION,
            ),
        },
    ),
    "LeaveGroup": (
        _COORDINATED,
        {ErrorAction.FATAL: (E.UNKNOWN_MEMBER_ID, E.FENCED_INSTANCE_ID, E.ILLEGAL_GENERATION)},
    ),
    "SyncGroup": (_COORDINATED, _MEMBER, {ErrorAction.FATAL: (E.INCONSISTENT_GROUP_PROTOCOL,)}),
    "DescribeGroups": (_COORDINATED, {ErrorAction.FATAL: (E.GROUP_ID_NOT_FOUND,)}),
    "ListGroups": (
        {
            ErrorAction.RETRY: (E.COORDINATOR_LOAD_IN_PROGRESS, E.COORDINATOR_NOT_AVAILABLE, E.NOT_COORDINATOR),
            ErrorAction.FATAL: (E.CLUSTER_AUTHORIZATION_FAILED,),
        },
    ),
    "ApiVersions": ({ErrorAction.FATAL: (E.UNSUPPORTED_VERSION, E.INVALID_REQUEST)},),
    "CreateTopics": (
        _CONTROLLED,
        {
            ErrorAction.FATAL: (
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
            ErrorAction.FATAL: (
                E.UNKNOWN_TOPIC_OR_PARTITION,
                E.UNKNOWN_TOPIC_ID,
                E.INVALID_TOPIC_EXCEPTION,
                E.TOPIC_DELETION_DISABLED,
                E.TOPIC_AUTHORIZATION_FAILED,
            )
        },
    ),
    "DeleteRecords": (_LEADER, {ErrorAction.FATAL: (E.OFFSET_OUT_OF_RANGE, E.POLICY_VIOLATION)}),
    "InitProducerId": (
        _COORDINATED,
        {
            ErrorAction.RETRY: (E.CONCURRENT_TRANSACTIONS, E.REQUEST_TIMED_OUT),
            ErrorAction.FATAL: (
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
    "AddPartitionsToTxn": (
        _TRANSACTIONAL,
        {
            ErrorAction.REFRESH: (E.UNKNOWN_TOPIC_OR_PARTITION,),
            ErrorAction.ABORT: (E.TOPIC_AUTHORIZATION_FAILED, E.OPERATION_NOT_ATTEMPTED, E.INVALID_TOPIC_EXCEPTION),
        },
    ),
    "AddOffsetsToTxn": (_TRANSACTIONAL, {ErrorAction.ABORT: (E.GROUP_AUTHORIZATION_FAILED, E.INVALID_GROUP_ID)}),
    "EndTxn": (_TRANSACTIONAL, {ErrorAction.ABORT: (E.INVALID_TXN_STATE,)}),  # after a timeout it is aborted already
    "DescribeTransactions": (
        _COORDINATED,
        {ErrorAction.FATAL: (E.TRANSACTIONAL_ID_NOT_FOUND, E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)},
    ),
    "ListTransactions": ({ErrorAction.RETRY: (E.COORDINATOR_LOAD_IN_PROGRESS, E.COORDINATOR_NOT_AVAILABLE)},),
    "TxnOffsetCommit": (
        _TRANSACTIONAL,
        {
            ErrorAction.REDISCOVER: (E.COORDINATOR_NOT_AVAILABLE, E.NOT_COORDINATOR, E.REQUEST_TIMED_OUT),
            ErrorAction.RETRY: (E.UNKNOWN_TOPIC_OR_PARTITION,),
            ErrorAction.ABORT: (
                E.GROUP_AUTHORIZATION_FAILED,
                E.TOPIC_AUTHORIZATION_FAILED,
                E.INVALID_GROUP_ID,
                E.GROUP_ID_NOT_FOUND,
                E.ILLEGAL_GENERATION,
                E.STALE_MEMBER_EPOCH,
                E.UNKNOWN_MEMBER_ID,
                E.FENCED_INSTANCE_ID,
                E.REBALANCE_IN_PROGRESS,
                E.OFFSET_METADATA_TOO_LARGE,
                E.INVALID_COMMIT_OFFSET_SIZE,
            ),
            ErrorAction.FATAL: (E.UNSUPPORTED_FOR_MESSAGE_FORMAT,),
        },
    ),
    "OffsetForLeaderEpoch": (
        _LEADER,
        {ErrorAction.REFRESH: (E.OFFSET_NOT_AVAILABLE, E.UNKNOWN_LEADER_EPOCH, E.UNKNOWN_SERVER_ERROR)},
    ),
    "DescribeConfigs": (_CONFIGURED,),
    "AlterConfigs": (_CONTROLLED, _CONFIGURED),
    "IncrementalAlterConfigs": (_CONTROLLED, _CONFIGURED),
    "DescribeLogDirs": (
        {ErrorAction.FATAL: (E.CLUSTER_AUTHORIZATION_FAILED, E.KAFKA_STORAGE_ERROR, E.LOG_DIR_NOT_FOUND)},
    ),
    "CreatePartitions": (
        _CONTROLLED,
        {
            ErrorAction.FATAL: (
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
    "DeleteGroups": (_COORDINATED, {ErrorAction.FATAL: (E.NON_EMPTY_GROUP, E.GROUP_ID_NOT_FOUND)}),
    "ElectLeaders": (
        _CONTROLLED,
        {
            ErrorAction.FATAL: (
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
            ErrorAction.FATAL: (
                E.GROUP_SUBSCRIBED_TO_TOPIC,
                E.NON_EMPTY_GROUP,
                E.GROUP_ID_NOT_FOUND,
                E.UNKNOWN_TOPIC_OR_PARTITION,
                E.TOPIC_AUTHORIZATION_FAILED,
            )
        },
    ),
    "ConsumerGroupDescribe": (_COORDINATED, {ErrorAction.FATAL: (E.GROUP_ID_NOT_FOUND, E.UNSUPPORTED_VERSION)}),
    "DescribeCluster": ({ErrorAction.FATAL: (E.CLUSTER_AUTHORIZATION_FAILED, E.MISMATCHED_ENDPOINT_TYPE)},),
    "DescribeProducers": (_LEADER,),
}


def _merged(groups: tuple[CodesByAction, ...]) -> dict[ErrorCode, ErrorAction]:
    """The action of each code; a later group overrides an earlier one."""
    return {code: action for group in groups for action, codes in group.items() for code in codes}


_KEYS: Final = {api.name: api.key for api in APIS.values()}
TABLE: Final[dict[int, dict[ErrorCode, ErrorAction]]] = {
    _KEYS[name]: _merged(groups) for name, groups in ACTIONS.items()
}


def error_action(api: int, code: int) -> ErrorAction:
    """The action for `code` in an answer of the API with key `api`; OK for code 0."""
    if code == 0:
        return ErrorAction.OK
    known = ErrorCode.of(code)
    return TABLE.get(api, {}).get(known) or (ErrorAction.RETRY if known.retriable else ErrorAction.FATAL)
