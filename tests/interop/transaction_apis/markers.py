"""WriteTxnMarkers, and what a partition shows after it. No coordinator knows most of these producers."""

from __future__ import annotations

import time
from collections.abc import Iterator

from tests.interop.kit import create_topic, until
from tests.interop.transaction_apis.scenario_client import Line, Producer, ScenarioClient
from tests.unit.coordinator.api.data_world import batch, produce_request

from rota.protocol.errors import ErrorCode
from rota.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from rota.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from rota.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)

PARTITIONS = 8
END, READ_UNCOMMITTED, READ_COMMITTED = -1, 0, 1


class Partitions:
    """The partitions of a topic of its own."""

    def __init__(self, t: ScenarioClient, bootstrap: str) -> None:
        self.t = t
        self.topic = create_topic(bootstrap, PARTITIONS)
        t.renamed[self.topic] = "marked"
        topics = (TopicRequest(name=self.topic, partition_indexes=tuple(range(PARTITIONS))),)
        request = DescribeProducersRequest(topics=topics)
        until(
            lambda: not any(each.error_code for each in t.wire.send_request(request, 0).topics[0].partitions), "leaders"
        )

    def marker(
        self,
        step: str,
        producer: Producer,
        *indexes: int,
        committed: bool = False,
        coordinator_epoch: int = 0,
        version: int = 2,
        transaction_version: int = 0,
        topic: str | None = None,
    ) -> Iterator[Line]:
        marker = WritableTxnMarker(
            producer_id=producer[0],
            producer_epoch=producer[1],
            transaction_result=committed,
            topics=(WritableTxnMarkerTopic(name=topic or self.topic, partition_indexes=indexes),),
            coordinator_epoch=coordinator_epoch,
            transaction_version=transaction_version if version >= 2 else 0,
        )
        yield self.t.line(step, WriteTxnMarkersRequest(markers=(marker,)), version)
        for index in indexes if topic is None and max(indexes) < PARTITIONS else ():
            yield self.producers(f"producers after {step}", index)
            for isolation in (READ_UNCOMMITTED, READ_COMMITTED):
                yield self.end(f"end after {step}", index, isolation)

    def produce(self, name: str, producer: Producer, index: int, version: int = 11) -> None:
        """Write a record of the transaction, whose first sequence is 0."""
        records = batch(
            b"x",
            timestamp=time.time_ns() // 1_000_000,
            producer_id=producer[0],
            producer_epoch=producer[1],
            base_sequence=0,
            is_transactional=True,
        )
        request = produce_request(records, self.topic, index, transactional_id=self.t.named(name))
        answer = self.t.wire.send_request(request, version)
        assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE, answer

    def producers(self, step: str, index: int) -> Line:
        topics = (TopicRequest(name=self.topic, partition_indexes=(index,)),)
        return self.t.line(step, DescribeProducersRequest(topics=topics), 0)

    def end(self, step: str, index: int, isolation: int) -> Line:
        partitions = (ListOffsetsPartition(partition_index=index, timestamp=END),)
        topics = (ListOffsetsTopic(name=self.topic, partitions=partitions),)
        request = ListOffsetsRequest(replica_id=-1, isolation_level=isolation, topics=topics)
        return self.t.line(f"{step}, isolation {isolation}", request, 7)


def write_markers(t: ScenarioClient) -> Iterator[Line]:
    """Markers of unknown producers, of open transactions, of wrong epochs."""
    partitions = Partitions(t, t.bootstrap)
    yield from _unknown_producers(t, partitions)
    for index, transaction_version in enumerate((0, 1, 2), 1):
        yield from _open_transaction(t, partitions, index, transaction_version)
    yield from _coordinator_epochs(t, partitions, 4)
    yield from _wrong_epochs(t, partitions)


def _unknown_producers(t: ScenarioClient, p: Partitions) -> Iterator[Line]:
    producer_id, _ = t.new("marked")
    for version in (1, 2):
        yield from p.marker("unknown partition", (producer_id, 0), 99, version=version)
        yield from p.marker("unknown topic", (producer_id, 0), 0, version=version, topic="no such topic")
        yield from p.marker("never wrote", (producer_id, 3), 0, version=version)
        yield from p.marker("never wrote, again", (producer_id, 3), 0, version=version)
    for transaction_version in (0, 1, 2):
        yield from p.marker("once more", (producer_id, 3), 0, transaction_version=transaction_version)
        yield from p.marker("next epoch", (producer_id, 4), 0, transaction_version=transaction_version)
        yield from p.marker("epoch before", (producer_id, 3), 0, transaction_version=transaction_version)


def _open_transaction(t: ScenarioClient, p: Partitions, index: int, transaction_version: int) -> Iterator[Line]:
    for committed in (True, False):
        name = f"open{transaction_version}.{committed}"
        t.new(name)
        producer_id, epoch = t.new(name)
        yield t.add_to("begin", name, (producer_id, epoch), p.topic, index)
        p.produce(name, (producer_id, epoch), index)
        yield p.producers("open", index)
        for step, ahead in (("epoch before", -1), ("same epoch", 0), ("next epoch", 1), ("next epoch again", 1)):
            yield from p.marker(
                step,
                (producer_id, epoch + ahead),
                index,
                committed=committed,
                transaction_version=transaction_version,
            )


def _coordinator_epochs(t: ScenarioClient, p: Partitions, index: int) -> Iterator[Line]:
    producer_id, _ = t.new("coordinators")
    for coordinator_epoch in (5, 5, 4, 6, 0, -1):
        step = f"coordinator epoch {coordinator_epoch}"
        yield from p.marker(step, (producer_id, 0), index, coordinator_epoch=coordinator_epoch)


def _wrong_epochs(t: ScenarioClient, p: Partitions) -> Iterator[Line]:
    producer_id, _ = t.new("wrong")
    yield from p.marker("last epoch", (producer_id, 32_767), 5)
    yield from p.marker("two partitions", (producer_id, 32_767), 5, 7, committed=True)
