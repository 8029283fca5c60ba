"""Groups: listed, described, deleted, rid of members.

Laws
    Every broker is asked which groups it coordinates; a group is described and changed by its coordinator alone.
    A group that does not exist fails with GROUP_ID_NOT_FOUND, also where an old broker calls it Dead (KIP-1043).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from rota.client.admin.asking import Deadline, every_node, settle, settle_where
from rota.client.admin.descriptions import GroupDescription, of_classic, of_newer
from rota.client.admin.outcomes import Answer, Asked, Outcomes, Place
from rota.client.errors import AdminFailed, BrokerError
from rota.client.network.cluster import Cluster
from rota.client.network.targets import Coordinator
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse
from rota.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from rota.protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from rota.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from rota.protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse

STATES_VERSION, TYPES_VERSION = 4, 5  # of ListGroups
MEMBERS_VERSION: Final = 3  # of LeaveGroup
DEAD: Final = "Dead"
REMEDIES: Final = {
    ErrorCode.GROUP_ID_NOT_FOUND: "Check the name against list_groups().",
    ErrorCode.NON_EMPTY_GROUP: "Stop its members, or remove them with remove_members().",
    ErrorCode.UNKNOWN_MEMBER_ID: "describe_groups() tells who is a member now.",
}


@dataclass(frozen=True, slots=True)
class GroupListing:
    """That a group is there. `state` is empty before ListGroups v4, `type` before v5; a group that only keeps offsets
    has no `protocol_type`."""

    group_id: str
    protocol_type: str
    state: str = ""
    type: str = ""

    @property
    def is_simple(self) -> bool:
        """Offsets without members: somebody commits outside of group management."""
        return not self.protocol_type


async def list_groups(
    cluster: Cluster, deadline: Deadline, *, states: Iterable[str], types: Iterable[str]
) -> dict[str, GroupListing]:
    """By name. Raises AdminFailed where a broker did not answer: `done` and `failed` are by broker then."""
    request = ListGroupsRequest(states_filter=tuple(states), types_filter=tuple(types))
    oldest = TYPES_VERSION if request.types_filter else STATES_VERSION if request.states_filter else 0
    nodes = (await cluster.refresh(timeout_ms=deadline.left_ms)).brokers
    outcomes = Outcomes[int, dict[str, GroupListing]](
        "listing groups", 16, sorted(nodes), lambda node: Place(broker=str(nodes[node])), remedies=REMEDIES
    )

    def read(asked: Asked[int], answer: ListGroupsResponse) -> Iterable[Answer[int, dict[str, GroupListing]]]:
        listed = [
            GroupListing(one.group_id, one.protocol_type, one.group_state, one.group_type) for one in answer.groups
        ]
        yield Answer(asked.node, answer.error_code, {one.group_id: one for one in listed})

    await every_node(cluster, outcomes, lambda _: request, read, deadline, oldest=oldest)
    found = {name: one for listed in outcomes.results().values() for name, one in listed.items()}
    return {name: found[name] for name in sorted(found)}


async def describe_groups(cluster: Cluster, groups: Iterable[str], deadline: Deadline) -> dict[str, GroupDescription]:
    """Raises AdminFailed."""
    outcomes = Outcomes[str, GroupDescription]("describing groups", 15, groups, of_group, remedies=REMEDIES)

    def build(names: Sequence[str]) -> DescribeGroupsRequest:
        return DescribeGroupsRequest(groups=tuple(names))

    def read(asked: Asked[str], answer: DescribeGroupsResponse) -> Iterable[Answer[str, GroupDescription]]:
        for one in answer.groups:
            gone = one.group_state == DEAD and not one.error_code
            code = ErrorCode.GROUP_ID_NOT_FOUND if gone else one.error_code
            told = of_classic(one, cluster.metadata.brokers.get(asked.node))
            yield Answer(one.group_id, code, told, one.error_message)

    await settle_where(cluster, coordinator(cluster, deadline), Coordinator, outcomes, build, read, deadline)
    await _describe_newer(cluster, outcomes, deadline)
    return outcomes.results()


async def _describe_newer(cluster: Cluster, outcomes: Outcomes[str, GroupDescription], deadline: Deadline) -> None:
    """Groups of the consumer protocol (KIP-848), which DescribeGroups does not find. Old brokers have none."""
    absent = [
        name
        for name, error in outcomes.failed.items()
        if isinstance(error, BrokerError) and error.code is ErrorCode.GROUP_ID_NOT_FOUND
    ]
    newer = Outcomes[str, GroupDescription](outcomes.what, 69, absent, of_group)

    def build(names: Sequence[str]) -> ConsumerGroupDescribeRequest:
        return ConsumerGroupDescribeRequest(group_ids=tuple(names))

    def read(asked: Asked[str], answer: ConsumerGroupDescribeResponse) -> Iterable[Answer[str, GroupDescription]]:
        for one in answer.groups:
            told = of_newer(one, cluster.metadata.brokers.get(asked.node))
            yield Answer(one.group_id, one.error_code, told, one.error_message)

    await settle_where(cluster, coordinator(cluster, deadline), Coordinator, newer, build, read, deadline)
    for name, told in newer.done.items():
        outcomes.succeed(name, told)


async def found_group(cluster: Cluster, group: str, deadline: Deadline) -> GroupDescription | None:
    """None when there is no such group. Raises AdminFailed."""
    try:
        return (await describe_groups(cluster, (group,), deadline))[group]
    except AdminFailed as refused:
        if refused.codes == {ErrorCode.GROUP_ID_NOT_FOUND}:
            return None
        raise


async def delete_groups(cluster: Cluster, groups: Iterable[str], deadline: Deadline) -> None:
    """With all their offsets. Raises AdminFailed."""
    outcomes = Outcomes[str, None]("deleting groups", 42, groups, of_group, remedies=REMEDIES)

    def build(names: Sequence[str]) -> DeleteGroupsRequest:
        return DeleteGroupsRequest(groups_names=tuple(names))

    def read(_: Asked[str], answer: DeleteGroupsResponse) -> Iterable[Answer[str, None]]:
        return (Answer(one.group_id, one.error_code, None) for one in answer.results)

    await settle_where(cluster, coordinator(cluster, deadline), Coordinator, outcomes, build, read, deadline)
    outcomes.results()


async def remove_members(
    cluster: Cluster,
    group: str,
    deadline: Deadline,
    *,
    members: Iterable[str],
    instances: Iterable[str],
    reason: str,
) -> None:
    """By member id, or static ones by group instance id (KIP-345, KIP-800). Raises AdminFailed."""
    statics = frozenset(instances)
    wanted = dict.fromkeys((*statics, *members))
    outcomes = Outcomes[str, None](f"removing members of {group}", 13, wanted, _of(group), remedies=REMEDIES)

    def build(names: Sequence[str]) -> LeaveGroupRequest:
        leaving = tuple(
            MemberIdentity(member_id="", group_instance_id=name, reason=reason)
            if name in statics
            else MemberIdentity(member_id=name, group_instance_id=None, reason=reason)
            for name in names
        )
        return LeaveGroupRequest(group_id=group, members=leaving)

    def read(asked: Asked[str], answer: LeaveGroupResponse) -> Iterable[Answer[str, None]]:
        for name in asked.keys if answer.error_code else ():
            yield Answer(name, answer.error_code, None)
        for one in answer.members:
            name = one.group_instance_id if one.group_instance_id in statics else one.member_id
            yield Answer(str(name), one.error_code, None)

    if wanted:
        await settle(cluster, Coordinator(group), outcomes, build, read, deadline, oldest=MEMBERS_VERSION)
    outcomes.results()


async def remove_all_members(cluster: Cluster, group: str, deadline: Deadline, *, reason: str) -> None:
    """Whoever is a member now; static ones by their instance id, so that they are gone for good. Raises AdminFailed."""
    told = (await describe_groups(cluster, (group,), deadline))[group].members
    instances = [one.group_instance_id for one in told if one.group_instance_id is not None]
    members = [one.member_id for one in told if one.group_instance_id is None]
    await remove_members(cluster, group, deadline, members=members, instances=instances, reason=reason)


# ---- how answers read


def coordinator(cluster: Cluster, deadline: Deadline) -> Callable[[str], Awaitable[int]]:
    """Where each group is, by the deadline."""
    return lambda group: cluster.coordinator(group, timeout_ms=deadline.left_ms)


def of_group(group: str) -> Place:
    """What an error about a group names."""
    return Place(group=group)


def _of(group: str) -> Callable[[str], Place]:
    return lambda _: Place(group=group)


def _listed(one: ListedGroup) -> GroupListing:
    return GroupListing(one.group_id, one.protocol_type, one.group_state, one.group_type)
