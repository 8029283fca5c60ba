"""Awaiting what became of a record."""

from __future__ import annotations

import asyncio

import pytest
from tests.unit.client.producer.kit import batch

from rota.client.errors import DeliveryFailed, IllegalUse, TimedOut
from rota.client.producer.batch import Failed, Written
from rota.client.producer.delivery import Delivery, ended, first_unreported
from rota.client.types import RecordMetadata, TimestampType, TopicPartition
from rota.protocol.records.batch import Codec


async def test_where_it_went() -> None:
    made = batch(b"1", b"2")
    delivery = Delivery(made, 1, 1_001)
    assert not delivery.done()
    made.end(Written(40))
    assert delivery.done()
    assert await delivery == await delivery == delivery.result() == RecordMetadata("t", 0, 41, 1_001)


async def test_the_brokers_time() -> None:
    made = batch(b"1")
    made.end(Written(40, 5_000))
    assert await Delivery(made, 0, 1_000) == RecordMetadata("t", 0, 40, 5_000, TimestampType.LOG_APPEND_TIME)


async def test_without_a_response_the_offset_is_minus_one() -> None:
    made = batch(b"1", b"2")
    made.end(Written(-1))
    assert (await Delivery(made, 1, 1)).offset == -1


async def test_many_wait_and_one_of_them_gives_up() -> None:
    made = batch(b"1", b"2")
    waiting = [asyncio.get_running_loop().create_task(_wait(Delivery(made, index, 1))) for index in (0, 1, 1)]
    await asyncio.sleep(0)
    waiting[1].cancel()
    await asyncio.sleep(0)
    made.end(Written(7))
    assert [(await waiting[0]).offset, (await waiting[2]).offset] == [7, 8]
    assert waiting[1].cancelled()


async def test_pd5_a_failure_whose_wait_is_cancelled_in_the_same_tick_is_not_reported() -> None:
    """As by `asyncio.wait_for` with the time of delivery_timeout_ms."""
    made = batch(b"1", b"2")
    waiting = [asyncio.create_task(_wait(Delivery(made, index, 1))) for index in (0, 1)]
    await asyncio.sleep(0)
    made.end(Failed(TimedOut("late"), maybe_written=True))
    waiting[0].cancel()
    await asyncio.wait(waiting)
    assert made.reported == {1}
    assert first_unreported(made).maybe_written


@pytest.mark.parametrize("cancelled", [0, 1])
async def test_pd5_a_failure_that_another_caller_gets_is_reported_once(cancelled: int) -> None:
    made = batch(b"1")
    waiting = [asyncio.create_task(_wait(Delivery(made, 0, 1))) for _ in range(2)]
    await asyncio.sleep(0)
    made.end(Failed(TimedOut("late"), maybe_written=True))
    waiting[cancelled].cancel()
    assert not made.is_unreported
    await asyncio.wait(waiting)
    assert not made.is_unreported


async def test_pd5_a_failure_that_a_caller_is_about_to_get_is_kept_until_it_has_it() -> None:
    """A flush in the tick of the failure leaves it to that caller, which may be cancelled."""
    made = batch(b"1", b"2")
    waiting = asyncio.create_task(_wait(Delivery(made, 0, 1)))
    await asyncio.sleep(0)
    made.end(Failed(TimedOut("late"), maybe_written=True))
    assert made.report_all(), "by the flush"
    waiting.cancel()
    await asyncio.wait([waiting])
    assert list(made.unreported()) == [0]
    assert not made.report_all()


async def test_a_failure_is_raised_each_time_and_seen() -> None:
    made = batch(b"1", b"2")
    made.end(Failed(TimedOut("late"), maybe_written=True, records={1: TimedOut("that one")}))
    for _ in range(2):
        with pytest.raises(DeliveryFailed, match=r"may or may not.*that one") as failed:
            await Delivery(made, 1, 1)
    assert failed.value.maybe_written
    assert failed.value.partition == TopicPartition("t", 0)
    assert isinstance(failed.value.cause, TimedOut)
    assert made.is_unreported
    assert "late" in str(first_unreported(made))
    with pytest.raises(DeliveryFailed):
        Delivery(made, 0, 1).result()
    assert not made.is_unreported


async def test_a_failure_with_a_waiting_task_counts_as_reported() -> None:
    made = batch(b"1")
    waiting = asyncio.get_running_loop().create_task(_wait(Delivery(made, 0, 1)))
    await asyncio.sleep(0)
    made.end(Failed(TimedOut("late"), maybe_written=False))
    assert not made.is_unreported
    with pytest.raises(DeliveryFailed, match="was not written"):
        await waiting


async def test_callbacks_are_called_by_call_soon() -> None:
    made = batch(b"1")
    delivery, called = Delivery(made, 0, 1), []
    delivery.add_done_callback(called.append)
    made.end(Failed(TimedOut("late"), maybe_written=False))
    assert called == []
    delivery.add_done_callback(called.append)
    await asyncio.sleep(0)
    assert called == [delivery, delivery]
    assert not made.is_unreported


async def test_a_callback_that_raises_does_not_stop_the_others() -> None:
    made, called, mistakes = batch(b"1", b"2", b"3"), [], []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: mistakes.append(context["exception"]))

    def raises(delivery: Delivery) -> None:
        raise RuntimeError("of the application")

    for index, callback in enumerate((called.append, raises, called.append)):
        Delivery(made, index, 1).add_done_callback(callback)
    made.end(Written(40))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert [delivery.result().offset for delivery in called] == [40, 42]
    assert [str(mistake) for mistake in mistakes] == ["of the application"]


async def test_callbacks_follow_a_split() -> None:
    made, called = batch(b"1", b"2"), []
    deliveries = [Delivery(made, index, 1) for index in range(2)]
    for delivery in deliveries:
        delivery.add_done_callback(called.append)
    made.seal()
    first, second = made.split(1 << 20, Codec.NONE, None)
    second.end(Written(7))
    await asyncio.sleep(0)
    assert called == deliveries[1:]
    first.end(Written(3))
    await asyncio.sleep(0)
    assert called == deliveries[::-1]


def test_asking_too_early_is_refused() -> None:
    with pytest.raises(IllegalUse, match="await it"):
        Delivery(batch(b"1"), 0, 1).result()


async def test_a_split_is_followed() -> None:
    made = batch(b"1", b"2")
    made.seal()
    first, second = made.split(1 << 20, Codec.NONE, None)
    waiting = [asyncio.get_running_loop().create_task(_wait(Delivery(made, index, 1))) for index in (0, 1)]
    everything = asyncio.get_running_loop().create_task(ended(made))
    await asyncio.sleep(0)
    first.end(Written(5))
    await asyncio.sleep(0)
    assert not everything.done()
    second.end(Failed(TimedOut("late"), maybe_written=False))
    assert (await waiting[0]).offset == 5
    with pytest.raises(DeliveryFailed):
        await waiting[1]
    await everything


async def test_waiting_for_the_end_sees_no_failure() -> None:
    made = batch(b"1")
    everything = asyncio.get_running_loop().create_task(ended(made))
    await asyncio.sleep(0)
    made.end(Failed(TimedOut("late"), maybe_written=False))
    await everything
    assert made.is_unreported


def test_it_shows_where_it_is() -> None:
    made = batch(b"1")
    delivery = Delivery(made, 0, 1)
    assert repr(delivery) == "<Delivery to t-0, under way>"
    made.end(Written(4))
    assert repr(delivery) == "<Delivery to t-0@4, delivered>"


async def _wait(delivery: Delivery) -> RecordMetadata:
    return await delivery
