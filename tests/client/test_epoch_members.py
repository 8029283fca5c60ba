"""Members of the consumer protocol (KIP-848) on a live broker: who gets what, what is kept, kills, fencing, commits.

The groups have heartbeats each 100 ms and no pause between two assignments, so that nothing waits for 5 s.
"""

from __future__ import annotations

import asyncio
import re
import signal
import sys
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import pytest
from confluent_kafka import Consumer as Confluent
from confluent_kafka.admin import AdminClient, NewPartitions
from tests.client.fault_proxy import FaultProxy
from tests.client.member_kit import Join, Reader, all_owned, readers, settled, shares, until
from tests.interop.kit import PATIENCE_S, create_topic, produce, unique

from rota.client.admin.admin import Admin
from rota.client.admin.configs import ConfigResource, ResourceType
from rota.client.config import AdminConfig, ConsumerConfig
from rota.client.consumer.consumer import Consumer
from rota.client.errors import BrokerError, CommitFailed, RebalancedError
from rota.client.types import OffsetAndMetadata, TopicPartition

HEARTBEAT = 68
GROUP_CONFIGS = {
    "consumer.heartbeat.interval.ms": "100",
    "consumer.session.timeout.ms": "5000",
    "consumer.assignment.interval.ms": "0",
}
RECONNECTS: dict[str, Any] = {"group_protocol": "consumer", "reconnect_backoff_max_ms": 50, "retry_backoff_max_ms": 50}
VICTIM = """
import asyncio, sys
from rota.client import Consumer, ConsumerConfig

async def main(bootstrap, group, topic):
    config = ConsumerConfig(bootstrap_servers=bootstrap, group_id=group, group_protocol="consumer")
    async with Consumer(config) as consumer:
        consumer.subscribe([topic], on_assigned=lambda partitions: partitions and print("assigned", flush=True))
        while True:
            await consumer.getmany(timeout_ms=100)

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.fixture
async def quick(bootstrap: str, group: str) -> str:
    """The id of a group with GROUP_CONFIGS."""
    async with Admin(AdminConfig(bootstrap_servers=bootstrap)) as admin:
        await admin.alter_configs({ConfigResource(ResourceType.GROUP, group): GROUP_CONFIGS})
    return group


@pytest.fixture
async def join(bootstrap: str, quick: str) -> AsyncIterator[Join]:
    """`reader = await join(topic, setting=…)`: a reader that polls; all are closed in the end."""
    async with readers(bootstrap, quick, group_protocol="consumer") as join:
        yield join


@pytest.mark.parametrize("assignor", ["uniform", "range"])
async def test_partitions_are_reassigned_as_members_join_and_leave(bootstrap: str, join: Join, assignor: str) -> None:
    topic = create_topic(bootstrap, 3)
    everything = [TopicPartition(topic, n) for n in range(3)]
    members: list[Reader] = []
    for expected in ([3], [1, 2], [1, 1, 1], [0, 1, 1, 1]):
        members.append(await join(topic, group_remote_assignor=assignor))
        await until(lambda: shares(*members) == expected and settled(*members), f"{expected}")  # noqa: B023
        assert all_owned(*members) == everything
    while len(members) > 1:
        await members.pop(0).close()
        await until(lambda: all_owned(*members) == everything and settled(*members), "the rest")


async def test_a_member_keeps_its_remaining_partitions(bootstrap: str, join: Join) -> None:
    topic = create_topic(bootstrap, 4)
    first = await join(topic)
    await until(lambda: len(first.owned) == 4, "the first")
    second = await join(topic)
    await until(lambda: shares(first, second) == [2, 2] and settled(first, second), "both")
    assert len(first.answers("revoked")) == 2
    assert len(first.answers("assigned")) == 4, "what is kept is not assigned again"
    assert first.answers("lost") == []


async def test_new_partitions_and_new_topics_are_assigned(bootstrap: str, join: Join) -> None:
    prefix = unique("many")
    create_topic(bootstrap, 1, name=f"{prefix}-a")
    reader = await join(re.compile(rf"{prefix}-.*"), metadata_max_age_ms=200)
    await until(lambda: len(reader.owned) == 1, "the first topic")
    create_topic(bootstrap, 2, name=f"{prefix}-b")
    await until(lambda: len(reader.owned) == 3, "the second topic")
    admin = AdminClient({"bootstrap.servers": bootstrap})
    await asyncio.to_thread(admin.create_partitions([NewPartitions(f"{prefix}-a", 3)])[f"{prefix}-a"].result)
    await until(lambda: len(reader.owned) == 5, "the new partitions")


async def test_a_topic_that_is_created_again_is_assigned_again(bootstrap: str, join: Join) -> None:
    topic = create_topic(bootstrap, 1)
    reader = await join(topic, metadata_max_age_ms=200)
    await until(lambda: len(reader.owned) == 1, "the topic")
    admin = AdminClient({"bootstrap.servers": bootstrap})
    await asyncio.to_thread(admin.delete_topics([topic])[topic].result, PATIENCE_S)
    await until(lambda: not reader.owned, "its end")
    create_topic(bootstrap, 2, name=topic)
    await until(lambda: len(reader.owned) == 2, "its return")


async def test_a_killed_member_loses_its_partitions(bootstrap: str, quick: str, join: Join) -> None:
    topic = create_topic(bootstrap, 2)
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", VICTIM, bootstrap, quick, topic, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    assert await process.stdout.readline() == b"assigned\n"
    reader = await join(topic)
    await until(lambda: len(reader.owned) == 1, "its half")
    process.send_signal(signal.SIGKILL)
    await process.wait()
    await until(lambda: len(reader.owned) == 2, "the dead member's half")


async def test_a_static_member_gets_its_partitions_back(bootstrap: str, join: Join) -> None:
    topic = create_topic(bootstrap, 4)
    other = await join(topic)
    first = await join(topic, group_instance_id="i")
    await until(lambda: shares(other, first) == [2, 2] and settled(other, first), "both")
    owned, events = set(first.owned), list(other.events)
    await first.close()
    again = await join(topic, group_instance_id="i")
    await until(lambda: again.owned == owned, "the same")
    assert other.events == events, "nothing moved meanwhile"


async def test_an_instance_id_in_use_is_refused(bootstrap: str, join: Join) -> None:
    topic = create_topic(bootstrap, 1)
    first = await join(topic, group_instance_id="i")
    await until(lambda: first.owned, "the first")
    second = await join(topic, group_instance_id="i", polls=False)
    with pytest.raises(BrokerError, match="UNRELEASED_INSTANCE_ID"):
        await second.member.poll()
    assert settled(first)


@pytest.mark.parametrize("code", [110, 25], ids=["FENCED_MEMBER_EPOCH", "UNKNOWN_MEMBER_ID"])
async def test_a_fenced_member_joins_again(bootstrap: str, quick: str, code: int) -> None:
    topic = create_topic(bootstrap, 2)
    async with FaultProxy(bootstrap) as proxy, readers(proxy.bootstrap, quick, **RECONNECTS) as join:
        reader = await join(topic)
        await until(lambda: len(reader.owned) == 2, "all")
        fault = proxy.refuse(HEARTBEAT, code)
        await fault.happened()
        await until(lambda: len(reader.answers("assigned")) == 4 and settled(reader), "all again")
        assert reader.answers("lost") == [0, 1]
        assert reader.answers("revoked") == []


@pytest.mark.parametrize("after", [False, True], ids=["request lost", "answer lost"])
async def test_lost_heartbeats_and_moved_coordinators_lose_nothing(bootstrap: str, quick: str, after: bool) -> None:
    topic = create_topic(bootstrap, 2)
    async with FaultProxy(bootstrap) as proxy, readers(proxy.bootstrap, quick, **RECONNECTS) as join:
        reader = await join(topic)
        await until(lambda: len(reader.owned) == 2, "all")
        await proxy.close(HEARTBEAT, after=after, times=3).happened(3)
        await proxy.refuse(HEARTBEAT, 16, times=2).happened(2)  # NOT_COORDINATOR
        other = await join(topic)
        await until(lambda: shares(reader, other) == [1, 1] and settled(reader, other), "one each")
        assert reader.answers("lost") == []


async def test_commits_carry_the_member_epoch(bootstrap: str, quick: str) -> None:
    topic = create_topic(bootstrap, 1)
    produce(bootstrap, topic, [b"0", b"1", b"2"])
    settings: dict[str, Any] = {"group_protocol": "consumer", "group_id": quick, "auto_offset_reset": "earliest"}
    make = partial(ConsumerConfig, bootstrap_servers=bootstrap, **settings)
    async with Consumer(make(enable_auto_commit=False)) as consumer:
        consumer.subscribe([topic])
        assert [(await consumer.getone()).value for _ in range(2)] == [b"0", b"1"]
        assert consumer.group.generation_id > 0
        await consumer.commit()
        left = consumer.group
    async with Consumer(make()) as consumer:
        with pytest.raises((CommitFailed, RebalancedError)):
            await commit_as(consumer, left, {TopicPartition(topic, 0): OffsetAndMetadata(0)})
        consumer.subscribe([topic])
        assert (await consumer.getone()).value == b"2"
    async with Consumer(make()) as consumer:  # the automatic commit of the close
        [at] = (await consumer.committed([TopicPartition(topic, 0)])).values()
        assert at is not None
        assert at.offset == 3


async def commit_as(consumer: Consumer, group: Any, offsets: Any) -> None:
    from rota.client.offsets.offset_commit import commit

    await commit(consumer._cluster, group, offsets)


async def test_members_of_librdkafka_and_of_rota_share_a_group(bootstrap: str, quick: str, join: Join) -> None:
    topic = create_topic(bootstrap, 4)
    reader = await join(topic)
    await until(lambda: len(reader.owned) == 4, "all")
    other = Confluent({"bootstrap.servers": bootstrap, "group.id": quick, "group.protocol": "consumer"})
    other.subscribe([topic])
    async with asyncio.timeout(PATIENCE_S):
        while len(other.assignment()) != 2 or len(reader.owned) != 2:
            await asyncio.to_thread(other.poll, 0.1)
    assert {part.partition for part in other.assignment()} == set(range(4)) - {part.partition for part in reader.owned}
    await asyncio.to_thread(other.close)
    await until(lambda: len(reader.owned) == 4, "all again")


async def test_the_poll_timeout_gives_the_partitions_to_others(bootstrap: str, join: Join) -> None:
    topic = create_topic(bootstrap, 2)
    slow = await join(topic, max_poll_interval_ms=1_000)
    await until(lambda: len(slow.owned) == 2, "all")
    slow.poll_again_every(0.1)
    other = await join(topic)
    await until(lambda: shares(slow, other) == [1, 1], "both")
    await slow.stop()
    await until(lambda: len(other.owned) == 2, "what the slow one had")
    slow.start()
    await until(lambda: shares(slow, other) == [1, 1], "both again")
    assert len(slow.answers("lost")) == 1
