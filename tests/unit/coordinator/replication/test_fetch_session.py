from __future__ import annotations

from rota.coordinator.replication.fetch_session import EPOCH_MAX, FollowerSession, Key
from rota.protocol.messages.fetch import FetchPartition, FetchTopic, ForgottenTopic

A, B = b"a" * 16, b"b" * 16


def position(index: int) -> FetchPartition:
    return FetchPartition(partition=index, fetch_offset=index, partition_max_bytes=1)


def positions(*keys: Key) -> dict[Key, FetchPartition]:
    return {key: position(key[1]) for key in keys}


def test_the_first_request_has_all_partitions_and_later_requests_only_changes() -> None:
    session = FollowerSession()
    first = session.full(positions((A, 0), (B, 1), (A, 2)))
    assert (first.session_id, first.epoch, first.forgotten) == (0, 0, ())
    assert first.topics == (
        FetchTopic(topic_id=A, partitions=(position(0), position(2))),
        FetchTopic(topic_id=B, partitions=(position(1),)),
    )
    assert not session.is_established
    session.answered(77)
    assert session.is_established
    second = session.incremental(positions((B, 1)), [(A, 0), (A, 2)])
    assert (second.session_id, second.epoch) == (77, 1)
    assert second.topics == (FetchTopic(topic_id=B, partitions=(position(1),)),)
    assert second.forgotten == (ForgottenTopic(topic_id=A, partitions=(0, 2)),)
    session.answered(77)
    assert session.incremental({}, ()).epoch == 2


def test_the_epoch_starts_over_at_its_end() -> None:
    session = FollowerSession()
    session.answered(77)
    session._epoch = EPOCH_MAX
    assert [session.incremental({}, ()).epoch for _ in range(2)] == [EPOCH_MAX, 1]


def test_a_lost_or_refused_session_is_replaced_by_a_new_one() -> None:
    session = FollowerSession()
    session.answered(77)
    session.lost()
    assert (session.is_established, session.is_refused) == (False, False)
    session.answered(0)
    assert (session.is_established, session.is_refused) == (False, True)
    session.answered(78)
    assert (session.is_established, session.is_refused) == (True, False)
