"""One conversation about transactions, told to any broker: each request in each state, with right and wrong producers.

Producer ids are named by the transactional id that has them; times are "now". A transaction that is ending is waited
for before the next request, so that the answer does not depend on the speed of a broker.
"""

from __future__ import annotations

from collections.abc import Iterator
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
UNORDERED = {"topics", "transaction_states", "topic_results", "results_by_partition", "results_by_topic_v3_and_below"}


class Teller:
    """Sends requests for the transactional ids of one telling and yields the answers without what must differ."""

    def __init__(self, bootstrap: str) -> None:
        self.wire = Wire(bootstrap, "transactions")
        self.topic = create_topic(bootstrap, 3)
        self.suffix = unique("")
        self.ids: dict[int, str] = {}  # transactional id by producer id
        find = FindCoordinatorRequest(key=self.named("any"), key_type=1)
        until(lambda: self.wire.ask(find, 2).error_code == ErrorCode.NONE, "a coordinator")
        first = InitProducerIdRequest(transactional_id=self.named("first"), transaction_timeout_ms=60_000)
        until(lambda: self.wire.ask(first, 4).error_code == ErrorCode.NONE, "a producer id")

    def named(self, name: str) -> str:
        return name + self.suffix if name else ""

    def line(self, step: str, request: Any, version: int) -> Line:
        answer = self.wire.ask(request, version)
        return {"step": step, "version": version, "answer": self._plain(answer)}

    def _plain(self, value: Any, field: str = "") -> Any:
        match value:
            case bool() | None:
                return value
            case str():
                return value.replace(self.suffix, "").replace(self.topic, "data")
            case tuple() if field == "partitions":  # the order of a hash set
                return sorted(value)
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
        answer = self.wire.ask(request, 4)
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

    def offsets(self, step: str, name: str, producer: Producer, version: int = 3) -> Line:
        request = AddOffsetsToTxnRequest(
            transactional_id=self.named(name), producer_id=producer[0], producer_epoch=producer[1], group_id="g"
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
            (state,) = self.wire.ask(request, 0).transaction_states
            return not state.transaction_state.startswith("Prepare")

        until(is_settled, "the markers")


def tell(bootstrap: str) -> Iterator[Line]:
    """The whole conversation."""
    teller = Teller(bootstrap)
    try:
        for name, chapter in CHAPTERS.items():
            for line in chapter(teller):
                yield {"chapter": name, **line}
    finally:
        teller.wire.close()


def _ends(version: int) -> Any:
    """Every end in every state, by the current epoch, by the one before and by wrong producers."""

    def chapter(t: Teller) -> Iterator[Line]:
        name = f"end{version}"
        for committed in (True, False):
            producer_id, epoch = t.new(name)
            for again in (True, False):
                yield t.end("in Empty, epoch before", name, (producer_id, epoch - 1), again, version)
            yield t.end("in Empty: commit", name, (producer_id, epoch), True, version)
            yield t.add("begin", name, (producer_id, epoch), 0, 1)
            yield t.end("wrong id", name, (producer_id + 500, epoch), committed, version)
            yield t.end("wrong epoch", name, (producer_id, epoch + 3), committed, version)
            yield t.end("epoch before", name, (producer_id, epoch - 1), committed, version)
            yield t.describe("ongoing", name)
            yield t.end("end", name, (producer_id, epoch), committed, version)
            yield t.describe("ended", name)
            for again in (committed, not committed):
                yield t.end("again", name, (producer_id, epoch), again, version)
            yield t.end("wrong epoch when ended", name, (producer_id, epoch + 7), committed, version)
            yield t.add("old epoch", name, (producer_id, epoch), 2)
            yield t.add("next epoch", name, (producer_id, epoch + 1), 2)
            yield t.init("begin again", name)
            t.settle(name)
            yield t.init("begin again", name)

    return chapter


def _empty_abort(t: Teller) -> Iterator[Line]:
    producer_id, epoch = t.new("nothing")
    yield t.end("abort nothing", "nothing", (producer_id, epoch), False, 5)
    yield t.end("retry", "nothing", (producer_id, epoch), False, 5)
    yield t.end("abort nothing again", "nothing", (producer_id, epoch + 1), False, 5)
    yield t.end("commit nothing", "nothing", (producer_id, epoch + 2), True, 5)
    yield t.describe("state", "nothing")


def _init(t: Teller) -> Iterator[Line]:
    producer_id, epoch = t.new("init")
    for version in range(6):
        yield t.init("again", "init", version=version)
    epoch += 6
    yield t.init("mine", "init", (producer_id, epoch))
    yield t.init("retry", "init", (producer_id, epoch))
    yield t.init("next", "init", (producer_id, epoch + 1))
    for version in (3, 4, 5):
        yield t.init("zombie", "init", (producer_id, epoch), version)
        yield t.init("of the future", "init", (producer_id, epoch + 9), version)
        yield t.init("of another", "init", (producer_id + 500, epoch), version)
    for half in ((producer_id, ABSENT), (ABSENT, epoch)):
        yield t.init("half a producer", "init", half)
    for timeout_ms in (0, -1, 900_000, 900_001):
        yield t.init("timeout", "init", ms=timeout_ms)
    yield t.init("no name", "")


def _fencing(t: Teller) -> Iterator[Line]:
    for name, mine in (("fence", False), ("self", True)):
        for version in (3, 5):
            producer_id, epoch = t.new(name)
            yield t.add("begin", name, (producer_id, epoch), 0, version=version)
            had = (producer_id, epoch) if mine else (ABSENT, ABSENT)
            yield t.init("while it is ongoing", name, had)
            t.settle(name)
            yield t.describe("aborted", name)
            yield t.add("zombie", name, (producer_id, epoch), 0)
            yield t.init("repeated", name, had)
            yield t.end("zombie ends", name, (producer_id, epoch), True, 4)
            yield t.init("and again", name)


def _partitions(t: Teller) -> Iterator[Line]:
    producer_id, epoch = t.new("add")
    for version in range(4):
        yield t.add("wrong epoch", "add", (producer_id, epoch + 1), 0, version=version)
        yield t.add("wrong id", "add", (producer_id + 500, epoch), 0, version=version)
        yield t.offsets("wrong epoch", "add", (producer_id, epoch + 1), version)
        yield t.offsets("wrong id", "add", (producer_id + 500, epoch), version)
    yield t.add("unknown id", "unknown", (producer_id, epoch), 0)
    yield t.offsets("unknown id", "unknown", (producer_id, epoch))
    yield t.add("no id", "", (producer_id, epoch), 0)
    yield t.offsets("no id", "", (producer_id, epoch))
    yield t.add("missing partition", "add", (producer_id, epoch), 0, 99)
    yield t.describe("nothing added", "add")
    for verify_only in (True, False, True):
        for version in (4, 5):
            yield t.batched("batched", "add", (producer_id, epoch), 0, 2, verify_only=verify_only, version=version)
    yield t.batched("another partition", "add", (producer_id, epoch), 1, verify_only=True)
    yield t.batched("wrong epoch", "add", (producer_id, epoch + 1), 0, verify_only=True)
    yield t.batched("wrong id", "add", (producer_id + 500, epoch), 0, verify_only=True)
    yield t.batched("unknown", "unknown", (producer_id, epoch), 0, verify_only=True)
    yield t.batched("no id", "", (producer_id, epoch), 0, verify_only=True)
    yield t.batched("missing partition", "add", (producer_id, epoch), 0, 99, verify_only=False)


def _lists(t: Teller) -> Iterator[Line]:
    producer_id, _ = t.new("listed")
    yield t.list("by id", producer_id_filters=(producer_id,))
    yield t.list("by another id", producer_id_filters=(producer_id + 500,))
    yield t.list("by states", producer_id_filters=(producer_id,), state_filters=("Empty", "Dead", "Bogus"))
    yield t.list("by other states", producer_id_filters=(producer_id,), state_filters=("Ongoing", "PrepareEpochFence"))
    yield t.list("by time", producer_id_filters=(producer_id,), duration_filter=1_000_000)
    yield t.list("version 0", 0, producer_id_filters=(producer_id,))
    yield t.describe("unknown ones", "listed", "unknown", "")


CHAPTERS = {
    **{f"EndTxn {version}": _ends(version) for version in range(6)},
    "an abort of nothing": _empty_abort,
    "InitProducerId": _init,
    "fencing": _fencing,
    "partitions": _partitions,
    "lists": _lists,
}
