"""A producer that idles while topics are deleted: it forgets them, and does not create them again."""

from __future__ import annotations

import asyncio

import pytest
from tests.unit.client.network.scripted import eventually
from tests.unit.client.producer.leader import Leader, settings

from rota.client.producer.producer import Producer
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.metadata import MetadataRequest
from rota.protocol.messages.produce import PartitionProduceResponse, ProduceRequest


def metadata_requests(leader: Leader) -> list[MetadataRequest]:
    return [request for request in leader.requests if isinstance(request, MetadataRequest)]


def names(request: MetadataRequest) -> set[str]:
    return {str(topic.name) for topic in request.topics or ()}


async def refreshed(leader: Leader, times: int = 3) -> list[MetadataRequest]:
    """The next `times` metadata requests."""
    before = len(metadata_requests(leader))
    await eventually(lambda: len(metadata_requests(leader)) >= before + times)
    return metadata_requests(leader)[before:]


@pytest.mark.parametrize("idempotent", [False, True])
async def test_a_topic_without_sends_is_forgotten(idempotent: bool) -> None:
    async with Leader() as leader:
        config = settings(leader, metadata_max_age_ms=1, metadata_max_idle_ms=20, enable_idempotence=idempotent)
        async with Producer(config) as producer:
            await producer.send_and_wait("t", b"1")
            await eventually(lambda: not names(metadata_requests(leader)[-1]))
            assert producer._topics.routes == {}
            assert bool(producer._accumulator.queues) is idempotent, "the next sequence is not forgotten"
            assert (await producer.send_and_wait("t", b"2", partition=0)).offset >= 0


async def test_a_topic_with_sends_is_kept() -> None:
    async with Leader() as leader:
        leader.before = lambda *_: PartitionProduceResponse(index=0, error_code=ErrorCode.NOT_ENOUGH_REPLICAS)
        async with Producer(settings(leader, metadata_max_age_ms=1, metadata_max_idle_ms=1)) as producer:
            await producer.send("t", b"1")
            requests = await refreshed(leader)
            leader.before = lambda *_: None
            assert all("t" in names(request) for request in requests), "a record of it is sent again and again"


async def test_refreshing_metadata_never_creates_a_topic_again() -> None:
    async with Leader() as leader, Producer(settings(leader, metadata_max_age_ms=1)) as producer:
        await producer.send_and_wait("t", b"1")
        await refreshed(leader, 1)
        leader.error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert not any(request.allow_auto_topic_creation for request in await refreshed(leader))


async def test_a_record_for_a_deleted_topic_creates_it_again() -> None:
    async with Leader() as leader, Producer(settings(leader, metadata_max_age_ms=1)) as producer:
        await producer.send_and_wait("t", b"1")
        leader.error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        await refreshed(leader)
        delivery = await producer.send("t", b"2")
        await eventually(lambda: metadata_requests(leader)[-1].allow_auto_topic_creation)
        leader.error = 0
        await delivery


async def test_a_caller_that_waits_for_a_topic_creates_it() -> None:
    async with Leader() as leader, Producer(settings(leader)) as producer:
        leader.error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        sending = asyncio.create_task(producer.send("t", b"1"))
        await eventually(lambda: len(metadata_requests(leader)) > 2)
        assert all(request.allow_auto_topic_creation for request in metadata_requests(leader)[1:])
        leader.error = 0
        await sending


async def test_looking_up_a_new_topic_never_creates_another_again() -> None:
    async with Leader() as leader, Producer(settings(leader)) as producer:
        await producer.send_and_wait("old", b"1")
        leader.error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        before = len(metadata_requests(leader))
        sending = asyncio.create_task(producer.send("new", b"1"))
        await eventually(lambda: len(metadata_requests(leader)) >= before + 6)
        leader.error = 0
        await sending
        requested_topics = {True: set[str](), False: set[str]()}
        for request in metadata_requests(leader)[before:]:
            requested_topics[request.allow_auto_topic_creation] |= names(request)
        assert requested_topics[True] == {"new"}
        assert "old" in requested_topics[False]
        assert set(producer._cluster.metadata.topics) == {"old", "new"}, "the answers are put together"


def produce_requests(broker: Leader) -> int:
    return sum(isinstance(request, ProduceRequest) for request in broker.requests)


async def test_closing_follows_a_leader_that_moves() -> None:
    """The buffered records go to the leader that the metadata names meanwhile."""
    async with Leader(partitions=1) as leader, Leader(partitions=1) as other:
        other.node = 1
        leader.peers = other.peers = [leader, other]
        producer = await Producer(settings(leader, linger_ms=10, metadata_max_age_ms=5)).start()
        await producer.send_and_wait("t", b"1")
        await eventually(lambda: 1 in producer._cluster.metadata.brokers)
        moved = leader._metadata(MetadataRequest(topics=())).topics
        assert moved == ()
        leader.on(ProduceRequest, lambda _: None)

        def now_led_by_the_other(request: MetadataRequest) -> object:
            answer = leader._metadata(request)
            for topic in answer.topics:
                for partition in topic.partitions:
                    partition.leader_id, partition.leader_epoch = 1, 1
            return answer

        for broker in (leader, other):
            broker.on(MetadataRequest, now_led_by_the_other)
        await producer.send("t", b"2")
        closing = asyncio.create_task(producer.close())
        while not other.logs and not closing.done():
            leader.drop()  # as often as a request comes before the new metadata: it would wait request_timeout_ms
            await asyncio.sleep(0.005)
        await closing
        assert [record.value for log in other.logs.values() for record in log][-1:] == [b"2"]
