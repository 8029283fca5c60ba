"""Fetching from brokers whose answers are written by the test; real brokers are in tests/client."""

from __future__ import annotations

import asyncio

import pytest
from tests.unit.client.consumer.kit import P0, P1, P2, P3, TOPIC, TOPIC_ID, Feed, batch, reading
from tests.unit.client.network.scripted import eventually

from rota.client.errors import BrokerError, OffsetOutOfRange
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from rota.protocol.messages.metadata import MetadataRequest


async def test_all_partitions_of_all_leaders_are_read_in_order() -> None:
    feed = Feed()
    feed.leaders = {0: 0, 1: 1, 2: 0, 3: 1}
    for number in range(4):
        feed.write(number, *(batch(base, 5) for base in range(0, 50, 5)))
    async with reading(feed) as its:
        its.begin(P0, P1, P2, P3)
        await its.until(200, records_max=7)
        for partition in (P0, P1, P2, P3):
            assert await its.offsets(partition, 200) == list(range(50))
        assert feed.requests(0)
        assert feed.requests(1)


async def test_records_written_later_are_fetched() -> None:
    feed = Feed()
    async with reading(feed) as its:
        its.begin(P0)
        for base in range(0, 6, 2):
            feed.write(0, batch(base, 2))
            assert await its.offsets(P0, base + 2) == list(range(base + 2))
        assert its.positions.of(P0).high_watermark == 6


async def test_a_fetch_request_has_the_configured_limits() -> None:
    feed = Feed()
    settings = {"fetch_min_bytes": 3, "fetch_max_bytes": 4_000, "max_partition_fetch_bytes": 500}
    async with reading(feed, **settings, isolation_level="read_committed", client_rack="r1") as its:
        its.begin(P0)
        [requests, *_] = await eventually(feed.requests)
        assert (requests.min_bytes, requests.max_bytes, requests.max_wait_ms) == (3, 4_000, 50)
        assert (requests.isolation_level, requests.rack_id) == (1, "r1")
        assert [item.partition_max_bytes for item in requests.topics[0].partitions] == [500]


async def test_a_batch_above_all_limits_is_fetched() -> None:
    feed = Feed()
    feed.write(0, batch(0, 1, b"x" * 5_000), batch(1, 1, b"y" * 5_000))
    async with reading(feed, fetch_max_bytes=100, max_partition_fetch_bytes=100) as its:
        its.begin(P0)
        assert await its.offsets(P0, 2) == [0, 1]


async def test_buffered_bytes_are_bounded() -> None:
    """Nobody takes: two answers wait, of a broker that has a thousand times as much."""
    feed = Feed()
    for number in range(4):
        feed.write(number, *(batch(base, 10, b"x" * 1_000) for base in range(0, 2_000, 10)))
    answer_bytes = 4 * 30_000 + 1_000
    async with reading(feed, max_partition_fetch_bytes=30_000) as its:
        its.begin(P0, P1, P2, P3)
        await eventually(lambda: its.fetcher.held_bytes > answer_bytes)
        requests = len(feed.requests())
        for _ in range(20):
            its.fetcher.wake()
            await asyncio.sleep(0.005)
        assert len(feed.requests()) == requests
        assert its.fetcher.held_bytes <= 2 * answer_bytes
        await its.until(8_000)
        for partition in (P0, P1, P2, P3):
            assert await its.offsets(partition, 8_000) == list(range(2_000))


async def test_a_paused_partition_keeps_its_records_and_is_not_fetched() -> None:
    feed = Feed()
    for number in range(2):
        feed.write(number, *(batch(base, 10, b"x" * 1_000) for base in range(0, 1_000, 10)))
    async with reading(feed, max_partition_fetch_bytes=30_000) as its:
        its.begin(P0, P1)
        await its.until(10, records_max=10)
        its.positions.pause([P0])
        its.fetcher.wake()
        before = len([item for item in its.taken if item.partition == 0])
        peak = 0
        async with asyncio.timeout(10):
            while len([item for item in its.taken if item.partition == 1]) < 1_000:
                if not its.take(50):
                    await its.fetcher.wait()
                peak = max(peak, its.fetcher.held_bytes)
        assert len([item for item in its.taken if item.partition == 0]) == before
        assert peak < 4 * 62_000
        await eventually(lambda: its.fetcher.held_bytes < 62_000)
        settled = len(feed.requests())
        await eventually(lambda: len(feed.requests()) > settled)
        assert {item.partition for topic in feed.requests()[-1].topics for item in topic.partitions} == {1}
        its.positions.resume([P0])
        its.fetcher.wake()
        assert await its.offsets(P0, 2_000) == list(range(1_000))


async def test_with_all_partitions_paused_no_request_is_sent() -> None:
    feed = Feed()
    async with reading(feed) as its:
        its.begin(P0)
        await eventually(feed.requests)
        its.positions.pause([P0])
        its.fetcher.wake()
        await eventually(lambda: not its.fetcher._fetches)
        requests = len(feed.requests())
        feed.write(0, batch(0, 2))
        its.fetcher.wake()
        await asyncio.sleep(0.02)
        assert len(feed.requests()) == requests
        its.positions.resume([P0])
        its.fetcher.wake()
        assert await its.offsets(P0, 2) == [0, 1]


async def test_a_response_to_a_request_before_a_seek_is_dropped() -> None:
    feed = Feed()
    feed.write(0, *(batch(base, 5) for base in range(0, 50, 5)))
    async with reading(feed, max_partition_fetch_bytes=150) as its:
        its.begin(P0)
        await its.until(5, records_max=5)
        its.positions.seek(P0, 33)
        its.fetcher.wake()
        await its.until(5 + 17)
        assert [item.offset for item in its.taken[5:]] == list(range(33, 50))


async def test_a_revoked_partition_returns_no_more_records() -> None:
    feed = Feed()
    feed.write(0, batch(0, 5))
    feed.write(1, batch(0, 5))
    async with reading(feed) as its:
        its.begin(P0, P1)
        await eventually(lambda: its.fetcher.held_bytes)
        its.positions.drop([P0])
        its.fetcher.wake()
        await its.until(5)
        assert {item.partition for item in its.taken} == {1}


async def test_no_partition_starves_behind_a_full_one() -> None:
    feed = Feed()
    feed.write(0, *(batch(base, 10) for base in range(0, 5_000, 10)))
    feed.write(1, batch(0, 10))
    async with reading(feed, max_partition_fetch_bytes=2_000) as its:
        its.begin(P0, P1)
        async with asyncio.timeout(10):
            while not any(item.partition == 1 for item in its.taken):
                if not its.take(10):
                    await its.fetcher.wait()
        assert len(its.taken) < 500


async def test_a_leader_that_moves_is_followed() -> None:
    feed = Feed()
    feed.write(0, batch(0, 2))
    async with reading(feed) as its:
        its.begin(P0)
        await its.until(2)
        feed.leaders[0], feed.epochs[0] = 1, 1
        feed.instead[0] = [PartitionData(partition_index=0, error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER)]
        feed.write(0, batch(2, 2))
        assert await its.offsets(P0, 4) == [0, 1, 2, 3]
        requests = await eventually(lambda: feed.requests(1))
        assert requests[0].topics[0].partitions[0].current_leader_epoch == 1


async def test_a_leader_named_in_an_error_is_fetched_from_at_once() -> None:
    """KIP-951: before the metadata say so, which here they never do."""
    feed = Feed()
    feed.write(0, batch(0, 2))
    async with reading(feed, retry_backoff_ms=60_000, retry_backoff_max_ms=60_000) as its:
        named = LeaderIdAndEpoch(leader_id=1, leader_epoch=5)
        code = ErrorCode.NOT_LEADER_OR_FOLLOWER
        feed.instead[0] = [PartitionData(partition_index=0, error_code=code, current_leader=named)]
        its.begin(P0)
        assert await its.offsets(P0, 2) == [0, 1]
        assert feed.requests(1)[0].topics[0].partitions[0].current_leader_epoch == 5


async def test_a_leader_that_no_metadata_names_is_reached_at_the_address_in_the_answer() -> None:
    """KIP-951: node_endpoints."""
    feed = Feed()
    feed.brokers[0].peers = feed.brokers[1].peers = [feed.brokers[0]]
    feed.write(0, batch(0, 2))
    async with reading(feed, retry_backoff_ms=60_000, retry_backoff_max_ms=60_000) as its:
        assert 1 not in its.cluster.metadata.brokers
        named = LeaderIdAndEpoch(leader_id=1, leader_epoch=5)
        part = PartitionData(
            partition_index=0, error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER, current_leader=named, high_watermark=-1
        )
        topic = FetchableTopicResponse(topic_id=feed.topic_id, partitions=(part,))
        endpoint = NodeEndpoint(node_id=1, host="127.0.0.1", port=feed.brokers[1].port, rack=None)
        feed.whole = [FetchResponse(responses=(topic,), node_endpoints=(endpoint,))]
        its.begin(P0)
        assert await its.offsets(P0, 2) == [0, 1]
        assert feed.requests(1)[0].topics[0].partitions[0].current_leader_epoch == 5


async def test_a_replica_near_by_is_read_until_it_refuses() -> None:
    feed = Feed()
    feed.write(0, batch(0, 2))
    async with reading(feed, client_rack="r1") as its:
        feed.instead[0] = [PartitionData(partition_index=0, preferred_read_replica=1)]
        its.begin(P0)
        await its.until(2)
        assert feed.requests(1)
        feed.instead[0] = [PartitionData(partition_index=0, error_code=ErrorCode.OFFSET_OUT_OF_RANGE)]
        before = len(feed.requests(0))
        feed.write(0, batch(2, 2))
        assert await its.offsets(P0, 4) == [0, 1, 2, 3]
        assert len(feed.requests(0)) > before


async def test_requests_have_the_leader_epoch_of_the_position() -> None:
    feed = Feed()
    feed.write(0, batch(0, 2, epoch=3))
    async with reading(feed) as its:
        its.begin(P0)
        await its.until(2)
        last = await eventually(
            lambda: [item for item in feed.requests() if item.topics[0].partitions[0].fetch_offset == 2]
        )
        assert last[0].topics[0].partitions[0].last_fetched_epoch == 3


@pytest.mark.parametrize("code", [70, 71, 106])
async def test_a_lost_session_is_replaced_without_a_backoff(code: int) -> None:
    feed = Feed()
    feed.write(0, batch(0, 2))
    async with reading(feed, retry_backoff_ms=60_000, retry_backoff_max_ms=60_000) as its:
        feed.whole = [FetchResponse(error_code=code)]
        its.begin(P0)
        assert await its.offsets(P0, 2) == [0, 1]
        assert feed.requests()[1].session_epoch == 0


async def test_a_partition_that_was_refused_does_not_wait_behind_the_others() -> None:
    """They have nothing: the broker would keep the fetch for a minute."""
    feed = Feed()
    feed.write(0, batch(0, 2))
    async with reading(feed, fetch_max_wait_ms=60_000, retry_backoff_ms=200, retry_backoff_max_ms=200) as its:
        feed.instead[0] = [PartitionData(partition_index=0, error_code=ErrorCode.UNKNOWN_TOPIC_ID)]
        its.begin(P0, P1)
        assert await its.offsets(P0, 2) == [0, 1]
        assert feed.requests()[1].max_wait_ms <= 240


async def test_a_connection_that_breaks_loses_nothing() -> None:
    feed = Feed()
    feed.write(0, *(batch(base, 5) for base in range(0, 50, 5)))
    async with reading(feed, max_partition_fetch_bytes=150) as its:
        its.begin(P0)
        for count in range(10, 51, 10):
            await its.until(count, records_max=5)
            feed.brokers[0].drop()
        assert await its.offsets(P0, 50) == list(range(50))


async def test_a_topic_without_an_id_is_fetched_by_its_name() -> None:
    feed = Feed()
    feed.topic_id = bytes(16)
    async with reading(feed) as its:
        its.begin(P0)
        requests = await eventually(feed.requests)
        assert requests[0].topics[0].topic == TOPIC
        header = next(item for item in feed.brokers[0].headers if item.api_key == 1)
        assert header.api_version == 12


async def test_a_topic_with_an_id_is_fetched_by_it() -> None:
    feed = Feed()
    async with reading(feed) as its:
        its.begin(P0)
        requests = await eventually(feed.requests)
        assert requests[0].topics[0].topic_id == TOPIC_ID


async def test_out_of_range_is_raised_and_a_seek_continues() -> None:
    feed = Feed()
    feed.write(0, batch(0, 2))
    async with reading(feed, auto_offset_reset="none") as its:
        feed.instead[0] = [PartitionData(partition_index=0, error_code=ErrorCode.OFFSET_OUT_OF_RANGE)]
        its.begin(P0)
        assert isinstance(await its.failure(), OffsetOutOfRange)
        its.positions.seek(P0, 1)
        its.fetcher.wake()
        assert await its.offsets(P0, 1) == [1]


async def test_a_reset_ends_the_wait() -> None:
    feed = Feed()
    async with reading(feed, auto_offset_reset="earliest") as its:
        feed.instead[0] = [PartitionData(partition_index=0, error_code=ErrorCode.OFFSET_OUT_OF_RANGE)]
        its.begin(P0)
        async with asyncio.timeout(10):
            while not its.positions.without_offset():
                await its.fetcher.wait()
        assert its.positions.of(P0).reset == "earliest"
        assert its.take() == 0


async def test_an_error_of_the_whole_response_fails_each_partition() -> None:
    feed = Feed()
    async with reading(feed) as its:
        feed.whole = [FetchResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)]
        its.begin(P0, P1)
        for _ in range(2):
            error = await its.failure()
            assert isinstance(error, BrokerError)
            assert error.code is ErrorCode.UNSUPPORTED_VERSION


async def test_a_topic_without_a_leader_is_waited_for() -> None:
    feed = Feed()
    feed.leaders[0] = -1
    async with reading(feed) as its:
        its.begin(P0)
        requests = feed.brokers[0].counted()[MetadataRequest]
        await eventually(lambda: feed.brokers[0].counted()[MetadataRequest] > requests)
        feed.leaders[0], feed.epochs[0] = 1, 1
        feed.write(0, batch(0, 1))
        assert await its.offsets(P0, 1) == [0]


async def test_wake_ends_a_wait() -> None:
    feed = Feed()
    async with reading(feed) as its:
        its.begin(P0)
        await its.fetcher.wait()  # `begin` woke it
        waiting = asyncio.create_task(its.fetcher.wait())
        await asyncio.sleep(0)
        assert not waiting.done()
        its.fetcher.wake()
        async with asyncio.timeout(10):
            await waiting


async def test_a_wait_that_is_cancelled_costs_nothing() -> None:
    feed = Feed()
    async with reading(feed) as its:
        its.begin(P0)
        await its.fetcher.wait()
        for base in range(0, 20, 2):
            waiting = asyncio.create_task(its.fetcher.wait())
            await asyncio.sleep(0)
            waiting.cancel()
            feed.write(0, batch(base, 2))
            await its.until(base + 2)
        assert [item.offset for item in its.taken] == list(range(20))


async def test_missing_positions_end_a_wait_and_let_others_run() -> None:
    feed = Feed()
    async with reading(feed) as its:
        its.positions.assign([P0])
        ran = asyncio.create_task(asyncio.sleep(0))
        async with asyncio.timeout(10):
            for _ in range(5):
                await its.fetcher.wait()
        assert ran.done()


async def test_after_close_no_records_are_returned() -> None:
    feed = Feed()
    feed.write(0, batch(0, 2))
    async with reading(feed) as its:
        its.begin(P0)
        await eventually(lambda: its.fetcher.held_bytes)
        await its.fetcher.close()
        its.fetcher.wake()
        assert its.take() == 0
        assert its.fetcher.held_bytes == 0
        await its.fetcher.close()


@pytest.mark.parametrize("change", ["seek", "assigned again"])
async def test_the_log_end_of_a_discarded_response_counts_when_the_next_one_omits_the_partition(change: str) -> None:
    """The first response comes after the change; the second one is empty, as the end has been returned."""
    feed, changed = Feed(1), asyncio.Event()

    async def answer(request: FetchRequest) -> FetchResponse | None:
        if request.session_epoch == 0:
            await changed.wait()
            ends = PartitionData(partition_index=0, high_watermark=2, last_stable_offset=2, log_start_offset=1)
            return FetchResponse(
                session_id=7, responses=(FetchableTopicResponse(topic_id=TOPIC_ID, partitions=(ends,)),)
            )
        return FetchResponse(session_id=7) if request.session_epoch == 1 else None

    feed.brokers[0].on(FetchRequest, answer)
    async with reading(feed) as its:
        its.begin(P0)
        await eventually(feed.requests)
        if change == "assigned again":
            its.positions.assign([])
            its.positions.assign([P0])
        its.positions.seek(P0, 2)
        changed.set()
        await eventually(lambda: len(feed.requests()) == 3)
        position = its.positions.of(P0)
        assert (position.high_watermark, position.last_stable_offset, position.log_start) == (2, 2, 1)


@pytest.mark.parametrize("policy", ["earliest", "none"])
async def test_c14_a_position_does_not_belong_to_a_topic_that_is_created_again(policy: str) -> None:
    """Its log may be longer already: what it has would be passed over."""
    feed = Feed(1)
    feed.write(0, batch(0, 10))
    async with reading(feed, auto_offset_reset=policy) as its:
        its.begin(P0)
        await its.until(10)
        feed.topic_id = bytes(range(1, 17))
        feed.batches[0] = [batch(0, 20)]
        await its.cluster.refresh()
        position = its.positions.of(P0)
        assert (position.offset, position.reset) == (None, policy)
        assert its.take() == 0
        its.positions.seek(P0, 0)
        its.fetcher.wake()
        await its.until(30)
        feed.topic_id = TOPIC_ID
        await its.cluster.refresh()
        assert its.positions.of(P0).offset == 20, "of a broker that has not read of it yet"
        feed.batches[0] = [batch(0, 30)]
        for _ in range(10):
            await its.cluster.refresh()
        assert its.take() == 0, "of the deleted topic, which that broker still has"


async def test_c14_a_partition_that_is_assigned_again_belongs_to_the_topic_of_now() -> None:
    feed = Feed(1)
    feed.write(0, batch(0, 10))
    async with reading(feed, auto_offset_reset="earliest") as its:
        its.begin(P0)
        await its.until(10)
        its.positions.assign([])
        feed.topic_id = bytes(range(1, 17))
        await its.cluster.refresh()
        its.begin(P0)
        feed.leaders[0] = 1
        await its.cluster.refresh()
        assert its.positions.of(P0).offset == 0
