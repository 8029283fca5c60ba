"""KT1, KT2: the clock moves ahead, and real clients live through it."""

from __future__ import annotations

import time

import pytest
from confluent_kafka import TopicPartition
from tests.unit.testing.clients import consumer, produce, take

from rota.coordinator.upkeep import ROUND_MS
from rota.testing import RunningBroker, running_broker, running_cluster
from rota.testing.advance import advance, steps
from rota.testing.host import Host


@pytest.mark.parametrize("by_ms", [0, 1, ROUND_MS, 2_500, 86_400_000])
@pytest.mark.parametrize("partitions", [0, 51, 500])
def test_the_steps_are_the_whole_time_and_end_with_rounds_of_upkeep(by_ms: int, partitions: int) -> None:
    split = list(steps(by_ms, partitions))
    assert sum(split) == by_ms
    assert all(0 < step <= ROUND_MS for step in split[2:])


def test_a_clock_does_not_go_back() -> None:
    with pytest.raises(ValueError, match="-5 ms"):
        list(steps(-5, 1))


async def test_brokers_that_do_not_run_share_an_advance() -> None:
    host = Host(count=2)
    await advance(host, 86_400_000)
    assert min(hosted.clock.wall_ms() for hosted in host) >= time.time_ns() // 1_000_000 + 86_390_000


def test_a_live_member_keeps_its_session_for_days_and_continues_reading(broker: RunningBroker, topic: str) -> None:
    produce(broker.bootstrap_servers, topic, "a")
    with consumer(broker.bootstrap_servers, "live", topic) as member:
        take(member, 1)
        group = broker.group("live")
        group.settled(1)
        generation = group.generation
        broker.advance(days=30)
        assert group.generation == generation
        produce(broker.bootstrap_servers, topic, "b")
        assert [record.value() for record in take(member, 1)] == [b"b"]


def test_every_member_expires_on_request(broker: RunningBroker, topic: str) -> None:
    produce(broker.bootstrap_servers, topic, "a")
    with consumer(broker.bootstrap_servers, "expired", topic) as member:
        take(member, 1)
        broker.group("expired").settled(1)
        broker.advance(seconds=7, expire_sessions=True)
        broker.group("expired").empty()
        assert "member-expired" in [event["name"] for event in broker.group("expired").timeline()]


def test_a_member_whose_connection_is_closed_expires(broker: RunningBroker, topic: str) -> None:
    produce(broker.bootstrap_servers, topic, "a")
    session = {"client_id": "crashed", "session_timeout_ms": 45_000}  # longer than the test
    with consumer(broker.bootstrap_servers, "crashed", topic, **session) as member:
        take(member, 1)
        broker.group("crashed").settled(1)
        broker.faults.close(client_id="crashed", times=None)
        broker.faults.close_connections("crashed")
        broker.advance(minutes=1)
        broker.group("crashed").empty()
        broker.faults.clear()


def test_the_offsets_of_an_empty_group_expire_after_seven_days(broker: RunningBroker, topic: str) -> None:
    produce(broker.bootstrap_servers, topic, "a")
    with consumer(broker.bootstrap_servers, "idle", topic) as member:
        take(member, 1)
        member.commit(asynchronous=False)
    group = broker.group("idle")
    group.empty()
    broker.advance(days=6)
    assert group.committed() == {(topic, 0): 1}
    broker.advance(days=1, minutes=20)
    group.committed({})


def test_retention_deletes_old_records() -> None:
    """On a broker of its own: records are stamped by the client's clock, so the broker's must not be ahead yet."""
    with running_broker() as broker:
        broker.create_topic("short", configs={"retention.ms": "3600000"})
        produce(broker.bootstrap_servers, "short", "a", "b")
        with consumer(broker.bootstrap_servers, "retention", "short") as member:
            assert member.get_watermark_offsets(TopicPartition("short", 0), timeout=10) == (0, 2)
            broker.advance(minutes=30)
            assert member.get_watermark_offsets(TopicPartition("short", 0), timeout=10) == (0, 2)
            broker.advance(minutes=40)
            assert member.get_watermark_offsets(TopicPartition("short", 0), timeout=10) == (2, 2)


def test_a_cluster_works_on_after_its_clocks_moved() -> None:
    with running_cluster(3) as cluster:
        cluster.create_topic("t")
        produce(cluster.bootstrap_servers, "t", "a")
        cluster.advance(days=7)
        produce(cluster.bootstrap_servers, "t", "b")
        with consumer(cluster.bootstrap_servers, "g", "t") as member:
            assert [record.value() for record in take(member, 2)] == [b"a", b"b"]


def test_on_disk_too(tmp_path_factory: pytest.TempPathFactory) -> None:
    with running_broker(data=tmp_path_factory.mktemp("data")) as on_disk:
        on_disk.create_topic("short", configs={"retention.ms": "1000"})
        produce(on_disk.bootstrap_servers, "short", "a")
        on_disk.advance(hours=1)
        with consumer(on_disk.bootstrap_servers, "g", "short") as member:
            assert member.get_watermark_offsets(TopicPartition("short", 0), timeout=10) == (1, 1)
