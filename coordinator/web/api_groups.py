"""`/api/groups` and `/api/group…`: members, lag, timeline, why they rebalanced, health."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final

from rota.coordinator.observe import health
from rota.coordinator.observe.explain import as_json, sentences
from rota.coordinator.observe.lag import GroupLag
from rota.coordinator.observe.lag_service import Lag
from rota.coordinator.observe.rebalances import Rebalance, rebalances
from rota.coordinator.web.broker_requests import ApiError, BrokerRequests
from rota.coordinator.web.lag_source import assigned, describe
from rota.coordinator.web.timelines import events_of
from rota.protocol.group_timeline import GroupEvent
from rota.protocol.messages.list_groups import ListGroupsRequest

LIST_VERSION: Final = 4
REBALANCES_MAX: Final = 50  # of one answer: the last ones


async def groups(requests: BrokerRequests) -> dict[str, Any]:
    """Return all groups of all coordinators, by id."""
    answers = await requests.send_request_to_all(ListGroupsRequest(), LIST_VERSION)
    return {"groups": await asyncio.to_thread(_listed, answers)}  # thousands take longer than the loop may stand still


def _listed(answers: Sequence[tuple[int, Any]]) -> list[dict[str, Any]]:
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
    return sorted(found, key=lambda group: str(group["group"]))


async def group(requests: BrokerRequests, group_id: str) -> dict[str, Any]:
    """Return state and members of a group. Raises ApiError."""
    described = await describe(requests, group_id)
    return {
        "group": group_id,
        "state": described.group_state,
        "protocol_type": described.protocol_type,
        "assignor": described.protocol_data,
        "coordinator": requests.coordinator(group_id),
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


async def timeline(requests: BrokerRequests, group_id: str) -> dict[str, Any]:
    """Return the events of a group, oldest first, and its rebalances, the last ones first. Raises ApiError."""
    events = await events_of(requests, group_id)
    return {"group": group_id, **await asyncio.to_thread(_timeline, events)}


def _timeline(events: Sequence[GroupEvent]) -> dict[str, Any]:
    return {
        "events": [as_json(event) for event in events],
        "rebalances": [as_json(rebalance) for rebalance in _last_rebalances(events)],
    }


def _last_rebalances(events: Sequence[GroupEvent]) -> list[Rebalance]:
    return list(reversed(rebalances(events)[-REBALANCES_MAX:]))


async def why(requests: BrokerRequests, group_id: str) -> dict[str, Any]:
    """Return the last rebalances in sentences, the last one first. Raises ApiError."""
    events = await events_of(requests, group_id)
    return {"group": group_id, "rebalances": await asyncio.to_thread(_reasons, events)}


def _reasons(events: Sequence[GroupEvent]) -> list[dict[str, Any]]:
    kept = ("started_ms", "ended_ms", "generation", "outcome", "trigger")
    return [
        {**{name: getattr(each, name) for name in kept}, "sentences": list(sentences(each))}
        for each in _last_rebalances(events)
    ]


async def findings(requests: BrokerRequests, lags: Lag, group_id: str) -> dict[str, Any]:
    """Return the findings for a group, the worst first. Raises ApiError."""
    events, lag = await events_of(requests, group_id), await _lag_or_none(lags, group_id)
    found = await asyncio.to_thread(health.findings, events, lag, requests.node.wall_ms())
    return {"group": group_id, "findings": [as_json(finding) for finding in found]}


async def _lag_or_none(lags: Lag, group_id: str) -> GroupLag | None:
    """A group that was deleted has a timeline, and no lag."""
    try:
        return await lags.get(group_id)
    except ApiError as error:
        if error.status == 404:
            return None
        raise
