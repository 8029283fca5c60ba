"""Health rules about requests that the group refused: commits, static ids, assignors. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rota.coordinator.observe.explain import member_named
from rota.coordinator.observe.facts import DEPARTURES, Facts, by_sender, finding, of_type
from rota.coordinator.observe.finding import Code, Finding, Severity
from rota.protocol.errors import ErrorCode
from rota.protocol.group_timeline import EventType, GroupEvent

REFUSED_PROTOCOLS: Final = (ErrorCode.INCONSISTENT_GROUP_PROTOCOL, ErrorCode.UNSUPPORTED_ASSIGNOR)


def static_twice(facts: Facts) -> Iterator[Finding]:
    fenced = [
        event
        for event in of_type(facts.recent, EventType.REQUESTS_REFUSED)
        if event.error_code == ErrorCode.FENCED_INSTANCE_ID or _is_held_by_a_live_member(event, facts)
    ]
    for member, _ in by_sender(event for event in fenced if event.members and event.members[0].instance_id):
        replaced = [
            event
            for event in of_type(facts.recent, EventType.STATIC_MEMBER_REPLACED)
            if event.members and event.members[0].instance_id == member.instance_id
        ]
        refused = [
            event for event in fenced if event.members[:1] and event.members[0].instance_id == member.instance_id
        ]
        clients = (other for event in (*replaced, *refused) for other in event.members)
        hosts = sorted({other.client_host.removeprefix("/") for other in clients} - {""})
        is_fenced = any(event.error_code == ErrorCode.FENCED_INSTANCE_ID for event in refused)
        effect = "each one fences the other" if is_fenced else "the second one cannot join"
        yield finding(
            Code.STATIC_ID_USED_TWICE,
            Severity.ERROR,
            f"static member {member.instance_id}",
            f"two clients use the group.instance.id {member.instance_id}"
            + (f" (from {', '.join(hosts)})" if hosts else "")
            + f": {effect}",
            "Give each client an id of its own, for example its host or pod name. Two copies of one deployment"
            " must not share a configuration with a fixed group.instance.id.",
            [*replaced, *refused],
        )


def _is_held_by_a_live_member(event: GroupEvent, facts: Facts) -> bool:
    """Whether a static member could not join because another one has its id and lives on (KIP-848).

    A member that was killed holds its id until its session ends: a successor that is refused meanwhile is no fault.
    """
    if event.error_code != ErrorCode.UNRELEASED_INSTANCE_ID or facts.now_ms < event.time_ms + facts.limits.dead_ms:
        return False
    if _is_last_count(event):
        return False
    instance_id = event.members[0].instance_id if event.members else None
    releases = (*DEPARTURES, EventType.STATIC_MEMBER_REPLACED)
    return not any(
        member.instance_id == instance_id
        for later in of_type(facts.events, *releases)
        if later.sequence > event.sequence
        for member in later.members
    )


def _is_last_count(event: GroupEvent) -> bool:
    """Whether the event was written at the end of a group epoch: its refusals may be older than a departure before."""
    return event.count > 0 and str(event.count).strip("0") != "1"


def assignor_mismatch(facts: Facts) -> Iterator[Finding]:
    refused = [
        event for event in of_type(facts.recent, EventType.MEMBER_REFUSED) if event.error_code in REFUSED_PROTOCOLS
    ]
    for member, events in by_sender(refused):
        yield finding(
            Code.ASSIGNOR_MISMATCH,
            Severity.ERROR,
            member_named(member),
            f"{member_named(member)} cannot join: {events[-1].reason}",
            "Give all members an assignor in common (partition.assignment.strategy). To change it, roll all"
            " members twice: first with both assignors, then with the new one alone."
            if events[-1].error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
            else "Remove group.remote.assignor from the client's configuration, or set it to one of the assignors of"
            " the broker (group.consumer.assignors).",
            events,
        )


def commits_refused(facts: Facts) -> Iterator[Finding]:
    refused = [
        event
        for event in of_type(facts.recent, EventType.REQUESTS_REFUSED)
        if event.operation == "offset-commit" and event.error_code != ErrorCode.FENCED_INSTANCE_ID
    ]
    for member, events in by_sender(refused):
        counts: dict[tuple[int, int], int] = {}  # an event has the count since its generation began
        for event in events:
            counts[event.generation, event.error_code] = event.count
        count = sum(counts.values())
        if count >= facts.limits.refused_commits:
            yield finding(
                Code.COMMITS_REFUSED,
                Severity.WARNING,
                member_named(member),
                f"{count} commits of {member_named(member)} were refused: it is not in the current generation",
                "It lost its partitions in a rebalance and goes on with their records. Commit in the rebalance"
                " listener before partitions are revoked, and stop work on partitions that were lost.",
                events,
                count=count,
            )
