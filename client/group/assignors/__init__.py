"""Assignors of partitions to members: range, round-robin, sticky, cooperative-sticky, or a custom one."""

from rota.client.group.assignors.base import Assignor, GroupAssignment, MemberSubscription, RebalanceProtocol
from rota.client.group.assignors.cooperative_sticky import CooperativeStickyAssignor
from rota.client.group.assignors.original import OriginalAssignor
from rota.client.group.assignors.range import RangeAssignor
from rota.client.group.assignors.roundrobin import RoundRobinAssignor
from rota.client.group.assignors.sticky import StickyAssignor
from rota.client.group.assignors.strategies import for_name, rebalance_protocol, resolve

__all__ = [
    "Assignor",
    "CooperativeStickyAssignor",
    "GroupAssignment",
    "MemberSubscription",
    "OriginalAssignor",
    "RangeAssignor",
    "RebalanceProtocol",
    "RoundRobinAssignor",
    "StickyAssignor",
    "for_name",
    "rebalance_protocol",
    "resolve",
]
