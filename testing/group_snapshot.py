"""A group as its coordinator has it, as plain JSON."""

from __future__ import annotations

from typing import Any

from rota.coordinator.consumer_group.description import DescribedConsumer, describe
from rota.coordinator.group.machine import Group
from rota.coordinator.group.members import Member
from rota.protocol.consumer_protocol import decode_assignment
from rota.protocol.errors import ErrorCode
from rota.protocol.wire import DecodeError
from rota.testing.hosted_broker import HostedBroker

NOT_LOADED = "NotLoaded"


def snapshot(group_id: str, hosted: HostedBroker | None) -> dict[str, Any]:
    """Return the group's state, generation, members and offsets. A group that is not there is Dead and empty.

    The state is NotLoaded while no broker coordinates the group.
    """
    described: dict[str, Any] = {
        "group": group_id,
        "coordinator": None,
        "state": NOT_LOADED,
        "generation": -1,
        "members": [],
        "offsets": {},
    }
    shard = None if hosted is None else hosted.broker.groups.ready(group_id)
    if hosted is None or shard is None or isinstance(shard, ErrorCode):
        return described
    machine = shard.machines.get(group_id)
    described |= {"coordinator": hosted.broker_id, "state": "Dead"}
    if machine is not None and machine.consumer is not None:
        described |= {
            "state": machine.summary.state,
            "generation": machine.consumer.epoch,
            "members": [_consumer(member) for member in describe(machine.consumer).members],
            "offsets": _offsets(machine),
        }
    elif machine is not None:
        described |= {
            "state": machine.state.value,
            "generation": machine.generation,
            "members": [_member(machine, member) for member in machine.members],
            "offsets": _offsets(machine),
        }
    return described


def _member(group: Group, member: Member) -> dict[str, Any]:
    return {
        "member_id": member.member_id,
        "client_id": member.client_id,
        "instance_id": member.instance_id,
        "is_leader": group.members.leader == member.member_id,
        "assignment": _assignment(member.assignment),
    }


def _consumer(described: DescribedConsumer) -> dict[str, Any]:
    member = described.member
    return {
        "member_id": member.member_id,
        "client_id": member.client_id,
        "instance_id": member.instance_id,
        "is_leader": False,
        "assignment": {name: list(indexes) for _, name, indexes in described.assigned},
    }


def _assignment(raw: bytes) -> dict[str, list[int]]:
    """Return the partitions by topic; none for an assignment that is not a consumer's."""
    try:
        owned = decode_assignment(raw).assigned_partitions if raw else ()
    except DecodeError:
        return {}
    return {owner.topic: sorted(owner.partitions) for owner in owned}


def _offsets(group: Group) -> dict[str, dict[str, int]]:
    offsets: dict[str, dict[str, int]] = {}
    for (topic, partition), value in sorted(group.offsets.items()):
        offsets.setdefault(topic, {})[str(partition)] = value.offset
    return offsets
