"""KIP-951: the leader and its address that a Produce answer names are used without reading metadata."""

from __future__ import annotations

from tests.unit.client.producer.leader import Leader, settings

from rota.client.producer.producer import Producer
from rota.client.types import TopicPartition
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.metadata import MetadataRequest
from rota.protocol.messages.produce import (
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)


async def test_a_leader_that_no_metadata_named_is_used_at_once() -> None:
    async with Leader(partitions=1) as old, Leader(partitions=1) as new:
        new.node = 7

        def moved(request: ProduceRequest) -> ProduceResponse:
            (topic,) = request.topic_data
            part = PartitionProduceResponse(
                index=0,
                error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER,
                current_leader=LeaderIdAndEpoch(leader_id=7, leader_epoch=5),
            )
            answered = TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=(part,))
            endpoint = NodeEndpoint(node_id=7, host="127.0.0.1", port=new.port, rack=None)
            return ProduceResponse(responses=(answered,), node_endpoints=(endpoint,))

        async with Producer(settings(old, retry_backoff_ms=60_000, retry_backoff_max_ms=60_000)) as producer:
            await producer.partitions_for("t")
            old.on(MetadataRequest, lambda _: None)  # metadata is not to be had any more
            old.on(ProduceRequest, moved)
            await producer.send_and_wait("t", b"1")
            assert [record.value for record in new.logs[0]] == [b"1"]
            known = producer._cluster.metadata
            assert known.leader(TopicPartition("t", 0)) == 7
            assert known.brokers[7].port == new.port
