"""Groups: list, describe, delete, remove members.

Laws
    ListGroups goes to every broker; describe and change requests go to the coordinator of the group.
    A group that does not exist fails with GROUP_ID_NOT_FOUND, also where an old broker calls it Dead (KIP-1043). AD6:
    no other group does: one that could not be described fails with the reason.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final

from rota.client.admin.call_results import CallResults, ErrorContext, KeyResult, SentRequest
from rota.client.admin.descriptions import GroupDescription, from_consumer_group_describe, from_describe_groups
from rota.client.admin.requests import Deadline, request_all_brokers, request_each_broker, request_with_retries
from rota.client.errors import AdminFailed, BrokerError, KafkaError, Unsupported
from rota.client.network.cluster import Cluster
from rota.client.network.targets import Coordinator
from rota.protocol.dataclass import dataclass
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse
from rota.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from rota.protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from rota.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from rota.protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse

STATES_VERSION, TYPES_VERSION = 4, 5  # of ListGroups
MEMBERS_VERSION: Final = 3  # of LeaveGroup
DEAD: Final = "Dead"
_NOT_CONSUMER: Final = frozenset({ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION})
REMEDIES: Final = {
    ErrorCode.GROUP_ID_NOT_FOUND: "Check the name against list_groups().",
    ErrorCode.NON_EMPTY_GROUP: "Stop its members, or remove them with remove_members().",
    ErrorCode.UNKNOWN_MEMBER_ID: "describe_groups() returns the current members.",
}


@dataclass(frozen=True, slots=True)
class GroupListing:
    """A group in a list. `state` is empty before ListGroups v4, `type` before v5. `protocol_type` is empty when the
    group has only committed offsets."""

    group_id: str
    protocol_type: str
    state: str = ""
    type: str = ""

    @property
    def is_simple(self) -> bool:
        """Whether the group has offsets but no group protocol: a client commits outside of group management."""
        return not self.protocol_type


async def list_groups(
    cluster: Cluster, deadline: Deadline, *, states: Iterable[str], types: Iterable[str]
) -> dict[str, GroupListing]:
    """Return the groups of all brokers, by name. Raises AdminFailed when a broker did not respond; its `done` and
    `failed` are by broker id."""
    request = ListGroupsRequest(states_filter=tuple(states), types_filter=tuple(types))
    version_min = TYPES_VERSION if request.types_filter else STATES_VERSION if request.states_filter else 0
    nodes = (await cluster.refresh(timeout_ms=deadline.remaining_ms)).brokers
    results = CallResults[int, dict[str, GroupListing]](
        "listing groups", 16, sorted(nodes), lambda node: ErrorContext(broker=str(nodes[node])), remedies=REMEDIES
    )

    def read(sent: SentRequest[int], answer: ListGroupsResponse) -> Iterable[KeyResult[int, dict[str, GroupListing]]]:
        listed = map(_listed, answer.groups)
        yield KeyResult(sent.node, answer.error_code, {listing.group_id: listing for listing in listed})

    await request_all_brokers(cluster, results, lambda _: request, read, deadline, version_min=version_min)
    found = {name: listing for listed in results.all_or_raise().values() for name, listing in listed.items()}
    return {name: found[name] for name in sorted(found)}


async def describe_groups(cluster: Cluster, groups: Iterable[str], deadline: Deadline) -> dict[str, GroupDescription]:
    """Return the description of each group. Raises AdminFailed."""
    results = CallResults[str, GroupDescription]("describing groups", 15, groups, group_context, remedies=REMEDIES)

    def build(names: Sequence[str]) -> DescribeGroupsRequest:
        return DescribeGroupsRequest(groups=tuple(names))

    def read(sent: SentRequest[str], answer: DescribeGroupsResponse) -> Iterable[KeyResult[str, GroupDescription]]:
        for group in answer.groups:
            is_dead = group.group_state == DEAD and not group.error_code
            code = ErrorCode.GROUP_ID_NOT_FOUND if is_dead else group.error_code
            description = from_describe_groups(group, cluster.metadata.brokers.get(sent.node))
            yield KeyResult(group.group_id, code, description, group.error_message)

    await request_each_broker(cluster, coordinator(cluster, deadline), Coordinator, results, build, read, deadline)
    await _describe_consumer_groups(cluster, results, deadline)
    return results.all_or_raise()


async def _describe_consumer_groups(
    cluster: Cluster, results: CallResults[str, GroupDescription], deadline: Deadline
) -> None:
    """Describe the groups that DescribeGroups did not find: those of the consumer protocol (KIP-848), which have a
    name."""
    absent = [
        name
        for name, error in results.failed.items()
        if name and isinstance(error, BrokerError) and error.code is ErrorCode.GROUP_ID_NOT_FOUND
    ]
    consumer_results = CallResults[str, GroupDescription](results.what, 69, absent, group_context)

    def build(names: Sequence[str]) -> ConsumerGroupDescribeRequest:
        return ConsumerGroupDescribeRequest(group_ids=tuple(names))

    def read(
        sent: SentRequest[str], answer: ConsumerGroupDescribeResponse
    ) -> Iterable[KeyResult[str, GroupDescription]]:
        for group in answer.groups:
            description = from_consumer_group_describe(group, cluster.metadata.brokers.get(sent.node))
            yield KeyResult(group.group_id, group.error_code, description, group.error_message)

    await request_each_broker(
        cluster, coordinator(cluster, deadline), Coordinator, consumer_results, build, read, deadline
    )
    for name, description in consumer_results.done.items():
        results.succeed(name, description)
    for name, failure in consumer_results.failed.items():
        if not _is_no_consumer_group(failure):
            results.fail(name, failure)


def _is_no_consumer_group(failure: KafkaError) -> bool:
    """Return whether the group is not of the consumer protocol, or the broker does not know that protocol."""
    return isinstance(failure, Unsupported) or (isinstance(failure, BrokerError) and failure.code in _NOT_CONSUMER)


async def describe_group_if_exists(cluster: Cluster, group: str, deadline: Deadline) -> GroupDescription | None:
    """Return the description of a group, or None when it does not exist. Raises AdminFailed."""
    try:
        return (await describe_groups(cluster, (group,), deadline))[group]
    except AdminFailed as error:
        if error.codes == {ErrorCode.GROUP_ID_NOT_FOUND}:
            return None
        raise


async def delete_groups(cluster: Cluster, groups: Iterable[str], deadline: Deadline) -> None:
    """Delete groups and their committed offsets. Raises AdminFailed."""
    results = CallResults[str, None]("deleting groups", 42, groups, group_context, remedies=REMEDIES)

    def build(names: Sequence[str]) -> DeleteGroupsRequest:
        return DeleteGroupsRequest(groups_names=tuple(names))

    def read(_: SentRequest[str], answer: DeleteGroupsResponse) -> Iterable[KeyResult[str, None]]:
        return (KeyResult(result.group_id, result.error_code, None) for result in answer.results)

    await request_each_broker(cluster, coordinator(cluster, deadline), Coordinator, results, build, read, deadline)
    results.all_or_raise()


async def remove_members(
    cluster: Cluster,
    group: str,
    deadline: Deadline,
    *,
    members: Iterable[str],
    instances: Iterable[str],
    reason: str,
) -> None:
    """Remove members by member id, and static members by group instance id (KIP-345, KIP-800). Raises AdminFailed."""
    statics = frozenset(instances)
    requested = dict.fromkeys((*statics, *members))
    results = CallResults[str, None](f"removing members of {group}", 13, requested, _of(group), remedies=REMEDIES)

    def build(names: Sequence[str]) -> LeaveGroupRequest:
        leaving = tuple(
            MemberIdentity(member_id="", group_instance_id=name, reason=reason)
            if name in statics
            else MemberIdentity(member_id=name, group_instance_id=None, reason=reason)
            for name in names
        )
        return LeaveGroupRequest(group_id=group, members=leaving)

    def read(sent: SentRequest[str], answer: LeaveGroupResponse) -> Iterable[KeyResult[str, None]]:
        for name in sent.keys if answer.error_code else ():
            yield KeyResult(name, answer.error_code, None)
        for member in answer.members:
            name = member.group_instance_id if member.group_instance_id in statics else member.member_id
            yield KeyResult(str(name), member.error_code, None)

    if requested:
        await request_with_retries(
            cluster, Coordinator(group), results, build, read, deadline, version_min=MEMBERS_VERSION
        )
    results.all_or_raise()


async def remove_all_members(cluster: Cluster, group: str, deadline: Deadline, *, reason: str) -> None:
    """Remove all current members. Static members are removed by instance id, so that they do not keep their place.
    Raises AdminFailed."""
    described = (await describe_groups(cluster, (group,), deadline))[group].members
    instances = [member.group_instance_id for member in described if member.group_instance_id is not None]
    members = [member.member_id for member in described if member.group_instance_id is None]
    await remove_members(cluster, group, deadline, members=members, instances=instances, reason=reason)


# ---- requests and responses


def coordinator(cluster: Cluster, deadline: Deadline) -> Callable[[str], Awaitable[int]]:
    """Return a function that looks up the coordinator of a group until the deadline."""
    return lambda group: cluster.coordinator(group, timeout_ms=deadline.remaining_ms)


def group_context(group: str) -> ErrorContext:
    """Return the context of an error about a group."""
    return ErrorContext(group=group)


def _of(group: str) -> Callable[[str], ErrorContext]:
    return lambda _: ErrorContext(group=group)


def _listed(group: ListedGroup) -> GroupListing:
    return GroupListing(group.group_id, group.protocol_type, group.group_state, group.group_type)
