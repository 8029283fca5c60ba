"""Fetches of followers at their leader, and of consumers at a follower."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from tests.unit.coordinator.api.data_world import NOW_MS, World, answered, batch, fetch_request
from tests.unit.coordinator.api.test_fetch import ColdLog
from tests.unit.coordinator.gated_threads import GatedThreads

from rota.coordinator.api.fetch import fetch
from rota.coordinator.config.listeners import Endpoint
from rota.coordinator.log.contract import LogConfig
from rota.coordinator.log.memory import MemoryLog
from rota.coordinator.metadata.brokers import BrokerRegistration
from rota.coordinator.metadata.eager_tasks import run_eagerly
from rota.coordinator.metadata.topic import PartitionState
from rota.coordinator.replica import follower_log
from rota.coordinator.replication.throttles import leader_throttle
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.fetch import EpochEndOffset, FetchResponse, PartitionData, ReplicaState

SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
EPOCH = 3


def placed(leader: int = 0, isr: tuple[int, ...] = (0, 1, 2), leader_epoch: int = EPOCH) -> PartitionState:
    return PartitionState(index=0, leader=leader, replicas=(0, 1, 2), isr=isr, leader_epoch=leader_epoch)


class Cluster(World):
    """Broker 0 with one partition, which it leads; 1 and 2 follow, in other racks. Epochs of brokers are 100 + id."""

    def __init__(self, leader: int = 0, log: Callable[[LogConfig], MemoryLog] = MemoryLog, **properties: str) -> None:
        super().__init__({name.replace("_", "."): value for name, value in properties.items()}, log=log)
        self.register(0, 1, 2)
        self.topic_id = self.topic(assignment=[(0, (0, 1, 2))]).topic_id
        self.partition().apply(placed(leader), self.now_ms)

    def register(self, *brokers: int) -> None:
        self.node.topics.apply_brokers(
            {
                broker: BrokerRegistration(
                    broker_id=broker,
                    epoch=100 + broker,
                    endpoints=(Endpoint("PLAINTEXT", f"host{broker}", 9092),),
                    rack=f"rack{broker}",
                )
                for broker in brokers
            }
        )

    def produce(self, *values: bytes) -> None:
        self.partition().append(batch(*values), self.now_ms)

    def send_request(self, offset: int, follower: int = 1, broker_epoch: int | None = None, **how: Any) -> Any:
        replica_epoch = 100 + follower if broker_epoch is None else broker_epoch
        replica = ReplicaState(replica_id=follower, replica_epoch=replica_epoch)
        how = {"current_leader_epoch": EPOCH, **how}
        version = how.pop("version", 18)
        return self.serve(fetch, fetch_request((self.topic_id, 0, offset), replica_state=replica, **how), version)

    def follow(self, offset: int, follower: int = 1, **how: Any) -> PartitionData:
        return only(self.send_request(offset, follower, **how))


def only(response: FetchResponse) -> PartitionData:
    (topic,) = response.responses
    (partition,) = topic.partitions
    return partition


def has_high_watermark(world: Cluster) -> int:
    return world.partition().high_watermark


class TestTheLeader:
    def test_a_follower_reads_uncommitted_records_and_its_next_fetch_commits_them(self) -> None:
        world = Cluster()
        world.produce(b"a", b"b")
        answer = world.follow(0)
        assert (answer.error_code, answer.high_watermark, bool(answer.records)) == (0, 0, True)
        world.follow(2)
        assert has_high_watermark(world) == 0
        answer = world.follow(2, follower=2)
        assert (answer.high_watermark, answer.records) == (2, b"")

    def test_a_consumer_reads_committed_records_only(self) -> None:
        world = Cluster()
        world.produce(b"a")
        answer = only(world.serve(fetch, fetch_request((world.topic_id, 0, 0)), 18))
        assert (answer.high_watermark, answer.records) == (0, b"")

    @pytest.mark.parametrize("broker_epoch", [-1, 100, 102])
    def test_a_follower_of_another_life_is_refused_and_moves_nothing(self, broker_epoch: int) -> None:
        """KIP-903: what a broker had before it registered again may be lost."""
        world = Cluster()
        world.partition().apply(placed(isr=(0, 1)), NOW_MS)
        world.produce(b"a")
        answer = world.follow(1, broker_epoch=broker_epoch)
        assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert has_high_watermark(world) == 0

    def test_a_broker_that_is_not_registered_or_no_replica_is_refused_and_moves_nothing(self) -> None:
        world = Cluster()
        world.register(0, 1, 2, 7)
        world.partition().apply(placed(isr=(0,)), NOW_MS)
        world.produce(b"a")
        assert world.follow(1, follower=7).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
        assert world.follow(1, follower=8).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert world.partition().state.isr == {0}

    def test_a_follower_that_names_no_epoch_of_its_registration_is_refused(self) -> None:
        world = Cluster()
        request = fetch_request(("t", 0, 0), replica_id=1, current_leader_epoch=EPOCH)
        assert only(world.serve(fetch, request, 12)).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER

    @pytest.mark.parametrize(
        ("epoch", "error"),
        [(EPOCH - 1, ErrorCode.FENCED_LEADER_EPOCH), (EPOCH + 1, ErrorCode.UNKNOWN_LEADER_EPOCH)],
    )
    def test_a_follower_of_another_epoch_is_fenced(self, epoch: int, error: ErrorCode) -> None:
        world = Cluster()
        world.produce(b"a")
        assert world.follow(1, current_leader_epoch=epoch).error_code == error
        fetched = world.partition().state.fetch_state(1)
        assert fetched is not None
        assert fetched.log_end_offset == -1

    async def test_a_fetch_counts_once_however_long_its_records_are_loaded(self) -> None:
        """F12. Its broker may have lost them meanwhile, and have registered again."""
        ColdLog.loads, ColdLog.reads, ColdLog.stays, ColdLog.fails = 0, 0, 1 << 30, False
        world, threads = Cluster(log=ColdLog), GatedThreads.of_this_loop()
        world.partition().apply(placed(isr=(0,)), NOW_MS)
        for value in (b"a", b"b", b"c"):
            world.produce(value)
        reply = world.send_request(2)
        assert isinstance(reply, DelayedReply)
        world.partition().follower_fetched(1, 0, NOW_MS)
        threads.open()
        async with asyncio.timeout(10):
            while not reply.answered:
                await asyncio.sleep(0.001)
        fetched = world.partition().state.fetch_state(1)
        assert fetched is not None
        assert fetched.log_end_offset == 0

    def test_a_broker_that_does_not_lead_refuses_followers(self) -> None:
        assert Cluster(leader=2).follow(0).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER

    @pytest.mark.parametrize("offset", [-1, 3])
    def test_an_offset_out_of_range_does_not_update_the_fetch_state(self, offset: int) -> None:
        world = Cluster()
        world.produce(b"a", b"b")
        assert world.follow(offset).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        fetched = world.partition().state.fetch_state(1)
        assert fetched is not None
        assert fetched.log_end_offset == -1

    def test_a_diverging_follower_gets_the_diverging_epoch(self) -> None:
        """KIP-595. What it has does not count."""
        world = Cluster()
        world.produce(b"a", b"b")
        world.partition().apply(placed(leader_epoch=EPOCH + 2), NOW_MS)
        world.produce(b"c")
        answer = world.follow(3, current_leader_epoch=EPOCH + 2, last_fetched_epoch=EPOCH + 1, max_wait_ms=500)
        assert answer.diverging_epoch == EpochEndOffset(epoch=EPOCH, end_offset=2)
        assert (answer.records, has_high_watermark(world)) == (b"", 0)
        fetched = world.partition().state.fetch_state(1)
        assert fetched is not None
        assert fetched.log_end_offset == -1

    def test_a_divergence_before_the_first_record_of_the_leader_epoch(self) -> None:
        """The leader has no record of its own epoch yet, and the follower's last record is of a lost one."""
        world = Cluster()
        world.produce(b"a", b"b")
        world.partition().apply(placed(leader_epoch=EPOCH + 2), NOW_MS)
        answer = world.follow(2, current_leader_epoch=EPOCH + 2, last_fetched_epoch=EPOCH + 1)
        assert answer.diverging_epoch == EpochEndOffset(epoch=EPOCH, end_offset=2)


class TestThrottle:
    RATE = 1_000

    def throttled(self, isr: tuple[int, ...]) -> Cluster:
        """The replicas of partition 0 are throttled, and the quota is exceeded."""
        rate = {"leader.replication.throttled.rate": str(self.RATE)}
        world = Cluster()
        world.node.config.reconfigure({}, rate)
        topics = world.node.topics
        run_eagerly(topics.alter_config("t", {"leader.replication.throttled.replicas": "0:0"}))
        world.node.leader_throttle = leader_throttle(topics, world.node.config, lambda: world.now_ms)
        world.partition().apply(placed(isr=isr, leader_epoch=EPOCH + 1), NOW_MS)
        world.produce(b"v" * 2 * self.RATE)
        assert world.follow(0, current_leader_epoch=EPOCH + 1).records
        return world

    def test_a_follower_that_is_not_in_sync_gets_no_records_until_the_rate_is_kept(self) -> None:
        world = self.throttled(isr=(0,))
        assert world.follow(0, current_leader_epoch=EPOCH + 1).records == b""
        world.after(2_500)
        assert world.follow(0, current_leader_epoch=EPOCH + 1).records

    def test_a_follower_that_is_in_sync_gets_records(self) -> None:
        world = self.throttled(isr=(0, 1))
        assert world.follow(0, current_leader_epoch=EPOCH + 1).records
        assert world.follow(0, follower=2, current_leader_epoch=EPOCH + 1).records == b""

    def test_consumers_are_not_throttled_and_do_not_count(self) -> None:
        world = self.throttled(isr=(0,))
        assert only(world.serve(fetch, fetch_request((world.topic_id, 0, 0)), 18)).records
        world.after(2_500)
        for _ in range(3):
            world.serve(fetch, fetch_request((world.topic_id, 0, 0)), 18)
        assert world.follow(0, current_leader_epoch=EPOCH + 1).records

    async def test_appends_do_not_end_the_wait_of_a_throttled_follower(self) -> None:
        world = self.throttled(isr=(0,))
        reply = world.send_request(0, max_wait_ms=500, current_leader_epoch=EPOCH + 1)
        assert isinstance(reply, DelayedReply)
        world.produce(b"a")
        await asyncio.sleep(0)
        assert not reply.answered
        world.after(500)
        assert only(answered(reply)).records == b""


class TestWaiting:
    def test_a_follower_waits_for_appends_and_not_for_commits(self) -> None:
        world = Cluster()
        world.produce(b"a")
        reply = world.send_request(1, max_wait_ms=500)
        assert isinstance(reply, DelayedReply)
        assert not reply.mutes
        world.follow(1, follower=2)
        assert has_high_watermark(world) == 1
        assert not reply.answered
        world.after(500)
        assert only(answered(reply)).high_watermark == 1

    async def test_an_append_answers_it_in_the_next_tick(self) -> None:
        world = Cluster()
        reply = world.send_request(0, max_wait_ms=500)
        world.produce(b"a")
        assert not reply.answered
        await asyncio.sleep(0)
        assert only(answered(reply)).records

    async def test_a_follower_that_sends_its_high_watermark_receives_a_new_one_at_once(self) -> None:
        """KIP-1166."""
        world = Cluster()
        world.produce(b"a")
        reply = world.send_request(1, max_wait_ms=500, high_watermark=0)
        world.follow(1, follower=2)
        await asyncio.sleep(0)
        assert only(answered(reply)).high_watermark == 1
        assert only(world.send_request(1, max_wait_ms=500, high_watermark=0)).high_watermark == 1
        assert isinstance(world.send_request(1, max_wait_ms=500, high_watermark=1), DelayedReply)

    async def test_a_replaced_leader_answers_delayed_fetches_with_fenced_leader_epoch(self) -> None:
        world = Cluster()
        reply = world.send_request(0, max_wait_ms=500)
        world.partition().apply(placed(leader=1, leader_epoch=EPOCH + 1), NOW_MS)
        await asyncio.sleep(0)
        assert only(answered(reply)).error_code == ErrorCode.FENCED_LEADER_EPOCH

    async def test_the_next_request_of_the_session_ends_the_wait(self) -> None:
        """F14. A follower adds a partition while its leader has nothing for it."""
        world = Cluster()
        session = world.send_request(0, session_epoch=0).session_id
        waiting = world.send_request(0, max_wait_ms=500, session_id=session, session_epoch=1)
        assert isinstance(waiting, DelayedReply)
        world.produce(b"a")
        later = world.send_request(0, max_wait_ms=500, session_id=session, session_epoch=2)
        assert answered(waiting).error_code == ErrorCode.NONE
        assert later.error_code == ErrorCode.NONE
        assert only(later).records

    def test_caught_up_time_is_that_of_the_request_not_of_the_response(self) -> None:
        """F12. A follower that falls silent while its fetch waits does not look caught up."""
        world = Cluster()
        world.send_request(0, max_wait_ms=20_000)
        world.after(20_000)
        fetched = world.partition().state.fetch_state(1)
        assert fetched is not None
        assert fetched.last_caught_up_ms == NOW_MS


class TestReadingFromFollowers:
    """KIP-392."""

    def world(self, leader: int = 1) -> Cluster:
        return Cluster(leader=leader, replica_selector_class=SELECTOR)

    def copied(self) -> Cluster:
        """A follower with two records, of which one is committed."""
        leader, world = Cluster(), self.world()
        leader.produce(b"a")
        leader.produce(b"b")
        records = leader.partition().read(0, 1 << 20, uncommitted=True)
        follower_log.append(world.partition(), records, EPOCH)
        follower_log.take_bounds(world.partition(), 1, 0, EPOCH)
        return world

    def consume(self, world: Cluster, offset: int, version: int = 18, **how: Any) -> PartitionData:
        topic: str | bytes = world.topic_id if version > 12 else "t"
        return only(world.serve(fetch, fetch_request((topic, 0, offset), **how), version))

    def test_a_follower_returns_to_a_consumer_only_records_it_knows_to_be_committed(self) -> None:
        answer = self.consume(self.copied(), 0)
        assert (answer.error_code, answer.high_watermark) == (0, 1)
        assert answer.records
        assert self.consume(self.copied(), 1).records == b""

    def test_an_offset_beyond_the_followers_end_may_still_arrive(self) -> None:
        assert self.consume(self.copied(), 3).error_code == ErrorCode.OFFSET_NOT_AVAILABLE

    @pytest.mark.parametrize(
        ("epoch", "offset", "end", "error"),
        [
            (1, 2, 1, ErrorCode.NONE),
            (1, 9, 1, ErrorCode.NONE),
            (EPOCH - 1, 1, 1, ErrorCode.NONE),
            (EPOCH, 2, None, ErrorCode.NONE),
            (EPOCH, 9, None, ErrorCode.OFFSET_NOT_AVAILABLE),
            (EPOCH + 1, 1, None, ErrorCode.OFFSET_OUT_OF_RANGE),
        ],
    )
    def test_a_follower_tells_a_consumer_where_their_logs_differ(
        self, epoch: int, offset: int, end: int | None, error: ErrorCode
    ) -> None:
        """F13, as in Kafka: by what is committed; a consumer at the end of the follower's log may be ahead of it."""
        leader, world = Cluster(), self.world()
        for leader_epoch in (1, EPOCH, EPOCH):
            leader.partition().log.append(batch(b"a"), leader_epoch=leader_epoch, now_ms=NOW_MS)
        follower_log.append(world.partition(), leader.partition().read(0, 1 << 20, uncommitted=True), EPOCH)
        follower_log.take_bounds(world.partition(), 2, 0, EPOCH)
        answer = self.consume(world, offset, last_fetched_epoch=epoch, max_wait_ms=0)
        assert answer.error_code == error
        assert answer.diverging_epoch == (None if end is None else EpochEndOffset(epoch=1, end_offset=end))

    def test_an_old_consumer_reads_from_the_leader_alone(self) -> None:
        assert self.consume(self.copied(), 0, version=10).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER

    def test_the_leader_sends_a_consumer_to_a_replica_in_its_rack(self) -> None:
        world = self.world(leader=0)
        world.produce(b"a")
        for follower in (1, 2):
            world.follow(1, follower=follower)
        answer = self.consume(world, 0, rack_id="rack2", max_wait_ms=500)
        assert (answer.preferred_read_replica, answer.records, answer.high_watermark) == (2, b"", 1)
        for rack in ("rack0", "elsewhere", ""):
            answer = self.consume(world, 0, rack_id=rack)
            assert (answer.preferred_read_replica, bool(answer.records)) == (-1, True)

    def test_without_a_selector_consumers_stay_with_the_leader(self) -> None:
        world = Cluster()
        world.produce(b"a")
        for follower in (1, 2):
            world.follow(1, follower=follower)
        assert self.consume(world, 0, rack_id="rack2").preferred_read_replica == -1
