"""A broker without sockets that coordinates transactions; the topic "t" has three partitions."""

from __future__ import annotations

from typing import Any

from tests.unit.coordinator.api.data_world import batch, produce_request
from tests.unit.coordinator.api.group_world import GroupWorld

from rota.coordinator.api.add_partitions_to_txn import add_partitions_to_txn
from rota.coordinator.api.end_txn import end_txn
from rota.coordinator.api.find_coordinator import find_coordinator
from rota.coordinator.api.init_producer_id import init_producer_id
from rota.coordinator.api.produce import produce
from rota.coordinator.transaction.state import TransactionValue
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from rota.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from rota.protocol.messages.find_coordinator import FindCoordinatorRequest
from rota.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

Partitions = dict[str, tuple[int, ...]]


class TransactionWorld(GroupWorld):
    """`id_` is "tx" wherever none is given."""

    def __init__(self) -> None:
        super().__init__()
        self.open()
        self.send_request(find_coordinator, FindCoordinatorRequest(key="tx", key_type=1), 2)

    def init(
        self, id_: str = "tx", *, had: tuple[int, int] = (-1, -1), timeout_ms: int = 60_000, version: int = 5
    ) -> tuple[ErrorCode, int, int]:
        request = InitProducerIdRequest(
            transactional_id=id_, transaction_timeout_ms=timeout_ms, producer_id=had[0], producer_epoch=had[1]
        )
        response: InitProducerIdResponse = self.send_request(init_producer_id, request, version)
        return ErrorCode(response.error_code), response.producer_id, response.producer_epoch

    def add(
        self, producer: tuple[int, int], partitions: Partitions | None = None, id_: str = "tx", version: int = 3
    ) -> dict[tuple[str, int], ErrorCode]:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=id_,
            v3_and_below_producer_id=producer[0],
            v3_and_below_producer_epoch=producer[1],
            v3_and_below_topics=topics_of(partitions or {"t": (0,)}),
        )
        return errors_of(self.send_request(add_partitions_to_txn, request, version).results_by_topic_v3_and_below)

    def batched(self, *transactions: AddPartitionsToTxnTransaction) -> dict[str, dict[tuple[str, int], ErrorCode]]:
        response = self.send_request(add_partitions_to_txn, AddPartitionsToTxnRequest(transactions=transactions), 5)
        assert not response.error_code
        return {result.transactional_id: errors_of(result.topic_results) for result in response.results_by_transaction}

    def end(
        self, producer: tuple[int, int], committed: bool = True, id_: str = "tx", version: int = 4
    ) -> tuple[ErrorCode, int, int]:
        request = EndTxnRequest(
            transactional_id=id_, producer_id=producer[0], producer_epoch=producer[1], committed=committed
        )
        response: EndTxnResponse = self.send_request(end_txn, request, version)
        return ErrorCode(response.error_code), response.producer_id, response.producer_epoch

    def produce(
        self, producer: tuple[int, int], sequence: int = 0, value: bytes = b"x", id_: str = "tx", version: int = 11
    ) -> ErrorCode:
        records = batch(
            value,
            producer_id=producer[0],
            producer_epoch=producer[1],
            base_sequence=sequence,
            is_transactional=True,
        )
        response = self.send_request(produce, produce_request(records, transactional_id=id_), version)
        return ErrorCode(response.responses[0].partition_responses[0].error_code)

    def began(self, id_: str = "tx") -> tuple[int, int]:
        """The producer of a transaction with the partition t-0."""
        error, *producer = self.init(id_)
        assert error is ErrorCode.NONE
        self.add((producer[0], producer[1]), id_=id_)
        return producer[0], producer[1]

    def state(self, id_: str = "tx") -> str:
        value = self.node.transactions.describe(id_)
        assert isinstance(value, TransactionValue)
        return value.state.value


def transaction(
    id_: str, producer: tuple[int, int], partitions: Partitions, *, verify_only: bool
) -> AddPartitionsToTxnTransaction:
    return AddPartitionsToTxnTransaction(
        transactional_id=id_,
        producer_id=producer[0],
        producer_epoch=producer[1],
        verify_only=verify_only,
        topics=topics_of(partitions),
    )


def topics_of(partitions: Partitions) -> tuple[AddPartitionsToTxnTopic, ...]:
    return tuple(AddPartitionsToTxnTopic(name=name, partitions=indexes) for name, indexes in partitions.items())


def errors_of(results: Any) -> dict[tuple[str, int], ErrorCode]:
    return {
        (topic.name, each.partition_index): ErrorCode(each.partition_error_code)
        for topic in results
        for each in topic.results_by_partition
    }
