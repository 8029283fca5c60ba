"""What the answer for one partition means. What becomes of it on the wire is in test_fetcher.py."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.client.consumer.kit import P0, TOPIC_ID, Feed, batch, reading

from rota.client.config import ConsumerConfig
from rota.client.consumer.fetch_buffer import FetchBuffer, FetchOffset
from rota.client.consumer.fetch_response import PartitionResults
from rota.client.consumer.fetch_session import FetchPartition
from rota.client.consumer.pauses import Pauses
from rota.client.consumer.positions import Positions
from rota.client.consumer.sources import Sources
from rota.client.errors import BrokerError, CorruptRecords, KafkaError, LogTruncated, OffsetOutOfRange
from rota.client.network.cluster import Cluster
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.fetch import EpochEndOffset, LeaderIdAndEpoch, PartitionData


class Case:
    """One partition at offset 10, after a record of epoch `epoch`; `answers` handles an answer to its fetch."""

    def __init__(self, policy: str = "none", epoch: int = -1, **settings: Any) -> None:
        config = ConsumerConfig(bootstrap_servers="h:1", auto_offset_reset=policy, **settings)
        self.positions = Positions()
        self.positions.assign([P0])
        self.positions.seek(P0, 10, epoch)
        self.position = self.positions.of(P0)
        self.arrived = FetchBuffer(self.positions)
        self.sources = Sources(1000)
        self.pauses = Pauses(100, 1000)
        self.config = config
        cluster = Cluster(config)
        self.results = PartitionResults(config, self.positions, self.arrived, self.sources, self.pauses, cluster)
        self.requested = FetchPartition(10, 1000, position_epoch=self.position.position_epoch)

    def answers(self, **data: Any) -> None:
        self.results.apply(1, P0, self.requested, PartitionData(partition_index=0, **data), 1, 0)

    def refused(self, code: ErrorCode) -> None:
        self.answers(error_code=int(code))

    def raised(self) -> KafkaError:
        with pytest.raises(KafkaError) as caught:
            self.arrived.take(10)
        return caught.value

    @property
    def waits(self) -> bool:
        return self.pauses.is_paused(P0, 0)


def test_records_wait_to_be_taken() -> None:
    case = Case()
    case.answers(records=batch(10, 2), high_watermark=12, log_start_offset=3)
    assert [item.offset for item in case.arrived.take(10)[P0]] == [10, 11]
    assert (case.position.high_watermark, case.position.log_start) == (12, 3)


def test_an_empty_response_updates_the_high_watermark_only() -> None:
    case = Case()
    case.answers(high_watermark=10, log_start_offset=-1)
    assert not case.arrived.has_any()
    assert (case.position.high_watermark, case.position.log_start) == (10, None)


@pytest.mark.parametrize("change", ["seek", "drop", "moved on"])
def test_an_answer_of_the_past_is_nothing(change: str) -> None:
    case = Case()
    if change == "seek":
        case.positions.seek(P0, 10)
    elif change == "drop":
        case.positions.drop([P0])
    else:
        case.position.offset = 11
    case.answers(records=batch(10, 2), high_watermark=12)
    case.refused(ErrorCode.OFFSET_OUT_OF_RANGE)
    case.refused(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    assert not case.arrived.has_any()
    assert case.position.high_watermark is None


@pytest.mark.parametrize("policy", ["earliest", "latest", "by_duration:PT1H"])
def test_out_of_range_is_reset_by_policy(policy: str) -> None:
    case = Case(policy)
    case.refused(ErrorCode.OFFSET_OUT_OF_RANGE)
    assert (case.position.offset, case.position.reset) == (None, policy)
    assert not case.arrived.has_any()


def test_out_of_range_raises_without_a_reset_policy() -> None:
    case = Case("none")
    case.answers(high_watermark=8, log_start_offset=5)
    case.refused(ErrorCode.OFFSET_OUT_OF_RANGE)
    error = case.raised()
    assert isinstance(error, OffsetOutOfRange)
    assert error.positions == {P0: 10}
    assert "offset 10 of orders-0" in str(error)
    assert "begin at 5" in str(error)
    assert "end at 8" in str(error)
    assert case.position.offset == 10


def test_an_epoch_that_the_leader_does_not_know_is_not_out_of_range_yet() -> None:
    case = Case("latest", epoch=7)
    case.refused(ErrorCode.OFFSET_OUT_OF_RANGE)
    assert case.arrived.next_fetch(P0, case.position) == FetchOffset(10, -1), "asked again without the epoch"
    case.refused(ErrorCode.OFFSET_OUT_OF_RANGE)
    assert case.position.reset == "latest"


def test_a_replica_that_is_behind_is_not_out_of_range() -> None:
    case = Case("latest")
    case.sources.set_preferred_replica(P0, 3, 0)
    case.refused(ErrorCode.OFFSET_OUT_OF_RANGE)
    assert case.position.offset == 10
    case.refused(ErrorCode.OFFSET_OUT_OF_RANGE)
    assert case.position.reset == "latest"


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    ],
)
def test_a_transient_error_pauses_the_partition(code: ErrorCode) -> None:
    case = Case()
    case.refused(code)
    assert not case.arrived.has_any()
    assert case.waits
    assert case.position.offset == 10


def test_a_fatal_error_is_raised() -> None:
    case = Case()
    case.refused(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    error = case.raised()
    assert isinstance(error, BrokerError)
    assert (error.code, error.topic, error.partition, error.broker) == (29, "orders", 0, "1")
    assert "Have READ on the topic granted" in str(error)


def test_corrupt_message_raises_corrupt_records() -> None:
    case = Case()
    case.refused(ErrorCode.CORRUPT_MESSAGE)
    error = case.raised()
    assert isinstance(error, CorruptRecords)
    assert (error.partition, error.offset) == (P0, 10)


def test_out_of_range_ahead_of_buffered_records_is_requested_again() -> None:
    case = Case("latest")
    case.answers(records=batch(10, 2))
    case.requested = case.requested._replace(offset=12)
    case.refused(ErrorCode.OFFSET_OUT_OF_RANGE)
    assert case.position.offset == 10
    assert [item.offset for item in case.arrived.take(10)[P0]] == [10, 11]
    case.refused(ErrorCode.OFFSET_OUT_OF_RANGE)  # of the epoch, first
    case.refused(ErrorCode.OFFSET_OUT_OF_RANGE)
    assert case.position.reset == "latest"


def test_after_truncation_the_position_is_the_divergence_offset() -> None:
    case = Case("earliest", epoch=5)
    position_epoch = case.position.position_epoch
    case.answers(diverging_epoch=EpochEndOffset(epoch=4, end_offset=7), high_watermark=20)
    assert (case.position.offset, case.position.leader_epoch) == (7, 4)
    assert case.position.position_epoch != position_epoch


def test_a_truncated_log_never_moves_forward() -> None:
    case = Case("earliest", epoch=5)
    case.answers(diverging_epoch=EpochEndOffset(epoch=4, end_offset=30))
    assert (case.position.offset, case.position.leader_epoch) == (10, 4)


def test_truncation_raises_without_a_reset_policy() -> None:
    case = Case("none", epoch=5)
    case.answers(diverging_epoch=EpochEndOffset(epoch=4, end_offset=7))
    error = case.raised()
    assert isinstance(error, LogTruncated)
    assert error.offsets == {P0: 7}
    assert "from offset 7 to 10" in str(error)


def test_a_replica_near_by_is_remembered() -> None:
    case = Case()
    case.answers(preferred_read_replica=3)
    assert case.sources.forget_replica(P0)


def test_read_committed_hides_without_a_list_too() -> None:
    case = Case(isolation_level="read_committed")
    case.answers(records=batch(10, 1), aborted_transactions=None)
    assert [item.offset for item in case.arrived.take(10)[P0]] == [10]


async def test_a_leader_that_is_named_for_a_deleted_topic_is_not_followed() -> None:
    """Law NC10. The topic is created again while the fetch is under way."""
    for topic_id, followed in ((b"a" * 16, 0), (TOPIC_ID, 1), (bytes(16), 1)):
        feed, case = Feed(), Case()
        async with reading(feed) as its:
            case.results = PartitionResults(
                case.config, case.positions, case.arrived, case.sources, case.pauses, its.cluster
            )
            epoch = case.position.position_epoch
            case.requested = FetchPartition(10, 1000, position_epoch=epoch, topic_id=topic_id)
            leader = LeaderIdAndEpoch(leader_id=1, leader_epoch=7)
            case.answers(error_code=int(ErrorCode.NOT_LEADER_OR_FOLLOWER), current_leader=leader)
            source = case.sources.of(P0, its.cluster.metadata, 0)
            assert source is not None
            assert source.node == followed
            assert case.waits is (followed == 0)
