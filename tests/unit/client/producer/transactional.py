"""A scripted broker that leads topics and coordinates one transactional id: what is committed is in `committed`."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from tests.unit.client.network.scripted import EVERYTHING, Scripted
from tests.unit.client.producer.leader import Leader

from rota.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from rota.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
)
from rota.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse, FinalizedFeatureKey
from rota.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from rota.protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from rota.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from rota.protocol.messages.metadata import MetadataRequest
from rota.protocol.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from rota.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from rota.protocol.records.batch import read_header
from rota.protocol.records.record import read_records

PRODUCER_ID = 7
OF_TRANSACTIONS = 1  # the key type of FindCoordinator


class TransactionalLeader(Leader):
    """`codes[request]`: the error codes of the next answers to that request, before those without an error.

    `epoch` is the producer's; `added`: the partitions of the open transaction; `produced`: (values, epoch, first
    sequence, is transactional) of each batch; `committed`, `aborted`: the values of the transactions that were ended.
    """

    def __init__(self, *, version: int = 2, partitions: int = 2) -> None:
        super().__init__(partitions)
        self.codes: defaultdict[type, list[int]] = defaultdict(list)
        self.version = version
        self.coordinator: Scripted = self
        self.epoch = -1
        self.added: set[tuple[str, int]] = set()
        self.produced: list[tuple[list[bytes | None], int, int, bool]] = []
        self.open: list[bytes | None] = []
        self.open_offsets: dict[tuple[str, int], int] = {}
        self.offsets: dict[tuple[str, int], int] = {}
        self.committed: list[list[bytes | None]] = []
        self.aborted: list[list[bytes | None]] = []
        features = (FinalizedFeatureKey(name="transaction.version", max_version_level=version, min_version_level=1),)
        self.features = features if version > 1 else ()
        self.on(ApiVersionsRequest, self._versions)
        self.on(FindCoordinatorRequest, self._find)
        self.on(InitProducerIdRequest, self._initialize)
        self.on(AddPartitionsToTxnRequest, self._add_partitions)
        self.on(AddOffsetsToTxnRequest, lambda request: AddOffsetsToTxnResponse(error_code=self.code(request)))
        self.on(TxnOffsetCommitRequest, self.commit_offsets)
        self.on(EndTxnRequest, self.end)
        self.on(ProduceRequest, self.produce)

    def _versions(self, _: object) -> ApiVersionsResponse:
        return ApiVersionsResponse(api_keys=EVERYTHING, finalized_features_epoch=1, finalized_features=self.features)

    def coordinate_at(self, other: Scripted) -> None:
        """Let another broker, which has connections of its own, coordinate the transactional id."""
        self.coordinator, self.peers = other, [self, other]
        other.on(ApiVersionsRequest, self._versions)
        requests = (
            MetadataRequest,
            FindCoordinatorRequest,
            InitProducerIdRequest,
            AddPartitionsToTxnRequest,
            EndTxnRequest,
        )
        for request in requests:
            other.on(request, self._answers[request])

    def code(self, request: Any) -> int:
        codes = self.codes[type(request)]
        return codes.pop(0) if codes else 0

    def _find(self, request: FindCoordinatorRequest) -> Any:
        broker = self.coordinator if request.key_type == OF_TRANSACTIONS else self
        found = Coordinator(
            key=request.coordinator_keys[0],
            node_id=broker.node,
            host="127.0.0.1",
            port=broker.port,
            error_code=self.code(request),
        )
        return FindCoordinatorResponse(coordinators=(found,))

    def _initialize(self, request: InitProducerIdRequest) -> Any:
        if code := self.code(request):
            return InitProducerIdResponse(error_code=code)
        self.epoch += 1
        return InitProducerIdResponse(producer_id=PRODUCER_ID, producer_epoch=self.epoch)

    def _add_partitions(self, request: AddPartitionsToTxnRequest) -> Any:
        code = self.code(request)
        topics = request.v3_and_below_topics
        if not code:
            self.added |= {(topic.name, partition) for topic in topics for partition in topic.partitions}
        return AddPartitionsToTxnResponse(
            results_by_topic_v3_and_below=tuple(
                AddPartitionsToTxnTopicResult(
                    name=topic.name,
                    results_by_partition=tuple(
                        AddPartitionsToTxnPartitionResult(partition_index=partition, partition_error_code=code)
                        for partition in topic.partitions
                    ),
                )
                for topic in topics
            )
        )

    def commit_offsets(self, request: TxnOffsetCommitRequest) -> Any:
        """Keep the offsets of the open transaction."""
        code = self.code(request)
        if not code:
            self.open_offsets |= {
                (topic.name, part.partition_index): part.committed_offset
                for topic in request.topics
                for part in topic.partitions
            }
        return TxnOffsetCommitResponse(
            topics=tuple(
                TxnOffsetCommitResponseTopic(
                    name=topic.name,
                    partitions=tuple(
                        TxnOffsetCommitResponsePartition(partition_index=part.partition_index, error_code=code)
                        for part in topic.partitions
                    ),
                )
                for topic in request.topics
            )
        )

    def end(self, request: EndTxnRequest) -> Any:
        """Answer EndTxn as a coordinator does."""
        if code := self.code(request):
            return EndTxnResponse(error_code=code)
        (self.committed if request.committed else self.aborted).append(self.open)
        self.offsets |= self.open_offsets if request.committed else {}
        self.open, self.open_offsets, self.added = [], {}, set()
        if self.version < 2:
            return EndTxnResponse()
        self.epoch += 1
        return EndTxnResponse(producer_id=PRODUCER_ID, producer_epoch=self.epoch)

    def produce(self, request: ProduceRequest) -> Any:
        """Keep the batches of the open transaction, or refuse all of them."""
        code = self.code(request)
        for topic in request.topic_data:
            for part in topic.partition_data:
                raw = bytes(part.records or b"")
                header, values = read_header(raw), [record.value for record in read_records(raw)]
                self.produced.append((values, header.producer_epoch, header.base_sequence, header.is_transactional))
                self.open += [] if code else values
        return refused(request, code) if code else self._produce(request)


def refused(request: ProduceRequest, code: int) -> ProduceResponse:
    """The response that refuses every batch of the request."""
    return ProduceResponse(
        responses=tuple(
            TopicProduceResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=tuple(
                    PartitionProduceResponse(index=part.index, error_code=code) for part in topic.partition_data
                ),
            )
            for topic in request.topic_data
        )
    )
