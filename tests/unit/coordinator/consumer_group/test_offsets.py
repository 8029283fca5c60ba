"""Commits with member epochs, reads, and how offsets end."""

from __future__ import annotations

import pytest
from tests.unit.coordinator.consumer_group.script import Script
from tests.unit.coordinator.consumer_group.test_heartbeat import two_members

from rota.coordinator.group.effects import OffsetsDropped
from rota.protocol.errors import ErrorCode

DAY_MS = 86_400_000


@pytest.mark.parametrize(
    ("member", "epoch", "partition", "code"),
    [
        ("a", 3, 0, ErrorCode.NONE),
        ("a", 3, 3, ErrorCode.NONE),  # as in Kafka, a member in its own epoch is not asked what it owns
        ("a", 2, 0, ErrorCode.NONE),  # it has it since epoch 2
        ("a", 2, 3, ErrorCode.STALE_MEMBER_EPOCH),  # not its own any more
        ("b", 2, 2, ErrorCode.STALE_MEMBER_EPOCH),  # it has it since epoch 3
        ("a", 4, 0, ErrorCode.STALE_MEMBER_EPOCH),
        ("x", 3, 0, ErrorCode.UNKNOWN_MEMBER_ID),
        ("", -1, 0, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_a_commit_is_checked_by_epoch_and_partition(member: str, epoch: int, partition: int, code: ErrorCode) -> None:
    script = two_members()
    before = len(script.log)
    assert script.commit(member, epoch, partition) is code
    assert (len(script.log) > before) == (code is ErrorCode.NONE)


def test_a_member_that_has_to_revoke_may_commit_what_it_gives_up() -> None:
    script = Script()
    script.join("a", "t")
    script.join("b", "t")
    script.heartbeat("a", 2)
    assert script.commit("a", 2, 3) is ErrorCode.NONE


def test_a_member_of_the_consumer_protocol_commits_with_version_9_or_newer() -> None:
    script = two_members()
    assert script.commit("a", 3, version=8) is ErrorCode.UNSUPPORTED_VERSION


def test_anybody_commits_to_an_empty_group() -> None:
    script = two_members()
    script.leave("a")
    script.leave("b")
    assert script.commit("", -1) is ErrorCode.NONE


@pytest.mark.parametrize(
    ("member", "epoch", "code"),
    [
        (None, -1, ErrorCode.NONE),
        ("a", 3, ErrorCode.NONE),
        ("a", 2, ErrorCode.STALE_MEMBER_EPOCH),
        ("x", 3, ErrorCode.UNKNOWN_MEMBER_ID),
        (None, 3, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_a_read_is_checked_by_epoch(member: str | None, epoch: int, code: ErrorCode) -> None:
    assert two_members().hosted.check_fetch(member, epoch) is code


def test_offsets_of_subscribed_topics_are_not_deleted() -> None:
    script = two_members()
    script.commit("a", 3)
    script.commit("a", 3, topic="old")
    answer = script.drop_offsets(("t", 0), ("old", 0))
    assert answer == OffsetsDropped(
        ErrorCode.NONE, (("t", 0, ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC), ("old", 0, ErrorCode.NONE))
    )
    assert set(script.hosted.offsets) == {("t", 0)}


def test_offsets_expire_by_their_commit_but_for_subscribed_topics() -> None:
    script = two_members()
    script.commit("a", 3)
    script.commit("a", 3, topic="old")
    script.now_ms += DAY_MS
    script.expire(DAY_MS)
    assert set(script.hosted.offsets) == {("t", 0)}


def test_an_empty_group_ends_with_its_last_offset() -> None:
    script = two_members()
    script.commit("a", 3)
    script.leave("a")
    script.leave("b")
    script.expire(DAY_MS)
    assert not script.hosted.is_vacant
    script.now_ms += DAY_MS
    script.expire(DAY_MS)
    assert script.hosted.is_vacant
    assert script.restarted(compacted=True).hosted.is_vacant


@pytest.mark.parametrize(
    ("member", "epoch", "partition", "code"),
    [
        ("a", 3, 0, ErrorCode.NONE),
        ("a", 2, 0, ErrorCode.NONE),
        ("a", 2, 3, ErrorCode.ILLEGAL_GENERATION),
        ("a", 4, 0, ErrorCode.ILLEGAL_GENERATION),
        ("x", 3, 0, ErrorCode.UNKNOWN_MEMBER_ID),
        ("", -1, 0, ErrorCode.NONE),
        ("", -2, 0, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_a_commit_in_a_transaction_is_checked_by_epoch_and_partition(
    member: str, epoch: int, partition: int, code: ErrorCode
) -> None:
    script = two_members()
    assert script.commit_in_transaction(member, epoch, partition) is code
    assert script.hosted.is_unstable("t", partition) == (code is ErrorCode.NONE)
    script.hosted.end_transaction(1, is_commit=True)
    assert (("t", partition) in script.hosted.offsets) == (code is ErrorCode.NONE)


def test_a_group_with_an_open_transaction_does_not_end() -> None:
    script = two_members()
    script.commit_in_transaction("a", 3)
    script.leave("a")
    script.leave("b")
    script.expire(DAY_MS)
    assert not script.hosted.is_vacant
    script.hosted.end_transaction(1, is_commit=False)
    script.expire(DAY_MS)
    assert script.hosted.is_vacant
