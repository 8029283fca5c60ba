"""Conversations with one member of the consumer protocol: a scripted coordinator, a user who polls."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.client.group.script import (
    ENDED,
    FOUND,
    NODE,
    POLL,
    RETURNING,
    Shown,
    arm,
    fires,
    shown,
)

from rota.client.config import ConsumerConfig
from rota.client.errors import BrokerError, FencedInstance, Unreachable, Unsupported
from rota.client.group import effects as out
from rota.client.group import events
from rota.client.group.epoch_member import EpochMember, new_epoch_member, step
from rota.client.group.states import MemberState
from rota.client.network.metadata import Metadata, TopicInfo
from rota.client.types import PartitionInfo, TopicPartition
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

S = MemberState
HEARTBEAT_MS, SESSION_MS, POLL_MS = 5_000, 45_000, 60_000
IDS = {"t": b"t" * 16, "u": b"u" * 16}
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def metadata(ids: dict[str, bytes]) -> Metadata:
    """Topics with two partitions each."""
    return Metadata(
        topics={
            name: TopicInfo(
                name, topic_id, False, {n: PartitionInfo(name, n, NODE, 0, (NODE,), (NODE,)) for n in range(2)}
            )
            for name, topic_id in ids.items()
        }
    )


def assignment(**partitions: tuple[int, ...]) -> Assignment:
    parts = tuple(TopicPartitions(topic_id=IDS[name], partitions=of_topic) for name, of_topic in partitions.items())
    return Assignment(topic_partitions=parts)


class EpochScript:
    """`outputs` are the effects of the last event without notes and timers; `requests` is the last heartbeat."""

    def __init__(self, topics: Any = frozenset({"t"}), known: dict[str, bytes] = IDS, **more: Any) -> None:
        given_settings = {"bootstrap_servers": "h:1", "group_id": "g", "max_poll_interval_ms": POLL_MS}
        config = ConsumerConfig(**{**given_settings, "group_protocol": "consumer", **more})
        self.m: EpochMember = new_epoch_member(config, "m")
        self.now_ms = 0
        self.outputs: list[Shown] = []
        self.timers: list[Shown] = []
        self.requests: ConsumerGroupHeartbeatRequest | None = None
        self.ticket = self.hook = self.refresh = 0
        self.failure: BaseException | None = None
        self.does(events.MetadataChanged(metadata(known)), events.Subscribed(topics))

    def does(self, *happened: events.Event) -> EpochScript:
        self.outputs, self.timers = [], []
        for event in happened:
            for effect in step(self.m, event, self.now_ms):
                self._take(effect)
        return self

    def _take(self, effect: out.Effect) -> None:
        match effect:
            case out.Note() | out.Disarm():
                return
            case out.Arm(key, at_ms):
                self.timers.append(arm(key, at_ms))
                return
            case out.SendRequest(ticket=ticket, request=request):
                self.ticket, self.requests = ticket, request
                self.outputs.append(("heartbeat", request.member_epoch))
                return
            case out.CancelRequest():
                self.outputs.append(("drop",))
                return
            case out.RunHook(ticket=ticket):
                self.hook = ticket
            case out.RefreshMetadata(ticket=ticket):
                self.refresh = ticket
            case out.RaiseInPoll(error):
                self.failure = error
        self.outputs.append(shown(effect))

    def answers(self, epoch: int = 1, code: int = 0, given_: Assignment | None = None) -> EpochScript:
        response = ConsumerGroupHeartbeatResponse(
            error_code=code, member_epoch=epoch, heartbeat_interval_ms=HEARTBEAT_MS, assignment=given_
        )
        return self.does(events.ResponseReceived(self.ticket, response))

    def breaks(self, error: Exception | None = None) -> EpochScript:
        return self.does(events.RequestFailed(self.ticket, error or Unreachable("broken")))  # type: ignore[arg-type]

    def done(self, error: BaseException | None = None) -> EpochScript:
        return self.does(events.HookDone(self.hook, error))

    def fields(self) -> dict[str, Any]:
        """The fields of the last heartbeat that say something."""
        assert self.requests is not None
        every = {
            "instance": self.requests.instance_id,
            "rebalance": self.requests.rebalance_timeout_ms if self.requests.rebalance_timeout_ms >= 0 else None,
            "names": self.requests.subscribed_topic_names,
            "assignor": self.requests.server_assignor,
            "owned": None
            if self.requests.topic_partitions is None
            else {part.topic_id[:1].decode(): part.partitions for part in self.requests.topic_partitions},
        }
        return {name: value for name, value in every.items() if value is not None}


def joining(**more: Any) -> EpochScript:
    return EpochScript(**more).does(POLL, FOUND)


def stable(**more: Any) -> EpochScript:
    """A member with t-0 and t-1 in epoch 1, whose assignment is acknowledged; the user is at work."""
    script = joining(**more).answers(1, given_=assignment(t=(0, 1))).done()
    assert script.outputs == [("heartbeat", 1)]
    return script.answers(1).does(ENDED, RETURNING)


# ---- join


def test_a_member_joins_with_all_fields_and_epoch_0() -> None:
    script = EpochScript(group_remote_assignor="range").does(POLL)
    assert script.outputs == [("find coordinator",)]
    script.does(FOUND)
    assert script.outputs == [("heartbeat", 0)]
    assert script.requests is not None
    assert (script.requests.group_id, script.requests.member_id) == ("g", "m")
    assert script.fields() == {"rebalance": POLL_MS, "names": ("t",), "assignor": "range", "owned": {}}


def test_a_member_does_not_join_before_a_poll() -> None:
    assert EpochScript().does(FOUND).outputs == []


def test_the_first_assignment_is_taken_over_and_acknowledged() -> None:
    script = joining().answers(3, given_=assignment(t=(0, 1)))
    assert script.outputs == [("assign", ("t-0", "t-1"), ("t-0", "t-1"))]
    assert script.timers[:2] == [arm("heartbeat", HEARTBEAT_MS), arm("session", SESSION_MS)]
    assert script.done().outputs == [("heartbeat", 3)]
    assert script.fields() == {"owned": {"t": (0, 1)}}
    assert script.m.state is S.STABLE
    assert script.m.group.generation_id == 3


def test_an_empty_first_assignment_is_told_too() -> None:
    script = joining().answers(1, given_=assignment())
    assert script.outputs == [("assign", (), ())]
    assert script.done().outputs == []


def test_the_first_assignment_waits_for_its_topics() -> None:
    script = joining(known={}).answers(1, given_=assignment(t=(0,)))
    assert script.outputs == [("refresh metadata",)]
    script.does(events.MetadataRefreshed(script.refresh, metadata(IDS)))
    assert script.outputs == [("assign", ("t-0",), ("t-0",))]


def test_a_topic_that_stays_unknown_does_not_hold_up_the_others() -> None:
    script = joining(topics=frozenset({"t", "u"}), known={"t": IDS["t"]}).answers(1, given_=assignment(t=(0,), u=(1,)))
    script.does(events.MetadataRefreshed(script.refresh, metadata({"t": IDS["t"]})))
    assert script.outputs == [("assign", ("t-0",), ("t-0",))]
    assert script.done().fields() == {"owned": {"t": (0,)}}
    script.does(events.MetadataChanged(metadata(IDS)))
    assert script.outputs == [("assign", ("t-0", "u-1"), ("u-1",))]


# ---- heartbeats


def test_a_heartbeat_without_news_is_empty() -> None:
    script = stable()
    script.now_ms = HEARTBEAT_MS
    assert script.does(fires("heartbeat")).outputs == [("heartbeat", 1)]
    assert script.fields() == {}
    assert script.does(fires("heartbeat")).outputs == [], "one at a time"
    assert script.answers(2).outputs == [("heartbeat", 2)], "its time has come meanwhile"
    assert script.answers(2).timers[0] == arm("heartbeat", 2 * HEARTBEAT_MS)


def test_a_change_of_the_subscription_is_told_at_once() -> None:
    script = stable().does(events.Subscribed(frozenset({"u", "t"})))
    assert script.outputs == [("want", ("t", "u")), ("heartbeat", 1)]
    assert script.fields() == {"names": ("t", "u")}


def test_a_pattern_is_told_as_the_names_that_match() -> None:
    script = joining(topics=re.compile("[tu]"))
    assert script.fields()["names"] == ("t", "u")
    script = joining(topics=re.compile("[tu]"), known={"t": IDS["t"]}).answers(1, given_=assignment()).done()
    assert script.does(events.MetadataChanged(metadata(IDS))).outputs == [("heartbeat", 1)]
    assert script.fields() == {"names": ("t", "u")}


def test_after_a_lost_answer_the_next_heartbeat_has_all_fields() -> None:
    script = stable().does(fires("heartbeat")).breaks()
    assert script.outputs == [("forget", NODE), ("find coordinator",)]
    assert script.m.state is S.REDISCOVERING
    assert script.does(FOUND).outputs == [("heartbeat", 1)]
    assert script.fields() == {"rebalance": POLL_MS, "names": ("t",), "owned": {"t": (0, 1)}}
    assert script.answers(1).m.state is S.STABLE


@pytest.mark.parametrize("code", [ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE])
def test_a_moved_coordinator_is_looked_up_while_the_member_reads_on(code: ErrorCode) -> None:
    script = stable().does(fires("heartbeat")).answers(0, code)
    assert script.outputs == [("forget", NODE), ("find coordinator",)]
    assert script.m.state is S.REDISCOVERING
    assert not script.m.is_due


@pytest.mark.parametrize("code", [ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS])
def test_after_a_refused_heartbeat_the_next_one_has_all_fields(code: ErrorCode) -> None:
    script = stable().does(fires("heartbeat")).answers(0, code)
    script.does(FOUND if code is ErrorCode.NOT_COORDINATOR else fires("retry"))
    assert script.outputs == [("heartbeat", 1)]
    assert script.fields() == {"rebalance": POLL_MS, "names": ("t",), "owned": {"t": (0, 1)}}


def test_a_loading_coordinator_is_asked_again_after_a_while() -> None:
    script = joining().answers(0, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    assert script.outputs == []
    assert script.does(fires("retry")).outputs == [("heartbeat", 0)]


# ---- reconciliation


def test_a_revocation_is_reported_after_the_callback() -> None:
    script = stable().does(fires("heartbeat")).answers(1, given_=assignment(t=(0,)))
    assert script.outputs == [("wake",)]
    assert script.does(POLL).outputs == [("revoke", "t-1")]
    assert script.does(fires("heartbeat")).outputs == [("heartbeat", 1)]
    assert script.fields() == {}, "t-1 is still ours: the callback runs"
    assert script.answers(1).outputs == []
    assert script.done().outputs == [("heartbeat", 1)]
    assert script.fields() == {"owned": {"t": (0,)}}
    assert script.answers(2).m.group.generation_id == 2


def test_revoked_and_added_partitions_come_one_after_the_other() -> None:
    script = (
        stable(topics=frozenset({"t", "u"}))
        .does(fires("heartbeat"), POLL)
        .answers(2, given_=assignment(t=(0,), u=(1,)))
    )
    assert script.outputs == [("revoke", "t-1")]
    assert script.done().outputs == [("assign", ("t-0", "u-1"), ("u-1",))]
    assert script.done().outputs == [("heartbeat", 2)]
    assert script.fields() == {"owned": {"t": (0,), "u": (1,)}}


def test_a_partition_that_is_kept_has_no_callback() -> None:
    script = stable().does(fires("heartbeat")).answers(2, given_=assignment(t=(0, 1)))
    assert script.outputs == []
    assert script.m.state is S.STABLE


def test_nothing_is_revoked_outside_of_a_poll() -> None:
    script = stable().does(fires("heartbeat")).answers(2, given_=assignment())
    assert script.outputs == [("wake",)]
    assert script.does(events.MetadataChanged(metadata(IDS))).outputs == []


def test_topics_that_are_not_subscribed_to_any_more_are_given_up() -> None:
    script = stable().does(POLL, events.Subscribed(frozenset({"u"})))
    assert ("revoke", "t-0", "t-1") in script.outputs


def test_a_topic_that_was_created_again_is_another_topic() -> None:
    again = Assignment(topic_partitions=(TopicPartitions(topic_id=b"n" * 16, partitions=(0,)),))
    script = stable().does(fires("heartbeat")).answers(2, given_=again)
    script.does(events.MetadataChanged(metadata({"t": b"n" * 16})), POLL)
    assert script.outputs[-1] == ("revoke", "t-0", "t-1")
    assert script.done().outputs == [("assign", ("t-0",), ("t-0",))]
    script.done()
    assert script.fields() == {"owned": {"n": (0,)}}


def test_a_topic_that_a_broker_does_not_know_for_a_while_is_kept() -> None:
    """E5. A broker that answers from old metadata takes nothing from the member: the coordinator has not, either."""
    script = stable().does(events.MetadataChanged(metadata({})), POLL, RETURNING)
    assert script.m.owned == {T0, T1}
    assert script.outputs == []
    script.does(fires("heartbeat")).answers(1, given_=assignment(t=(0, 1)))
    assert script.m.owned == {T0, T1}
    script.does(fires("heartbeat")).answers(1, given_=assignment(t=(0,))).does(POLL)
    assert script.outputs == [("revoke", "t-1")]
    script.done()
    assert script.fields() == {"owned": {"t": (0,)}}


def test_an_error_of_a_callback_is_raised_and_the_partitions_are_assigned_all_the_same() -> None:
    script = joining().answers(1, given_=assignment(t=(0,))).done(ValueError("mine"))
    assert isinstance(script.failure, ValueError)
    assert script.m.owned == {T0}


# ---- loss


@pytest.mark.parametrize("code", [ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID])
def test_a_fenced_member_has_lost_its_partitions_and_joins_again(code: ErrorCode) -> None:
    script = stable().does(fires("heartbeat")).answers(0, code)
    assert script.outputs == [("wake",)]
    assert script.m.group.generation_id == -1
    assert script.does(POLL).outputs == [("lose", "t-0", "t-1")]
    assert script.done().outputs == [("heartbeat", 0)]
    assert script.requests is not None
    assert script.requests.member_id == "m"
    assert script.fields() == {"rebalance": POLL_MS, "names": ("t",), "owned": {}}


def test_a_fenced_instance_is_fenced_for_good() -> None:
    script = stable(group_instance_id="i").does(fires("heartbeat")).answers(0, ErrorCode.FENCED_INSTANCE_ID)
    assert isinstance(script.failure, FencedInstance)
    script.failure = None
    script.does(POLL)
    assert isinstance(script.failure, FencedInstance)


def test_an_instance_id_in_use_is_an_error_until_it_is_free() -> None:
    script = joining(group_instance_id="i").answers(0, ErrorCode.UNRELEASED_INSTANCE_ID)
    assert isinstance(script.failure, BrokerError)
    assert "give each running consumer an instance id of its own" in str(script.failure)
    assert script.does(POLL).outputs == [], "no heartbeat for each poll"
    assert script.does(fires("retry")).outputs == [("heartbeat", 0)], "the next poll tries again after a wait (M7)"


def test_a_refusal_has_the_words_of_the_coordinator() -> None:
    script = joining()
    answer = ConsumerGroupHeartbeatResponse(error_code=112, error_message="ServerAssignor spread is not supported.")
    script.does(events.ResponseReceived(script.ticket, answer))
    assert "UNSUPPORTED_ASSIGNOR (112): ServerAssignor spread is not supported" in str(script.failure)


def test_topics_that_are_refused_end_no_membership() -> None:
    """E8: the member reads on what it owns, and asks again after growing waits, also for the first time."""
    script = joining(topics=frozenset({"t", "v"})).answers(0, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    assert isinstance(script.failure, BrokerError)
    assert "on t, v" in str(script.failure)
    assert script.does(POLL).outputs == [], "no heartbeat for each poll"
    assert script.does(fires("retry")).outputs == [("heartbeat", 0)]
    refused = replace(metadata(IDS).topics["t"], name="v", id=bytes(16), error=29)
    script = stable(topics=frozenset({"t", "v"})).does(fires("heartbeat"))
    script.does(events.MetadataChanged(Metadata(topics={**metadata(IDS).topics, "v": refused})))
    script.answers(0, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    assert (script.m.state, script.m.owned, script.m.is_due) == (S.STABLE, {T0, T1}, False)
    assert isinstance(script.failure, BrokerError)
    assert script.failure.topic == "v"
    assert script.does(fires("retry")).outputs == [("heartbeat", 1)]
    assert script.fields() == {"rebalance": POLL_MS, "names": ("t", "v"), "owned": {"t": (0, 1)}}


def test_a_broker_without_the_protocol_is_an_error() -> None:
    script = joining().breaks(Unsupported("no such API"))
    assert isinstance(script.failure, Unsupported)


def test_a_session_without_answers_ends() -> None:
    script = stable().does(fires("heartbeat")).does(fires("session"))
    assert ("drop",) in script.outputs
    assert script.does(POLL).outputs[0] == ("lose", "t-0", "t-1")


def test_the_poll_timeout_leaves_the_group() -> None:
    script = stable().does(fires("poll"))
    assert ("heartbeat", -1) in script.outputs
    assert script.does(POLL).outputs[0] == ("lose", "t-0", "t-1")


def test_a_commit_with_an_old_epoch_brings_a_heartbeat() -> None:
    assert stable().does(events.CommitRefused(ErrorCode.ILLEGAL_GENERATION, 1)).outputs == [("heartbeat", 1)]
    assert stable().does(events.CommitRefused(ErrorCode.ILLEGAL_GENERATION, 0)).outputs == []
    script = stable().does(events.CommitRefused(ErrorCode.UNKNOWN_MEMBER_ID, 1))
    assert script.m.group.generation_id == -1


# ---- close


@pytest.mark.parametrize(("instance", "epoch"), [(None, -1), ("i", -2)])
def test_close_commits_revokes_and_leaves(instance: str | None, epoch: int) -> None:
    script = stable(group_instance_id=instance).does(events.Close("bye"))
    assert script.outputs == [("before_leaving",)]
    assert script.done().outputs == [("revoke", "t-0", "t-1")]
    assert script.done().outputs == [("heartbeat", epoch)]
    assert script.fields() == ({"instance": "i"} if instance else {})
    assert script.answers(epoch).m.state is S.CLOSED


def test_a_member_whose_join_was_sent_leaves() -> None:
    script = joining().does(events.Close("bye")).done()
    assert ("heartbeat", -1) in script.outputs
    assert script.breaks().m.state is S.CLOSED


def test_a_close_out_of_time_only_leaves() -> None:
    script = stable().does(events.Close("bye"), events.CloseTimedOut()).done()
    assert script.outputs == [("heartbeat", -1)]
    assert script.does(events.CloseTimedOut()).m.state is S.CLOSED


# ---- laws

CODES = [
    ErrorCode.FENCED_MEMBER_EPOCH,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
]
ASSIGNMENTS = [None, assignment(), assignment(t=(0,)), assignment(t=(0, 1)), assignment(t=(1,), u=(0,))]
MOVES = st.one_of(
    st.sampled_from(
        [
            "poll",
            "return",
            "done",
            "raise",
            "found",
            "break",
            "heartbeat",
            "retry",
            "session",
            "late",
            "close",
            "close_late",
        ]
    ),
    st.tuples(st.just("answer"), st.sampled_from(ASSIGNMENTS)),
    st.tuples(st.just("refuse"), st.sampled_from(CODES)),
    st.tuples(st.just("subscribe"), st.sampled_from([frozenset({"t"}), frozenset({"t", "u"})])),
    st.tuples(st.just("metadata"), st.sampled_from([IDS, {"t": IDS["t"]}, {"t": b"n" * 16, "u": IDS["u"]}])),
)


class Walk(EpochScript):
    """Checks the laws after each event."""

    def __init__(self) -> None:
        self.held: set[str] = set()  # assigned and not yet revoked or lost, as the user saw it
        self.leaving: set[str] = set()  # whose on_revoked or on_lost runs
        self.running = self.is_polling = self.waits = False
        super().__init__()

    def _take(self, effect: out.Effect) -> None:
        super()._take(effect)
        match effect:
            case out.RunHook(hook=hook):
                assert not self.running, "M2: one hook at a time"
                assert self.is_polling or self.m.closing is not None, "M2: only while poll or close runs"
                self.running = True
                self._hook(hook)
            case out.SendRequest(request=request):
                assert not self.waits or request.member_epoch < 0, "E1: one heartbeat at a time"
                self.waits = True
                owned = {
                    (part.topic_id, number) for part in request.topic_partitions or () for number in part.partitions
                }
                if request.topic_partitions is not None and request.member_epoch > 0:
                    assert len(owned) >= len(self.held | self.leaving), "E1: a revocation is reported after on_revoked"
            case out.CancelRequest():
                self.waits = False
            case out.RaiseInPoll():
                self.is_polling = False

    def _hook(self, hook: out.Hook) -> None:
        match hook:
            case out.Assign(owned, added):
                assert not self.held & set(map(str, added)), "M1: assigned twice"
                self.held |= set(map(str, added))
                assert self.held == set(map(str, owned))
            case out.Revoke(partitions) | out.Lose(partitions):
                assert set(map(str, partitions)) <= self.held, "M1: revoked without being held"
                self.leaving = set(map(str, partitions))
                self.held -= self.leaving

    def move(self, move: Any) -> None:
        if self.m.state is S.CLOSED:
            assert self.does(POLL, fires("heartbeat"), FOUND).outputs == []
            return
        self.now_ms += 10
        match move:
            case "poll":
                self.is_polling = True
                self.does(POLL)
            case "return":
                self.is_polling = False
                self.does(ENDED, RETURNING)
            case "done" | "raise" if self.running:
                self.running, self.leaving = False, set()
                self.done(ValueError("mine") if move == "raise" else None)
            case "found" if self.m.is_finding:
                self.does(FOUND)
            case "break" if self.waits:
                self.waits = False
                self.breaks()
            case ("answer", given_) if self.waits:
                self.waits = False
                epoch = max(self.m.generation, 0) + 1
                self.answers(epoch, given_=given_ or (assignment() if self.m.generation < 0 else None))
            case ("refuse", code) if self.waits:
                self.waits = False
                self.answers(0, code)
            case ("subscribe", topics):
                self.does(events.Subscribed(topics))
            case ("metadata", known):
                self.does(events.MetadataChanged(metadata(known)))
                if self.m.refresh_ticket is not None:
                    self.does(events.MetadataRefreshed(self.m.refresh_ticket, metadata(known)))
            case "heartbeat" | "retry" | "session" | "late":
                key = "poll" if move == "late" else move
                if key in self.m.armed:
                    self.does(fires(key))
            case "close":
                self.does(events.Close("bye"))
            case "close_late" if self.m.closing is not None:
                self.does(events.CloseTimedOut())


@settings(max_examples=300, deadline=None)
@given(st.lists(MOVES, max_size=60))
def test_the_laws_hold_in_every_order_of_events(moves: list[Any]) -> None:
    walk = Walk()
    for move in moves:
        walk.move(move)
    if walk.m.state is not S.CLOSED:  # progress: with good answers every walk ends in a membership
        for move in [
            "return",
            "poll",
            *(["done", "found", "retry", ("metadata", IDS), "poll", ("answer", assignment(t=(0,)))] * 6),
        ]:
            if walk.m.closing is None:
                walk.move(move)
        if walk.m.closing is None and walk.m.fenced is None:
            assert walk.m.generation > 0
            assert walk.m.owned == {T0}


# ---- an assignment and a lost answer


def test_an_assignment_is_not_taken_over_while_an_answer_is_missing() -> None:
    """E7. The heartbeat with all fields told that t-1 is not owned: another member may have it."""
    script = stable_with_one().does(fires("heartbeat")).answers(2, given_=assignment(t=(0, 1)))
    assert script.outputs == [("wake",)], "t-1 is told, and no poll takes it over"
    script.does(fires("heartbeat")).breaks().does(FOUND)
    assert script.fields() == {"rebalance": POLL_MS, "names": ("t",), "owned": {"t": (0,)}}
    assert script.does(POLL).outputs == [], "it reads on"
    assert not script.m.is_due
    assert script.answers(3, given_=assignment(t=(0,))).outputs == []
    assert script.m.owned == {T0}
    assert script.m.state is S.STABLE


def test_an_assignment_is_taken_over_when_the_next_answer_confirms_it() -> None:
    """E7."""
    script = stable_with_one().does(fires("heartbeat")).answers(2, given_=assignment(t=(0, 1)))
    script.does(fires("heartbeat")).breaks().does(FOUND, POLL).answers(2, given_=assignment(t=(0, 1)))
    assert script.outputs == [("assign", ("t-0", "t-1"), ("t-1",))]


def stable_with_one() -> EpochScript:
    """A member with t-0 in epoch 1; the user is at work."""
    return joining().answers(1, given_=assignment(t=(0,))).done().answers(1).does(ENDED, RETURNING)
