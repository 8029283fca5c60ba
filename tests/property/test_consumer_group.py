"""Laws CG1, CG2, CG12, G1, G3 and G5 of a group of the consumer protocol, on conversations that nobody wrote.

Coordinators crash, replies are lost, topics grow and are created again, expressions are resolved late.

Each client does what a consumer does: it owns what it was last told, and gives partitions up before it says so.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.soak import examples
from tests.unit.coordinator.consumer_group.script import REBALANCE_MS, Script, TopicsInMemory, durable, id_of, named

from rota.coordinator.consumer_group.assignors import uniform
from rota.coordinator.consumer_group.assignors.spec import GroupSpec, MemberSpec
from rota.coordinator.consumer_group.events import HeartbeatReply
from rota.coordinator.consumer_group.member import Partitions
from rota.coordinator.consumer_group.settings import ConsumerGroupSettings
from rota.coordinator.consumer_group.state import ConsumerGroupState
from rota.protocol.errors import ErrorCode

TOPICS = ("t", "u")
EXPRESSIONS = st.sampled_from(["", "", "t|u", "u.*", "none"])
SUBSCRIPTIONS = st.sampled_from([("t",), ("t", "u"), ("u",), ()])
MEMBERS = ("a", "b", "c", "d")
ROUNDS_MAX = 20


@dataclass
class Client:
    """`owned` is what it uses; `assigned` is what it was told last, when it has still to revoke."""

    epoch: int = 0
    names: tuple[str, ...] = ("t",)
    owned: dict[str, set[int]] = field(default_factory=dict)
    assigned: dict[str, set[int]] | None = None
    instance: str | None = None
    regex: str = ""
    is_full: bool = False  # the next heartbeat says everything, because an answer was lost


class Groups(RuleBasedStateMachine):
    """Members that behave, members with wrong epochs, topics that change, time and crashes in any order."""

    @initialize(
        assignor=st.sampled_from(["uniform", "range"]), interval_ms=st.sampled_from([0, 1_000]), count=st.integers(1, 6)
    )
    def begin(self, assignor: str, interval_ms: int, count: int) -> None:
        config = ConsumerGroupSettings(assignment_interval_ms=interval_ms, assignors=(assignor,))
        self.script = Script(TopicsInMemory(t=count, u=2), config)
        self.clients: dict[str, Client] = {}
        self.epochs: dict[str, int] = {}
        self.created = 0

    # ---- members

    def send(self, member: str) -> HeartbeatReply:
        client = self.clients[member]
        fields = {"instance": client.instance, "owned": dict(client.owned)}
        if client.epoch == 0 or client.is_full:
            fields |= {"names": client.names, "regex": client.regex, "rebalance_ms": REBALANCE_MS}
        return self.script.heartbeat(member, client.epoch, **fields)  # type: ignore[arg-type]

    def heartbeat(self, member: str) -> None:
        """A heartbeat of a client that behaves."""
        client = self.clients[member]
        reply = self.send(member)
        client.is_full = False
        if reply.error is not ErrorCode.NONE:
            client.epoch, client.owned, client.assigned = 0, {}, None  # it gives everything up and joins again
            return
        client.epoch = reply.member_epoch
        assignment = named(reply)
        if assignment is not None:
            client.assigned = {name: indexes for name, indexes in assignment.items() if indexes}

    def apply(self, member: str) -> None:
        """The client revokes and takes what it was told."""
        client = self.clients[member]
        if client.assigned is not None:
            client.owned, client.assigned = client.assigned, None

    @rule(member=st.sampled_from(MEMBERS), names=SUBSCRIPTIONS, regex=EXPRESSIONS, is_static=st.booleans())
    def a_member_joins(self, member: str, names: tuple[str, ...], regex: str, is_static: bool) -> None:
        if member not in self.clients:
            self.clients[member] = Client(names=names, instance=f"i-{member}" if is_static else None, regex=regex)
            self.heartbeat(member)
            self.apply(member)

    @precondition(lambda self: self.clients)
    @rule(data=st.data(), applies=st.booleans())
    def a_member_sends_a_heartbeat(self, data: st.DataObject, applies: bool) -> None:
        member = data.draw(st.sampled_from(sorted(self.clients)))
        self.heartbeat(member)
        if applies:
            self.apply(member)

    @precondition(lambda self: self.clients)
    @rule(data=st.data())
    def a_reply_is_lost(self, data: st.DataObject) -> None:
        """The client does not know what the coordinator did: its next heartbeat says everything."""
        member = data.draw(st.sampled_from(sorted(self.clients)))
        self.send(member)
        self.clients[member].is_full = True

    @precondition(lambda self: self.clients)
    @rule(data=st.data(), partition=st.integers(0, 5))
    def a_member_commits(self, data: st.DataObject, partition: int) -> None:
        """G1. A commit in an older epoch is taken for a partition that the member has, and for no other."""
        member = data.draw(st.sampled_from(sorted(self.clients)))
        client, group = self.clients[member], self.script.hosted.consumer
        if client.epoch == 0 or group is None or not group.members:
            return
        code = self.script.commit(member, client.epoch, partition)
        known = group.members.get(member)
        if known is None:
            assert code is ErrorCode.UNKNOWN_MEMBER_ID
        elif known.epoch == client.epoch:
            assert code is ErrorCode.NONE
        elif code is ErrorCode.NONE:
            topic = self.script.topics.get("t")
            assert topic is not None
            assert group.owners[topic.topic_id, partition] == member

    @precondition(lambda self: self.clients)
    @rule(data=st.data(), names=SUBSCRIPTIONS)
    def a_member_changes_its_subscription(self, data: st.DataObject, names: tuple[str, ...]) -> None:
        member = data.draw(st.sampled_from(sorted(self.clients)))
        client = self.clients[member]
        client.names = names
        if client.epoch > 0:
            reply = self.script.heartbeat(
                member, client.epoch, names=names, owned=dict(client.owned), instance=client.instance
            )
            if reply.error is ErrorCode.NONE:
                client.epoch = reply.member_epoch
                assignment = named(reply)
                client.assigned = assignment if assignment is not None else client.assigned
                self.apply(member)

    @precondition(lambda self: self.clients)
    @rule(data=st.data(), is_for_good=st.booleans())
    def a_member_leaves(self, data: st.DataObject, is_for_good: bool) -> None:
        member = data.draw(st.sampled_from(sorted(self.clients)))
        client = self.clients.pop(member)
        if client.epoch > 0:
            self.script.leave(member, -2 if client.instance and not is_for_good else -1, instance=client.instance)

    @rule(member=st.sampled_from((*MEMBERS, "ghost")), epoch=st.integers(-2, 12))
    def a_wrong_epoch_changes_nothing(self, member: str, epoch: int) -> None:
        client = self.clients.get(member)
        if epoch in (0, -1, -2) or (client is not None and client.epoch == epoch):
            return
        before, size = durable(self.script.hosted), len(self.script.log)
        reply = self.script.heartbeat(member, epoch)
        if reply.error is not ErrorCode.NONE:
            assert (durable(self.script.hosted), len(self.script.log)) == (before, size)

    # ---- the world

    @rule(name=st.sampled_from(TOPICS))
    def a_topic_grows(self, name: str) -> None:
        topic = self.script.topics.get(name)
        assert topic is not None
        if topic.partition_count < 9:
            self.script.topics.set(name, topic.partition_count + 1, topic_id=topic.topic_id)

    @rule(name=st.sampled_from(TOPICS), partitions=st.integers(1, 5))
    def a_topic_is_created_again(self, name: str, partitions: int) -> None:
        self.created += 1
        self.script.topics.delete(name)
        self.script.topics.set(name, partitions, topic_id=id_of(f"{name}{self.created}"))

    @rule(ms=st.sampled_from([10, 1_000, 30_000, 50_000]))
    def time_passes(self, ms: int) -> None:
        self.script.advance(ms)

    @rule(compacted=st.booleans())
    def the_coordinator_crashes(self, compacted: bool) -> None:
        """G5."""
        other = self.script.restarted(compacted=compacted)
        assert durable(other.hosted) == durable(self.script.hosted)
        self.script = other

    # ---- laws

    @invariant()
    def clients_with_a_valid_epoch_own_different_partitions(self) -> None:
        """CG1, as the clients see it: those that the coordinator still knows in their epoch."""
        if self.script.hosted.consumer is None:
            return
        owned = [
            (name, index)
            for member, client in self.clients.items()
            if client.epoch > 0
            and member in self.script.group.members
            and client.epoch
            in (self.script.group.members[member].epoch, self.script.group.members[member].previous_epoch)
            for name, indexes in client.owned.items()
            for index in indexes
        ]
        assert len(owned) == len(set(owned))

    @invariant()
    def epochs_only_grow(self) -> None:
        group = self.script.hosted.consumer
        if group is not None:
            assert group.epoch >= self.epochs.get("g", 0)
            self.epochs["g"] = group.epoch

    def teardown(self) -> None:
        """Progress: with heartbeats alone the group becomes Stable and every subscribed partition has an owner."""
        if not hasattr(self, "script"):
            return
        for _ in range(ROUNDS_MAX):
            for member in self.clients:
                self.heartbeat(member)
                self.apply(member)
            self.script.advance(3_000)
        if self.script.hosted.consumer is None or not self.script.group.members:
            return
        group = self.script.group
        left = set(group.members) - set(self.clients)  # static members that may come back
        if left:
            return
        assert group.state is ConsumerGroupState.STABLE
        for name in group.subscribed_topics():
            topic = self.script.topics.get(name)
            assert topic is not None
            assert {(topic.topic_id, index) for index in range(topic.partition_count)} <= set(group.owners)
        for member, client in self.clients.items():
            assert client.owned == {name: indexes for name, indexes in self.script.assigned(member).items() if indexes}


Groups.TestCase.settings = settings(max_examples=examples(60), stateful_step_count=30, deadline=None)
TestConsumerGroups = Groups.TestCase


# ---- stickiness of the uniform assignor

COUNTS = st.dictionaries(st.sampled_from([b"t" * 16, b"u" * 16, b"v" * 16]), st.integers(1, 9), min_size=1)
GROUPS = st.sets(st.sampled_from("abcdefgh"), min_size=1)


def spec(members: set[str], counts: dict[bytes, int], last: dict[str, Partitions]) -> GroupSpec:
    """A group whose members all subscribe to all topics."""
    return GroupSpec(
        members={each: MemberSpec(topic_ids=frozenset(counts), target=last.get(each, {})) for each in sorted(members)},
        is_homogeneous=True,
        partition_counts=counts,
    )


def owned(target: Partitions) -> set[tuple[bytes, int]]:
    return {(topic_id, index) for topic_id, indexes in target.items() for index in indexes}


@given(counts=COUNTS, before=GROUPS, after=GROUPS)
def test_a_new_target_takes_from_a_member_or_gives_to_it_and_never_both(
    counts: dict[bytes, int], before: set[str], after: set[str]
) -> None:
    """CG12. Numbers of partitions differ by one at most, and no more partitions move than that needs."""
    first = uniform.assign(spec(before, counts, {}))
    second = uniform.assign(spec(after, counts, first))
    sizes = [len(owned(second.get(member, {}))) for member in after]
    assert sum(sizes) == sum(counts.values())
    assert max(sizes) - min(sizes) <= 1
    for member in before & after:
        was, now = owned(first.get(member, {})), owned(second.get(member, {}))
        assert was <= now or now <= was
