"""Whole brokers on the loopback: records flow from leaders to followers, through elections, restarts and failures."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.coordinator.replication.cluster import Cluster

from rota.coordinator.config.broker import BrokerConfig
from rota.coordinator.config.definition import ConfigRefused
from rota.coordinator.replica.fetch_sessions import FetchSessions
from rota.coordinator.replication.fetcher import FetcherStops
from rota.coordinator.replication.replication import Replication, fetch_settings
from rota.protocol.errors import ErrorCode


@pytest.fixture(params=["memory", "disk"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path | None:
    return tmp_path if request.param == "disk" else None


async def test_followers_copy_their_leader_and_acks_all_waits_for_them(folder: Path | None) -> None:
    async with Cluster(folder=folder) as cluster:
        response = await cluster[1].produce(b"a", b"b")
        assert (response.error_code, response.base_offset) == (0, 0)
        assert cluster[2].values() == cluster[3].values() == [b"a", b"b"]
        await cluster[1].produce(b"c", acks=1)
        await cluster.same_logs()


async def test_a_new_leader_has_every_acknowledged_record_and_the_old_one_loses_the_others(folder: Path | None) -> None:
    """L1, R1, RE6: the old leader comes back with records that nobody else had (KIP-101)."""
    async with Cluster(folder=folder) as cluster:
        await cluster[1].produce(b"a")
        for follower in (2, 3):
            await cluster[follower].replication.stop()
        await cluster[1].produce(b"lost", acks=1)
        cluster.elect(2, isr=(2, 3), to={2, 3})
        for follower in (2, 3):
            cluster[follower].replication.start()
        assert (await cluster[2].produce(b"b", b"c")).error_code == ErrorCode.NONE
        assert cluster[1].values() == [b"a", b"lost"]
        cluster.announce()
        await cluster.same_logs()
        assert cluster[1].values() == [b"a", b"b", b"c"]
        assert cluster[1].truncated == [cluster[1].partition()]
        await cluster.in_sync(1, 2, 3)


async def test_logs_that_diverged_more_than_once_become_equal(folder: Path | None) -> None:
    """KIP-279: two brokers have led in turn, each without the records of the other."""
    async with Cluster(size=2, folder=folder) as cluster:
        await cluster[1].produce(b"a")
        for broker in (1, 2):
            await cluster[broker].replication.stop()
        for leader in (1, 2, 1, 2, 1):
            cluster.elect(leader, isr=(leader,))
            for _ in range(leader):
                await cluster[leader].produce(f"{cluster.state().leader_epoch}".encode(), acks=1)
        for broker in (1, 2):
            cluster[broker].replication.start()
        await cluster.same_logs()
        await cluster.in_sync(1, 2)
        assert cluster[2].values() == [b"a", b"1", b"3", b"5"]


async def test_a_follower_without_records_forgets_an_epoch_that_its_leader_does_not_have(folder: Path | None) -> None:
    """RE6. There is nothing to truncate, and it would be told to truncate again and again."""
    async with Cluster(size=2, folder=folder) as cluster:
        await cluster[1].produce(b"a")
        for broker in (1, 2):
            await cluster[broker].replication.stop()
        for leader, count in ((1, 3), (2, 1), (1, 1)):
            cluster.elect(leader, isr=(leader,))
            for _ in range(count):
                await cluster[leader].produce(b"x", acks=1)
            if leader == 2:
                cluster[2].partition().log.delete_before(2)
        for broker in (1, 2):
            cluster[broker].replication.start()
        await cluster.in_sync(1, 2)
        assert cluster[2].values() == [b"x"] * 3


async def test_a_stopped_follower_leaves_the_isr_and_returns(folder: Path | None) -> None:
    async with Cluster(folder=folder) as cluster:
        await cluster[1].produce(b"a")
        await cluster.stop(3)
        assert (await cluster[1].produce(b"b")).error_code == ErrorCode.NONE
        await cluster.in_sync(1, 2)
        if folder is None:
            cluster.members[3].image = cluster[1].image  # its log in memory is lost, and so is its registration
        await cluster.start(3)
        await cluster.in_sync(1, 2, 3)
        await cluster.same_logs()


async def test_too_few_in_sync_replicas_acknowledge_nothing() -> None:
    async with Cluster(size=2, min_insync_replicas="2") as cluster:
        await cluster.stop(2)
        assert (await cluster[1].produce(b"a", timeout_ms=100)).error_code == ErrorCode.REQUEST_TIMED_OUT
        await cluster.in_sync(1)
        assert (await cluster[1].produce(b"b")).error_code == ErrorCode.NOT_ENOUGH_REPLICAS
        assert cluster[1].partition().high_watermark == 0


async def test_a_follower_behind_the_leaders_log_start_restarts_its_log_there(folder: Path | None) -> None:
    async with Cluster(size=2, folder=folder) as cluster:
        await cluster[1].produce(b"a", b"b")
        await cluster[2].replication.stop()
        cluster.set_state(replace(cluster.state(), isr=(1,)))
        for value in (b"c", b"d", b"e"):
            await cluster[1].produce(value)
        cluster[1].partition().begin_delete_before(4)
        cluster[2].replication.start()
        await cluster.same_logs()
        assert cluster[2].values() == [b"e"]
        assert cluster[2].partition().log_start_offset == 4


async def test_deleted_records_are_deleted_on_followers(folder: Path | None) -> None:
    async with Cluster(size=2, folder=folder) as cluster:
        for value in (b"a", b"b", b"c"):
            await cluster[1].produce(value)
        cluster[1].partition().begin_delete_before(2)
        await cluster[1].produce(b"d")
        await cluster.same_logs()
        assert cluster[2].partition().log_start_offset == 2


async def test_a_producer_that_retries_at_the_new_leader_writes_once(folder: Path | None) -> None:
    async with Cluster(size=2, folder=folder) as cluster:
        how = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0}
        await cluster[1].produce(b"a", **how)
        cluster.elect(2)
        again = await cluster[2].produce(b"a", **how)
        assert (again.error_code, again.base_offset) == (0, 0)
        assert (await cluster[2].produce(b"b", **{**how, "base_sequence": 1})).base_offset == 1
        await cluster.same_logs()


async def test_a_partition_added_during_a_delayed_fetch_is_copied_at_once() -> None:
    """RF2. The fetch that waits at the leader would take ten minutes."""
    how = dict.fromkeys(("replica_fetch_wait_max_ms", "replica_lag_time_max_ms", "replica_socket_timeout_ms"), "600000")
    async with Cluster(size=2, partitions=2, **how) as cluster:
        await cluster[1].produce(b"a")
        cluster.elect(2, index=1)
        await cluster[2].produce(b"b", index=1)
        cluster.elect(1, index=1)
        await cluster[1].produce(b"c", index=1)
        await cluster[1].produce(b"d")
        assert cluster[2].values(1) == [b"b", b"c"]


async def test_brokers_that_learn_a_new_epoch_at_different_times_recover() -> None:
    """RE7. The follower is ahead of its leader, then behind it."""
    async with Cluster(size=2) as cluster:
        await cluster[1].produce(b"a")
        cluster.elect(1, to={2})
        await asyncio.sleep(0.05)
        cluster.announce()
        await cluster[1].produce(b"b")
        cluster.elect(1, to={1})
        await asyncio.sleep(0.05)
        cluster.announce()
        await cluster[1].produce(b"c")
        await cluster.same_logs()


async def test_an_unreachable_leader_is_reported_and_found_again_at_another_address() -> None:
    async with Cluster(size=2) as cluster:
        await cluster[1].produce(b"a")
        await cluster.stop(1)
        await cluster.until(lambda: cluster[2].unreachable.count(1) >= 2)
        cluster.remove_broker(1)
        cluster.elect(2, isr=(2,))
        await cluster[2].produce(b"b")
        cluster[1].port = 0
        await cluster.start(1)
        await cluster.in_sync(1, 2)
        await cluster.same_logs()


async def test_a_broker_leads_only_partitions_it_was_elected_for_in_this_registration() -> None:
    """RE4."""
    async with Cluster(size=2) as cluster:
        epoch = cluster.registrations[1].epoch
        await cluster[1].produce(b"a")
        lost = cluster.registrations.pop(1)
        cluster.announce()
        assert (await cluster[1].produce(b"b")).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        cluster.registrations[1] = replace(lost, epoch=epoch + 50)
        cluster.announce()
        assert not cluster[1].partition().is_leader
        cluster.set_state(replace(cluster.state(), leader_epoch=1, leader_broker_epoch=epoch + 50))
        assert (await cluster[1].produce(b"c")).error_code == ErrorCode.NONE
        await cluster.same_logs()


async def test_a_replica_that_is_moved_away_is_removed_and_the_new_one_copies_everything(folder: Path | None) -> None:
    async with Cluster(folder=folder) as cluster:
        cluster.set_state(replace(cluster.state(), replicas=(1, 2), isr=(1, 2)))
        assert cluster[3].partitions.get("t", 0) is None
        await cluster[1].produce(b"a", b"b")
        cluster.set_state(replace(cluster.state(), replicas=(1, 2, 3)))
        await cluster.in_sync(1, 2, 3)
        await cluster.same_logs()
        assert cluster[3].values() == [b"a", b"b"]


async def test_many_partitions_over_several_connections() -> None:
    async with Cluster(size=2, partitions=20, num_replica_fetchers="3") as cluster:
        responses = await asyncio.gather(*(cluster[1].produce(b"%d" % index, index=index) for index in range(20)))
        assert [response.error_code for response in responses] == [0] * 20
        assert [cluster[2].values(index) for index in range(20)] == [[b"%d" % index] for index in range(20)]


async def test_a_large_backlog_is_copied_in_several_fetches(folder: Path | None) -> None:
    how = {"replica_fetch_response_max_bytes": "50000", "replica_fetch_max_bytes": "20000"}
    async with Cluster(size=2, folder=folder, **how) as cluster:
        await cluster[2].replication.stop()
        for number in range(60):
            await cluster[1].produce(bytes(3000), str(number).encode(), acks=1)
        cluster[2].replication.start()
        await cluster.same_logs()


def test_the_settings_are_those_of_kafka() -> None:
    settings = fetch_settings(BrokerConfig({"replica.fetch.wait.max.ms": "7"}))
    assert (settings.wait_ms_max, settings.partition_bytes_max, settings.bytes_min) == (7, 1 << 20, 1)
    assert not settings.sends_high_watermark
    rack_aware = {"replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector"}
    assert fetch_settings(BrokerConfig(rack_aware)).sends_high_watermark


async def test_a_connection_that_breaks_accuses_its_leader_before_a_fetcher_notices() -> None:
    """LB1: clients of that leader are about to ask for another one. A connection that is closed here accuses nobody."""
    async with Cluster(size=2) as cluster:
        follower = cluster[2]
        await follower.replication.stop()
        follower.unreachable.clear()
        own, broken = [await follower.replication._connect(1, 0) for _ in range(2)]
        own.end(FetcherStops("the fetcher closes the connection"))
        assert (own.is_open, follower.unreachable) == (False, [])
        await cluster[1].listener.stop(0)
        await cluster.until(lambda: not broken.is_open)
        assert follower.unreachable == [1]


async def test_a_throttled_follower_that_lags_copies_no_faster_than_its_rate_and_others_do_not_wait() -> None:
    replicas = {"follower.replication.throttled.replicas": "0:2"}
    async with Cluster(size=2, partitions=2, configs=replicas, replica_fetch_max_bytes="100") as cluster:
        await cluster.stop(2)
        for index in (0, 1):
            await cluster.until(lambda index=index: cluster.state(index).isr == (1,))  # type: ignore[misc]
            for _ in range(20):
                await cluster[1].produce(b"v" * 100, index=index)
        cluster[2].properties["follower.replication.throttled.rate"] = "1"
        await cluster.start(2)
        await cluster.in_sync(1, 2, index=1)
        assert cluster.state(0).isr == (1,)
        assert len(cluster[2].values(0)) < 20
        assert cluster[2].node.config.follower_replication_throttled_rate == 1
        cluster[2].node.config.reconfigure({}, {"follower.replication.throttled.rate": "1000000"})
        await cluster.in_sync(1, 2, index=0)
        assert cluster[2].values(0) == [b"v" * 100] * 20


async def test_a_throttled_follower_that_is_in_sync_stays_in_sync() -> None:
    throttle = {"leader_replication_throttled_rate": "1", "follower_replication_throttled_rate": "1"}
    replicas = {"follower.replication.throttled.replicas": "*", "leader.replication.throttled.replicas": "*"}
    async with Cluster(size=2, configs=replicas, **throttle) as cluster:
        for _ in range(5):
            assert (await cluster[1].produce(b"v" * 100)).error_code == 0
        assert cluster.state().isr == (1, 2)
        await cluster.same_logs()


async def test_six_replicas_stay_in_sync_without_fetch_sessions() -> None:
    """F4. The leader has no place for a session: each fetch of its followers names every partition."""
    async with Cluster(size=6, partitions=3) as cluster:
        for member in cluster.members.values():
            member.node.fetch_sessions = FetchSessions(0)
        for leader in (1, 2):
            for index in range(3):
                cluster.elect(leader, index=index)
            for number in range(30):
                response = await cluster[leader].produce(b"%d" % number, index=number % 3)
                assert response.error_code == ErrorCode.NONE
            for index in range(3):
                await cluster.same_logs(index)
                await cluster.in_sync(1, 2, 3, 4, 5, 6, index=index)
            followers = [cluster[broker] for broker in range(1, 7) if broker != leader]
            assert all(each.replication._fetchers[leader, 0]._session.is_refused for each in followers)


def test_settings_between_brokers_that_cannot_be_used_are_refused_at_the_start() -> None:
    """IB1."""
    listener = {"listeners": "SSL://127.0.0.1:0", "ssl.truststore.location": "/absent.pem"}
    with pytest.raises(ConfigRefused, match=r"ssl\.truststore\.location"):
        Replication(None, None, BrokerConfig(listener), timers=None, now_ms=lambda: 0)  # type: ignore[arg-type]


async def test_re6_a_log_that_starts_within_a_batch_is_copied(folder: Path | None) -> None:
    """The leader's records were deleted up to the middle of a batch, which is sent whole."""
    async with Cluster(size=2, folder=folder) as cluster:
        await cluster[2].replication.stop()
        cluster.elect(1, isr=(1,))
        await cluster[1].produce(b"a", b"b", b"c", acks=1)
        cluster[1].partition().log.delete_before(1)
        cluster[2].replication.start()
        await cluster.in_sync(1, 2)
        await cluster.same_logs()
