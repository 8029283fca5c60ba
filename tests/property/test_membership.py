"""Laws M1-M5 of a membership, against a coordinator that answers anything at any time."""

from __future__ import annotations

import re

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from tests.property.member_world import World, metadata
from tests.soak import examples

from rota.client.errors import BrokerError, KafkaError, TimedOut, Unreachable, Unsupported
from rota.client.group import events
from rota.client.group.machine import step
from rota.client.group.states import MemberState
from rota.client.types import TopicPartition
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from rota.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from rota.protocol.messages.leave_group import LeaveGroupResponse
from rota.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

E = ErrorCode
USUAL = (E.REBALANCE_IN_PROGRESS, E.ILLEGAL_GENERATION, E.UNKNOWN_MEMBER_ID, E.NOT_COORDINATOR, E.MEMBER_ID_REQUIRED)
CODES = st.one_of(st.sampled_from(USUAL), st.sampled_from([code for code in ErrorCode if code]))
PARTITIONS = [TopicPartition(topic, n) for topic, count in (("t", 3), ("u", 2), ("v", 1)) for n in range(count)]
SUBSCRIPTIONS = st.sampled_from(
    [frozenset({"t"}), frozenset({"t", "u"}), frozenset({"u"}), frozenset({"missing"}), re.compile("[tu]")]
)
TOPICS = st.dictionaries(st.sampled_from("tuv"), st.integers(1, 4))
ERRORS = st.sampled_from([Unreachable("gone"), TimedOut("late"), Unsupported("old")])
NOT_FOUND = st.sampled_from(
    [TimedOut("late"), Unreachable("gone"), BrokerError(30, "finding"), BrokerError(15, "finding")]
)


class Memberships(RuleBasedStateMachine):
    """A user who polls when he likes, a coordinator that answers what it likes."""

    @initialize(cooperative=st.booleans(), static=st.booleans(), topics=SUBSCRIPTIONS)
    def begin(self, cooperative: bool, static: bool, topics: frozenset[str] | re.Pattern[str]) -> None:
        self.world = World(cooperative=cooperative, static=static)
        self.fenced = False
        self.world.step(events.MetadataChanged(self.world.metadata))
        self.world.step(events.Subscribed(topics))

    # ---- the user

    @precondition(lambda self: not self.world.in_poll)
    @rule()
    def polls(self) -> None:
        self.world.poll()

    @precondition(lambda self: self.world.in_poll)
    @rule()
    def stops_waiting(self) -> None:
        self.world.cancel()

    @precondition(lambda self: not self.world.in_poll)
    @rule()
    def gets_records(self) -> None:
        self.world.step(events.PollReturned())

    @rule(topics=SUBSCRIPTIONS)
    def subscribes(self, topics: frozenset[str] | re.Pattern[str]) -> None:
        self.world.step(events.Subscribed(topics))
        self.world.look()

    @precondition(lambda self: self.world.hook is not None)
    @rule(fails=st.integers(0, 5))
    def a_callback_ends(self, fails: int) -> None:
        self.world.hook_done(ValueError("the user's") if fails == 5 else None)

    @precondition(lambda self: self.world.machine.generation >= 0)
    @rule(code=st.sampled_from([22, 25, 27, 82]), lag=st.integers(0, 1))
    def a_commit_was_refused(self, code: int, lag: int) -> None:
        self.world.step(events.CommitRefused(code, self.world.machine.generation - lag))
        self.world.look()

    @rule()
    def wants_a_rebalance(self) -> None:
        self.world.step(events.Rejoin("rebalance enforced by user"))
        self.world.look()

    # ---- the cluster

    @rule(counts=TOPICS)
    def topics_change(self, counts: dict[str, int]) -> None:
        self.world.metadata = metadata(counts)
        self.world.step(events.MetadataChanged(self.world.metadata))
        self.world.look()

    @precondition(lambda self: self.world.learning)
    @rule()
    def metadata_comes(self) -> None:
        self.world.learned()

    @precondition(lambda self: self.world.is_finding)
    @rule(error=st.one_of(st.none(), st.none(), NOT_FOUND))
    def discovery_ends(self, error: KafkaError | None) -> None:
        self.world.found(error)

    @precondition(lambda self: self.world.timers)
    @rule()
    def time_passes(self) -> None:
        self.world.fire()

    @precondition(lambda self: self.world.open_requests)
    @rule(data=st.data(), leads=st.booleans())
    def the_coordinator_agrees(self, data: st.DataObject, leads: bool) -> None:
        ticket = data.draw(st.sampled_from(sorted(self.world.open_requests)))
        send_request = self.world.open_requests[ticket]
        given = (
            data.draw(st.sets(st.sampled_from(PARTITIONS)))
            if isinstance(send_request.request, SyncGroupRequest)
            else ()
        )
        self.world.answer(ticket, self.world.good(send_request, leads=leads, given=given))

    @precondition(lambda self: self.world.open_requests)
    @rule(data=st.data(), code=CODES)
    def the_coordinator_refuses(self, data: st.DataObject, code: ErrorCode) -> None:
        ticket = data.draw(st.sampled_from(sorted(self.world.open_requests)))
        match self.world.open_requests[ticket].request:
            case JoinGroupRequest():
                self.world.answer(ticket, JoinGroupResponse(error_code=code, member_id="given"))
            case SyncGroupRequest():
                self.world.answer(ticket, SyncGroupResponse(error_code=code))
            case HeartbeatRequest():
                self.world.answer(ticket, HeartbeatResponse(error_code=code))
            case _:
                self.world.answer(ticket, LeaveGroupResponse(error_code=code))

    @precondition(lambda self: self.world.open_requests)
    @rule(data=st.data())
    def the_leader_sends_rubbish(self, data: st.DataObject) -> None:
        syncs = [
            ticket
            for ticket, send_request in self.world.open_requests.items()
            if isinstance(send_request.request, SyncGroupRequest)
        ]
        if syncs:
            self.world.answer(syncs[0], SyncGroupResponse(assignment=b"\0"))

    @precondition(lambda self: self.world.open_requests)
    @rule(data=st.data(), error=ERRORS)
    def a_connection_breaks(self, data: st.DataObject, error: KafkaError) -> None:
        self.world.lose(data.draw(st.sampled_from(sorted(self.world.open_requests))), error)

    @rule()
    def a_generation_settles(self) -> None:
        """So that not only chance gets as far as an assignment."""
        if not self.world.in_poll:
            self.world.poll()
        self.world.settle()

    # ---- the end

    @rule(chance=st.integers(0, 9))
    def closes(self, chance: int) -> None:
        if chance == 9:
            self.world.cancel()
            self.world.step(events.Close("the consumer is being closed"))

    @precondition(lambda self: self.world.machine.closing is not None)
    @rule()
    def time_to_close_is_over(self) -> None:
        self.world.step(events.CloseTimedOut())

    def teardown(self) -> None:
        """Once answers are good every poll ends, in a membership or in a failure; and closing closes."""
        if not hasattr(self, "world"):
            return
        world = self.world
        if world.machine.closing is None:
            self._ends_well()
            world.step(events.PollReturned())
            world.step(events.Close("the consumer is being closed"))
        world.settle()
        assert world.machine.state is MemberState.CLOSED
        assert not world.timers
        assert not world.held or world.machine.closing.is_timed_out
        assert step(world.machine, events.PollBegan(), world.now_ms) == []

    def _ends_well(self) -> None:
        world = self.world
        for _ in range(3):  # the first polls may have to raise what happened before
            if not world.in_poll:
                world.poll()
            world.settle()
            assert not world.in_poll
        if world.machine.fenced is None:
            assert world.machine.state is MemberState.STABLE
            assert not world.machine.is_due
            assert not world.failures


TestMemberships = Memberships.TestCase
TestMemberships.settings = settings(max_examples=examples(75), stateful_step_count=40, deadline=None)
