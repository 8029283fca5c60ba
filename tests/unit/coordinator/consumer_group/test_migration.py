"""A group with members changes its type online (KIP-848): a member of the consumer protocol joins a classic group, and
the last one of that protocol goes while members of the classic protocol stay."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.coordinator.consumer_group.mixed_script import (
    MixedScript,
    assignment,
    classic_pair,
    mixed,
    read,
    settled,
    subscription,
)
from tests.unit.coordinator.consumer_group.script import Script, TopicsInMemory, durable

from rota.coordinator.consumer_group.settings import ConsumerGroupSettings, MigrationPolicy
from rota.coordinator.group.state import GroupConfig
from rota.coordinator.group.transitions import GroupState
from rota.protocol.errors import ErrorCode

REASON = "Downgrade group g from consumer to classic"


def check_replay(script: Script) -> None:
    for compacted in (False, True):
        assert durable(script.restarted(compacted=compacted).hosted) == durable(script.hosted)


def test_a_stable_classic_group_becomes_a_consumer_group_and_its_members_keep_their_partitions() -> None:
    """testConsumerGroupHeartbeatWithStableClassicGroup"""
    script = classic_pair()
    before = len(script.log)
    reply = script.join("a", "t")
    assert (reply.error, reply.member_epoch, reply.assignment) == (ErrorCode.NONE, 2, {})
    assert script.hosted.summary[:4] == ("consumer", "Reconciling", "consumer", 3)
    assert (script.assigned("c1"), script.assigned("c2")) == ({"t": {0, 1}}, {"t": {2, 3}})
    assert {name: member.epoch for name, member in script.group.members.items()} == {"c1": 1, "c2": 1, "a": 2}
    assert sum(len(script.target(name).get("t", ())) for name in ("a", "c1", "c2")) == 4
    assert script.log[before][1] is None  # the tombstone of the classic group
    kinds = [kind for kind, _ in script.records(before)]
    assert (
        kinds[:8]
        == ["MemberKey"] * 2
        + ["EpochKey"]
        + ["TargetMemberKey"] * 2
        + ["TargetEpochKey"]
        + ["CurrentAssignmentKey"] * 2
    )
    assert kinds[8:10] == ["MemberKey", "EpochKey"]
    assert kinds[-2:] == ["TargetEpochKey", "CurrentAssignmentKey"]
    check_replay(script)


def test_the_classic_group_is_forgotten_with_its_timers() -> None:
    script = mixed()
    assert (script.hosted.state, len(script.hosted.members), script.hosted.hard) == (GroupState.EMPTY, 0, None)
    assert set(script.timers) == {"session:c1", "session:c2", "session:a"}
    assert [fields["members"] for fields in script.noted("Classic group becomes a group of the consumer protocol")] == [
        2
    ]


@pytest.mark.parametrize("waits_for_first", [True, False])
def test_waiting_join_groups_are_told_to_join_again(waits_for_first: bool) -> None:
    """testConsumerGroupHeartbeatWithPreparingRebalanceClassicGroup"""
    script = MixedScript() if waits_for_first else classic_pair()
    assert script.c_join("", fresh="c3") is None
    waiting = script.last
    assert script.join("a", "t").error is ErrorCode.NONE
    assert script.replies.pop(waiting).error is ErrorCode.REBALANCE_IN_PROGRESS
    assert script.assigned("c3") == {}
    assert set(script.timers) == {f"session:{name}" for name in script.group.members}
    check_replay(script)


def test_cg27_a_group_without_a_generation_begins_with_its_first_member_of_the_consumer_protocol() -> None:
    """It subscribes to nothing yet. As its epoch it was told 0, which is that of a member that has not joined."""
    script = MixedScript()
    script.c_join("", fresh="c1")
    reply = script.join("a")
    assert (reply.error, reply.member_epoch) == (ErrorCode.NONE, 1)
    assert script.heartbeat("a", 1).error is ErrorCode.NONE
    check_replay(script)


def test_waiting_sync_groups_are_told_to_join_again() -> None:
    """testConsumerGroupHeartbeatWithCompletingRebalanceClassicGroup"""
    script = MixedScript()
    for name in ("c1", "c2"):
        script.c_join("", fresh=name)
    script.advance(6_000)
    script.replies.clear()
    assert script.c_sync("c2", 1) is None
    waiting = script.last
    assert script.join("a", "t").error is ErrorCode.NONE
    assert script.replies.pop(waiting).error is ErrorCode.REBALANCE_IN_PROGRESS
    assert "sync" not in script.timers
    check_replay(script)


def test_a_member_without_assignment_owns_nothing() -> None:
    """testConsumerGroupHeartbeatToClassicGroupWithEmptyAssignmentMember"""
    script = MixedScript()
    script.c_join("", fresh="c1")
    script.advance(6_000)
    script.c_sync("c1", 1, {})
    script.join("a", "t")
    assert script.assigned("c1") == {}


@pytest.mark.parametrize("policy", [MigrationPolicy.DISABLED, MigrationPolicy.DOWNGRADE])
def test_the_policy_may_forbid_it(policy: MigrationPolicy) -> None:
    script = classic_pair(settings=ConsumerGroupSettings(migration=policy))
    check_refused(script, "because online upgrade is disabled")


def test_a_group_of_another_protocol_type_stays_classic() -> None:
    script = MixedScript()
    script.c_join("", protocol_type="connect")
    check_refused(script, "because the group does not use the consumer embedded protocol")


def test_a_group_that_is_too_large_stays_classic() -> None:
    script = classic_pair(settings=ConsumerGroupSettings(size_max=1))
    check_refused(script, "because the group size exceeds the consumer group maximum size")


def test_a_full_group_takes_no_further_member() -> None:
    script = classic_pair(settings=ConsumerGroupSettings(size_max=2))
    check_refused(script, "maximum capacity of 2", ErrorCode.GROUP_MAX_SIZE_REACHED)


def test_data_of_a_custom_assignor_would_be_lost() -> None:
    """testConsumerGroupHeartbeatWithCustomAssignorClassicGroup"""
    script = MixedScript()
    script.c_join("", fresh="c1")
    script.advance(6_000)
    script.c_sync("c1", 1, raw={"c1": assignment({"t": (0,)}, b"data")})
    check_refused(script, "because an unsupported custom assignor is in use")


def test_a_subscription_or_an_assignment_that_cannot_be_read_keeps_the_group_classic() -> None:
    for metadata, part in ((b"\0", b""), (subscription("t"), b"\0\0\0\7")):
        script = MixedScript()
        script.c_join("", fresh="c1", protocols=(("range", metadata),))
        script.advance(6_000)
        script.c_sync("c1", 1, raw={"c1": part})
        check_refused(script, "because the embedded consumer protocol is malformed")


def test_a_heartbeat_that_is_refused_converts_nothing() -> None:
    script = classic_pair()
    before = len(script.log)
    assert script.join("a", regex="(").error is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert script.heartbeat("a", 1).error is ErrorCode.GROUP_ID_NOT_FOUND
    assert len(script.log) == before
    assert script.c_heartbeat("c1", 1) is ErrorCode.NONE


def check_refused(script: MixedScript, text: str, code: ErrorCode = ErrorCode.GROUP_ID_NOT_FOUND) -> None:
    before, state = len(script.log), script.hosted.state
    reply = script.join("a", "t")
    assert reply.error is code
    assert text in (reply.message or "")
    assert (len(script.log), script.hosted.state, script.hosted.consumer) == (before, state, None)


def test_a_partition_that_two_members_were_assigned_belongs_to_the_first() -> None:
    script = MixedScript()
    for name in ("c1", "c2"):
        script.c_join("", fresh=name)
    script.advance(6_000)
    script.c_sync("c1", 1, {"c1": {"t": (0, 1)}, "c2": {"t": (1, 2)}})
    script.join("a", "t")
    assert (script.assigned("c1"), script.assigned("c2")) == ({"t": {0, 1}}, {"t": {2}})


def test_a_deleted_topic_is_left_out_of_the_assignments() -> None:
    topics = TopicsInMemory(t=4, u=1)
    script = classic_pair(topics=topics)
    topics.delete("t")
    script.join("a", "u")
    assert script.assigned("c1") == {}


@pytest.mark.parametrize("instance", [None, "i"])
def test_a_classic_member_itself_moves_to_the_consumer_protocol(instance: str | None) -> None:
    """testConsumerGroupHeartbeatToClassicGroupFromExistingStaticMember"""
    script = MixedScript()
    script.c_join("", fresh="c1", instance=instance)
    script.c_join("", fresh="c2")
    script.advance(6_000)
    script.c_sync("c1", 1, {"c1": {"t": (0, 1)}, "c2": {"t": (2, 3)}})
    joined = "n1" if instance else "c1"
    reply = script.join(joined, "t", instance=instance)
    assert reply.error is ErrorCode.NONE
    assert set(script.group.members) == {joined, "c2"}
    assert script.group.members[joined].classic is None
    assert script.assigned(joined) == {"t": {0, 1}}  # the same names: no new target, nothing moves
    check_replay(script)


def test_a_static_classic_member_of_a_consumer_group_moves_to_the_consumer_protocol() -> None:
    """testConsumerGroupHeartbeatFromExistingClassicStaticMember"""
    script = MixedScript()
    script.join("a", "t")
    answer = script.c_join("", fresh="c1", instance="i")
    assert answer is not None
    reply = script.join("n1", "t", instance="i")
    assert reply.error is ErrorCode.NONE
    assert set(script.group.members) == {"a", "n1"}
    assert not script.group.classic_count
    assert not {"sync:c1", "join:c1"} & set(script.timers)
    assert script.join("n2", "t", instance="i").error is ErrorCode.UNRELEASED_INSTANCE_ID


def test_a_member_that_moves_to_the_consumer_protocol_is_not_waited_for_as_a_classic_one() -> None:
    script = MixedScript()
    script.join("a", "t")
    assert script.c_join("", fresh="c1") is not None
    assert "sync:c1" in script.timers
    assert script.join("c1", "t").error is ErrorCode.NONE
    assert "sync:c1" not in script.timers
    assert script.c_heartbeat("c1", 3) is ErrorCode.UNKNOWN_MEMBER_ID


# ---- downgrade


def check_classic(script: MixedScript, members: set[str], state: GroupState = GroupState.PREPARING) -> None:
    assert script.hosted.consumer is None
    assert (script.hosted.state, set(script.hosted.members.by_id)) == (state, members)
    restored = script.restarted()
    assert (restored.hosted.state, restored.hosted.generation) == (state, script.hosted.generation)
    check_replay(script)


@pytest.mark.parametrize("how", ["heartbeat", "request", "session"])
def test_when_the_last_consumer_member_goes_the_group_is_classic_again_and_rebalances(how: str) -> None:
    """testLastConsumerProtocolMemberLeavingConsumerGroup and those of its session and its rebalance timeout"""
    script = settled()
    before, targets = len(script.log), {name: script.target(name) for name in ("c1", "c2")}
    if how == "heartbeat":
        assert script.leave("a").member_epoch == -1
    elif how == "request":
        assert script.c_leave(("a", None)) == [ErrorCode.NONE]
    else:
        for _ in range(9):
            script.advance(5_000)
            for name in ("c1", "c2"):
                if script.hosted.consumer is not None:
                    assert script.c_heartbeat(name, 2) is ErrorCode.NONE
    assert [kind for kind, _ in script.records(before)] == [
        *["CurrentAssignmentKey"] * 3,
        *["TargetMemberKey"] * 3,
        "TargetEpochKey",
        *["MemberKey"] * 3,
        "PartitionMetadataKey",
        "EpochKey",
    ]
    assert script.hosted.generation == 2
    assert {name: read(script.hosted.members.by_id[name].assignment) for name in targets} == targets  # type: ignore[index]
    assert "join" in script.timers
    assert not [key for key in script.timers if key.endswith(":a") or key.startswith("sync:")]
    assert str(script.noted("Preparing to rebalance group")[-1]["reason"]).startswith(REASON)
    check_classic(script, {"c1", "c2"})
    assert script.c_heartbeat("c1", 2) is ErrorCode.REBALANCE_IN_PROGRESS
    first = script.c_join("c1")
    assert first is None
    last = script.c_join("c2")
    assert last is not None
    assert last.generation == 3


def test_a_member_that_does_not_revoke_in_time_may_be_the_last_of_its_protocol() -> None:
    """testLastConsumerProtocolMemberRebalanceTimeoutInConsumerGroup"""
    script = MixedScript()
    assert script.heartbeat("a", 0, names=("t",), owned={}, rebalance_ms=30_000).member_epoch == 2
    answer = script.c_join("", fresh="c1")
    assert answer is not None
    assert script.heartbeat("a", 2).member_epoch == 2  # it has to revoke two partitions, and does not
    for _ in range(7):
        script.advance(5_000)
        if script.hosted.consumer is not None:
            script.heartbeat("a", 2)
            script.c_heartbeat("c1", 3)
    check_classic(script, {"c1"})


@pytest.mark.parametrize(
    "more",
    [
        {"settings": ConsumerGroupSettings(assignment_interval_ms=0, migration=MigrationPolicy.UPGRADE)},
        {"config": GroupConfig(group_size_max=1)},
        {"config": GroupConfig(record_bytes_max=250)},
    ],
    ids=["policy", "size", "record"],
)
def test_a_group_that_must_not_or_cannot_be_classic_stays_a_consumer_group(more: dict[str, Any]) -> None:
    """testNoConversionWhenSizeExceedsClassicMaxGroupSize"""
    script = MixedScript(**more)
    script.join("a", "t")
    for name in ("c1", "c2"):
        assert script.c_join("", fresh=name) is not None
    script.leave("a")
    assert set(script.group.members) == {"c1", "c2"}
    assert (len(script.hosted.members), script.group.epoch) == (0, 5)
    check_replay(script)


def test_members_of_both_protocols_that_leave_together() -> None:
    """testConsumerGroupMemberUsingClassicProtocolBatchLeaveGroup"""
    script = settled()
    assert script.c_leave(("a", None), ("x", None), ("c1", None)) == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.NONE,
    ]
    check_classic(script, {"c2"})


def test_the_group_is_empty_when_all_leave() -> None:
    script = settled()
    script.c_leave(("a", None), ("c1", None), ("c2", None))
    assert (script.group.state.value, script.hosted.summary.kind) == ("Empty", "consumer")


def test_while_a_consumer_member_stays_the_group_does() -> None:
    script = mixed()
    script.join("b", "t")
    script.leave("b")
    assert script.hosted.summary.kind == "consumer"


def test_what_a_classic_member_works_on_is_kept_when_the_group_is_upgraded_again_before_it_joined() -> None:
    """CG20. The target of the group that ended had given some of it away; the member was never told."""
    script = MixedScript()
    script.c_join("", fresh="c1")
    script.advance(3_000)
    script.c_sync("c1", script.hosted.generation, {"c1": {"t": range(4)}})
    script.join("a", "t")
    assert script.assigned("c1") == {"t": {0, 1, 2, 3}}
    script.leave("a")
    assert script.join("b", "t").assignment == {}
    assert script.assigned("c1") == {"t": {0, 1, 2, 3}}


# ---- a static member moves back to the classic protocol


def static_pair(*, joins: str = "c1") -> MixedScript:
    """Static member a of the consumer protocol beside a classic member."""
    script = MixedScript()
    script.join("a", "t", instance="i")
    assert script.c_join("", fresh=joins) is not None
    return script


def test_a_static_member_that_moves_back_keeps_its_partitions_and_the_generation() -> None:
    """testLastStaticConsumerProtocolMemberReplacedByClassicProtocolMember"""
    script = static_pair()
    script.heartbeat("a", 2, owned={"t": script.target("a")["t"]}, names=("t",), rebalance_ms=60_000)
    answer = script.c_join("c1", owned={})
    assert answer is not None
    target = script.target("a")
    moved = script.c_join("", fresh="n", instance="i", owned=target)
    assert moved is not None
    assert (moved.error, moved.generation, moved.protocol, moved.leader) == (ErrorCode.NONE, 3, "range", "")
    check_classic(script, {"c1", "n"}, GroupState.STABLE)
    assert read(script.hosted.members.by_id["n"].assignment) == target  # type: ignore[index]
    assert script.hosted.generation == 3
    synced = script.c_sync("n", 3)
    assert synced is not None
    assert read(synced.assignment) == target
    assert not [key for key in script.timers if key.startswith(("sync", "join"))]


def test_the_group_rebalances_when_its_target_is_stale() -> None:
    """testLastStaticConsumerProtocolMemberReplacedByClassicProtocolMemberWhenTargetAssignmentIsStale"""
    script = static_pair()
    script.topics.set("u", 1)
    epoch = script.group.epoch
    moved = script.c_join("", "t", "u", fresh="n", instance="i")
    assert moved is not None
    assert (moved.error, moved.generation) == (ErrorCode.NONE, 0)
    check_classic(script, {"c1", "n"})
    assert script.hosted.generation == epoch, "CG17: that of before the request"
    assert script.c_sync("n", 0).error is ErrorCode.ILLEGAL_GENERATION  # type: ignore[union-attr]


@pytest.mark.parametrize("names", [("t",), ("t", "u")])
def test_a_member_with_an_expression_is_replaced_by_a_classic_one(names: tuple[str, ...]) -> None:
    """testConsumerMemberWithRegexReplacedByClassicMemberWith(Same|Changed)Subscription"""
    script = MixedScript()
    script.topics.set("u", 1)
    script.join("b", "t")
    script.heartbeat("a", 0, regex="t", names=("t",), owned={}, rebalance_ms=60_000, instance="i")
    script.advance(0)
    epoch = script.group.epoch
    moved = script.c_join("", *names, fresh="n", instance="i")
    assert moved is not None
    assert (script.group.members["n"].regex, dict(script.group.expressions), script.group.regexes) == ("", {}, {})
    assert script.group.epoch == epoch + 1
    check_replay(script)


def test_assignors_are_chosen_among_those_that_all_members_support() -> None:
    script = MixedScript()
    script.join("a", "t")
    data = subscription("t")
    script.c_join("", fresh="c1", protocols=(("sticky", data), ("range", data)))
    script.c_join("", fresh="c2", protocols=(("range", data),))
    script.leave("a")
    assert script.hosted.protocol == "range"


def test_a_static_member_without_a_target_moves_back() -> None:
    """testLastStaticConsumerProtocolMemberReplacedByClassicProtocolMemberWhenTargetAssignmentIsMissing"""
    script = MixedScript(settings=ConsumerGroupSettings(assignment_interval_ms=5_000))
    script.join("x", "t")
    script.join("a", "t", instance="i")
    assert script.c_join("", fresh="c1") is not None
    script.leave("x")
    assert "a" not in script.group.targets
    assert script.c_join("", fresh="n", instance="i") is not None
    assert read(script.hosted.members.by_id["n"].assignment) == {}  # type: ignore[index]
    check_classic(script, {"c1", "n"})
