from __future__ import annotations

from rota.coordinator.replica.waits import Complete, OffsetWaits
from rota.protocol.errors import ErrorCode


def waits(*offsets: int) -> OffsetWaits[int]:
    """One wait for each offset, named by its place; the deadline of each is ten times its offset."""
    made = OffsetWaits[int]()
    for place, offset in enumerate(offsets):
        made.add(offset, 10 * offset, place)
    return made


def test_the_lowest_offset_completes_first_and_equal_ones_in_their_order() -> None:
    made = waits(3, 1, 3, 2)
    assert made.reach(0) == []
    assert made.reach(3) == [Complete(place, ErrorCode.NONE) for place in (1, 3, 0, 2)]
    assert (len(made), made.reach(9)) == (0, [])


def test_due_waits_expire_and_the_others_stay() -> None:
    made = waits(3, 1, 2)
    assert made.deadline_ms() == 10
    assert made.expire(9) == []
    assert made.expire(20) == [Complete(place, ErrorCode.REQUEST_TIMED_OUT) for place in (1, 2)]
    assert (len(made), made.deadline_ms()) == (1, 30)


def test_all_fail_at_once() -> None:
    made = waits(3, 1)
    assert made.fail(ErrorCode.KAFKA_STORAGE_ERROR) == [
        Complete(place, ErrorCode.KAFKA_STORAGE_ERROR) for place in (1, 0)
    ]
    assert (made.fail(ErrorCode.KAFKA_STORAGE_ERROR), made.deadline_ms()) == ([], None)
