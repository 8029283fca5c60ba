"""`/api/groups` and `/api/group…`: members, lag, timeline, why they rebalanced, health."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from rota.coordinator.observe import health
from rota.coordinator.observe.explain import as_json, rebalances
from rota.coordinator.observe.lag import UNKNOWN, GroupLag, PartitionLag, total
from rota.coordinator.web.asks import ApiError, Asks, check
from rota.coordinator.web.offsets import committed, ends
from rota.coordinator.web.timelines import events_of
from rota.protocol.constructs import DecodeError
from rota.protocol.consumer_protocol import decode_assignment
from rota.protocol.messages.describe_groups import DescribeGroupsRequest
from rota.protocol.messages.list_groups import ListGroupsRequest

LIST_VERSION: Final = 4
DESCRIBE_VERSION: Final = 5
REBALANCES_MAX: Final = 50  # of one answer: the last ones
DEAD: Final = "Dead"

Owners = dict[tuple[str, int], str]  # member id by topic and partition


async def groups(asks: Asks) -> dict[str, Any]:
    """Return all groups of all coordinators, by id."""
    answers = await asks.ask_all(ListGroupsRequest(), LIST_VERSION)
    found = [
        {
            "group": group.group_id,
            "state": group.group_state,
            "protocol_type": group.protocol_type,
            "coordinator": broker_id,
        }
        for broker_id, answer in answers
        if not answer.error_code
        for group in answer.groups
    ]
    return {"groups": sorted(found, key=lambda group: str(group["group"]))}


async def group(asks: Asks, group_id: str) -> dict[str, Any]:
    """Return state and members of a group. Raises ApiError."""
    described = await _described(asks, group_id)
    return {
        "group": group_id,
        "state": described.group_state,
        "protocol_type": described.protocol_type,
        "assignor": described.protocol_data,
        "coordinator": asks.coordinator(group_id),
        "members": [
            {
                "member_id": member.member_id,
                "instance_id": member.group_instance_id,
                "client_id": member.client_id,
                "host": member.client_host.removeprefix("/"),
                "partitions": [
                    {"topic": topic, "partition": index} for topic, index in sorted(assigned(member.member_assignment))
                ],
            }
            for member in described.members
        ],
    }


async def _described(asks: Asks, group_id: str) -> Any:
    answer = await asks.ask_coordinator(group_id, DescribeGroupsRequest(groups=(group_id,)), DESCRIBE_VERSION)
    (described,) = answer.groups
    check(described.error_code, f"group {group_id!r}")
    if described.group_state == DEAD:
        raise ApiError(404, f"there is no group {group_id!r}")
    return described


def assigned(assignment: bytes) -> list[tuple[str, int]]:
    """Return the partitions of an assignment; none when it is not the consumer protocol's."""
    if not assignment:
        return []
    try:
        decoded = decode_assignment(assignment)
    except DecodeError:
        return []
    return [(each.topic, index) for each in decoded.assigned_partitions for index in each.partitions]


async def lag(asks: Asks, group_id: str) -> GroupLag:
    """Return the lag of a group. Raises ApiError."""
    described, offsets = await asyncio.gather(_described(asks, group_id), committed(asks, group_id))
    owners: Owners = {
        key: member.member_id for member in described.members for key in assigned(member.member_assignment)
    }
    found = await ends(asks, {**dict.fromkeys(offsets), **dict.fromkeys(owners)})
    partitions = tuple(
        _partition_lag(key, end, offsets[key].offset if key in offsets else UNKNOWN, owners)
        for key, end in sorted(found.items())
    )
    return total(group_id, asks.node.wall_ms(), described.group_state, partitions)


def _partition_lag(key: tuple[str, int], end: int, offset: int, owners: Owners) -> PartitionLag:
    is_known = UNKNOWN not in (end, offset)
    return PartitionLag(
        topic=key[0],
        partition=key[1],
        committed=offset,
        end=end,
        records=max(end - offset, 0) if is_known else UNKNOWN,
        age_ms=0 if is_known and end <= offset else UNKNOWN,
        trend=0.0,
        has_trend=False,
        member_id=owners.get(key, ""),
        error="" if end != UNKNOWN else "the leader does not answer",
    )


async def timeline(asks: Asks, group_id: str) -> dict[str, Any]:
    """Return the events of a group, oldest first, and its rebalances, the last ones first. Raises ApiError."""
    events = await events_of(asks, group_id)
    found = rebalances(events)[-REBALANCES_MAX:]
    return {
        "group": group_id,
        "events": [as_json(event) for event in events],
        "rebalances": [as_json(rebalance) for rebalance in reversed(found)],
    }


async def why(asks: Asks, group_id: str) -> dict[str, Any]:
    """Return the last rebalances in sentences, the last one first. Raises ApiError."""
    answer = await timeline(asks, group_id)
    kept = ("started_ms", "ended_ms", "generation", "outcome", "trigger", "sentences")
    return {
        "group": group_id,
        "rebalances": [{name: rebalance[name] for name in kept} for rebalance in answer["rebalances"]],
    }


async def findings(asks: Asks, group_id: str) -> dict[str, Any]:
    """Return what is wrong with a group, the worst first. Raises ApiError."""
    events = await events_of(asks, group_id)
    found = health.findings(events, await _lag_or_none(asks, group_id), asks.node.wall_ms())
    return {"group": group_id, "findings": [as_json(finding) for finding in found]}


async def _lag_or_none(asks: Asks, group_id: str) -> GroupLag | None:
    """A group that was deleted has a timeline, and no lag."""
    try:
        return await lag(asks, group_id)
    except ApiError as error:
        if error.status == 404:
            return None
        raise
