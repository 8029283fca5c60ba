"""A scripted broker that leads a topic and keeps what is produced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.unit.client.network.scripted import Scripted

from rota.client.config import ProducerConfig
from rota.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from rota.protocol.messages.metadata import MetadataRequest, MetadataResponsePartition, MetadataResponseTopic
from rota.protocol.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from rota.protocol.records.record import Record, read_records

ID = b"an id of a topic"


class Leader(Scripted):
    """Leads `partitions` partitions of every topic that it is asked for. `logs` by partition; `before` may answer a
    partition's batch otherwise, or the whole request by giving something that is no partition's answer."""

    def __init__(self, partitions: int = 2) -> None:
        super().__init__()
        self.partitions = partitions
        self.logs: dict[int, list[Record]] = {}
        self.before: Callable[[int, list[Record]], Any] = lambda partition, records: None
        self.error = 0
        self.ids = 0
        self.on(MetadataRequest, self._metadata)
        self.on(ProduceRequest, self._produce)
        self.on(InitProducerIdRequest, lambda _: self._request_producer_id())

    def _request_producer_id(self) -> InitProducerIdResponse:
        self.ids += 1
        return InitProducerIdResponse(producer_id=self.ids, producer_epoch=0)

    def _metadata(self, requests: MetadataRequest) -> Any:
        parts = tuple(
            MetadataResponsePartition(
                partition_index=at, leader_id=self.node, leader_epoch=0, replica_nodes=(0,), isr_nodes=(0,)
            )
            for at in range(0 if self.error else self.partitions)
        )
        return self.metadata(
            *(
                MetadataResponseTopic(name=topic.name, topic_id=ID, error_code=self.error, partitions=parts)
                for topic in requests.topics or ()
            )
        )

    def _produce(self, requests: ProduceRequest) -> Any:
        done = []
        for topic in requests.topic_data:
            parts = []
            for item in topic.partition_data:
                assert item.records is not None
                records = read_records(bytes(item.records))
                response = self.before(item.index, records)
                if response is not None and not isinstance(response, PartitionProduceResponse):
                    return response
                if response is None:
                    log = self.logs.setdefault(item.index, [])
                    response = PartitionProduceResponse(index=item.index, base_offset=len(log))
                    log += records
                parts.append(response)
            done.append(
                TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=tuple(parts))
            )
        return ProduceResponse(responses=tuple(done)) if requests.acks else None


def settings(leader: Leader, **more: Any) -> ProducerConfig:
    quick: dict[str, Any] = {
        "bootstrap_servers": leader.address,
        "linger_ms": 0,
        "retry_backoff_ms": 1,
        "retry_backoff_max_ms": 2,
        "reconnect_backoff_ms": 1,
        "reconnect_backoff_max_ms": 2,
    }
    return ProducerConfig(**quick | more)
