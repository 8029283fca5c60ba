"""The high-level consumer on a real broker: groups, records, positions, commits, the end."""

from __future__ import annotations

import asyncio
import itertools
import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from tests.interop import kit
from tests.interop.kit import create_topic, produce

from rota.client.config import ConsumerConfig
from rota.client.consumer.consumer import Consumer
from rota.client.errors import (
    CommitFailed,
    ConfigError,
    FencedInstance,
    IllegalArgument,
    IllegalUse,
    NoOffset,
    RebalanceInProgress,
)
from rota.client.offsets.offset_fetch import committed
from rota.client.types import ConsumerRecord, GroupMetadata, OffsetAndMetadata, TopicPartition

PATIENCE_S = 20.0
TEN = [b"%d" % number for number in range(10)]
Made = Callable[..., Consumer]


@pytest.fixture
def make(bootstrap: str, group: str) -> Made:
    """A consumer of the test's group that starts at the beginning."""

    def made(**settings: Any) -> Consumer:
        given = {
            "group_id": group,
            "auto_offset_reset": "earliest",
            "heartbeat_interval_ms": 100,
            "fetch_max_wait_ms": 50,
        }
        given |= settings
        return Consumer(ConsumerConfig(bootstrap_servers=bootstrap, **given))

    return made


async def read(consumer: Consumer, count: int, **settings: Any) -> list[ConsumerRecord]:
    """So many records by getmany."""
    records: list[ConsumerRecord] = []
    async with asyncio.timeout(PATIENCE_S):
        while len(records) < count:
            for some in (await consumer.getmany(timeout_ms=200, **settings)).values():
                records += some
    return records


def produce_to(bootstrap: str, topic: str, partition: int, values: Sequence[bytes]) -> None:
    """In this order, also where a new partition's leader is not ready for the first batch."""
    kit.produce_to(bootstrap, topic, partition, values, **{"enable.idempotence": True})


async def poll_until(consumer: Consumer, look: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not look():
            await consumer.getmany(timeout_ms=20)


async def committed_offset(consumer: Consumer, partition: TopicPartition) -> int | None:
    at = (await consumer.committed(partition))[partition]
    return None if at is None else at.offset


def values(records: list[ConsumerRecord]) -> list[bytes | None]:
    return [record.value for record in records]


async def test_a_group_of_one_reads_everything(bootstrap: str, make: Made) -> None:
    topic = create_topic(bootstrap, 3)
    produce(bootstrap, topic, TEN)
    async with make() as consumer:
        consumer.subscribe([topic])
        assert sorted(values(await read(consumer, 10))) == sorted(map(bytes, TEN))
        assert consumer.assignment == {TopicPartition(topic, number) for number in range(3)}
        assert consumer.subscription == {topic}
        assert consumer.group.generation_id >= 1
        assert consumer.state == "STABLE"
        assert topic in repr(consumer)


async def test_async_for_gives_records_in_order_and_ends_with_the_consumer(bootstrap: str, make: Made) -> None:
    topic = create_topic(bootstrap, 1)
    produce_to(bootstrap, topic, 0, TEN)
    seen = []
    async with asyncio.timeout(PATIENCE_S), make() as consumer:
        consumer.subscribe([topic])
        async for record in consumer:
            seen.append(record.value)
            if len(seen) == 10:
                await consumer.close()
    assert seen == TEN


async def test_a_pattern_follows_created_topics(bootstrap: str, make: Made, topic: str) -> None:
    first = create_topic(bootstrap, 1, name=f"{topic}-one")
    async with make(metadata_max_age_ms=200) as consumer:
        consumer.subscribe(re.compile(re.escape(topic) + "-.*"))
        await poll_until(consumer, lambda: len(consumer.assignment) == 1)
        second = create_topic(bootstrap, 1, name=f"{topic}-two")
        await poll_until(consumer, lambda: len(consumer.assignment) == 2)
        assert consumer.subscription == {first, second}


async def test_two_members_share_and_the_leaver_gives_back(bootstrap: str, make: Made) -> None:
    topic = create_topic(bootstrap, 2)
    async with make() as stays:
        stays.subscribe([topic])
        await poll_until(stays, lambda: len(stays.assignment) == 2)
        async with make() as goes:
            goes.subscribe([topic])

            async def both() -> None:
                while not (len(stays.assignment) == len(goes.assignment) == 1):
                    await asyncio.gather(stays.getmany(timeout_ms=20), goes.getmany(timeout_ms=20))

            await asyncio.wait_for(both(), PATIENCE_S)
            assert not stays.assignment & goes.assignment
        await poll_until(stays, lambda: len(stays.assignment) == 2)


async def test_getmany_keeps_to_its_limit_and_its_time(bootstrap: str, make: Made) -> None:
    topic = create_topic(bootstrap, 1)
    produce_to(bootstrap, topic, 0, TEN)
    async with make() as consumer:
        consumer.subscribe([topic])
        partition = TopicPartition(topic, 0)
        assert await consumer.getmany(timeout_ms=0) == {}  # it has not joined yet
        await poll_until(consumer, lambda: bool(consumer.assignment))
        consumer.seek(partition, 0)
        assert values(await read(consumer, 1, max_records=4)) == TEN[:4]
        assert await consumer.position(partition) == 4
        assert values(await read(consumer, 6)) == TEN[4:]
        assert await consumer.getmany(timeout_ms=50) == {}


async def test_getone_then_getmany_leave_nothing_out(bootstrap: str, make: Made) -> None:
    topic = create_topic(bootstrap, 1)
    produce_to(bootstrap, topic, 0, TEN)
    async with make() as consumer:
        consumer.subscribe([topic])
        first = await asyncio.wait_for(consumer.getone(), PATIENCE_S)
        assert first.value == TEN[0]
        assert await consumer.position(TopicPartition(topic, 0)) == 1
        assert values(await read(consumer, 9)) == TEN[1:]


async def test_cancelling_loses_no_record(bootstrap: str, make: Made) -> None:
    topic = create_topic(bootstrap, 2)
    seen: list[bytes | None] = []
    async with make(fetch_max_wait_ms=20) as consumer:
        consumer.subscribe([topic])
        sending = asyncio.create_task(
            asyncio.to_thread(produce, bootstrap, topic, [b"%d" % item for item in range(200)])
        )
        async with asyncio.timeout(PATIENCE_S):
            for turns in itertools.cycle(range(20)):
                call = asyncio.create_task(consumer.getmany(max_records=3, timeout_ms=1000))
                for _ in range(turns):
                    await asyncio.sleep(0)
                call.cancel()
                await asyncio.wait([call])
                if not call.cancelled():
                    seen += [record.value for some in call.result().values() for record in some]
                if len(seen) >= 200:
                    break
        await sending
    assert sorted(map(bytes, filter(None, seen))) == sorted(b"%d" % item for item in range(200))


async def test_seeking(bootstrap: str, make: Made) -> None:
    topic = create_topic(bootstrap, 1)
    produce_to(bootstrap, topic, 0, TEN)
    partition = TopicPartition(topic, 0)
    async with make(group_id=None) as consumer:
        consumer.assign([partition])
        records = await read(consumer, 10)
        consumer.seek(partition, 7)
        assert values(await read(consumer, 3)) == TEN[7:]
        consumer.seek_to_beginning()
        assert await consumer.position(partition) == 0
        assert len(await read(consumer, 10)) == 10
        consumer.seek(partition, OffsetAndMetadata(2))
        consumer.seek_to_end(partition)
        assert await consumer.position(partition) == 10
        found = await consumer.seek_to_time(records[0].timestamp)
        assert found[partition] is not None
        assert await consumer.position(partition) == 0
        await consumer.seek_to_time(records[-1].timestamp + 60_000, [partition])
        assert await consumer.position(partition) == 10
        assert consumer.lag(partition) == 0
        with pytest.raises(IllegalUse, match="not assigned"):
            consumer.seek(TopicPartition(topic, 9), 0)


async def test_a_seek_in_the_middle_of_async_for_takes_effect_at_once(bootstrap: str, make: Made) -> None:
    topic = create_topic(bootstrap, 1)
    produce_to(bootstrap, topic, 0, TEN)
    partition = TopicPartition(topic, 0)
    seen = []
    async with asyncio.timeout(PATIENCE_S), make(group_id=None) as consumer:
        consumer.assign([partition])
        async for record in consumer:
            seen.append(record.offset)
            if seen == [0, 1]:
                consumer.seek(partition, 8)
            if record.offset == 9:
                break
    assert seen == [0, 1, 8, 9]


async def test_a_paused_partition_returns_no_records_until_resume(bootstrap: str, make: Made) -> None:
    topic = create_topic(bootstrap, 2)
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    produce_to(bootstrap, topic, 0, TEN)
    async with make(group_id=None) as consumer:
        consumer.assign([first, second])
        assert (await asyncio.wait_for(consumer.getone(), PATIENCE_S)).offset == 0
        consumer.pause(first)  # nine more were read ahead
        assert consumer.paused == {first}
        produce_to(bootstrap, topic, 1, TEN[:2])
        assert {record.partition for record in await read(consumer, 2)} == {1}
        assert await consumer.getmany(timeout_ms=50) == {}
        assert await consumer.position(first) == 1
        consumer.resume()
        assert values(await read(consumer, 9)) == TEN[1:]


async def test_offsets_and_topics_can_be_listed(bootstrap: str, make: Made) -> None:
    topic = create_topic(bootstrap, 2)
    produce_to(bootstrap, topic, 1, TEN)
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    async with make() as consumer:
        assert await consumer.beginning_offsets([first, second]) == {first: 0, second: 0}
        assert await consumer.end_offsets([first, second]) == {first: 0, second: 10}
        assert await consumer.end_offsets(second) == {second: 10}
        assert (await consumer.offsets_for_times({first: 0}))[first] is None
        assert [info.partition for info in await consumer.partitions_for(topic)] == [0, 1]
        assert await consumer.partitions_for("no-such-topic-anywhere") == ()
        assert topic in await consumer.topics()


async def test_the_committed_offset_is_where_the_next_member_begins(bootstrap: str, make: Made) -> None:
    topic = create_topic(bootstrap, 1)
    produce_to(bootstrap, topic, 0, TEN)
    partition = TopicPartition(topic, 0)
    async with make(enable_auto_commit=False) as consumer:
        consumer.subscribe([topic])
        await read(consumer, 10)
        await consumer.commit({partition: OffsetAndMetadata(4, "half way")})
        assert await consumer.committed() == {partition: OffsetAndMetadata(4, "half way")}
    async with make(enable_auto_commit=False) as consumer:
        consumer.subscribe([topic])
        assert values(await read(consumer, 6)) == TEN[4:]
        await consumer.commit_soon({partition: 6})
        await consumer.commit_soon()
        assert await committed_offset(consumer, partition) == 10


async def test_commits_keep_their_order(bootstrap: str, make: Made) -> None:
    topic = create_topic(bootstrap, 1)
    partition = TopicPartition(topic, 0)
    async with make(enable_auto_commit=False) as consumer:
        consumer.assign(partition)
        for offset in range(1, 30):
            consumer.commit_soon({partition: offset})
        await consumer.commit({partition: 30})
        assert await committed_offset(consumer, partition) == 30


async def test_closing_commits_the_returned_records(bootstrap: str, make: Made) -> None:
    topic = create_topic(bootstrap, 1)
    produce_to(bootstrap, topic, 0, TEN)
    partition = TopicPartition(topic, 0)
    async with make() as consumer:
        consumer.subscribe([topic])
        for _ in range(3):
            await asyncio.wait_for(consumer.getone(), PATIENCE_S)
    async with make() as consumer:
        assert await committed_offset(consumer, partition) == 3


async def test_an_exception_leaves_the_record_in_hand_uncommitted(bootstrap: str, make: Made) -> None:
    topic = create_topic(bootstrap, 1)
    produce_to(bootstrap, topic, 0, TEN)

    async def fails_at_the_fifth() -> None:
        async with asyncio.timeout(PATIENCE_S), make() as consumer:
            consumer.subscribe([topic])
            async for record in consumer:
                if record.offset == 4:
                    raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fails_at_the_fifth()
    async with make() as consumer:
        consumer.subscribe([topic])
        assert (await asyncio.wait_for(consumer.getone(), PATIENCE_S)).offset == 4


async def test_c1_a_crash_gives_the_record_in_hand_to_the_next_member(bootstrap: str, make: Made) -> None:
    """The automatic commit runs with every call, and never passes the record that the user works on."""
    topic = create_topic(bootstrap, 1)
    produce_to(bootstrap, topic, 0, TEN)
    partition = TopicPartition(topic, 0)
    consumer = make(auto_commit_interval_ms=0, session_timeout_ms=1_000)
    await consumer.start()
    consumer.subscribe([topic])
    async with asyncio.timeout(PATIENCE_S):
        async for record in consumer:
            at = await committed_offset(consumer, partition)
            assert at is None or at <= record.offset
            if record.offset == 6:
                break
    await crash(consumer)
    async with make() as heir:
        at = await committed_offset(heir, partition)
        assert at is not None
        assert 0 < at <= 6
        heir.subscribe([topic])
        assert (await asyncio.wait_for(heir.getone(), PATIENCE_S)).offset == at


async def crash(consumer: Consumer) -> None:
    """It goes without a word: no commit, no LeaveGroup."""
    assert consumer._membership is not None
    await consumer._membership._abandon()
    await consumer._fetcher.close()
    await consumer._cluster.close()


async def test_the_last_record_is_committed_while_a_call_waits(bootstrap: str, make: Made, group: str) -> None:
    topic = create_topic(bootstrap, 1)
    produce_to(bootstrap, topic, 0, TEN)
    partition = TopicPartition(topic, 0)
    async with make(auto_commit_interval_ms=50) as consumer:
        consumer.subscribe([topic])
        await read(consumer, 10)
        waiting = asyncio.create_task(consumer.getmany(timeout_ms=60_000))
        async with asyncio.timeout(PATIENCE_S):
            while (await committed(consumer._cluster, GroupMetadata(group), [partition]))[partition] is None:
                await asyncio.sleep(0.01)
        assert not waiting.done()
        waiting.cancel()
        await asyncio.wait([waiting])


@pytest.mark.parametrize(("reset", "first"), [("earliest", 0), ("by_duration:PT1H", 0), ("latest", 10)])
async def test_without_a_committed_offset_the_policy_decides(
    bootstrap: str, make: Made, reset: str, first: int, caplog: pytest.LogCaptureFixture
) -> None:
    topic = create_topic(bootstrap, 1)
    produce_to(bootstrap, topic, 0, TEN)
    caplog.set_level("INFO", "rota.client")
    async with make(auto_offset_reset=reset) as consumer:
        consumer.subscribe([topic])
        await poll_until(consumer, lambda: bool(consumer.assignment))
        assert await consumer.position(TopicPartition(topic, 0)) in (first, 10)
    assert f"Resetting offset for partition {topic}-0 to position {first}" in caplog.text


async def test_with_none_a_missing_offset_is_an_error(bootstrap: str, make: Made) -> None:
    topic = create_topic(bootstrap, 1)
    produce_to(bootstrap, topic, 0, TEN)
    partition = TopicPartition(topic, 0)
    async with make(auto_offset_reset="none") as consumer:
        consumer.subscribe([topic])
        with pytest.raises(NoOffset, match=f"{topic}-0") as raised:
            await read(consumer, 1)
        assert raised.value.partitions == (partition,)
        consumer.seek(partition, 5)
        assert values(await read(consumer, 5)) == TEN[5:]


async def test_a_committed_offset_beyond_the_log_falls_back_to_the_policy(bootstrap: str, make: Made) -> None:
    topic = create_topic(bootstrap, 1)
    produce_to(bootstrap, topic, 0, TEN)
    async with make() as consumer:
        consumer.assign(TopicPartition(topic, 0))
        await consumer.commit({TopicPartition(topic, 0): 1_000})
    async with make() as consumer:
        consumer.subscribe([topic])
        assert values(await read(consumer, 10)) == TEN


async def test_a_commit_after_the_end_of_the_membership_fails(bootstrap: str, make: Made) -> None:
    topic = create_topic(bootstrap, 1)
    produce_to(bootstrap, topic, 0, TEN)
    partition = TopicPartition(topic, 0)
    async with make(max_poll_interval_ms=300, session_timeout_ms=6_000, enable_auto_commit=False) as consumer:
        consumer.subscribe([topic])
        await read(consumer, 10)
        async with asyncio.timeout(PATIENCE_S):
            while consumer.state != "DOWN":
                await asyncio.sleep(0.01)  # works on the records for too long
        with pytest.raises(CommitFailed, match="max_poll_records") as raised:
            await consumer.commit()
        assert raised.value.partitions == (partition,)
        assert len(await read(consumer, 10)) == 10  # joined again, from the committed offset


async def test_a_cooperative_member_reads_on_while_it_joins_and_commits_when_it_has(bootstrap: str, make: Made) -> None:
    topic = create_topic(bootstrap, 2)
    settings = {"partition_assignment_strategy": ("cooperative-sticky",), "auto_commit_interval_ms": 0}
    async with make(**settings) as item, make(**settings) as idle, make(**settings) as late:
        item.subscribe([topic])
        idle.subscribe([topic])
        await polled(lambda: len(item.assignment) == len(idle.assignment) == 1, item, idle)
        await polled(lambda: item.state == idle.state == "STABLE", item, idle)
        late.subscribe([topic])
        await polled(lambda: item.state == "JOINING", item, late)  # the coordinator waits for the idle one
        [partition] = item.assignment
        produce_to(bootstrap, topic, partition.partition, TEN)
        assert values(await read(item, 10)) == TEN
        with pytest.raises(RebalanceInProgress, match="Poll"):
            await item.commit()
        await polled(lambda: item.state == idle.state == late.state == "STABLE", item, idle, late)
        await polled(lambda: len(item.assignment | idle.assignment | late.assignment) == 2, item, idle, late)
        async with asyncio.timeout(PATIENCE_S):
            while await committed_offset(item, partition) != 10:
                await asyncio.gather(*(each.getmany(timeout_ms=20) for each in (item, idle, late)))


async def polled(look: Callable[[], bool], *consumers: Consumer) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not look():
            await asyncio.gather(*(each.getmany(timeout_ms=20) for each in consumers))


async def test_the_older_of_two_with_one_instance_id_is_fenced(bootstrap: str, make: Made) -> None:
    topic = create_topic(bootstrap, 1)
    produce_to(bootstrap, topic, 0, TEN)
    async with make(group_instance_id="one") as older:
        older.subscribe([topic])
        await read(older, 10)
        async with make(group_instance_id="one") as newer:
            newer.subscribe([topic])
            await poll_until(newer, lambda: bool(newer.assignment))
            with pytest.raises(FencedInstance):
                await older.commit({TopicPartition(topic, 0): 1})
            with pytest.raises(FencedInstance):
                await read(older, 1)


async def test_unsubscribe_leaves_and_the_consumer_can_be_used_again(bootstrap: str, make: Made) -> None:
    topic = create_topic(bootstrap, 1)
    produce_to(bootstrap, topic, 0, TEN)
    partition = TopicPartition(topic, 0)
    async with make() as consumer:
        consumer.subscribe([topic])
        await read(consumer, 10)
        await consumer.unsubscribe()
        assert (consumer.assignment, consumer.subscription, consumer.state) == (
            frozenset(),
            frozenset(),
            "UNSUBSCRIBED",
        )
        assert await committed_offset(consumer, partition) == 10
        consumer.assign(partition)
        consumer.seek(partition, 8)
        assert len(await read(consumer, 2)) == 2
        await consumer.unsubscribe()
        consumer.subscribe([topic])
        await poll_until(consumer, lambda: bool(consumer.assignment))


async def test_a_rebalance_can_be_enforced(bootstrap: str, make: Made) -> None:
    topic = create_topic(bootstrap, 1)
    async with make() as consumer:
        consumer.subscribe([topic])
        await poll_until(consumer, lambda: bool(consumer.assignment))
        before = consumer.group.generation_id
        consumer.enforce_rebalance("the moon is full")
        await poll_until(consumer, lambda: consumer.group.generation_id > before)


async def test_close_ends_a_poll_of_another_task(bootstrap: str, make: Made) -> None:
    topic = create_topic(bootstrap, 1)
    async with asyncio.timeout(PATIENCE_S), make() as consumer:
        consumer.subscribe([topic])
        await poll_until(consumer, lambda: bool(consumer.assignment))
        waiting = asyncio.create_task(consumer.getmany(timeout_ms=60_000))
        await asyncio.sleep(0)
        await consumer.close()
        assert await waiting == {}


async def test_illegal_calls_raise_with_a_remedy(bootstrap: str, make: Made, topic: str) -> None:
    partition = TopicPartition(topic, 0)
    consumer = make()
    with pytest.raises(IllegalUse, match="start"):
        await consumer.getmany()
    async with consumer:
        with pytest.raises(IllegalUse, match=r"subscribe\(\)"):
            await consumer.getmany()
        with pytest.raises(IllegalArgument, match="list, tuple or set of topic names"):
            consumer.subscribe(topic)
        with pytest.raises(IllegalUse, match="names of topics"):
            consumer.subscribe([])
        with pytest.raises(IllegalUse, match="started already"):
            await consumer.start()
        with pytest.raises(IllegalUse, match="subscribe"):
            consumer.enforce_rebalance()
        consumer.assign([partition])
        with pytest.raises(IllegalUse, match="unsubscribe"):
            consumer.subscribe([topic])
        with pytest.raises(IllegalUse, match="below 0"):
            await consumer.commit({partition: -1})
        with pytest.raises(IllegalUse, match="max_records"):
            await consumer.getmany(max_records=0)
        first = asyncio.create_task(consumer.getmany(timeout_ms=60_000), name="the first")
        await asyncio.sleep(0)
        with pytest.raises(IllegalUse, match="'the first'"):
            await consumer.getmany()
        first.cancel()
    with pytest.raises(IllegalUse, match="closed"):
        await consumer.getmany()
    await consumer.close()
    async with make(group_id=None) as alone:
        with pytest.raises(ConfigError, match="group_id"):
            alone.subscribe([topic])
        with pytest.raises(ConfigError, match="group_id"):
            await alone.commit({partition: 1})
    with pytest.raises(ConfigError, match=r"partition\.assignment\.strategy"):
        Consumer.from_properties({"bootstrap.servers": bootstrap, "partition.assignment.strategy": "fair"})
