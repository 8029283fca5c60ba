"""A group as DescribeGroups and ListGroups show it.

Law
    As in Kafka the assignor and the members' metadata are shown in Stable alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rota.coordinator.group.events import InstanceId, MemberId
from rota.coordinator.group.states import GroupState

if TYPE_CHECKING:
    from rota.coordinator.group.machine import Group


@dataclass(frozen=True, slots=True)
class DescribedMember:
    member_id: MemberId
    instance_id: InstanceId | None
    client_id: str
    client_host: str
    metadata: bytes
    assignment: bytes


@dataclass(frozen=True, slots=True)
class Description:
    state: GroupState
    protocol_type: str
    protocol: str
    members: tuple[DescribedMember, ...]


def describe(group: Group) -> Description:
    protocol = group.protocol if group.state is GroupState.STABLE else None
    members = tuple(
        DescribedMember(
            member.member_id,
            member.instance_id,
            member.client_id,
            member.client_host,
            member.metadata(protocol) if protocol is not None else b"",
            member.assignment,
        )
        for member in group.members
    )
    return Description(group.state, group.protocol_type, protocol or "", members)
