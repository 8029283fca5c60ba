"""Which heartbeats are refused, and that they change nothing."""

from __future__ import annotations

import pytest
from tests.unit.coordinator.consumer_group.script import Script, durable
from tests.unit.coordinator.consumer_group.test_heartbeat import two_members

from rota.coordinator.consumer_group.events import HeartbeatReply
from rota.coordinator.consumer_group.settings import ConsumerGroupSettings
from rota.protocol.errors import ErrorCode


def refused(script: Script, reply: HeartbeatReply, code: ErrorCode, log_before: int) -> None:
    assert reply.error is code
    assert reply.message
    assert len(script.log) == log_before
    assert durable(script.restarted().hosted) == durable(script.hosted)


@pytest.mark.parametrize(
    ("member", "epoch", "code"),
    [
        ("x", 3, ErrorCode.UNKNOWN_MEMBER_ID),
        ("x", -1, ErrorCode.UNKNOWN_MEMBER_ID),
        ("a", 4, ErrorCode.FENCED_MEMBER_EPOCH),
        ("a", 1, ErrorCode.FENCED_MEMBER_EPOCH),
        ("a", 2, ErrorCode.FENCED_MEMBER_EPOCH),  # the previous one, but it does not say what it owns
    ],
)
def test_a_wrong_epoch_or_member_is_refused(member: str, epoch: int, code: ErrorCode) -> None:
    script = two_members()
    before = len(script.log)
    refused(script, script.beat(member, epoch), code, before)


def test_the_previous_epoch_with_partitions_that_it_has_not_is_fenced() -> None:
    script = two_members()
    before = len(script.log)
    refused(script, script.beat("a", 2, owned={"t": (0, 3)}), ErrorCode.FENCED_MEMBER_EPOCH, before)


def test_a_member_beyond_the_size_of_the_group_is_refused() -> None:
    script = Script(settings=ConsumerGroupSettings(assignment_interval_ms=0, size_max=1))
    script.join("a", "t")
    before = len(script.log)
    refused(script, script.join("b", "t"), ErrorCode.GROUP_MAX_SIZE_REACHED, before)
    assert script.join("a", "t").error is ErrorCode.NONE


def test_a_group_that_does_not_exist_is_not_found() -> None:
    script = Script()
    refusals = script.beat("a", 1), script.leave("a")
    assert [reply.error for reply in refusals] == [ErrorCode.GROUP_ID_NOT_FOUND] * 2
    assert [reply.message for reply in refusals] == ["Consumer group g not found.", "Group g not found."]
    assert script.hosted.is_vacant


def test_an_instance_that_is_in_use_is_not_released() -> None:
    script = Script()
    script.join("a", "t", instance="i")
    before = len(script.log)
    refused(script, script.join("b", "t", instance="i"), ErrorCode.UNRELEASED_INSTANCE_ID, before)


def test_a_static_member_is_checked_by_its_instance() -> None:
    script = Script()
    script.join("a", "t", instance="i")
    before = len(script.log)
    refused(script, script.beat("b", 2, instance="i"), ErrorCode.FENCED_INSTANCE_ID, before)
    refused(script, script.beat("a", 2, instance="j"), ErrorCode.UNKNOWN_MEMBER_ID, before)
    refused(script, script.leave("b", instance="i"), ErrorCode.FENCED_INSTANCE_ID, before)
    refused(script, script.leave("a", instance="j"), ErrorCode.UNKNOWN_MEMBER_ID, before)
    refused(script, script.beat("a", 9, instance="i"), ErrorCode.FENCED_MEMBER_EPOCH, before)
