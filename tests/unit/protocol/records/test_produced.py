"""The work of a producer for each record, compiled and interpreted."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from rota.protocol.records.fast import RecordBuffer

# org.apache.kafka.common.utils.UtilsTest.testMurmur2
PUBLISHED = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}
OVERHEAD_BYTES = 21


@pytest.mark.parametrize("data", PUBLISHED)
def test_murmur2_has_the_published_values(produced: ModuleType, data: bytes) -> None:
    assert produced.murmur2(data) == PUBLISHED[data] & 0xFFFF_FFFF


def test_a_taken_record_is_charged_and_written(produced: ModuleType) -> None:
    memory, records = produced.BufferMemory(1_000, 500, lambda: 1.5), RecordBuffer(1_000)
    assert [memory.take(records, b"k", b"value"), memory.take(records, None, None)] == [0, 1]
    assert memory.used_bytes == records.charged_bytes == 2 * OVERHEAD_BYTES + len(b"kvalue")
    assert (records.count, records.max_timestamp, memory.taken_ms) == (2, 1_500, 1_500)


@pytest.mark.parametrize(
    "value",
    [bytearray(b"may change"), memoryview(b"a view"), "text", bytes(480)],
    ids=["bytearray", "view", "text", "long"],
)
def test_what_is_no_usual_record_is_not_taken(produced: ModuleType, value: Any) -> None:
    memory, records = produced.BufferMemory(1_000, 500, lambda: 1.5), RecordBuffer(1_000)
    assert memory.take(records, None, value) == produced.NOT_TAKEN
    assert (memory.used_bytes, records.count, records.charged_bytes) == (0, 0, 0)


def test_nothing_is_taken_beyond_the_memory_or_while_others_wait(produced: ModuleType) -> None:
    memory, records = produced.BufferMemory(100, 100, lambda: 1.5), RecordBuffer(1_000)
    assert memory.take(records, None, bytes(60)) == 0
    assert memory.take(records, None, b"") == produced.NOT_TAKEN
    memory.used_bytes, memory.is_open = 0, False
    assert memory.take(records, None, b"") == produced.NOT_TAKEN
    memory.is_open = True
    assert memory.take(records, None, b"") == 1


def test_a_record_that_does_not_fit_the_batch_is_not_charged(produced: ModuleType) -> None:
    memory, records = produced.BufferMemory(1_000, 1_000, lambda: 1.5), RecordBuffer(50)
    assert memory.take(records, None, bytes(40)) == 0
    assert memory.take(records, None, bytes(40)) == produced.NOT_TAKEN
    assert memory.used_bytes == records.charged_bytes == OVERHEAD_BYTES + 40


def test_a_released_buffer_takes_nothing(produced: ModuleType) -> None:
    memory, records = produced.BufferMemory(1_000, 1_000, lambda: 1.5), RecordBuffer(500)
    memory.take(records, None, b"v")
    records.release()
    assert memory.take(records, None, b"v") == produced.NOT_TAKEN
    assert (records.count, records.payload()) == (1, b"")


def rows_taken(produced: ModuleType, keys: list[Any] | None, values: list[Any], sizes: list[int | None]) -> Any:
    """The index of the first record that is not taken, the memory, and what each open batch has."""
    memory = produced.BufferMemory(1_000, 500, lambda: 1.5)
    buffers = [None if size is None else RecordBuffer(size) for size in sizes]
    at = memory.take_rows(buffers, keys, values, 0, len(values))
    return at, memory.used_bytes, [None if one is None else (one.count, one.payload()) for one in buffers]


def test_rows_go_to_the_partition_of_their_key(produced: ModuleType) -> None:
    keys = [b"foobar", b"abc", b"foobar"]
    at, used, buffers = rows_taken(produced, keys, [b"1", b"2", None], [500, 500])
    counts = [0, 0]
    for key in keys:
        counts[(produced.murmur2(key) & 0x7FFF_FFFF) % 2] += 1
    assert (at, [count for count, _ in buffers]) == (3, counts)
    assert used == 3 * OVERHEAD_BYTES + sum(map(len, keys)) + 2


@pytest.mark.parametrize(
    ("keys", "values", "sizes", "taken"),
    [
        (None, [b"1", None, b"3"], [500], 3),
        ([b"k", None], [b"1", b"2"], [500], 2),
        ([b"k", None], [b"1", b"2"], [500, 500], 1),
        (None, [b"1", "text"], [500], 1),
        ([b"k", "text"], [b"1", b"2"], [500], 1),
        (None, [b"1", bytearray(b"2")], [500], 1),
        (None, [b"1", bytes(490)], [500], 1),
        (None, [bytes(300)] * 4, [5_000], 3),
        (None, [bytes(30)] * 4, [100], 2),
        (None, [b"1"], [None], 0),
        (None, [b"1"], [], 0),
    ],
    ids=["all", "null key", "key needed", "text", "text key", "array", "long", "memory", "batch", "none", "custom"],
)
def test_rows_end_at_the_first_that_is_not_usual(
    produced: ModuleType, keys: Any, values: Any, sizes: Any, taken: int
) -> None:
    at, used, buffers = rows_taken(produced, keys, values, sizes)
    assert at == taken == sum(one[0] for one in buffers if one is not None)
    charged = sum(len(value or b"") for value in values[:taken]) + sum(len(key or b"") for key in (keys or [])[:taken])
    assert used == taken * OVERHEAD_BYTES + charged


def test_no_row_overtakes_a_sender_that_waits(produced: ModuleType) -> None:
    memory = produced.BufferMemory(1_000, 500, lambda: 1.5)
    memory.is_open = False
    assert memory.take_rows([RecordBuffer(500)], None, [b"1"], 0, 1) == 0
