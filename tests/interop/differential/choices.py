"""From a die to a request: right most of the time, and wrong in every way that a client can be.

A request is built when it is sent, from what its slot has learnt until then; with the same answers, the same die gives
the same request on every broker.
"""

from __future__ import annotations

import struct
from random import Random
from typing import Any

from tests.interop.differential.canonical import Labels
from tests.interop.differential.slots import Circle, Slot

from rota.protocol.messages.delete_groups import DeleteGroupsRequest
from rota.protocol.messages.describe_groups import DescribeGroupsRequest
from rota.protocol.messages.heartbeat import HeartbeatRequest
from rota.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from rota.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from rota.protocol.messages.list_groups import ListGroupsRequest
from rota.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

# long enough that nothing expires during a run: time is not what is compared
SESSION_MS, REBALANCE_MS = 600_000, 900_000
# all in one order of preference, so that a vote never ends in a tie: Kafka breaks ties by a hash map's order
ASSIGNORS = (("range", "sticky"), ("range", "roundrobin"), ("range",), ("range", "sticky", "roundrobin"))
ODD_ASSIGNORS = (("roundrobin",), ("sticky", "roundrobin"), ("lonely",), ())

Built = tuple[Any, int]


def version(dice: Random, versions: range, *, since: int = 0) -> int:
    """Any version, mostly one that has what the request wants to say (`since`)."""
    first = versions[0] if dice.random() < 0.2 else max(since, versions[0])
    return dice.randint(first, versions[-1])


def identity(dice: Random, circle: Circle, slot: Slot) -> str:
    """The slot's member id; now and then none, an old one, somebody else's, or one that was never given."""
    roll = dice.random()
    others = [other.member_id for other in circle.slots if other is not slot and other.member_id]
    if roll < 0.86:
        return slot.member_id
    if roll < 0.89:
        return ""
    if roll < 0.93 and slot.old_ids:
        return slot.old_ids[-1]
    if roll < 0.97 and others:
        return dice.choice(others)
    return "nobody"


def harmless(dice: Random, circle: Circle, slot: Slot, *, named: bool) -> str:
    """As `identity`, for requests that park: somebody else's id only beside an instance that it does not belong to.

    `named`: the request's version has a place for the instance.

    Of two parked joins (or syncs) of one member, Kafka never answers the first.
    """
    chosen = identity(dice, circle, slot)
    borrowed = any(chosen == other.member_id for other in circle.slots if other is not slot)
    return "nobody" if borrowed and (slot.instance is None or not named) else chosen


def instance(dice: Random, circle: Circle, slot: Slot) -> str | None:
    """The slot's instance id; now and then somebody else's, an unknown one, or none."""
    roll = dice.random()
    if roll < 0.92:
        return slot.instance
    if roll < 0.97:
        known = [other.instance for other in circle.slots if other.instance not in (None, slot.instance)]
        return dice.choice([*known, "no-instance"])
    return None


def generation(dice: Random, slot: Slot) -> int:
    return slot.generation if dice.random() < 0.9 else slot.generation + dice.choice([-2, -1, 1])


def subscription(*topics: str, user_data: bytes = b"") -> bytes:
    """A consumer's subscription, version 0."""
    names = b"".join(struct.pack(">h", len(topic)) + topic.encode() for topic in topics)
    return struct.pack(">hi", 0, len(topics)) + names + struct.pack(">i", len(user_data)) + user_data


def join(dice: Random, circle: Circle, slot: Slot) -> Built:
    chosen = version(dice, JoinGroupRequest.VERSIONS, since=5)
    names = ASSIGNORS[slot.number % len(ASSIGNORS)] if dice.random() < 0.93 else dice.choice(ODD_ASSIGNORS)
    topics = [f"{circle.run}a"] if dice.random() < 0.85 else [f"{circle.run}a", f"{circle.run}b"]
    if slot.instance and not slot.member_id:
        del topics[1:]  # a static member that takes over as somebody else: see AVOIDED in explained.py
    metadata = subscription(*topics, user_data=slot.client_id.encode())
    member_id, who = slot.member_id, slot.instance
    if dice.random() < 0.12:
        member_id, who = harmless(dice, circle, slot, named=chosen >= 5), instance(dice, circle, slot)
    request = JoinGroupRequest(
        group_id=circle.group_id if dice.random() < 0.985 else "",
        session_timeout_ms=SESSION_MS if dice.random() < 0.97 else dice.choice([500, 1_800_001]),
        rebalance_timeout_ms=REBALANCE_MS,
        member_id=member_id,
        group_instance_id=who if chosen >= 5 else None,
        protocol_type="consumer" if dice.random() < 0.97 else dice.choice(["connect", ""]),
        protocols=tuple(JoinGroupRequestProtocol(name=name, metadata=metadata) for name in names),
        reason="because" if chosen >= 8 and dice.random() < 0.5 else None,
    )
    return request, chosen


def sync(dice: Random, circle: Circle, slot: Slot, labels: Labels) -> Built:
    chosen = version(dice, SyncGroupRequest.VERSIONS, since=3)
    roster = sorted(slot.roster, key=lambda name: labels[name])
    receivers = roster if dice.random() < 0.93 else ["nobody", *roster[:1]]
    named = chosen >= 5
    request = SyncGroupRequest(
        group_id=group(dice, circle),
        generation_id=generation(dice, slot),
        member_id=harmless(dice, circle, slot, named=chosen >= 3),
        group_instance_id=slot.instance if chosen >= 3 else None,
        protocol_type=dice.choices(["consumer", "connect", None], [94, 2, 4])[0] if named else None,
        protocol_name=dice.choices([slot.protocol, "wrong", None], [94, 2, 4])[0] if named else None,
        assignments=tuple(
            SyncGroupRequestAssignment(member_id=receiver, assignment=b"for " + labels[receiver].encode())
            for receiver in receivers
        ),
    )
    return request, chosen


def heartbeat(dice: Random, circle: Circle, slot: Slot) -> Built:
    chosen = version(dice, HeartbeatRequest.VERSIONS, since=3)
    request = HeartbeatRequest(
        group_id=group(dice, circle),
        generation_id=generation(dice, slot),
        member_id=identity(dice, circle, slot),
        group_instance_id=instance(dice, circle, slot) if chosen >= 3 else None,
    )
    return request, chosen


def leave(dice: Random, circle: Circle, slot: Slot) -> Built:
    chosen = version(dice, LeaveGroupRequest.VERSIONS, since=3)
    member_id, who = identity(dice, circle, slot), instance(dice, circle, slot)
    for other in circle.slots:
        # a member that waits for its assignment while somebody has it leave is never answered by Kafka
        if other.parked and other.sent.KEY == SyncGroupRequest.KEY:
            member_id = "nobody" if member_id == other.member_id else member_id
            who = "no-instance" if who is not None and who == other.instance else who
    if chosen < 3:
        return LeaveGroupRequest(group_id=group(dice, circle), member_id=member_id), chosen
    identities = [MemberIdentity(member_id=member_id, group_instance_id=who)]
    if dice.random() < 0.2:
        identities.append(MemberIdentity(member_id="nobody"))
    if dice.random() < 0.2 and who is not None:
        identities.append(MemberIdentity(member_id="", group_instance_id=who))
    if chosen >= 5:
        identities[0].reason = "because"
    return LeaveGroupRequest(group_id=group(dice, circle), members=tuple(identities)), chosen


def evict(circle: Circle) -> Built:
    """Send away every id that the broker gave and no slot uses: what nobody plays would hold up each rebalance."""
    used = {slot.member_id for slot in circle.slots}
    ghosts = tuple(MemberIdentity(member_id=ghost) for ghost in circle.issued if ghost not in used)
    return LeaveGroupRequest(group_id=circle.group_id, members=ghosts), 4


def describe(dice: Random, circle: Circle) -> Built:
    names = (circle.group_id, f"{circle.run}unheard-of")
    return DescribeGroupsRequest(groups=names), version(dice, DescribeGroupsRequest.VERSIONS)


def list_groups(dice: Random) -> Built:
    chosen = version(dice, ListGroupsRequest.VERSIONS, since=4)
    states = ("Stable", "Empty") if chosen >= 4 and dice.random() < 0.5 else ()
    types = ("classic",) if chosen >= 5 and dice.random() < 0.5 else ()
    return ListGroupsRequest(states_filter=states, types_filter=types), chosen


def delete_groups(dice: Random, circle: Circle) -> Built:
    names = [circle.group_id] if dice.random() < 0.7 else [f"{circle.run}unheard-of"]
    return DeleteGroupsRequest(groups_names=tuple(names)), version(dice, DeleteGroupsRequest.VERSIONS)


def group(dice: Random, circle: Circle) -> str:
    """The group; now and then no name at all, which is refused, or one that nobody has."""
    return circle.group_id if dice.random() < 0.985 else dice.choice(["", f"{circle.run}unheard-of"])


def group_of_offsets(dice: Random, circle: Circle) -> str:
    """As `group`, but for the group without a name: its offsets are everybody's, those of other runs as well."""
    return circle.group_id if dice.random() < 0.985 else f"{circle.run}unheard-of"
