"""`rota groups plan`: which partitions would move if members, partitions or the assignor changed.

The assignors are the client's and, for a group of the consumer protocol, the broker's, which give the same assignments
as Kafka's own. Nothing is sent to the group.

Laws
    `range` is the client's for a classic group, the broker's for a group of the consumer protocol. `uniform` is the
    broker's.
    A cooperative assignor is run until nothing moves any more: a plan shows the end of all its rebalances.
    A partition moves when it had an owner before and has another one after; a new partition does not move.
"""

from __future__ import annotations

import re
from argparse import ArgumentTypeError
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from rota.cli.arguments import add_subcommand
from rota.cli.group_details import partition_document, summarized
from rota.cli.session import Session
from rota.cli.settings import UsageError
from rota.cli.text import Table
from rota.client.admin.descriptions import CONSUMER
from rota.client.errors import KafkaError
from rota.client.group.assignors.base import Assignor, MemberSubscription, RebalanceProtocol
from rota.client.group.assignors.cooperative_sticky import CooperativeStickyAssignor
from rota.client.group.assignors.rack_info import with_racks
from rota.client.group.assignors.range import RangeAssignor
from rota.client.group.assignors.roundrobin import RoundRobinAssignor
from rota.client.group.assignors.sticky import StickyAssignor
from rota.client.types import PartitionInfo, TopicPartition
from rota.protocol.dataclass import dataclass

if TYPE_CHECKING:
    from rota.cli.arguments import Subcommands
    from rota.client import MemberDescription

ASSIGNORS: Final[dict[str, type[Assignor]]] = {
    "range": RangeAssignor,
    "roundrobin": RoundRobinAssignor,
    "sticky": StickyAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
}
UNIFORM, RANGE = "uniform", "range"  # of the broker
CHOICES: Final = (*ASSIGNORS, UNIFORM)
REBALANCES_MAX: Final = 10  # of one plan; cooperative-sticky needs two
SETTLED: Final = ("Stable", "Empty")
MEMBERS_MAX: Final = 10_000
PARTITIONS_MAX: Final = 100_000
GENERATION: Final = 1  # of the assignment before: descriptions of groups do not have it
_CHANGE: Final = re.compile(r"([+-]?)([0-9]{1,5})", re.ASCII)
Owned = dict[str, tuple[TopicPartition, ...]]


@dataclass(frozen=True, slots=True)
class Plan:
    """What one assignor would do: the partitions of each member before and after, in how many rebalances."""

    assignor: str
    before: Owned
    after: Owned
    rebalances: int
    is_cooperative: bool

    @property
    def moved(self) -> int:
        return sum(len(self.gained(member, only_moved=True)) for member in self.after)

    @property
    def kept(self) -> int:
        return sum(len(set(self.before.get(member, ())) & set(after)) for member, after in self.after.items())

    @property
    def paused(self) -> int:
        """The partitions without an owner during the rebalances: all with an eager assignor."""
        owned = sum(map(len, self.before.values()))
        return owned - self.kept if self.is_cooperative else owned

    def gained(self, member: str, *, only_moved: bool = False) -> list[TopicPartition]:
        owned = {partition for each in self.before.values() for partition in each}
        new = set(self.after.get(member, ())) - set(self.before.get(member, ()))
        return sorted(new & owned if only_moved else new)

    def lost(self, member: str) -> list[TopicPartition]:
        return sorted(set(self.before.get(member, ())) - set(self.after.get(member, ())))


def add_plan(commands: Subcommands) -> None:
    """Declare the subcommand."""
    add = add_subcommand(
        commands,
        "plan",
        plan_group,
        "show what would move with other members, partitions or assignors",
        epilog="Nothing is sent to the group. The ids of new members sort after those that are there.",
    )
    add.add_argument("group", metavar="GROUP")
    add.add_argument(
        "--assignor",
        choices=CHOICES,
        action="append",
        help="as often as needed; unset: all of the group's protocol, without the members",
    )
    add.add_argument(
        "--members", type=member_change, default=("", 0), metavar="+N|-N|N", help="so many more, less, or in all"
    )
    add.add_argument("--remove", action="append", default=[], metavar="MEMBER", help="a member, client or instance id")
    add.add_argument("--partitions", type=_count, metavar="N", help="each topic has N partitions, if it has fewer")
    add.add_argument("--topic", action="append", default=[], metavar="TOPIC", help="of new members; unset: the group's")


def _count(text: str) -> int:
    from rota.cli.arguments import whole

    return whole(1, PARTITIONS_MAX)(text)


def member_change(text: str) -> tuple[str, int]:
    """Parse +2, -1 or 5 as sign and number. Raises ArgumentTypeError."""
    found = _CHANGE.fullmatch(text)
    if found is None or int(found[2]) > MEMBERS_MAX:
        raise ArgumentTypeError(f"{text!r} is not +N, -N or N, up to {MEMBERS_MAX}")
    return found[1], int(found[2])


async def plan_group(session: Session) -> None:
    options = session.options
    async with session.admin() as admin:
        described = (await admin.describe_groups([options.group]))[options.group]
        if described.state not in SETTLED:
            raise KafkaError(
                f"{options.group} is {described.state}: what its members subscribe to is known when the "
                "group is stable; try again then"
            )
        present = described.members
        if any(each.topic_regex for each in present):
            from rota.cli.broker_assignors import with_matching_topics

            present = with_matching_topics(present, await admin.list_topics(internal=True))
        members = changed_members(present, options.members, options.remove, options.topic)
        names = sorted({topic for subscription in members.values() for topic in subscription.topics})
        found = await admin.describe_topics(names)
        racks = {node.id: node.rack for node in (await admin.describe_cluster()).nodes}
    topics = {name: with_racks(extended(name, topic.partitions, options.partitions), racks)
              for name, topic in found.items()}  # fmt: skip
    before = {member.member_id: member.assignment for member in described.members}
    ids = {name: topic.id for name, topic in found.items()}
    is_consumer = described.type == CONSUMER
    plans = [
        make_broker_plan(name, ids, topics, members, before)
        if name == UNIFORM or (name == RANGE and is_consumer)
        else make_plan(name, topics, members, before)
        for name in dict.fromkeys(options.assignor or ((UNIFORM, RANGE) if is_consumer else ASSIGNORS))
    ]
    document = {
        "group": options.group,
        "assignor_now": described.protocol or None,
        "members": len(members),
        "partitions": sum(map(len, topics.values())),
        "plans": [plan_document(plan) for plan in plans],
    }
    session.out.show(document, *_tables(document, with_members=options.assignor is not None))


def changed_members(
    members: Sequence[MemberDescription], change: tuple[str, int], remove: Sequence[str], topics: Sequence[str]
) -> dict[str, MemberSubscription]:
    """Return the subscriptions of the members after the change. Raises UsageError."""
    kept = [each for each in members if not {each.member_id, each.client_id, each.group_instance_id} & set(remove)]
    if remove and len(kept) == len(members):
        raise UsageError(f"--remove: no member has the member, client or instance id {', '.join(remove)}")
    sign, number = change
    count = number if not sign and number else len(kept) + (number if sign == "+" else -number)
    if count < 1:
        raise UsageError(f"nothing to plan: {max(count, 0)} members would be left; add some with --members +N")
    subscriptions = {
        each.member_id: MemberSubscription(each.topics, each.assignment, GENERATION, each.group_instance_id, each.rack)
        for each in sorted(kept, key=lambda each: each.member_id)[:count]
    }
    subscribed = tuple(sorted(set(topics) or {topic for each in members for topic in each.topics}))
    if len(subscriptions) < count and not subscribed:
        raise UsageError("the group has no members: name the topics of new ones with --topic")
    new = (f"~new-{place + 1}" for place in range(count - len(subscriptions)))
    return subscriptions | {member: MemberSubscription(subscribed) for member in new}


def extended(topic: str, partitions: Sequence[PartitionInfo], count: int | None) -> tuple[PartitionInfo, ...]:
    """Return the partitions and, up to `count`, new ones without replicas."""
    new = (PartitionInfo(topic, number, -1, -1, (), ()) for number in range(len(partitions), count or 0))
    return (*partitions, *new)


def make_plan(
    name: str,
    topics: Mapping[str, Sequence[PartitionInfo]],
    members: Mapping[str, MemberSubscription],
    before: Mapping[str, Sequence[TopicPartition]],
) -> Plan:
    """Run the assignor from the assignment before until nothing changes."""
    assignor = ASSIGNORS[name]()
    is_cooperative = RebalanceProtocol.COOPERATIVE in assignor.supports
    owned = {member: tuple(before.get(member, ())) for member in members}
    rebalances, after = 0, owned
    while rebalances < REBALANCES_MAX:
        rebalances += 1
        subscriptions = {member: _joining(name, members[member], owned[member]) for member in members}
        assigned = assignor.assign(topics, subscriptions).partitions
        after = {member: tuple(sorted(assigned.get(member, ()))) for member in members}
        complete = sum(map(len, after.values())) == sum(map(len, topics.values()))
        if not is_cooperative or complete or after == owned:
            break
        owned = after
    return Plan(name, {member: tuple(each) for member, each in before.items()}, after, rebalances, is_cooperative)


def make_broker_plan(
    name: str,
    topic_ids: Mapping[str, bytes | None],
    topics: Mapping[str, Sequence[PartitionInfo]],
    members: Mapping[str, MemberSubscription],
    before: Mapping[str, Sequence[TopicPartition]],
) -> Plan:
    """Run an assignor of the broker once: a member gives up only what moves. Raises KafkaError without topic ids."""
    from rota.cli.broker_assignors import assign

    ids = {topic: topic_id for topic, topic_id in topic_ids.items() if topic_id is not None}
    if len(ids) < len(topic_ids):
        raise KafkaError(f"these brokers have no topic ids, and no assignor {name}: they are older than KIP-848")
    counts = {topic: len(partitions) for topic, partitions in topics.items()}
    after = assign(name, ids, counts, members, before)
    return Plan(name, {member: tuple(each) for member, each in before.items()}, after, 1, is_cooperative=True)


def _joining(name: str, subscription: MemberSubscription, owned: tuple[TopicPartition, ...]) -> MemberSubscription:
    """Return what the member says of itself when it joins: its partitions, also as user data for sticky."""
    assignor = ASSIGNORS[name]()
    assignor.on_assignment(owned, None, GENERATION)
    user_data = assignor.user_data(subscription.topics) if owned else None
    return replace(subscription, owned=owned, generation_id=GENERATION if owned else -1, user_data=user_data)


def plan_document(plan: Plan) -> dict[str, Any]:
    """Return a plan as JSON; members that leave have no partitions after it."""
    counts = [len(partitions) for partitions in plan.after.values()]
    return {
        "assignor": plan.assignor,
        "moved": plan.moved,
        "kept": plan.kept,
        "paused": plan.paused,
        "rebalances": plan.rebalances,
        "fewest": min(counts),
        "most": max(counts),
        "idle_members": counts.count(0),
        "members": [
            {
                "member_id": member,
                "before": [partition_document(each) for each in sorted(plan.before.get(member, ()))],
                "after": [partition_document(each) for each in plan.after.get(member, ())],
                "gained": [partition_document(each) for each in plan.gained(member)],
                "lost": [partition_document(each) for each in plan.lost(member)],
            }
            for member in sorted({*plan.before, *plan.after})
        ],
    }


def _tables(document: dict[str, Any], *, with_members: bool) -> list[Table]:
    names = ("assignor", "moved", "kept", "paused", "rebalances", "fewest", "most", "idle_members")
    columns = ("ASSIGNOR", "MOVED", "KEPT", "PAUSED", "REBALANCES", "FEWEST", "MOST", "IDLE MEMBERS")
    now = f", {document['assignor_now']} now" if document["assignor_now"] else ""
    title = f"{document['group']}{now}: {document['members']} members, {document['partitions']} partitions"
    tables = [Table(columns, [[plan[name] for name in names] for plan in document["plans"]], title)]
    for plan in document["plans"] if with_members else ():
        rows = [
            (each["member_id"], *(summarized(each[name]) for name in ("before", "after", "gained", "lost")))
            for each in plan["members"]
        ]
        tables.append(Table(("MEMBER", "BEFORE", "AFTER", "GAINED", "LOST"), rows, f"{plan['assignor']}:"))
    return tables
