"""Commits with member epochs, reads, and how offsets end."""

from __future__ import annotations

import pytest
from tests.unit.coordinator.consumer_group.talk import Talk
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
    talk = two_members()
    before = len(talk.log)
    assert talk.commit(member, epoch, partition) is code
    assert (len(talk.log) > before) == (code is ErrorCode.NONE)


def test_a_member_that_has_to_revoke_may_commit_what_it_gives_up() -> None:
    talk = Talk()
    talk.join("a", "t")
    talk.join("b", "t")
    talk.beat("a", 2)
    assert talk.commit("a", 2, 3) is ErrorCode.NONE


def test_a_member_of_the_consumer_protocol_commits_with_version_9_or_newer() -> None:
    talk = two_members()
    assert talk.commit("a", 3, version=8) is ErrorCode.UNSUPPORTED_VERSION


def test_anybody_commits_to_an_empty_group() -> None:
    talk = two_members()
    talk.leave("a")
    talk.leave("b")
    assert talk.commit("", -1) is ErrorCode.NONE


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
    talk = two_members()
    talk.commit("a", 3)
    talk.commit("a", 3, topic="old")
    answer = talk.drop_offsets(("t", 0), ("old", 0))
    assert answer == OffsetsDropped(
        ErrorCode.NONE, (("t", 0, ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC), ("old", 0, ErrorCode.NONE))
    )
    assert set(talk.hosted.offsets) == {("t", 0)}


def test_offsets_expire_by_their_commit_but_for_subscribed_topics() -> None:
    talk = two_members()
    talk.commit("a", 3)
    talk.commit("a", 3, topic="old")
    talk.now_ms += DAY_MS
    talk.expire(DAY_MS)
    assert set(talk.hosted.offsets) == {("t", 0)}


def test_an_empty_group_ends_with_its_last_offset() -> None:
    talk = two_members()
    talk.commit("a", 3)
    talk.leave("a")
    talk.leave("b")
    talk.expire(DAY_MS)
    assert not talk.hosted.is_vacant
    talk.now_ms += DAY_MS
    talk.expire(DAY_MS)
    assert talk.hosted.is_vacant
    assert talk.restarted(compacted=True).hosted.is_vacant


@pytest.mark.parametrize(
    ("member", "epoch", "partition", "code"),
    [
        ("a", 3, 0, ErrorCode.NONE),
        ("a", 2, 0, ErrorCode.NONE),
        ("a", 2, 3, ErrorCode.ILLEGAL_GENERATION),
        ("a", 4, 0, ErrorCode.ILLEGAL_GENERATION),
        ("x", 3, 0, ErrorCode.UNKNOWN_MEMBER_ID),
        ("", -1, 0, ErrorCode.NONE),
    ],
)
def test_a_commit_in_a_transaction_is_checked_by_epoch_and_partition(
    member: str, epoch: int, partition: int, code: ErrorCode
) -> None:
    talk = two_members()
    assert talk.commit_in_transaction(member, epoch, partition) is code
    assert talk.hosted.is_unstable("t", partition) == (code is ErrorCode.NONE)
    talk.hosted.end_transaction(1, is_commit=True)
    assert (("t", partition) in talk.hosted.offsets) == (code is ErrorCode.NONE)


def test_a_group_with_an_open_transaction_does_not_end() -> None:
    talk = two_members()
    talk.commit_in_transaction("a", 3)
    talk.leave("a")
    talk.leave("b")
    talk.expire(DAY_MS)
    assert not talk.hosted.is_vacant
    talk.hosted.end_transaction(1, is_commit=False)
    talk.expire(DAY_MS)
    assert talk.hosted.is_vacant
