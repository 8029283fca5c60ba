"""Batches and answers for the producer's tests."""

from __future__ import annotations

from rota.client.producer.accumulator import Accumulator, Limits
from rota.client.producer.batch import Batch, Queue, record_bytes
from rota.client.producer.produce_response import ProduceResults
from rota.client.producer.sequences import Sequences
from rota.client.types import TopicPartition
from rota.protocol.messages.produce import BatchIndexAndErrorMessage, PartitionProduceResponse
from rota.protocol.records.batch import Codec

LINGER_MS, DELIVERY_MS = 5, 1_000


def batch(*values: bytes, codec: Codec = Codec.NONE, partition: int = 0, bytes_max: int = 1 << 20) -> Batch:
    """A batch with these values, at times 1000, 1001, …"""
    made = Batch(Queue(TopicPartition("t", partition)), bytes_max, codec, None, 0)
    for place, value in enumerate(values):
        assert made.append(1_000 + place, None, value, ())
        made.records.charged_bytes += record_bytes(None, value, ())
    return made


def accumulator(
    *, idempotent: bool = False, batch_bytes: int = 150, linger_ms: float = LINGER_MS, request_bytes: int = 1 << 20
) -> Accumulator:
    made = Accumulator(Limits(batch_bytes, linger_ms, request_bytes, DELIVERY_MS), Sequences() if idempotent else None)
    if idempotent:
        made.identify(7, 0)
    return made


def produce_results(of: Accumulator, retries: int = 100) -> ProduceResults:
    return ProduceResults(of, retries, lambda _: 20.0)


def led(of: Accumulator, number: int = 0, node: int = 1) -> Queue:
    """The queue of a partition that `node` leads."""
    queue = of.queue(TopicPartition("t", number))
    queue.lead(node, 0)
    return queue


def put(of: Accumulator, queue: Queue, value: bytes, now_ms: float = 0) -> Batch:
    """As `send` does."""
    size = record_bytes(None, value, ())
    return of.append(queue, 1_000, None, value, (), size) or of.begin(queue, 1_000, None, value, (), size, now_ms)


def answer(
    code: int = 0,
    *,
    offset: int = -1,
    message: str | None = None,
    refused: dict[int, str | None] | None = None,
    **more: object,
) -> PartitionProduceResponse:
    errors = tuple(
        BatchIndexAndErrorMessage(batch_index=place, batch_index_error_message=text)
        for place, text in (refused or {}).items()
    )
    return PartitionProduceResponse(
        index=0, error_code=code, base_offset=offset, error_message=message, record_errors=errors, **more
    )
