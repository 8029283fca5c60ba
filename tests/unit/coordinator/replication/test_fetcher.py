"""What a fetcher does on its connection; what it copies is in test_replication.py."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from structlog.testing import capture_logs
from tests.unit.coordinator.replication.cluster import Cluster

from rota.coordinator.replica.fetch_sessions import FetchSessions
from rota.coordinator.replication.fetcher import Fetcher, FetchSettings
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
    ReplicaState,
)
from rota.protocol.messages.list_offsets import ListOffsetsRequest
from rota.transport.connection import Connection
from rota.transport.errors import KafkaError, Unreachable
from rota.transport.handshake import connect

SETTINGS = FetchSettings(backoff_ms_max=40)


class LeaderConnections:
    """The way to broker 1 of a cluster: counts connections, and fails as often as `failures` says."""

    def __init__(self, cluster: Cluster, *failures: Exception) -> None:
        self.cluster, self.failures = cluster, list(failures)
        self.connections: list[Connection] = []
        self.unreachable: list[int] = []

    async def open(self) -> Connection:
        if self.failures:
            raise self.failures.pop(0)
        port = self.cluster[1].port
        connection = await connect(
            "127.0.0.1", port, "1", "test", setup_seconds=5, request_seconds=5, ended=lambda _: None
        )
        self.connections.append(connection)
        return connection

    def replica(self) -> ReplicaState:
        return ReplicaState(replica_id=2, replica_epoch=self.cluster.registrations[2].epoch)

    def fetcher(self, settings: FetchSettings = SETTINGS) -> Fetcher:
        return Fetcher(1, self.open, self.replica, settings, self.unreachable.append)


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    """Brokers 1 and 2; broker 2 fetches by the test's own fetchers alone."""
    async with Cluster(size=2, partitions=2, replica_lag_time_max_ms="600000") as cluster:
        await cluster[2].replication.stop()
        yield cluster


async def copied(cluster: Cluster, index: int = 0) -> None:
    (response,) = [await cluster[1].produce(b"a", index=index)]
    assert response.error_code == 0


async def test_it_connects_for_the_first_partition_and_disconnects_after_the_last(
    cluster: Cluster,
) -> None:
    leader = LeaderConnections(cluster)
    fetcher = leader.fetcher()
    fetcher.follow(cluster[2].partition())
    await copied(cluster)
    assert (len(fetcher), len(leader.connections)) == (1, 1)
    fetcher.unfollow((cluster.topic.topic_id, 0))
    await cluster.until(lambda: not leader.connections[0].is_open)
    fetcher.follow(cluster[2].partition())
    await copied(cluster)
    assert len(leader.connections) == 2
    assert leader.unreachable == []
    await fetcher.stop()
    assert not leader.connections[1].is_open


async def test_failures_are_logged_once_and_reported_each_time_to_the_failure_detector(cluster: Cluster) -> None:
    leader = LeaderConnections(cluster, Unreachable("refused"), Unreachable("refused"), Unreachable("refused"))
    fetcher = leader.fetcher()
    with capture_logs() as logs:
        fetcher.follow(cluster[2].partition())
        await copied(cluster)
    assert leader.unreachable == [1, 1, 1]
    assert [line["log_level"] for line in logs if line["event"] == "No connection to a leader"] == [
        "warning",
        "debug",
        "debug",
    ]
    await fetcher.stop()


async def test_a_leader_without_an_address_is_no_evidence_against_it_and_a_retry_ends_the_pause(
    cluster: Cluster,
) -> None:
    leader = LeaderConnections(cluster, KafkaError("not registered"))
    fetcher = leader.fetcher(FetchSettings(backoff_ms_max=600_000))
    fetcher.follow(cluster[2].partition())
    await cluster.until(lambda: not leader.failures)
    fetcher.retry()
    await copied(cluster)
    assert leader.unreachable == []
    await fetcher.stop()


async def test_an_unexpected_exception_does_not_end_replication(cluster: Cluster) -> None:
    leader = LeaderConnections(cluster, ZeroDivisionError())
    fetcher = leader.fetcher()
    with capture_logs() as logs:
        fetcher.follow(cluster[2].partition())
        await copied(cluster)
    assert "Fetching failed unexpectedly" in [line["event"] for line in logs]
    await fetcher.stop()


async def test_a_lost_connection_is_opened_again(cluster: Cluster) -> None:
    leader = LeaderConnections(cluster)
    fetcher = leader.fetcher()
    fetcher.follow(cluster[2].partition())
    await copied(cluster)
    leader.connections[0].end(Unreachable("cut"))
    await copied(cluster)
    assert (len(leader.connections), leader.unreachable) == (2, [1])
    await fetcher.stop()


async def test_rf3_a_connection_that_breaks_before_a_fetch_is_answered_is_a_failure_like_any_other(
    cluster: Cluster,
) -> None:
    """A leader may refuse it: each attempt would follow the last one after the shortest pause, and be logged."""

    class Breaking(LeaderConnections):
        async def open(self) -> Connection:
            connection = await super().open()
            if len(self.connections) <= 3:
                connection.end(Unreachable("cut"))
            return connection

    leader = Breaking(cluster)
    fetcher = leader.fetcher()
    with capture_logs() as logs:
        fetcher.follow(cluster[2].partition())
        await copied(cluster)
    levels = [line["log_level"] for line in logs if line["event"] == "No connection to a leader"]
    assert levels == ["warning", "debug", "debug"]
    assert fetcher._failures == 0
    await fetcher.stop()


async def test_rf3_an_answer_that_cannot_be_handled_makes_the_waits_grow(cluster: Cluster) -> None:
    """It would come again after the shortest pause, and be logged each time."""
    leader = LeaderConnections(cluster)
    fetcher = leader.fetcher()
    fetcher.follow(cluster[2].partition())
    await copied(cluster)
    await fetcher.stop()  # its connection is closed: the leader does not say where its log starts
    fetcher._failures = 3
    answer = PartitionData(partition_index=0, error_code=ErrorCode.OFFSET_OUT_OF_RANGE)
    topic = FetchableTopicResponse(topic_id=cluster.topic.topic_id, partitions=(answer,))
    with pytest.raises(KafkaError):
        await fetcher._answered(leader.connections[0], fetcher._requests, FetchResponse(responses=(topic,)))
    assert fetcher._failures == 3
    await fetcher._answered(leader.connections[0], fetcher._requests, FetchResponse())
    assert fetcher._failures == 0


async def test_rf3_bounds_that_the_leader_does_not_tell_pause_those_partitions_alone(cluster: Cluster) -> None:
    """The others were fetched once in each wait before the next connection, and acknowledged with the fetch after."""

    class Mute(LeaderConnections):
        async def open(self) -> Connection:
            connection = await super().open()
            codec_for = connection.codec_for

            def refuse(request: type[Any], *versions: Any) -> Any:
                if request is ListOffsetsRequest:
                    connection.end(Unreachable("cut"))
                return codec_for(request, *versions)

            connection.codec_for = refuse  # type: ignore[method-assign]
            return connection

    leader = Mute(cluster)
    fetcher = leader.fetcher(FetchSettings(backoff_ms_max=600_000))
    await cluster[1].produce(b"a", acks=1)
    cluster[1].partition().log.delete_before(1)
    with capture_logs() as lines:
        for index in (0, 1):
            fetcher.follow(cluster[2].partition(index))
        for _ in range(20):
            await copied(cluster, 1)
    assert 1 < len(leader.connections) < 12
    assert sum(line["log_level"] in ("warning", "error") for line in lines) == 1, lines
    await fetcher.stop()


async def test_rf5_a_truncation_does_not_wait_for_the_bounds_of_another_log(cluster: Cluster) -> None:
    leader = LeaderConnections(cluster)
    fetcher = leader.fetcher()
    for index in (0, 1):
        fetcher.follow(cluster[2].partition(index))
    await copied(cluster)
    await fetcher.stop()  # its connection is closed: the leader does not say where its logs start
    partition, other = (
        PartitionData(partition_index=0, diverging_epoch=EpochEndOffset(epoch=0, end_offset=0)),
        PartitionData(partition_index=1, error_code=ErrorCode.OFFSET_OUT_OF_RANGE),
    )
    topic = FetchableTopicResponse(topic_id=cluster.topic.topic_id, partitions=(partition, other))
    with pytest.raises(KafkaError):
        await fetcher._answered(leader.connections[0], fetcher._requests, FetchResponse(responses=(topic,)))
    assert cluster[2].partition().log.log_end_offset == 0
    assert cluster[2].partition().pending_cut is None


async def test_a_session_that_the_leader_lost_is_replaced(cluster: Cluster) -> None:
    leader = LeaderConnections(cluster)
    fetcher = leader.fetcher(FetchSettings(wait_ms_max=20))
    for index in (0, 1):
        fetcher.follow(cluster[2].partition(index))
    await copied(cluster)
    sessions = cluster[1].node.fetch_sessions
    for session_id in list(sessions._sessions):
        sessions._end(session_id)
    await copied(cluster)
    await copied(cluster, 1)
    assert len(leader.connections) == 1
    await fetcher.stop()


async def test_a_leader_without_room_for_sessions_is_fetched_from_in_full(cluster: Cluster) -> None:
    cluster[1].node.fetch_sessions = FetchSessions(0)
    leader = LeaderConnections(cluster)
    fetcher = leader.fetcher(FetchSettings(wait_ms_max=50))
    for index in (0, 1):
        fetcher.follow(cluster[2].partition(index))
    for index in (0, 1, 0):
        await copied(cluster, index)
    await fetcher.stop()


async def test_the_high_watermark_is_sent_at_once_to_followers_that_request_it(cluster: Cluster) -> None:
    """KIP-1166: the fetch that waits would take ten minutes."""
    leader = LeaderConnections(cluster)
    fetcher = leader.fetcher(FetchSettings(wait_ms_max=600_000, sends_high_watermark=True))
    fetcher.follow(cluster[2].partition())
    for number in range(1, 4):
        await copied(cluster)
        await cluster.until(lambda number=number: cluster[2].partition().high_watermark == number)  # type: ignore[misc]
    await fetcher.stop()


async def test_a_partition_that_is_offline_is_left_out_and_the_others_are_copied(cluster: Cluster) -> None:
    """RF3."""
    leader = LeaderConnections(cluster)
    fetcher = leader.fetcher()
    for index in (0, 1):
        fetcher.follow(cluster[2].partition(index))
    cluster[2].partition(0).fail("the disk is gone")
    await copied(cluster, 1)
    assert len(leader.connections) == 1
    await fetcher.stop()


async def test_a_stop_while_it_pauses_leaves_nothing_behind(cluster: Cluster) -> None:
    leader: Any = LeaderConnections(cluster, Unreachable("refused"))
    fetcher = leader.fetcher(FetchSettings(backoff_ms_max=600_000))
    fetcher.follow(cluster[2].partition())
    await cluster.until(lambda: leader.unreachable == [1])
    await fetcher.stop()
    assert not [task for task in asyncio.all_tasks() if task.get_name() == "fetcher of broker 1"]
