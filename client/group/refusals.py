"""The exceptions for error codes that end a membership, with their remedies. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from rota.client.config import ConsumerConfig
from rota.client.errors import (
    FAILURES_IN_MESSAGE_MAX,
    GRANT_READ_ON_GROUP,
    AssignmentFailed,
    BrokerError,
    FencedInstance,
    KafkaError,
)
from rota.client.network.metadata import Metadata
from rota.protocol.errors import ErrorCode

REASON_CHARS_MAX = 255


def fenced(config: ConsumerConfig) -> FencedInstance:
    """Another process uses the same instance id."""
    return FencedInstance(
        f"another member of group {config.group_id} has joined as group_instance_id {config.group_instance_id}: "
        "this one is fenced for good; close it, and give each running consumer an instance id of its own"
    )


def refused(what: str, code: int, config: ConsumerConfig, detail: str | None = None) -> KafkaError:
    """Return the error for a request (`what`: "JoinGroup") that was refused with a code that is not retriable.

    `detail`: the broker's own words, where the response has them.
    """
    if code == ErrorCode.FENCED_INSTANCE_ID:
        return fenced(config)
    if code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL:
        return AssignmentFailed(
            f"{what} was refused: the members of group {config.group_id} have no assignor in common with this one, "
            "or it is not a group of consumers; give all of them one partition_assignment_strategy in common"
        )
    return BrokerError(code, f"{what} was refused", group=config.group_id, detail=detail, remedy=_remedy(code, config))


def topics_refused(what: str, topics: Iterable[str], metadata: Metadata, config: ConsumerConfig) -> BrokerError:
    """Return the error for a request that was refused because of topics: which ones, the metadata say."""
    names = [topic.name for topic in metadata.refused(topics)] or sorted(topics)
    shown = names if len(names) <= FAILURES_IN_MESSAGE_MAX else [*names[:FAILURES_IN_MESSAGE_MAX], "…"]
    return BrokerError(
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        f"{what} was refused",
        topic=names[0] if len(names) == 1 else None,
        group=config.group_id,
        remedy=f"Have READ granted to this client on {', '.join(shown)}.",
    )


def _remedy(code: int, config: ConsumerConfig) -> str:
    match code:
        case ErrorCode.GROUP_MAX_SIZE_REACHED:
            return "Wait until a member leaves, use fewer members, or raise group.max.size at the brokers."
        case ErrorCode.INVALID_SESSION_TIMEOUT:
            return (
                f"session_timeout_ms is {config.session_timeout_ms}; choose one from group.min.session.timeout.ms to "
                "group.max.session.timeout.ms of the brokers."
            )
        case ErrorCode.INVALID_GROUP_ID:
            return f"Choose another group_id than {config.group_id!r}."
        case ErrorCode.GROUP_AUTHORIZATION_FAILED:
            return GRANT_READ_ON_GROUP
        case ErrorCode.GROUP_ID_NOT_FOUND | ErrorCode.UNSUPPORTED_VERSION if config.group_protocol == "consumer":
            return (
                "The group takes no member of the consumer protocol: group.consumer.migration.policy or the assignors "
                "of its members keep it classic, it is of another type, or the cluster's group.version is 0. "
                "Use group_protocol=auto or classic."
            )
        case ErrorCode.UNRELEASED_INSTANCE_ID:
            return (
                "Close that member, wait for the end of its session (group.consumer.session.timeout.ms) if its process "
                "has died, and give each running consumer an instance id of its own."
            )
        case ErrorCode.UNSUPPORTED_VERSION if config.group_instance_id is not None:
            return "The broker knows no static members: do without group_instance_id."
        case _:
            return ""


def java_name(code: ErrorCode) -> str:
    """The name of Java's exception, UnknownMemberIdException for UNKNOWN_MEMBER_ID: in rejoin reasons (KIP-800)."""
    return "".join(word.capitalize() for word in code.name.split("_")) + "Exception"


def truncated(reason: str) -> str:
    """The reason, cut to the length that JoinGroup and LeaveGroup may have."""
    return reason[:REASON_CHARS_MAX]
