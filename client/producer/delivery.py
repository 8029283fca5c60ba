"""The result of `send`: the offset at which the record was written.

Laws
    A delivery that is not awaited creates no future; cancelling a wait cancels nothing else.
    Awaiting twice returns the same result. A failure that was not reported to a caller is raised by `flush` or `close`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from functools import partial
from typing import Any

from rota.client.errors import DeliveryFailed, IllegalUse
from rota.client.producer.batch import Batch, Failed, Written
from rota.client.types import RecordMetadata, TimestampType


class Delivery:
    """Awaiting it returns the RecordMetadata or raises DeliveryFailed."""

    __slots__ = ("_batch", "_index", "_timestamp")

    def __init__(self, batch: Batch, index: int, timestamp: int) -> None:
        self._batch, self._index, self._timestamp = batch, index, timestamp

    def done(self) -> bool:
        """Return whether the record was delivered or has failed."""
        return self._batch.place(self._index)[0].outcome is not None

    def result(self) -> RecordMetadata:
        """Return the offset of the record. Raises DeliveryFailed; IllegalUse before it is done."""
        batch, index = self._batch.place(self._index)
        outcome = batch.outcome
        if outcome is None:
            raise IllegalUse("the delivery is not done yet: await it, or look at done() first")
        if not isinstance(outcome, Written):
            batch.reported.add(index)
            raise failure(batch, index)
        return _metadata(batch, index, outcome, self._timestamp)

    def add_done_callback(self, callback: Callable[[Delivery], object]) -> None:
        """Call `callback(delivery)` by `loop.call_soon` once it is done, also if it is done already."""
        batch, index = self._batch.place(self._index)
        if batch.outcome is None:
            if not batch.callbacks:
                batch.call_soon = asyncio.get_running_loop().call_soon
            batch.callbacks.append((index, callback, self))
        else:
            batch.reported.add(index)
            asyncio.get_running_loop().call_soon(callback, self)

    def __await__(self) -> Generator[Any, None, RecordMetadata]:
        batch, index = self._batch.place(self._index)
        if batch.outcome is None:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            batch.listeners.append((index, partial(_wake, waiter)))
            try:
                yield from waiter.__await__()
            finally:  # a caller that is cancelled in the tick of the outcome does not get it
                if waiter.done() and not waiter.cancelled():
                    batch, index = self._batch.place(self._index)
                    batch.caller_resumed(index)
        return self.result()

    def __repr__(self) -> str:
        batch, index = self._batch.place(self._index)
        outcome = batch.outcome
        state = "under way" if outcome is None else "delivered" if isinstance(outcome, Written) else "failed"
        place = f"@{outcome.base_offset + index}" if isinstance(outcome, Written) and outcome.base_offset >= 0 else ""
        return f"<Delivery to {batch.queue.partition}{place}, {state}>"


def failure(batch: Batch, index: int) -> DeliveryFailed:
    """Return the exception for a record of a failed batch."""
    outcome = batch.outcome
    assert isinstance(outcome, Failed)
    cause = outcome.records.get(index, outcome.cause)
    text = (
        "a record was given up, and may or may not have been written"
        if outcome.maybe_written
        else ("a record was not written")
    )
    return DeliveryFailed(
        f"{text} ({batch.queue.partition}): {cause}",
        batch.queue.partition,
        maybe_written=outcome.maybe_written,
        cause=cause,
    )


def first_unreported(batch: Batch) -> DeliveryFailed:
    """Return the exception for the first record whose failure was not reported."""
    return failure(batch, next(batch.unreported()))


async def ended(batch: Batch) -> None:
    """Wait until each record of the batch is delivered or has failed."""
    while batch.outcome is None and not batch.parts:
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        batch.listeners.append((0, partial(_wake_silently, waiter)))
        await waiter
    for _, part in batch.parts:
        await ended(part)


def _metadata(batch: Batch, index: int, written: Written, timestamp: int) -> RecordMetadata:
    topic, partition = batch.queue.partition
    offset = written.base_offset + index if written.base_offset >= 0 else -1
    if written.append_time_ms >= 0:
        return RecordMetadata(topic, partition, offset, written.append_time_ms, TimestampType.LOG_APPEND_TIME)
    return RecordMetadata(topic, partition, offset, timestamp)


def _wake(waiter: asyncio.Future[None]) -> bool:
    if waiter.done():
        return False
    waiter.set_result(None)
    return True


def _wake_silently(waiter: asyncio.Future[None]) -> bool:
    _wake(waiter)
    return False
