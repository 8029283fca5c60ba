"""The last member of the consumer protocol goes, and members of the classic protocol stay."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.coordinator.consumer_group.mixed_talk import MixedTalk, mixed, read, settled, subscription
from tests.unit.coordinator.consumer_group.test_upgrade import check_replay

from rota.coordinator.consumer_group.settings import ConsumerGroupSettings, MigrationPolicy
from rota.coordinator.group.state import GroupConfig
from rota.coordinator.group.transitions import GroupState
from rota.protocol.errors import ErrorCode

REASON = "Downgrade group g from consumer to classic"


def check_classic(talk: MixedTalk, members: set[str], state: GroupState = GroupState.PREPARING) -> None:
    assert talk.hosted.consumer is None
    assert (talk.hosted.state, set(talk.hosted.members.by_id)) == (state, members)
    restored = talk.restarted()
    assert (restored.hosted.state, restored.hosted.generation) == (state, talk.hosted.generation)
    check_replay(talk)


@pytest.mark.parametrize("how", ["heartbeat", "request", "session"])
def test_when_the_last_consumer_member_goes_the_group_is_classic_again_and_rebalances(how: str) -> None:
    """testLastConsumerProtocolMemberLeavingConsumerGroup and those of its session and its rebalance timeout"""
    talk = settled()
    before, targets = len(talk.log), {name: talk.target(name) for name in ("c1", "c2")}
    if how == "heartbeat":
        assert talk.leave("a").member_epoch == -1
    elif how == "request":
        assert talk.c_leave(("a", None)) == [ErrorCode.NONE]
    else:
        for _ in range(9):
            talk.advance(5_000)
            for name in ("c1", "c2"):
                if talk.hosted.consumer is not None:
                    assert talk.c_beat(name, 2) is ErrorCode.NONE
    assert [kind for kind, _ in talk.records(before)] == [
        *["CurrentAssignmentKey"] * 3,
        *["TargetMemberKey"] * 3,
        "TargetEpochKey",
        *["MemberKey"] * 3,
        "PartitionMetadataKey",
        "EpochKey",
    ]
    assert talk.hosted.generation == 2
    assert {name: read(talk.hosted.members.by_id[name].assignment) for name in targets} == targets  # type: ignore[index]
    assert "join" in talk.timers
    assert not [key for key in talk.timers if key.endswith(":a") or key.startswith("sync:")]
    assert str(talk.noted("Preparing to rebalance group")[-1]["reason"]).startswith(REASON)
    check_classic(talk, {"c1", "c2"})
    assert talk.c_beat("c1", 2) is ErrorCode.REBALANCE_IN_PROGRESS
    first = talk.c_join("c1")
    assert first is None
    last = talk.c_join("c2")
    assert last is not None
    assert last.generation == 3


def test_a_member_that_does_not_revoke_in_time_may_be_the_last_of_its_protocol() -> None:
    """testLastConsumerProtocolMemberRebalanceTimeoutInConsumerGroup"""
    talk = MixedTalk()
    assert talk.beat("a", 0, names=("t",), owned={}, rebalance_ms=30_000).member_epoch == 2
    answer = talk.c_join("", fresh="c1")
    assert answer is not None
    assert talk.beat("a", 2).member_epoch == 2  # it has to revoke two partitions, and does not
    for _ in range(7):
        talk.advance(5_000)
        if talk.hosted.consumer is not None:
            talk.beat("a", 2)
            talk.c_beat("c1", 3)
    check_classic(talk, {"c1"})


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
    talk = MixedTalk(**more)
    talk.join("a", "t")
    for name in ("c1", "c2"):
        assert talk.c_join("", fresh=name) is not None
    talk.leave("a")
    assert set(talk.group.members) == {"c1", "c2"}
    assert (len(talk.hosted.members), talk.group.epoch) == (0, 5)
    check_replay(talk)


def test_members_of_both_protocols_that_leave_together() -> None:
    """testConsumerGroupMemberUsingClassicProtocolBatchLeaveGroup"""
    talk = settled()
    assert talk.c_leave(("a", None), ("x", None), ("c1", None)) == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.NONE,
    ]
    check_classic(talk, {"c2"})


def test_the_group_is_empty_when_all_leave() -> None:
    talk = settled()
    talk.c_leave(("a", None), ("c1", None), ("c2", None))
    assert (talk.group.state.value, talk.hosted.summary.kind) == ("Empty", "consumer")


def test_while_a_consumer_member_stays_the_group_does() -> None:
    talk = mixed()
    talk.join("b", "t")
    talk.leave("b")
    assert talk.hosted.summary.kind == "consumer"


def test_what_a_classic_member_works_on_is_kept_when_the_group_is_upgraded_again_before_it_joined() -> None:
    """CG20. The target of the group that ended had given some of it away; the member was never told."""
    talk = MixedTalk()
    talk.c_join("", fresh="c1")
    talk.advance(3_000)
    talk.c_sync("c1", talk.hosted.generation, {"c1": {"t": range(4)}})
    talk.join("a", "t")
    assert talk.assigned("c1") == {"t": {0, 1, 2, 3}}
    talk.leave("a")
    assert talk.join("b", "t").assignment == {}
    assert talk.assigned("c1") == {"t": {0, 1, 2, 3}}


# ---- a static member moves back to the classic protocol


def static_pair(*, joins: str = "c1") -> MixedTalk:
    """Static member a of the consumer protocol beside a classic member."""
    talk = MixedTalk()
    talk.join("a", "t", instance="i")
    assert talk.c_join("", fresh=joins) is not None
    return talk


def test_a_static_member_that_moves_back_keeps_its_partitions_and_the_generation() -> None:
    """testLastStaticConsumerProtocolMemberReplacedByClassicProtocolMember"""
    talk = static_pair()
    talk.beat("a", 2, owned={"t": talk.target("a")["t"]}, names=("t",), rebalance_ms=60_000)
    answer = talk.c_join("c1", owned={})
    assert answer is not None
    target = talk.target("a")
    moved = talk.c_join("", fresh="n", instance="i", owned=target)
    assert moved is not None
    assert (moved.error, moved.generation, moved.protocol, moved.leader) == (ErrorCode.NONE, 3, "range", "")
    check_classic(talk, {"c1", "n"}, GroupState.STABLE)
    assert read(talk.hosted.members.by_id["n"].assignment) == target  # type: ignore[index]
    assert talk.hosted.generation == 3
    synced = talk.c_sync("n", 3)
    assert synced is not None
    assert read(synced.assignment) == target
    assert not [key for key in talk.timers if key.startswith(("sync", "join"))]


def test_the_group_rebalances_when_its_target_is_stale() -> None:
    """testLastStaticConsumerProtocolMemberReplacedByClassicProtocolMemberWhenTargetAssignmentIsStale"""
    talk = static_pair()
    talk.topics.set("u", 1)
    moved = talk.c_join("", "t", "u", fresh="n", instance="i")
    assert moved is not None
    assert (moved.error, moved.generation) == (ErrorCode.NONE, 0)
    check_classic(talk, {"c1", "n"})
    assert talk.c_sync("n", 0).error is ErrorCode.ILLEGAL_GENERATION  # type: ignore[union-attr]


@pytest.mark.parametrize("names", [("t",), ("t", "u")])
def test_a_member_with_an_expression_is_replaced_by_a_classic_one(names: tuple[str, ...]) -> None:
    """testConsumerMemberWithRegexReplacedByClassicMemberWith(Same|Changed)Subscription"""
    talk = MixedTalk()
    talk.topics.set("u", 1)
    talk.join("b", "t")
    talk.beat("a", 0, regex="t", names=("t",), owned={}, rebalance_ms=60_000, instance="i")
    talk.advance(0)
    epoch = talk.group.epoch
    moved = talk.c_join("", *names, fresh="n", instance="i")
    assert moved is not None
    assert (talk.group.members["n"].regex, dict(talk.group.expressions), talk.group.regexes) == ("", {}, {})
    assert talk.group.epoch == epoch + 1
    check_replay(talk)


def test_assignors_are_chosen_among_those_that_all_members_support() -> None:
    talk = MixedTalk()
    talk.join("a", "t")
    data = subscription("t")
    talk.c_join("", fresh="c1", protocols=(("sticky", data), ("range", data)))
    talk.c_join("", fresh="c2", protocols=(("range", data),))
    talk.leave("a")
    assert talk.hosted.protocol == "range"


def test_a_static_member_without_a_target_moves_back() -> None:
    """testLastStaticConsumerProtocolMemberReplacedByClassicProtocolMemberWhenTargetAssignmentIsMissing"""
    talk = MixedTalk(settings=ConsumerGroupSettings(assignment_interval_ms=5_000))
    talk.join("x", "t")
    talk.join("a", "t", instance="i")
    assert talk.c_join("", fresh="c1") is not None
    talk.leave("x")
    assert "a" not in talk.group.targets
    assert talk.c_join("", fresh="n", instance="i") is not None
    assert read(talk.hosted.members.by_id["n"].assignment) == {}  # type: ignore[index]
    check_classic(talk, {"c1", "n"})
