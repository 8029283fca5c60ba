"""Laws G1-G5, O2, O3 on conversations that nobody wrote, crashes included."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.property.group_world import TIMERS_FIRED_MAX, World, hard, soft
from tests.soak import examples

from rota.coordinator.group.effects import Body, Joined, Synced
from rota.coordinator.group.events import (
    Commit,
    DeleteGroup,
    DropOffsets,
    ExpireOffsets,
    Heartbeat,
    InstanceId,
    Join,
    Leave,
    LeavingMember,
    MemberId,
    OffsetRecord,
    OffsetValue,
    Proto,
    Sync,
    TopicsDeleted,
)
from rota.coordinator.group.transitions import GroupState
from rota.protocol.errors import ErrorCode

TOPICS = ("t", "u")
SUBSCRIPTIONS = {topic: b"\0\0\0\0\0\1\0\1" + topic.encode() + b"\xff\xff\xff\xff" for topic in TOPICS}
PROTOCOLS = (("range",), ("range", "roundrobin"), ("roundrobin", "range"))
STALE = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION, ErrorCode.FENCED_INSTANCE_ID)
INSTANCES = st.sampled_from([None, None, None, InstanceId("i"), InstanceId("j")])
LAGS = st.sampled_from([0, 0, 0, 0, 1, -1])


class Groups(RuleBasedStateMachine):
    """Members that behave, members that are stale, unknown ids, timers, expiry, flushes and crashes in any order."""

    @initialize()
    def begin(self) -> None:
        self.world = World()
        self.ids: list[MemberId] = [MemberId("ghost")]  # every id ever given
        self.acknowledged: dict[tuple[str, int], int] = {}
        self.committed = 0

    def draw_member(self, draw: st.DataObject) -> tuple[MemberId, InstanceId | None]:
        """Mostly a member there is, with its instance; sometimes an unknown id, a former one, or the wrong instance."""
        there = list(self.world.group.members)
        if there and draw.draw(st.integers(0, 5)):
            member = draw.draw(st.sampled_from(there))
            return member.member_id, draw.draw(st.sampled_from([member.instance_id, member.instance_id, None]))
        return draw.draw(st.sampled_from(self.ids)), draw.draw(INSTANCES)

    def refused_changes_nothing(self, before: tuple[object, object], body: Body | None) -> None:
        """G3."""
        error = body.error if isinstance(body, Joined | Synced) else body
        if error in STALE:
            assert before == (hard(self.world.group), soft(self.world.group))

    def snapshot(self) -> tuple[object, object]:
        return hard(self.world.group), soft(self.world.group)

    # ---- requests

    def join_of(self, member_id: MemberId, instance_id: InstanceId | None, draw: st.DataObject) -> Join:
        token = self.world.token()
        names = draw.draw(st.sampled_from(PROTOCOLS))
        metadata = SUBSCRIPTIONS[draw.draw(st.sampled_from(TOPICS))]
        return Join(
            token=token,
            member_id=member_id,
            instance_id=instance_id,
            fresh_id=MemberId(f"m{token}"),
            client_id="c",
            client_host="/h",
            session_ms=draw.draw(st.sampled_from([100, 1_000])),
            rebalance_ms=draw.draw(st.sampled_from([50, 500])),
            protocol_type="consumer",
            protocols=tuple(Proto(name, metadata) for name in names),
            requires_known_id=instance_id is None and draw.draw(st.booleans()),
            can_skip_assignment=draw.draw(st.booleans()),
        )

    @rule(instance=INSTANCES, data=st.data())
    def a_new_member_joins(self, instance: InstanceId | None, data: st.DataObject) -> None:
        event = self.join_of(MemberId(""), instance, data)
        self.ids.append(event.fresh_id)
        self.world.send_request(event)

    @rule(data=st.data())
    def a_pending_member_joins(self, data: st.DataObject) -> None:
        pending = list(self.world.group.members.pending)
        if pending:
            self.world.send_request(self.join_of(data.draw(st.sampled_from(pending)), None, data))

    @precondition(lambda self: self.world.group.members.by_instance)
    @rule(data=st.data())
    def an_instance_comes_back_as_another_member(self, data: st.DataObject) -> None:
        self.a_new_member_joins(data.draw(st.sampled_from(list(self.world.group.members.by_instance))), data)

    @precondition(lambda self: self.world.group.members)
    @rule(data=st.data())
    def a_member_joins_again(self, data: st.DataObject) -> None:
        member_id, instance_id = self.draw_member(data)
        before = self.snapshot()
        event = self.join_of(member_id, instance_id, data)
        if member_id not in self.world.group.members.pending:
            self.refused_changes_nothing(before, self.world.send_request(event))

    @precondition(lambda self: self.world.group.members)
    @rule(data=st.data())
    def all_members_join_again(self, data: st.DataObject) -> None:
        for member in list(self.world.group.members):
            self.world.send_request(self.join_of(member.member_id, member.instance_id, data))

    @rule(data=st.data(), instance=INSTANCES, syncs=st.integers(0, 2))
    def a_generation_begins(self, data: st.DataObject, instance: InstanceId | None, syncs: int) -> None:
        """So that not only chance gets as far as an assignment."""
        self.a_new_member_joins(instance, data)
        self.all_members_join_again(data)
        for _ in range(TIMERS_FIRED_MAX):
            if "join" not in self.world.timers or self.world.group.state is not GroupState.PREPARING:
                break
            self.world.fire("join")
        if syncs:
            self.all_members_sync(but_the_leader=syncs == 2)

    @precondition(lambda self: self.world.group.members)
    @rule(data=st.data(), lag=LAGS)
    def a_member_syncs(self, data: st.DataObject, lag: int) -> None:
        member_id, instance_id = self.draw_member(data)
        before = self.snapshot()
        self.refused_changes_nothing(before, self.sync(member_id, instance_id, lag))

    @precondition(lambda self: self.world.group.members)
    @rule(but_the_leader=st.booleans())
    def all_members_sync(self, but_the_leader: bool) -> None:
        for member in reversed(list(self.world.group.members)):
            if not but_the_leader or member.member_id != self.world.group.members.leader:
                self.sync(member.member_id, member.instance_id, 0)

    def sync(self, member_id: MemberId, instance_id: InstanceId | None, lag: int) -> Body | None:
        token, generation = self.world.token(), self.world.group.generation - lag
        self.world.sync_requests[token] = (generation, member_id)
        parts = tuple((name, f"{name} by {token}".encode()) for name in self.world.members())
        return self.world.send_request(
            Sync(
                token=token,
                member_id=member_id,
                instance_id=instance_id,
                generation=generation,
                protocol_type=None,
                protocol=None,
                assignments=parts,
            )
        )

    @precondition(lambda self: self.world.group.members)
    @rule(data=st.data(), lag=LAGS)
    def a_member_is_alive(self, data: st.DataObject, lag: int) -> None:
        member_id, instance_id = self.draw_member(data)
        generation = self.world.group.generation - lag
        before = self.snapshot()
        body = self.world.send_request(Heartbeat(self.world.token(), member_id, instance_id, generation))
        self.refused_changes_nothing(before, body)

    @rule(data=st.data(), lag=LAGS, topic=st.sampled_from(TOPICS), simple=st.booleans())
    def somebody_commits(self, data: st.DataObject, lag: int, topic: str, simple: bool) -> None:
        if simple:
            self.commit(MemberId(""), None, -1, topic)
        else:
            self.commit(*self.draw_member(data), self.world.group.generation - lag, topic)

    def commit(self, member_id: MemberId, instance_id: InstanceId | None, generation: int, topic: str) -> None:
        group = self.world.group
        state, is_member, before = group.state, member_id in group.members.by_id, self.snapshot()
        self.committed += 1
        event = Commit(
            token=self.world.token(),
            member_id=member_id,
            instance_id=instance_id,
            generation=generation,
            records=(OffsetRecord("g", topic, 0, OffsetValue(self.committed, -1, "", self.world.now_ms)),),
        )
        body = self.world.send_request(event)
        self.refused_changes_nothing(before, body)
        if body is ErrorCode.NONE:  # G1
            in_generation = is_member and generation == group.generation and state is not GroupState.COMPLETING
            assert in_generation or (state is GroupState.EMPTY and generation < 0)
            assert group.offsets[topic, 0].offset == self.committed
        else:
            assert before[0] == hard(group)

    @precondition(lambda self: self.world.group.members)
    @rule()
    def all_members_commit(self) -> None:
        for member in list(self.world.group.members):
            for topic in TOPICS:
                self.commit(member.member_id, member.instance_id, self.world.group.generation, topic)

    @precondition(lambda self: self.world.group.members)
    @rule(data=st.data())
    def members_leave(self, data: st.DataObject) -> None:
        some = [LeavingMember(*self.draw_member(data)) for _ in range(data.draw(st.integers(1, 2)))]
        self.world.send_request(Leave(self.world.token(), tuple(some)))

    @rule(instance=st.sampled_from(["i", "j"]))
    def an_administrator_removes_an_instance(self, instance: str) -> None:
        self.world.send_request(Leave(self.world.token(), (LeavingMember(MemberId(""), InstanceId(instance)),)))

    @precondition(lambda self: not self.world.group.is_vacant)
    @rule(topic=st.sampled_from(TOPICS))
    def offsets_are_dropped(self, topic: str) -> None:
        self.world.send_request(DropOffsets(self.world.token(), ((topic, 0),)))
        self.forget_removed()

    @precondition(lambda self: not self.world.group.is_vacant)
    @rule()
    def the_group_is_deleted(self) -> None:
        body = self.world.send_request(DeleteGroup(self.world.token()))
        assert body is not ErrorCode.NONE or self.world.group.is_vacant
        self.forget_removed()

    @precondition(lambda self: not self.world.group.is_vacant)
    @rule(retention_ms=st.sampled_from([0, 300]))
    def offsets_expire(self, retention_ms: int) -> None:
        group = self.world.group
        before, state = dict(group.offsets), group.state
        kept = {key for key in before if group.is_subscribed_to(key[0]) or state is not GroupState.STABLE}
        self.world.step(ExpireOffsets(retention_ms))
        if state is not GroupState.EMPTY:
            assert kept <= group.offsets.keys()  # O3
        self.forget_removed()

    @rule(topic=st.sampled_from(TOPICS))
    def a_topic_goes(self, topic: str) -> None:
        self.world.step(TopicsDeleted({topic: frozenset()}, self.world.now_ms))
        assert (topic, 0) not in self.world.group.offsets
        self.forget_removed()

    def forget_removed(self) -> None:
        there = self.world.group.offsets
        self.acknowledged = {key: offset for key, offset in self.acknowledged.items() if key in there}

    # ---- the world

    @rule(ms=st.sampled_from([10, 90, 400]))
    def time_passes(self, ms: int) -> None:
        until_ms = self.world.now_ms + ms
        while self.world.timers and min(self.world.timers.values()) <= until_ms:
            self.world.fire_next()
        self.world.now_ms = until_ms

    @precondition(lambda self: self.world.timers)
    @rule()
    def the_next_timer_fires(self) -> None:
        self.world.fire_next()

    @rule()
    def the_log_is_flushed(self) -> None:
        self.world.flush()
        self.acknowledged = {key: value.offset for key, value in self.world.group.offsets.items()}

    @rule(kept=st.integers(0, 3))
    def the_broker_crashes(self, kept: int) -> None:
        self.world.crash(kept)
        for key, offset in self.acknowledged.items():  # O1: not lost; O2: not another number, least of all 0
            assert self.world.group.offsets[key].offset >= offset

    # ---- laws

    @invariant()
    def the_laws_hold(self) -> None:
        self.world.check()

    def teardown(self) -> None:
        self.world.settle()  # G4: whoever waits is answered by the timers alone


TestGroups = Groups.TestCase
TestGroups.settings = settings(max_examples=examples(75), stateful_step_count=40, deadline=None)
