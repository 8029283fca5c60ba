"""`/api/actions/…`: the changes of the console, each as the Kafka request that a tool would send.

Law
    WB6 A reset of offsets is shown before it is made: `dry_run` returns what would be committed and changes nothing.
        It is refused while the group has members, as Kafka's tools refuse it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from rota.coordinator.web.api_groups import group as described
from rota.coordinator.web.broker_requests import ApiError, BrokerRequests, check
from rota.coordinator.web.offsets import EARLIEST, UNKNOWN, Key, committed, ends, offsets_at, topic_named
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from rota.protocol.messages.delete_groups import DeleteGroupsRequest
from rota.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from rota.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)

CREATE_VERSION: Final = 5
DELETE_VERSION: Final = 2
LEAVE_VERSION: Final = 5
COMMIT_VERSION: Final = 8
TIMEOUT_MS: Final = 10_000
STATES_FOR_RESET: Final = ("Empty", "Dead")

Body = Mapping[str, Any]


def text(body: Body, name: str) -> str:
    """Return a text of the body. Raises ApiError."""
    value = body.get(name)
    if not isinstance(value, str) or not value:
        raise ApiError(400, f"{name} must be a text that is not empty")
    return value


def number(body: Body, name: str, default: int | None = None) -> int:
    """Return a whole number of the body. Raises ApiError."""
    value = body.get(name, default)
    if not isinstance(value, int) or isinstance(value, bool) or not -(1 << 63) <= value < 1 << 63:
        raise ApiError(400, f"{name} must be a whole number")
    return value


async def create_topic(requests: BrokerRequests, body: Body) -> dict[str, Any]:
    """Create a topic; -1 means the broker's default. Raises ApiError."""
    configs = body.get("configs", {})
    if not isinstance(configs, dict) or not all(isinstance(value, str) for value in configs.values()):
        raise ApiError(400, "configs must be an object with texts")
    partitions, replicas = number(body, "partitions", -1), number(body, "replication_factor", -1)
    if not -1 <= partitions < 1 << 31 or not -1 <= replicas < 1 << 15:
        raise ApiError(400, "partitions and replication_factor must be positive, or -1 for the default")
    topic = CreatableTopic(
        name=text(body, "topic"),
        num_partitions=partitions,
        replication_factor=replicas,
        configs=tuple(CreatableTopicConfig(name=name, value=value) for name, value in configs.items()),
    )
    request = CreateTopicsRequest(topics=(topic,), timeout_ms=TIMEOUT_MS)
    (result,) = (await requests.send_request(requests.own_id, request, CREATE_VERSION)).topics
    if result.error_code and result.error_message:
        status = 409 if result.error_code == ErrorCode.TOPIC_ALREADY_EXISTS else 400
        raise ApiError(status, result.error_message)
    check(result.error_code, f"topic {topic.name!r}")
    return {"topic": topic.name, "partitions": result.num_partitions}


async def delete_group(requests: BrokerRequests, body: Body) -> dict[str, Any]:
    """Delete a group without members. Raises ApiError."""
    group_id = text(body, "group")
    answer = await requests.send_request_to_coordinator(
        group_id, DeleteGroupsRequest(groups_names=(group_id,)), DELETE_VERSION
    )
    check(answer.results[0].error_code, f"group {group_id!r}")
    return {"group": group_id}


async def remove_member(requests: BrokerRequests, body: Body) -> dict[str, Any]:
    """Remove a member: the group rebalances without it, until it joins again. Raises ApiError."""
    group_id, member_id = text(body, "group"), text(body, "member_id")
    members = (await described(requests, group_id))["members"]
    instance = next((member["instance_id"] for member in members if member["member_id"] == member_id), None)
    identity = MemberIdentity(member_id=member_id, group_instance_id=instance, reason="removed in the console")
    answer = await requests.send_request_to_coordinator(
        group_id, LeaveGroupRequest(group_id=group_id, members=(identity,)), LEAVE_VERSION
    )
    check(answer.error_code or answer.members[0].error_code, f"member {member_id!r}")
    return {"group": group_id, "member_id": member_id}


# ---- offsets


async def reset_offsets(requests: BrokerRequests, body: Body) -> dict[str, Any]:
    """Commit other offsets for a topic of a group without members, or show them (`dry_run`). Raises ApiError."""
    group_id, topic, to = text(body, "group"), text(body, "topic"), text(body, "to")
    keys = [(topic, state.index) for state in topic_named(requests, topic).partitions if _is_wanted(body, state.index)]
    if not keys:
        raise ApiError(400, "no partition of the topic is named")
    before, targets = await committed(requests, group_id), await _targets(requests, body, keys, to)
    changes = [
        {
            "topic": key[0],
            "partition": key[1],
            "before": before[key].offset if key in before else UNKNOWN,
            "after": after,
        }
        for key, after in targets.items()
    ]
    is_dry_run = body.get("dry_run", True) is not False
    if not is_dry_run:
        await _refuse_members(requests, group_id)
        await _commit(requests, group_id, targets)
    return {"group": group_id, "dry_run": is_dry_run, "changes": changes}


def _is_wanted(body: Body, index: int) -> bool:
    partitions = body.get("partitions")
    if partitions is None:
        return True
    if not isinstance(partitions, list):
        raise ApiError(400, "partitions must be a list of numbers")
    return index in partitions


async def _targets(requests: BrokerRequests, body: Body, keys: list[Key], to: str) -> dict[Key, int]:
    starts, last = await offsets_at(requests, dict.fromkeys(keys, EARLIEST)), await ends(requests, keys)
    if UNKNOWN in (*starts.values(), *last.values()):
        raise ApiError(503, "not every leader answers")
    if to == "earliest":
        targets = starts
    elif to == "latest":
        targets = last
    elif to == "time":
        found = await offsets_at(requests, dict.fromkeys(keys, number(body, "time_ms")))
        targets = {key: last[key] if offset == UNKNOWN else offset for key, offset in found.items()}
    elif to == "offset":
        targets = dict.fromkeys(keys, number(body, "offset"))
    elif to == "shift":
        before, by = await committed(requests, text(body, "group")), number(body, "by")
        targets = {key: before[key].offset + by for key in keys if key in before}
    else:
        raise ApiError(400, "to must be earliest, latest, time, offset or shift")
    return {key: min(max(offset, starts[key]), last[key]) for key, offset in targets.items()}


async def _refuse_members(requests: BrokerRequests, group_id: str) -> None:
    try:
        state = (await described(requests, group_id))["state"]
    except ApiError as error:
        if error.status != 404:
            raise
        return  # a group begins to exist with its first offset
    if state not in STATES_FOR_RESET:
        raise ApiError(409, f"group {group_id!r} is {state}: stop its members before its offsets are changed")


async def _commit(requests: BrokerRequests, group_id: str, targets: Mapping[Key, int]) -> None:
    topics: dict[str, list[OffsetCommitRequestPartition]] = {}
    for (topic, index), offset in targets.items():
        partition = OffsetCommitRequestPartition(partition_index=index, committed_offset=offset)
        topics.setdefault(topic, []).append(partition)
    request = OffsetCommitRequest(
        group_id=group_id,
        topics=tuple(OffsetCommitRequestTopic(name=name, partitions=tuple(each)) for name, each in topics.items()),
    )
    answer = await requests.send_request_to_coordinator(group_id, request, COMMIT_VERSION)
    for topic in answer.topics:
        for partition in topic.partitions:
            check(partition.error_code, f"{topic.name}-{partition.partition_index}")
