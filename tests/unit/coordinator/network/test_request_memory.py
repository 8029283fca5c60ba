"""Room for what peers send: bounded, fair, never stuck."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rota.coordinator.network.request_memory import RequestMemoryPool


class Waiter:
    def __init__(self) -> None:
        self.rooms = self.replies = 0

    def admitted(self) -> None:
        self.rooms += 1

    def reply_admitted(self) -> None:
        self.replies += 1


def test_below_the_limit_every_frame_is_read() -> None:
    request_memory = RequestMemoryPool(100)
    for waiter in (Waiter(), Waiter()):
        request_memory.hold(50)
        assert request_memory.admit_frame(waiter)


def test_above_the_limit_one_frame_is_read_and_the_others_in_order() -> None:
    request_memory, first, second, third = RequestMemoryPool(100), Waiter(), Waiter(), Waiter()
    request_memory.hold(150)
    assert [request_memory.admit_frame(waiter) for waiter in (first, second, third, first)] == [
        True,
        False,
        False,
        True,
    ]
    request_memory.done(first)
    assert (second.rooms, third.rooms) == (1, 0)
    assert request_memory.admit_frame(second)
    request_memory.done(second)
    assert third.rooms == 1


def test_waiters_are_admitted_when_memory_is_released() -> None:
    request_memory, first, second, third = RequestMemoryPool(100), Waiter(), Waiter(), Waiter()
    request_memory.hold(150)
    assert [request_memory.admit_frame(waiter) for waiter in (first, second, third)] == [True, False, False]
    request_memory.release(49)
    assert (second.rooms, third.rooms) == (0, 0)
    request_memory.release(1)
    assert (second.rooms, third.rooms) == (1, 1)


def test_a_closed_waiter_is_removed_from_the_queue() -> None:
    request_memory, first, closed, stays = RequestMemoryPool(100), Waiter(), Waiter(), Waiter()
    request_memory.hold(150)
    assert [request_memory.admit_frame(waiter) for waiter in (first, closed, stays)] == [True, False, False]
    request_memory.done(closed)
    request_memory.done(first)
    assert (closed.rooms, stays.rooms) == (0, 1)


def test_large_replies_wait_while_more_than_half_is_held() -> None:
    memory, first, second, third = RequestMemoryPool(100), Waiter(), Waiter(), Waiter()
    memory.hold(50)
    assert memory.has_reply_room
    memory.hold(30)
    assert not memory.has_reply_room
    for waiter in (first, second, third):
        memory.wait_for_reply_room(waiter)
    memory.release(29)
    assert (first.replies, second.replies) == (0, 0)
    memory.release(1)
    assert (first.replies, second.replies) == (1, 0)  # one after the other: its reply may take the room again
    memory.hold(10)
    memory.admit_reply()
    assert second.replies == 0
    memory.closed(second)
    memory.release(10)
    assert (second.replies, third.replies) == (0, 1)
    assert not memory.has_waiting_replies


def test_unfinished_frames_have_half_and_leave_the_other_half_to_replies() -> None:
    memory, first, second = RequestMemoryPool(100), Waiter(), Waiter()
    memory.hold_frame(51)
    assert memory.has_reply_room
    assert [memory.admit_frame(waiter) for waiter in (first, second)] == [True, False]
    memory.hold(51)
    assert not memory.has_reply_room
    memory.release(51)
    memory.release_frame(1)
    assert second.rooms == 1
    memory.release_frame(50)
    assert (memory.held_bytes, memory.frame_bytes) == (0, 0)


def test_giving_back_too_much_is_our_own_mistake() -> None:
    with pytest.raises(AssertionError):
        RequestMemoryPool(100).release(1)


class Frame(Waiter):
    """A large frame of which one part after the other comes."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.left, self.here, self.waits = size, 0, False

    def admitted(self) -> None:
        self.waits = False


@settings(deadline=None)
@given(st.lists(st.integers(1, 150), min_size=1, max_size=12), st.data())
def test_every_frame_gets_in_and_above_the_limit_only_one_at_a_time(sizes: list[int], data: st.DataObject) -> None:
    request_memory, frames = RequestMemoryPool(100), [Frame(size) for size in sizes]
    while frames:
        reading = [frame for frame in frames if not frame.waits]
        assert reading, "all wait for one another"
        above = request_memory.held_bytes > 100
        frame = data.draw(st.sampled_from(reading))
        part = min(frame.left, 10)
        frame.left, frame.here = frame.left - part, frame.here + part
        request_memory.hold(part)
        if frame.left:
            frame.waits = not request_memory.admit_frame(frame)
            assert not (above and not frame.waits) or request_memory._receiver is frame
        else:
            frames.remove(frame)
            request_memory.release(frame.here)
            request_memory.done(frame)
        assert request_memory.held_bytes <= 100 + 150 + 10 * len(sizes)
    assert request_memory.held_bytes == 0
