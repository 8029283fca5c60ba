"""Refused requests of a group of the consumer protocol in its timeline."""

from __future__ import annotations

from tests.unit.coordinator.consumer_group.mixed_script import MixedScript, classic_pair, settled
from tests.unit.coordinator.consumer_group.script import CLIENT, HOST, Script

from rota.coordinator.consumer_group.settings import ConsumerGroupSettings, MigrationPolicy
from rota.coordinator.group import notes
from rota.coordinator.group.refusals import REFUSALS_MAX
from rota.coordinator.group.timeline_event import event_of
from rota.protocol.errors import ErrorCode
from rota.protocol.group_timeline import EventMember, EventType, GroupEvent


def refusals(script: Script) -> list[GroupEvent]:
    events = [event_of(note, 0, 0) for note in script.written]
    kinds = (EventType.REQUESTS_REFUSED, EventType.MEMBER_REFUSED)
    return [event for event in events if event is not None and event.type in kinds]


def counts(script: Script) -> list[tuple[str, ErrorCode, int, int]]:
    return [(each.operation, ErrorCode(each.error_code), each.count, each.generation) for each in refusals(script)]


def test_tl4_commits_are_counted_and_the_last_count_comes_with_the_end_of_the_epoch() -> None:
    script = Script()
    script.join("a", "t")
    for _ in range(12):
        assert script.commit("a", 1) is ErrorCode.STALE_MEMBER_EPOCH
    stale = ("offset-commit", ErrorCode.STALE_MEMBER_EPOCH)
    assert counts(script) == [(*stale, 1, 2), (*stale, 10, 2)]
    script.join("b", "t")
    assert counts(script)[-1] == (*stale, 12, 2)
    assert refusals(script)[-1].members[0].client_id == CLIENT


def test_tl4_commits_in_transactions_and_of_unknown_members_are_counted() -> None:
    script = Script()
    script.join("a", "t")
    assert script.commit_in_transaction("a", 1) is ErrorCode.ILLEGAL_GENERATION
    assert script.commit("unknown", 2) is ErrorCode.UNKNOWN_MEMBER_ID
    assert [each.members[0].member_id for each in refusals(script)] == ["a", "unknown"]


def test_tl4_unknown_members_beyond_the_limit_are_counted_together() -> None:
    script = Script()
    script.join("a", "t")
    for number in range(REFUSALS_MAX + 20):
        script.commit(f"unknown-{number}", 2)
    assert len(refusals(script)) == REFUSALS_MAX + 2
    assert (refusals(script)[-1].members[0].member_id, refusals(script)[-1].count) == ("", 10)


def test_tl4_heartbeats_of_a_fenced_epoch_and_of_unknown_members_are_counted() -> None:
    script = Script()
    script.join("a", "t")
    assert script.heartbeat("a", 7).error is ErrorCode.FENCED_MEMBER_EPOCH
    assert script.heartbeat("gone", 2).error is ErrorCode.UNKNOWN_MEMBER_ID
    assert counts(script) == [
        ("heartbeat", ErrorCode.FENCED_MEMBER_EPOCH, 1, 2),
        ("heartbeat", ErrorCode.UNKNOWN_MEMBER_ID, 1, 2),
    ]
    assert "greater member epoch (7)" in refusals(script)[0].reason


def test_a_static_id_in_use_names_the_sender_and_who_has_it() -> None:
    script = Script()
    script.join("a", "t", instance="i")
    script.join("b", "t", instance="i", client="other", host="/10.0.0.9")
    (refused,) = refusals(script)
    assert refused.error_code == ErrorCode.UNRELEASED_INSTANCE_ID
    assert refused.members == (
        EventMember(member_id="", instance_id="i", client_id="other", client_host="/10.0.0.9"),
        EventMember(member_id="a", instance_id="i", client_id=CLIENT, client_host=HOST),
    )


def test_a_fenced_static_member_is_counted_when_it_beats_and_when_it_leaves() -> None:
    script = Script()
    script.join("a", "t", instance="i")
    script.leave("a", -2, instance="i")
    script.join("b", "t", instance="i")
    assert script.heartbeat("a", 2, instance="i").error is ErrorCode.FENCED_INSTANCE_ID
    for _ in range(9):
        assert script.leave("a", -1, instance="i").error is ErrorCode.FENCED_INSTANCE_ID
    assert [each.count for each in refusals(script)] == [1, 10]


def test_a_full_group_and_a_bad_expression_refuse_a_member() -> None:
    script = Script(settings=ConsumerGroupSettings(assignment_interval_ms=0, size_max=1))
    script.join("a", "t")
    script.join("b", "t")
    assert script.heartbeat("a", 2, regex="(").error is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert [(each.type, each.operation) for each in refusals(script)] == [(EventType.MEMBER_REFUSED, "heartbeat")] * 2
    assert "maximum capacity of 1 members" in refusals(script)[0].reason


def test_a_classic_member_of_another_assignor_is_refused_with_the_reason() -> None:
    script = MixedScript()
    script.join("a", "t")
    script.c_join("", fresh="c")
    script.c_join("", fresh="d", protocols=(("sticky", b"\0\0\0\0\0\1\0\1t\xff\xff\xff\xff"),))
    (refused,) = refusals(script)
    assert (refused.type, refused.operation) == (EventType.MEMBER_REFUSED, "join-group")
    assert refused.reason == "it supports sticky; the group's classic members share range"


def test_a_classic_member_is_refused_where_the_policy_forbids_it() -> None:
    script = MixedScript(settings=ConsumerGroupSettings(assignment_interval_ms=0, migration=MigrationPolicy.DISABLED))
    script.join("a", "t")
    script.c_join("", fresh="c")
    assert "group.consumer.migration.policy is disabled" in refusals(script)[0].reason


def test_a_classic_member_that_is_fenced_is_counted() -> None:
    script = MixedScript()
    script.join("a", "t")
    script.c_join("", fresh="c", instance="i")
    assert script.c_heartbeat("other", 3, instance="i") is ErrorCode.FENCED_INSTANCE_ID
    assert script.noted(notes.FENCED)[0]["holder"] == "c"


def test_a_classic_group_that_must_not_be_converted_says_why() -> None:
    settings = ConsumerGroupSettings(assignment_interval_ms=0, migration=MigrationPolicy.DISABLED)
    script = MixedScript(settings=settings)
    script.c_join("", fresh="c")
    assert script.join("a", "t").error is ErrorCode.GROUP_ID_NOT_FOUND
    (refused,) = refusals(script)
    assert (refused.type, refused.operation) == (EventType.MEMBER_REFUSED, "heartbeat")
    assert "online upgrade is disabled" in refused.reason


def test_a_heartbeat_to_no_group_leaves_nothing_behind() -> None:
    script = Script()
    assert script.heartbeat("a", 2).error is ErrorCode.GROUP_ID_NOT_FOUND
    assert script.written == []


def test_tl4_the_last_count_comes_when_the_group_becomes_a_classic_one() -> None:
    script = settled()
    for _ in range(5):
        assert script.commit("a", 1) is ErrorCode.STALE_MEMBER_EPOCH
    script.leave("a")
    assert script.hosted.consumer is None
    assert counts(script)[-1] == ("offset-commit", ErrorCode.STALE_MEMBER_EPOCH, 5, 2)


def test_tl4_the_last_count_of_a_classic_group_comes_when_it_is_converted() -> None:
    script = classic_pair()
    for _ in range(5):
        assert script.heartbeat("unknown", 3).error is ErrorCode.GROUP_ID_NOT_FOUND
    script.join("a", "t")
    assert counts(script)[-1] == ("heartbeat", ErrorCode.GROUP_ID_NOT_FOUND, 5, 1)


def test_tl4_two_static_ids_of_one_client_id_are_counted_apart() -> None:
    script = Script()
    for member, instance in (("a", "i"), ("b", "j")):
        script.join(member, "t", instance=instance)
    for instance in ("i", "j"):
        assert script.join("c", "t", instance=instance).error is ErrorCode.UNRELEASED_INSTANCE_ID
    assert [each.members[0].instance_id for each in refusals(script)] == ["i", "j"]
