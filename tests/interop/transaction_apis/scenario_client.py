"""Requests about transactions, sent to any broker, and the answers without what must differ.

Producer ids are named by the transactional id that has them; times are "now". A transaction that is ending is waited
for before the next request, so that the answer does not depend on the speed of a broker.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

from tests.interop.differential.wire import Wire
from tests.interop.kit import create_topic, unique, until

from rota.protocol.errors import ErrorCode
from rota.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from rota.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from rota.protocol.messages.describe_transactions import DescribeTransactionsRequest
from rota.protocol.messages.end_txn import EndTxnRequest
from rota.protocol.messages.find_coordinator import FindCoordinatorRequest
from rota.protocol.messages.init_producer_id import InitProducerIdRequest
from rota.protocol.messages.list_transactions import ListTransactionsRequest

Line = dict[str, Any]
Producer = tuple[int, int]
NOW_MIN = 1_600_000_000_000
ABSENT = -1
UNORDERED = {
    "active_producers",
    "partitions",
    "results_by_partition",
    "results_by_topic_v3_and_below",
    "topic_results",
    "topics",
    "transaction_states",
}


class ScenarioClient:
    """Sends requests for the transactional ids of one run and yields the answers without what must differ."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.wire = Wire(bootstrap, "transactions")
        self.topic = create_topic(bootstrap, 3)
        self.renamed = {self.topic: "data"}  # names of topics
        self.suffix = unique("")
        self.ids: dict[int, str] = {}  # transactional id by producer id
        find = FindCoordinatorRequest(key=self.named("any"), key_type=1)
        until(lambda: self.wire.send_request(find, 2).error_code == ErrorCode.NONE, "a coordinator")
        first = InitProducerIdRequest(transactional_id=self.named("first"), transaction_timeout_ms=60_000)
        until(lambda: self.wire.send_request(first, 4).error_code == ErrorCode.NONE, "a producer id")

    def named(self, name: str) -> str:
        return name + self.suffix if name else ""

    def line(self, step: str, request: Any, version: int) -> Line:
        answer = self.wire.send_request(request, version)
        return {"step": step, "version": version, "answer": self._plain(answer)}

    def _plain(self, value: Any, field: str = "") -> Any:
        match value:
            case bool() | None:
                return value
            case bytes():
                return value.hex()
            case str():
                for topic, plain_name in self.renamed.items():
                    value = value.replace(topic, plain_name)
                return value.replace(self.suffix, "")
            case tuple() | list():
                plain = [self._plain(each, field) for each in value]
                return sorted(plain, key=str) if field in UNORDERED else plain
            case int() if field == "producer_id" and value in self.ids:
                return f"that of {self.ids[value]}"
            case int():
                return "now" if value > NOW_MIN else int(value)
        assert is_dataclass(value), value
        named = (each.name for each in fields(value) if each.name != "throttle_time_ms")
        return {name: self._plain(getattr(value, name), name) for name in named}

    # ---- requests

    def init(self, step: str, name: str, had: Producer = (ABSENT, ABSENT), version: int = 5, ms: int = 60_000) -> Line:
        request = InitProducerIdRequest(
            transactional_id=self.named(name),
            transaction_timeout_ms=ms,
            producer_id=had[0] if version >= 3 else ABSENT,
            producer_epoch=had[1] if version >= 3 else ABSENT,
        )
        return self.line(step, request, version)

    def new(self, name: str) -> Producer:
        """The producer of a transactional id of its own."""
        request = InitProducerIdRequest(transactional_id=self.named(name), transaction_timeout_ms=60_000)
        answer = self.wire.send_request(request, 4)
        assert answer.error_code == ErrorCode.NONE
        self.ids[answer.producer_id] = name
        return answer.producer_id, answer.producer_epoch

    def add(self, step: str, name: str, producer: Producer, *indexes: int, version: int = 3) -> Line:
        topics = (AddPartitionsToTxnTopic(name=self.topic, partitions=indexes),)
        if version < 4:
            request = AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=self.named(name),
                v3_and_below_producer_id=producer[0],
                v3_and_below_producer_epoch=producer[1],
                v3_and_below_topics=topics,
            )
            return self.line(step, request, version)
        return self.batched(step, name, producer, *indexes, version=version, verify_only=False)

    def add_to(self, step: str, name: str, producer: Producer, topic: str, index: int) -> Line:
        """Add a partition of another topic."""
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.named(name),
            v3_and_below_producer_id=producer[0],
            v3_and_below_producer_epoch=producer[1],
            v3_and_below_topics=(AddPartitionsToTxnTopic(name=topic, partitions=(index,)),),
        )
        return self.line(step, request, 3)

    def batched(
        self, step: str, name: str, producer: Producer, *indexes: int, verify_only: bool, version: int = 5
    ) -> Line:
        transaction = AddPartitionsToTxnTransaction(
            transactional_id=self.named(name),
            producer_id=producer[0],
            producer_epoch=producer[1],
            verify_only=verify_only,
            topics=(AddPartitionsToTxnTopic(name=self.topic, partitions=indexes),),
        )
        return self.line(step, AddPartitionsToTxnRequest(transactions=(transaction,)), version)

    def offsets(self, step: str, name: str, producer: Producer, version: int = 3, group: str = "g") -> Line:
        request = AddOffsetsToTxnRequest(
            transactional_id=self.named(name), producer_id=producer[0], producer_epoch=producer[1], group_id=group
        )
        return self.line(step, request, version)

    def end(self, step: str, name: str, producer: Producer, committed: bool, version: int) -> Line:
        request = EndTxnRequest(
            transactional_id=self.named(name),
            producer_id=producer[0],
            producer_epoch=producer[1],
            committed=committed,
        )
        line = self.line(step, request, version)
        self.settle(name)
        return line

    def describe(self, step: str, *names: str) -> Line:
        request = DescribeTransactionsRequest(transactional_ids=tuple(self.named(name) for name in names))
        return self.line(step, request, 0)

    def list(self, step: str, version: int = 1, **filters: Any) -> Line:
        request = ListTransactionsRequest(**filters)
        line = self.line(step, request, version)
        states = line["answer"]["transaction_states"]
        own = {*self.ids.values()}
        line["answer"]["transaction_states"] = [each for each in states if each["transactional_id"] in own]
        return line

    def settle(self, name: str) -> None:
        """Wait until the markers of the transaction are written."""
        request = DescribeTransactionsRequest(transactional_ids=(self.named(name),))

        def is_settled() -> bool:
            (state,) = self.wire.send_request(request, 0).transaction_states
            return not state.transaction_state.startswith("Prepare")

        until(is_settled, "the markers")
