"""The leader of a generation: read the metadata of all topics of the group, assign, send SyncGroup.

Laws
    The leader assigns the partitions of every topic that any member subscribes to; it refreshes metadata first when a
    topic is unknown, and leaves out a topic that is unknown even then.
    An assignment that gives a partition twice, or to an unknown member, is refused before it is sent.
    A cooperative assignment gives no member a partition that another member still owns (KIP-429).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from rota.client.errors import AssignmentFailed
from rota.client.group import notes
from rota.client.group.assignors.base import GroupAssignment, MemberSubscription
from rota.client.group.assignors.rack_info import with_racks
from rota.client.group.state import Member
from rota.client.group.states import MemberState
from rota.client.group.subscription import decoded_subscription, grouped, snapshot
from rota.client.types import PartitionInfo, TopicPartition
from rota.protocol.consumer_protocol import PROTOCOL_TYPE, Assignment, encode_assignment
from rota.protocol.messages.join_group import JoinGroupResponse
from rota.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from rota.protocol.wire import DecodeError

REASON: Final = "rebalance failed due to AssignmentFailed"
CHECKS_GENERATIONS: Final = "cooperative-sticky"  # looks at the generations of what is held, which is more exact


def elected(m: Member, answer: JoinGroupResponse) -> None:
    """Assign at once when every topic is known, otherwise after a metadata refresh."""
    try:
        members = _members(answer)
    except DecodeError as error:
        failed = AssignmentFailed(f"a member of group {m.config.group_id} sent an invalid subscription: {error}")
        m.give_up(failed, REASON)
        return
    m.group_topics = m.topics.union(*(member.topics for member in members.values()))
    m.follow_topics(m.group_topics)
    if any(m.metadata.partitions(topic) is None for topic in m.group_topics):
        m.elected = answer
        m.refresh_metadata()
    else:
        _assign(m, answer, members)


def metadata_refreshed(m: Member) -> None:
    """The metadata are fresh: assign."""
    answer, m.elected = m.elected, None
    if answer is not None and m.state is MemberState.SYNCING and m.rebalance_ticket is None:
        m.is_metadata_fresh = False
        _assign(m, answer, _members(answer))


def _members(answer: JoinGroupResponse) -> dict[str, MemberSubscription]:
    return {
        member.member_id: decoded_subscription(member.metadata, member.group_instance_id) for member in answer.members
    }


def _assign(m: Member, answer: JoinGroupResponse, members: Mapping[str, MemberSubscription]) -> None:
    m.watched = snapshot(m.group_topics, m.metadata)
    unknown = [topic for topic in sorted(m.group_topics) if m.watched[topic] is None]
    if unknown:
        m.note("warning", notes.TOPICS_UNKNOWN, topics=unknown)
    if answer.skip_assignment:
        m.note("info", notes.SKIPPED_ASSIGNMENT)
        send(m, ())
        return
    try:
        assignment = _checked(m, members)
    except AssignmentFailed as error:
        m.give_up(error, REASON)
        return
    count = sum(len(partitions) for partitions in assignment.partitions.values())
    m.note("info", notes.FINISHED_ASSIGNMENT, members=len(members), partitions=count, assignor=m.assignor_name)
    send(m, _encoded(assignment, members))


def _checked(m: Member, members: Mapping[str, MemberSubscription]) -> GroupAssignment:
    """The assignor's assignment, checked. Raises AssignmentFailed."""
    assignor = m.assignors.get(m.assignor_name)
    if assignor is None:
        raise AssignmentFailed(f"group {m.config.group_id} chose the assignor {m.assignor_name!r}, which is not ours")
    try:
        assignment = assignor.assign(_partitions(m), members)
    except Exception as error:  # whatever an assignor of the user's raises
        raise AssignmentFailed(f"assignor {m.assignor_name} of group {m.config.group_id} failed: {error!r}") from error
    wrong = _invalid_assignment(assignment, members)
    if not wrong and m.is_cooperative and m.assignor_name != CHECKS_GENERATIONS:
        wrong = _assigned_before_revocation(assignment, members)
    if wrong:
        raise AssignmentFailed(f"assignor {m.assignor_name} of group {m.config.group_id} {wrong}")
    return assignment


def _partitions(m: Member) -> dict[str, tuple[PartitionInfo, ...]]:
    found = {}
    of_brokers = {broker.id: broker.rack for broker in m.metadata.brokers.values()}
    for topic in sorted(m.group_topics):
        info = m.metadata.topics.get(topic)
        if info is not None and info.partitions:
            found[topic] = with_racks((info.partitions[number] for number in sorted(info.partitions)), of_brokers)
    return found


def _invalid_assignment(assignment: GroupAssignment, members: Mapping[str, MemberSubscription]) -> str:
    unknown_members = sorted(set(assignment.partitions) - set(members))
    if unknown_members:
        return f"gave partitions to {', '.join(unknown_members)}: not in the group"
    assigned: set[TopicPartition] = set()
    for partitions in assignment.partitions.values():
        twice = assigned.intersection(partitions)
        if twice or len(set(partitions)) < len(partitions):
            return f"gave a partition twice: {', '.join(map(str, sorted(twice or partitions)))}"
        assigned.update(partitions)
    return ""


def _assigned_before_revocation(assignment: GroupAssignment, members: Mapping[str, MemberSubscription]) -> str:
    added: set[TopicPartition] = set()
    revoked: set[TopicPartition] = set()
    for member, subscription in members.items():
        given = set(assignment.partitions.get(member, ()))
        added |= given.difference(subscription.owned)
        revoked |= set(subscription.owned) - given
    both = sorted(added & revoked)
    return f"is cooperative, and gave away what another member still holds: {', '.join(map(str, both))}" if both else ""


def _encoded(assignment: GroupAssignment, members: Iterable[str]) -> tuple[SyncGroupRequestAssignment, ...]:
    return tuple(
        SyncGroupRequestAssignment(
            member_id=member,
            assignment=encode_assignment(
                Assignment(
                    assigned_partitions=grouped(assignment.partitions.get(member, ())),
                    user_data=assignment.user_data.get(member),
                )
            ),
        )
        for member in members
    )


def send(m: Member, assignments: tuple[SyncGroupRequestAssignment, ...]) -> None:
    """Send SyncGroup. No heartbeat is sent until its response: the coordinator keeps members that wait for it."""
    m.cancel_heartbeat()
    m.disarm("session")
    request = SyncGroupRequest(
        group_id=m.config.group_id or "",
        generation_id=m.generation,
        member_id=m.member_id,
        group_instance_id=m.config.group_instance_id,
        protocol_type=PROTOCOL_TYPE,
        protocol_name=m.assignor_name,
        assignments=assignments,
    )
    m.rebalance_ticket = m.send_request(request, m.config.request_timeout_ms)
