"""Which heartbeats are refused, and that they change nothing."""

from __future__ import annotations

import pytest
from tests.unit.coordinator.consumer_group.talk import Talk, durable
from tests.unit.coordinator.consumer_group.test_heartbeat import two_members

from rota.coordinator.consumer_group.events import HeartbeatReply
from rota.coordinator.consumer_group.settings import ConsumerGroupSettings
from rota.protocol.errors import ErrorCode


def refused(talk: Talk, reply: HeartbeatReply, code: ErrorCode, log_before: int) -> None:
    assert reply.error is code
    assert reply.message
    assert len(talk.log) == log_before
    assert durable(talk.restarted().hosted) == durable(talk.hosted)


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
    talk = two_members()
    before = len(talk.log)
    refused(talk, talk.beat(member, epoch), code, before)


def test_the_previous_epoch_with_partitions_that_it_has_not_is_fenced() -> None:
    talk = two_members()
    before = len(talk.log)
    refused(talk, talk.beat("a", 2, owned={"t": (0, 3)}), ErrorCode.FENCED_MEMBER_EPOCH, before)


def test_a_member_beyond_the_size_of_the_group_is_refused() -> None:
    talk = Talk(settings=ConsumerGroupSettings(assignment_interval_ms=0, size_max=1))
    talk.join("a", "t")
    before = len(talk.log)
    refused(talk, talk.join("b", "t"), ErrorCode.GROUP_MAX_SIZE_REACHED, before)
    assert talk.join("a", "t").error is ErrorCode.NONE


def test_a_group_that_does_not_exist_is_not_found() -> None:
    talk = Talk()
    refusals = talk.beat("a", 1), talk.leave("a")
    assert [reply.error for reply in refusals] == [ErrorCode.GROUP_ID_NOT_FOUND] * 2
    assert [reply.message for reply in refusals] == ["Consumer group g not found.", "Group g not found."]
    assert talk.hosted.is_vacant


def test_an_instance_that_is_in_use_is_not_released() -> None:
    talk = Talk()
    talk.join("a", "t", instance="i")
    before = len(talk.log)
    refused(talk, talk.join("b", "t", instance="i"), ErrorCode.UNRELEASED_INSTANCE_ID, before)


def test_a_static_member_is_checked_by_its_instance() -> None:
    talk = Talk()
    talk.join("a", "t", instance="i")
    before = len(talk.log)
    refused(talk, talk.beat("b", 2, instance="i"), ErrorCode.FENCED_INSTANCE_ID, before)
    refused(talk, talk.beat("a", 2, instance="j"), ErrorCode.UNKNOWN_MEMBER_ID, before)
    refused(talk, talk.leave("b", instance="i"), ErrorCode.FENCED_INSTANCE_ID, before)
    refused(talk, talk.leave("a", instance="j"), ErrorCode.UNKNOWN_MEMBER_ID, before)
    refused(talk, talk.beat("a", 9, instance="i"), ErrorCode.FENCED_MEMBER_EPOCH, before)
