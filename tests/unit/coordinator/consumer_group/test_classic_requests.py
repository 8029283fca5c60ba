"""Members of the classic protocol in a group of the consumer protocol: JoinGroup, SyncGroup, Heartbeat, LeaveGroup."""

from __future__ import annotations

import pytest
from tests.unit.coordinator.consumer_group.mixed_script import (
    SESSION_MS,
    MixedScript,
    mixed,
    read,
    settled,
    subscription,
)
from tests.unit.coordinator.consumer_group.script import REBALANCE_MS, Script, TopicsInMemory
from tests.unit.coordinator.consumer_group.test_heartbeat import two_members
from tests.unit.coordinator.consumer_group.test_migration import check_replay

from rota.coordinator.consumer_group.settings import ConsumerGroupSettings, MigrationPolicy
from rota.coordinator.group import notes
from rota.coordinator.group.effects import Joined
from rota.coordinator.group.events import InstanceId, Leave, LeavingMember, MemberId
from rota.protocol.errors import ErrorCode
from rota.protocol.group_timeline import Trigger

NONE, REBALANCE = ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS


def leave(script: Script, *identities: tuple[str, str | None]) -> list[ErrorCode]:
    named = tuple(
        LeavingMember(MemberId(member), None if inst is None else InstanceId(inst)) for member, inst in identities
    )
    return [code for _, _, code in script.send(Leave(script.token(), named)).members]


def joined(answer: Joined | None) -> Joined:
    assert answer is not None
    assert answer.error is NONE
    return answer


def stepping(script: MixedScript, ms: int, *classic: tuple[str, int]) -> None:
    """Let time pass in steps in which everybody but the classic members that are not named sends a heartbeat."""
    for _ in range(ms // 5_000):
        script.advance(5_000)
        for name, generation in classic:
            script.c_heartbeat(name, generation)


# ---- LeaveGroup


def test_several_members_leave_with_one_new_epoch() -> None:
    script = two_members()
    assert leave(script, ("a", None), ("x", None), ("b", None)) == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.NONE,
    ]
    assert (script.group.epoch, len(script.group.members)) == (4, 0)


def test_unknown_members_that_leave_change_nothing() -> None:
    """testClassicGroupLeaveToConsumerGroupWithoutValidLeaveGroupMember"""
    script = settled()
    before = len(script.log)
    assert script.c_leave(("x", None), ("", "i"), ("c1", "i")) == [ErrorCode.UNKNOWN_MEMBER_ID] * 3
    assert len(script.log) == before


def test_topics_of_members_that_left_do_not_count_any_more() -> None:
    """testConsumerGroupMemberUsingClassicProtocolBatchLeaveGroupUpdatingSubscriptionMetadata"""
    script = MixedScript(topics=TopicsInMemory(t=4, u=1))
    script.join("a", "t")
    script.c_join("", "u", fresh="c1")
    before = script.group.metadata_hash
    script.c_leave(("c1", None))
    assert script.group.metadata_hash != before
    assert not script.group.is_subscribed_to("u")


@pytest.mark.parametrize(
    ("member", "instance", "code"),
    [
        ("", "i", ErrorCode.NONE),
        ("s", "i", ErrorCode.NONE),
        ("x", "i", ErrorCode.FENCED_INSTANCE_ID),
        ("s", "j", ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_a_static_member_is_removed_by_its_instance(member: str, instance: str, code: ErrorCode) -> None:
    script = Script()
    script.join("s", "t", instance="i")
    assert leave(script, (member, instance)) == [code]
    assert bool(script.group.members) == (code is not ErrorCode.NONE)


def test_resolved_expressions_go_with_members_that_are_removed() -> None:
    script = Script()
    script.heartbeat("a", 0, regex="t.*", owned={}, rebalance_ms=60_000)
    script.advance(0)
    leave(script, ("a", None))
    assert not script.group.regexes


# ---- JoinGroup


def test_a_classic_member_joins_a_consumer_group_and_gets_partitions_when_they_are_free() -> None:
    script = MixedScript()
    assert script.join("a", "t").member_epoch == 2
    answer = joined(script.c_join("", fresh="c1"))
    assert (answer.member_id, answer.generation, answer.protocol, answer.leader) == ("c1", 3, "range", "")
    assert (answer.protocol_type, answer.members) == ("consumer", ())
    assert script.c_assigned("c1", 3) == {}
    assert script.c_heartbeat("c1", 3) is NONE  # it waits for partitions that a owns
    kept = script.target("a")["t"]
    script.heartbeat("a", 2)
    assert script.heartbeat("a", 2, owned={"t": kept}).member_epoch == 3
    assert script.c_heartbeat("c1", 3) is REBALANCE
    assert joined(script.c_join("c1")).generation == 3
    assert script.c_assigned("c1", 3) == script.target("c1")
    assert script.c_heartbeat("c1", 3) is NONE
    check_replay(script)


def test_a_classic_member_revokes_before_others_get_its_partitions() -> None:
    script = settled()
    script.join("b", "t")
    assert script.c_heartbeat("c1", 2) is REBALANCE
    owned = script.assigned("c1")
    answer = joined(script.c_join("c1", owned=owned))
    kept = script.target("c1")["t"]
    if kept == owned["t"]:
        assert answer.generation == 3
        return
    assert answer.generation == 2  # it has to revoke: the same generation, and a smaller assignment
    assert script.c_assigned("c1", 2) == {"t": kept}
    assert script.c_heartbeat("c1", 2) is REBALANCE
    assert joined(script.c_join("c1", owned={"t": kept})).generation == 3


def test_an_eager_member_owns_nothing_when_it_joins() -> None:
    script = mixed()
    answer = joined(script.c_join("c1", version=0))
    assert answer.generation == 2
    assert script.c_assigned("c1", 2) == script.target("c1")


def test_a_dynamic_member_is_given_its_id_first() -> None:
    script = MixedScript()
    script.join("a", "t")
    before = len(script.log)
    answer = script.c_join("", fresh="c1", known=True)
    assert answer == Joined(member_id=MemberId("c1"), error=ErrorCode.MEMBER_ID_REQUIRED)
    assert len(script.log) == before
    assert joined(script.c_join("c1", known=True)).generation == 3
    assert joined(script.c_join("", fresh="c2", instance="i", known=True)).generation == 4


@pytest.mark.parametrize("metadata", [b"", b"\0", b"\0\0\0\0\0\1"])
def test_a_subscription_that_cannot_be_read_is_refused(metadata: bytes) -> None:
    check_join_refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, protocols=(("range", metadata),))


def test_the_policy_may_forbid_classic_members() -> None:
    """testClassicMemberJoinToConsumerGroupWithDisabledMigrationPolicy"""
    settings = ConsumerGroupSettings(migration=MigrationPolicy.DISABLED)
    check_join_refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, settings=settings)


def test_joins_that_the_group_cannot_take_are_refused() -> None:
    data = subscription("t")
    check_join_refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, protocol_type="connect")
    check_join_refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, protocols=(("sticky", data),))
    check_join_refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, protocols=())
    check_join_refused(ErrorCode.INVALID_SESSION_TIMEOUT, session_ms=1)
    check_join_refused(ErrorCode.GROUP_MAX_SIZE_REACHED, settings=ConsumerGroupSettings(size_max=2))
    check_join_refused(ErrorCode.UNKNOWN_MEMBER_ID, member="x", instance="j")
    check_join_refused(ErrorCode.FENCED_INSTANCE_ID, member="x", instance="i")


def check_join_refused(
    code: ErrorCode, *, settings: ConsumerGroupSettings | None = None, member: str = "", **more: object
) -> None:
    script = MixedScript(settings=settings)
    script.join("a", "t")
    policy = script.settings.migration
    if policy is not MigrationPolicy.DISABLED:
        joined(script.c_join("", fresh="c1", instance="i"))
    before = len(script.log)
    answer = script.c_join(member, fresh="c2", **more)  # type: ignore[arg-type]
    assert answer is not None
    is_of_request = code is ErrorCode.INVALID_SESSION_TIMEOUT
    assert answer == Joined(member_id=MemberId(member if is_of_request else ""), error=code)
    assert (len(script.log), "c2" in script.group.members) == (before, False)


def test_a_static_classic_member_comes_back_with_another_id() -> None:
    script = MixedScript()
    script.join("a", "t")
    joined(script.c_join("", fresh="c1", instance="i"))
    answer = joined(script.c_join("", fresh="c2", instance="i"))
    assert (answer.member_id, answer.generation) == ("c2", 3)
    assert set(script.group.members) == {"a", "c2"}
    assert not [key for key in script.timers if key.endswith("c1")]
    assert script.c_heartbeat("c1", 3, "i") is ErrorCode.FENCED_INSTANCE_ID
    check_replay(script)


def test_a_member_of_the_consumer_protocol_becomes_a_classic_one_by_its_join() -> None:
    script = MixedScript()
    script.join("a", "t")
    script.join("b", "t")
    script.heartbeat("a", 2)  # it has to revoke
    assert "rebalance:a" in script.timers
    joined(script.c_join("a"))
    assert script.group.members["a"].classic is not None
    assert "rebalance:a" not in script.timers


# ---- SyncGroup


def test_a_sync_of_a_member_of_the_other_protocol_is_unknown() -> None:
    script = settled()
    assert script.c_sync("a", 2).error is ErrorCode.UNKNOWN_MEMBER_ID  # type: ignore[union-attr]


def test_syncs_that_do_not_match_are_refused() -> None:
    """testClassicGroupSyncToConsumerGroupWith(UnknownMemberId|FencedInstanceId|InconsistentGroupProtocol|IllegalGen…)"""
    script = MixedScript()
    script.join("a", "t")
    joined(script.c_join("", fresh="c1", instance="i"))
    for answer, code in (
        (script.c_sync("x", 3), ErrorCode.UNKNOWN_MEMBER_ID),
        (script.c_sync("c1", 3, instance="j"), ErrorCode.UNKNOWN_MEMBER_ID),
        (script.c_sync("x", 3, instance="i"), ErrorCode.FENCED_INSTANCE_ID),
        (script.c_sync("c1", 3, protocol="sticky"), ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        (script.c_sync("c1", 3, protocol_type="connect"), ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        (script.c_sync("c1", 2), ErrorCode.ILLEGAL_GENERATION),
        (script.c_sync("c1", 4), ErrorCode.ILLEGAL_GENERATION),
    ):
        assert answer is not None
        assert answer.error is code
    assert "sync:c1" in script.timers
    answer = script.c_sync("c1", 3, protocol=None, protocol_type=None)
    assert answer is not None
    assert (answer.error, answer.protocol, answer.protocol_type) == (NONE, None, None)
    assert "sync:c1" not in script.timers


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_assignments_have_the_version_of_the_subscription(version: int) -> None:
    """testClassicGroupSyncToConsumerGroupWithAllConsumerProtocolVersions"""
    script = mixed()
    answer = joined(script.c_join("c1", version=version))
    synced = script.c_sync("c1", answer.generation)
    assert synced is not None
    assert synced.assignment[:2] == version.to_bytes(2, "big")
    assert read(synced.assignment) == script.assigned("c1")


def test_a_sync_during_a_new_rebalance_has_to_join_again() -> None:
    """testClassicGroupSyncToConsumerGroupRebalanceInProgress"""
    script = settled()
    joined(script.c_join("c1", owned=script.assigned("c1")))
    script.join("b", "t")
    assert script.c_sync("c1", 2).error is REBALANCE  # type: ignore[union-attr]
    assert "join:c1" in script.timers


def test_while_the_target_is_not_computed_nobody_has_to_join() -> None:
    """testClassicGroup(Sync|Heartbeat)ToConsumerGroupDuringAssignmentDelay"""
    script = MixedScript(settings=ConsumerGroupSettings(assignment_interval_ms=5_000))
    script.join("a", "t")
    answer = joined(script.c_join("", fresh="c1"))
    assert answer.generation == 2  # of the target that there is: it has no part in it
    assert script.c_assigned("c1", 2) == {}
    assert script.c_heartbeat("c1", 2) is NONE
    script.advance(5_000)
    script.heartbeat("a", 2)
    assert script.group.target_epoch == 3
    assert script.c_heartbeat("c1", 2) is REBALANCE


# ---- Heartbeat and timers


def test_heartbeats_that_do_not_match_are_refused() -> None:
    """testClassicGroupHeartbeatToConsumerWith(UnknownMember|FencedInstanceId|IllegalGenerationId|MemberNotUsing…)"""
    script = MixedScript()
    script.join("a", "t")
    joined(script.c_join("", fresh="c1", instance="i"))
    assert script.c_heartbeat("x", 3) is ErrorCode.UNKNOWN_MEMBER_ID
    assert script.c_heartbeat("c1", 3, "j") is ErrorCode.UNKNOWN_MEMBER_ID
    assert script.c_heartbeat("x", 3, "i") is ErrorCode.FENCED_INSTANCE_ID
    assert script.c_heartbeat("c1", 2) is ErrorCode.ILLEGAL_GENERATION
    assert script.c_heartbeat("a", 2) is ErrorCode.UNKNOWN_MEMBER_ID


def test_heartbeats_keep_a_member_and_their_end_removes_it_after_its_own_session() -> None:
    """testClassicGroupHeartbeatToConsumerGroupMaintainsSession, …UsingClassicProtocolFencedWhenSessionTimeout"""
    script = settled()
    stepping(script, 20_000, ("c1", 2), ("c2", 2))
    assert set(script.group.members) == {"a", "c1", "c2"}
    stepping(script, SESSION_MS, ("c1", 2))
    assert set(script.group.members) == {"a", "c1"}
    assert script.group.epoch == 3


def test_a_member_that_does_not_join_again_in_time_is_removed() -> None:
    """testConsumerGroupMemberUsingClassicProtocolFencedWhenJoinTimeout"""
    script = settled()
    script.join("b", "t")
    assert script.c_heartbeat("c1", 2) is REBALANCE  # its time begins with the first answer of that kind
    for _ in range(REBALANCE_MS // 5_000):
        script.advance(5_000)
        for name in ("a", "b"):
            script.heartbeat(name, script.group.members[name].epoch, owned={})
        for name in ("c1", "c2"):
            if name in script.group.members:
                script.c_heartbeat(name, 2)
    assert "c1" not in script.group.members


def test_a_member_that_does_not_sync_in_time_is_removed() -> None:
    script = MixedScript()
    script.join("a", "t")
    joined(script.c_join("", fresh="c1"))
    for _ in range(REBALANCE_MS // 5_000):
        script.advance(5_000)
        script.heartbeat("a", script.group.members["a"].epoch, owned={})
        if "c1" in script.group.members:
            script.c_heartbeat("c1", 3)
    assert "c1" not in script.group.members
    assert "failed to sync" in str(script.noted(notes.NOT_SYNCED)[-1]["reason"])
    assert script.noted(notes.PREPARING)[-1]["trigger"] == Trigger.SYNC_TIMEOUT


def test_a_member_that_joined_is_not_waited_for() -> None:
    script = settled()
    script.join("b", "t")
    script.c_heartbeat("c1", 2)
    assert "join:c1" in script.timers
    answer = joined(script.c_join("c1", version=0))
    assert "join:c1" not in script.timers
    script.c_assigned("c1", answer.generation)
    assert not {"join:c1", "sync:c1"} & set(script.timers)
    script.c_leave(("c1", None))
    assert not [key for key in script.timers if key.endswith("c1")]


def test_after_loading_classic_members_are_served_on() -> None:
    script = settled()
    for compacted in (False, True):
        other = script.restarted(compacted=compacted)
        assert other.group.classic_count == 2
        assert {f"session:{name}" for name in ("a", "c1", "c2")} <= set(other.timers)


# ---- offsets


def test_a_classic_member_commits_in_its_generation_in_any_version() -> None:
    script = settled()
    assert script.commit("c1", 2, version=8) is NONE
    assert script.commit("c1", 3, version=8) is ErrorCode.ILLEGAL_GENERATION
    assert script.commit("a", 2, version=8) is ErrorCode.UNSUPPORTED_VERSION


def test_the_reason_of_an_administrator_is_that_of_the_rebalance() -> None:
    script = two_members()
    request = Leave(script.token(), (LeavingMember(MemberId("a"), None, "removed in the console"),))
    assert script.send(request).members[0][2] is NONE
    assert script.noted(notes.LEFT)[-1]["client_reason"] == "removed in the console"
    assert script.noted(notes.PREPARING)[-1]["client_reason"] == "removed in the console"
