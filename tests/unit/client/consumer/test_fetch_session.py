"""The client's half of a fetch session, alone and against the broker's half."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.client.consumer.kit import P0, P1, TOPIC, TOPIC_ID

from rota.client.consumer.fetch_session import EPOCH_MAX, FetchPartition, FetchSession, LogEnds, SessionRequest
from rota.client.types import TopicPartition
from rota.coordinator.replica.fetch_sessions import FetchSessions
from rota.coordinator.replica.fetch_sessions import SessionRequest as ServerSessionRequest
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.fetch import PartitionData
from rota.protocol.wire import UUID_ZERO

OTHER_ID = bytes(range(1, 17))


def requested(offset: int = 0, **more: object) -> FetchPartition:
    return FetchPartition(offset, 1000, **{"topic_id": TOPIC_ID} | more)  # type: ignore[arg-type]


def answer(session_request: SessionRequest) -> tuple[int, int, dict[int, int], list[int]]:
    """(session, epoch, offsets by partition, forgotten partitions)"""
    wanted = {item.partition: item.fetch_offset for topic in session_request.topics for item in topic.partitions}
    return (
        session_request.session_id,
        session_request.epoch,
        wanted,
        [item for topic in session_request.forgotten for item in topic.partitions],
    )


def begun() -> FetchSession:
    session = FetchSession()
    session.next_request({P0: requested(), P1: requested(5)}, by_id=True)
    assert session.handle_response(0, 77)
    return session


def test_the_first_request_is_full_and_begins_a_session() -> None:
    assert answer(FetchSession().next_request({P0: requested(), P1: requested(5)}, by_id=True)) == (
        0,
        0,
        {0: 0, 1: 5},
        [],
    )


def test_later_requests_contain_only_changes() -> None:
    session = begun()
    assert answer(session.next_request({P0: requested(), P1: requested(6)}, by_id=True)) == (77, 1, {1: 6}, [])
    assert session.handle_response(0, 77)
    assert answer(session.next_request({P1: requested(6)}, by_id=True)) == (77, 2, {}, [0])
    assert session.handle_response(0, 77)
    assert answer(session.next_request({P0: requested(3), P1: requested(6)}, by_id=True)) == (77, 3, {0: 3}, [])


def test_a_new_turn_at_the_same_offset_is_no_news_for_the_broker() -> None:
    session = begun()
    assert answer(session.next_request({P0: requested(position_epoch=9), P1: requested(5)}, by_id=True))[2] == {}
    assert session.handle_response(0, 77)
    assert answer(session.next_request({P0: requested(leader_epoch=4), P1: requested(5)}, by_id=True))[2] == {0: 0}


def test_without_a_session_every_request_is_full() -> None:
    session = FetchSession()
    for _ in range(2):
        assert answer(session.next_request({P0: requested()}, by_id=True)) == (0, 0, {0: 0}, [])
        assert session.handle_response(0, 0)


def test_an_evicted_session_is_replaced_by_a_full_request() -> None:
    session = begun()
    session.next_request({P0: requested()}, by_id=True)
    assert not session.handle_response(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0)
    assert answer(session.next_request({P0: requested()}, by_id=True)) == (0, 0, {0: 0}, [])


def test_a_session_at_another_epoch_is_closed_by_the_one_that_follows() -> None:
    session = begun()
    session.next_request({P0: requested()}, by_id=True)
    assert not session.handle_response(ErrorCode.INVALID_FETCH_SESSION_EPOCH, 77)
    assert answer(session.next_request({P0: requested()}, by_id=True)) == (77, 0, {0: 0}, [])
    assert session.handle_response(0, 78)
    assert answer(session.next_request({P0: requested()}, by_id=True)) == (78, 1, {}, [])


def test_an_answer_that_was_lost_leaves_nothing_to_build_on() -> None:
    session = begun()
    session.next_request({P0: requested(1)}, by_id=True)
    session.failed()
    assert answer(session.next_request({P0: requested(1), P1: requested(5)}, by_id=True)) == (77, 0, {0: 1, 1: 5}, [])


def test_names_instead_of_ids_are_another_session() -> None:
    session = begun()
    session_request = session.next_request({P0: requested(topic_id=UUID_ZERO)}, by_id=False)
    assert answer(session_request) == (77, 0, {0: 0}, [])
    assert session_request.topics[0].topic == TOPIC


def test_a_topic_of_the_same_name_is_another_topic() -> None:
    session = begun()
    session_request = session.next_request(
        {P0: requested(topic_id=OTHER_ID), P1: requested(5, topic_id=OTHER_ID)}, by_id=True
    )
    assert [topic.topic_id for topic in session_request.topics] == [OTHER_ID]
    assert [topic.topic_id for topic in session_request.forgotten] == [TOPIC_ID]
    assert answer(session_request)[2:] == ({0: 0, 1: 5}, [0, 1])


def test_the_session_epoch_wraps_to_1() -> None:
    session = begun()
    session._epoch = EPOCH_MAX
    session.next_request({P0: requested()}, by_id=True)
    assert session.handle_response(0, 77)
    assert answer(session.next_request({P0: requested()}, by_id=True))[1] == 1


def test_what_a_response_omits_is_as_it_was_last_returned_in_this_session() -> None:
    session = begun()
    session.store_ends(P0, PartitionData(partition_index=0, high_watermark=9, last_stable_offset=8, log_start_offset=1))
    session.store_ends(P1, PartitionData(partition_index=1, error_code=ErrorCode.UNKNOWN_SERVER_ERROR))
    assert dict(session.omitted(set())) == {P0: LogEnds(9, 8, 1)}
    assert dict(session.omitted({P0})) == {}


@pytest.mark.parametrize("end", ["forgotten", "failed"])
def test_what_was_returned_is_dropped_with_the_place_in_the_session(end: str) -> None:
    session = begun()
    session.store_ends(P0, PartitionData(partition_index=0, high_watermark=9))
    if end == "failed":
        session.failed()
    else:
        session.next_request({P1: requested(5)}, by_id=True)
        assert session.handle_response(0, 77)
    session.next_request({P0: requested(), P1: requested(5)}, by_id=True)
    assert dict(session.omitted(set())) == {}


WANTS = st.dictionaries(
    st.integers(0, 4).map(lambda number: TopicPartition(TOPIC, number)),
    st.builds(requested, st.integers(0, 3), topic_id=st.sampled_from([TOPIC_ID, OTHER_ID])),
    min_size=1,
)
STEPS = st.lists(st.tuples(WANTS, st.sampled_from(["answered", "lost", "never came", "forgotten"])), max_size=20)


@settings(deadline=None)
@given(STEPS)
def test_the_session_of_the_broker_equals_the_requested_partitions(
    steps: list[tuple[dict[TopicPartition, FetchPartition], str]],
) -> None:
    """Whatever is lost on the way: a request that is answered was about exactly what it was to be about."""
    session, broker = FetchSession(), FetchSessions()
    for to_fetch, fate in steps:
        session_request = session.next_request(to_fetch, by_id=True)
        if fate == "never came":
            session.failed()
            continue
        if fate == "forgotten":
            broker = FetchSessions()
        context = broker.open(requests(session_request), 0)
        known = {key: partition.fetch_offset for key, partition in context.requested()}
        answers = [(key, PartitionData(partition_index=key[1], high_watermark=9)) for key in known]
        chosen = context.select(answers, 0)
        if not chosen.error:
            assert known == {(each.topic_id, item.partition): each.offset for item, each in to_fetch.items()}
        if fate == "lost":
            session.failed()
        else:
            assert session.handle_response(chosen.error, chosen.session_id) == (not chosen.error)
            assert not chosen.error or fate == "forgotten"


def requests(session_request: SessionRequest) -> ServerSessionRequest:
    """As the broker reads the request."""
    return ServerSessionRequest(
        partitions={
            (topic.topic_id, item.partition): item for topic in session_request.topics for item in topic.partitions
        },
        forgotten=[(topic.topic_id, item) for topic in session_request.forgotten for item in topic.partitions],
        session_id=session_request.session_id,
        epoch=session_request.epoch,
        by_id=True,
    )
