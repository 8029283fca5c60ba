"""Timers: the heap against a plain table, the shell with a clock that only the test moves."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from rota.coordinator.scheduling.timers import READING_MS, SLEEP_MS_MAX, STALE_ENTRIES_MIN, TimerHeap, Timers

KEYS = st.sampled_from("abcd")
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("at"), KEYS, st.integers(0, 50)),
        st.tuples(st.just("cancel"), KEYS, st.just(0)),
        st.tuples(st.just("due"), st.just(""), st.integers(0, 60)),
    ),
    max_size=60,
)


@settings(deadline=None)
@given(STEPS)
def test_the_heap_is_a_table_of_times(steps: list[tuple[str, str, int]]) -> None:
    heap, table, now = TimerHeap(), dict[str, int](), 0
    called: list[str] = []
    for operation, key, number in steps:
        if operation == "at":
            heap.at(key, number, lambda key=key: called.append(key))  # type: ignore[misc]
            table[key] = number
        elif operation == "cancel":
            heap.cancel(key)
            table.pop(key, None)
        else:
            now = max(now, number)
            called.clear()
            for call in heap.due(now):
                call()
            expected = [key for key, at_ms in table.items() if at_ms <= now]
            assert sorted(called) == sorted(expected)
            assert [table[key] for key in called] == sorted(table[key] for key in called)
            table = {key: at_ms for key, at_ms in table.items() if at_ms > now}
        assert len(heap) == len(table)
        next_ms = heap.next_ms()
        assert (next_ms is None) == (not table)
        assert next_ms is None or next_ms <= min(table.values())


def test_moving_a_timer_later_leaves_the_heap_alone() -> None:
    heap = TimerHeap()
    heap.at("member", 10, lambda: None)
    for at_ms in range(10, 10_000):
        heap.at("member", at_ms, lambda: None)
    assert len(heap._heap) == 1
    assert list(heap.due(9_998)) == []
    assert heap.next_ms() == 9_999


def test_cancelled_timers_are_cleaned_up() -> None:
    heap = TimerHeap()
    for number in range(10_000):
        heap.at(number, 1_000_000 + number, lambda: None)
        heap.cancel(number)
    assert len(heap._heap) <= STALE_ENTRIES_MIN + 1


def test_a_timer_callback_may_cancel_and_set_timers() -> None:
    heap, called = TimerHeap(), list[str]()

    def first() -> None:
        called.append("first")
        heap.cancel("second")
        heap.at("first", 1, first)

    heap.at("first", 1, first)
    heap.at("second", 2, lambda: called.append("second"))
    for call in heap.due(5):
        call()
    assert called == ["first"]
    for call in heap.due(5):
        call()
    assert called == ["first", "first"]


class Loop:
    """A loop that sleeps until the test says so."""

    def __init__(self) -> None:
        self.sleeps: list[Handle] = []
        self.answers: list[object] = []

    def call_later(self, delay: float, callback: Callable[[], None]) -> Handle:
        self.sleeps.append(Handle(delay, callback))
        return self.sleeps[-1]

    def call_soon(self, callback: Callable[[], None]) -> Handle:
        return self.call_later(0, callback)

    def call_exception_handler(self, context: dict[str, object]) -> None:
        self.answers.append(context["exception"])

    def asleep(self) -> list[Handle]:
        return [handle for handle in self.sleeps if not handle.cancelled]


class Handle:
    def __init__(self, delay: float, call: Callable[[], None]) -> None:
        self.delay, self.call, self.cancelled = delay, call, False

    def cancel(self) -> None:
        self.cancelled = True

    def fire(self) -> None:
        self.cancelled = True
        self.call()


class Clock:
    def __init__(self) -> None:
        self.now_ms = 1000
        self.loop = Loop()
        self.timers = Timers(lambda: self.now_ms, self.loop)


def test_one_sleep_until_the_first_of_all() -> None:
    clock, called = Clock(), list[str]()
    clock.timers.at("b", 3000, lambda: called.append("b"))
    clock.timers.at("a", 2000, lambda: called.append("a"))
    clock.timers.at("c", 4000, lambda: called.append("c"))
    (sleep,) = clock.loop.asleep()
    assert sleep.delay == 1.0
    clock.now_ms = 3000
    sleep.fire()
    assert called == ["a", "b"]
    (sleep,) = clock.loop.asleep()
    assert sleep.delay == 1.0
    assert len(clock.timers) == 1


def test_nothing_set_is_no_sleep() -> None:
    clock = Clock()
    clock.timers.at("a", 2000, lambda: None)
    clock.timers.cancel("a")
    for sleep in clock.loop.asleep():
        sleep.fire()
    assert clock.loop.asleep() == []


def test_a_loop_that_wakes_too_early_sleeps_again() -> None:
    clock, called = Clock(), list[str]()
    clock.timers.at("a", 2000, lambda: called.append("a"))
    clock.now_ms = 1999
    clock.loop.asleep()[0].fire()
    assert called == []
    assert clock.loop.asleep()[0].delay == 0.001


def test_a_failing_timer_does_not_affect_the_others() -> None:
    clock, called, mistake = Clock(), list[str](), RuntimeError("x")

    def fails() -> None:
        raise mistake

    clock.timers.at("bad", 1000, fails)
    clock.timers.at("good", 1000, lambda: called.append("good"))
    clock.loop.asleep()[0].fire()
    assert (called, clock.loop.answers) == (["good"], [mistake])


def test_a_far_timer_is_looked_at_again_and_a_late_one_fires_at_once() -> None:
    clock = Clock()
    clock.timers.at("far", 1000 + 10 * SLEEP_MS_MAX, lambda: None)
    assert clock.loop.asleep()[0].delay == SLEEP_MS_MAX / 1000
    clock.timers.at("late", 0, lambda: None)
    assert clock.loop.asleep()[0].delay == 0


def test_a_timer_that_is_due_fires_at_the_end_of_the_turn_and_once() -> None:
    clock, called, queue = Clock(), list[str](), list[Callable[[], None]]()
    clock.timers.soon = queue.append
    clock.timers.at("far", 9_000, lambda: called.append("far"))
    for key, at_ms in (("b", 1000), ("cancelled", 999), ("a", 998)):
        clock.timers.at(key, at_ms, lambda key=key: called.append(key))  # type: ignore[misc]
    clock.timers.cancel("cancelled")
    assert (len(queue), called, clock.loop.asleep()) == (1, [], [])
    queue.pop()()
    assert called == ["a", "b"]
    (sleep,) = clock.loop.asleep()
    assert (sleep.delay, queue) == (8.0, [])
    clock.timers.at("c", 1000, lambda: called.append("c"))
    clock.timers.fire()  # before what is queued
    queue.pop()()
    assert (called, len(clock.loop.asleep())) == (["a", "b", "c"], 1)
    clock.timers.at("d", 1000, lambda: called.append("d"))
    clock.timers.stop()
    queue.pop()()
    assert called == ["a", "b", "c"]


def test_after_a_stop_nothing_is_called() -> None:
    clock = Clock()
    clock.timers.at("a", 2000, lambda: None)
    clock.timers.stop()
    assert (clock.loop.asleep(), len(clock.timers)) == ([], 0)
    clock.timers.at("b", 3000, lambda: None)  # a shard whose log was closed under it, and that would be loaded again
    assert (clock.loop.asleep(), len(clock.timers)) == ([], 0)


def test_a_timer_that_was_moved_takes_its_new_place_in_the_order() -> None:
    heap, called = TimerHeap(), list[str]()
    heap.at("a", 0, lambda: called.append("a"))
    heap.at("a", 1, lambda: called.append("a"))
    heap.at("b", 0, lambda: called.append("b"))
    for call in heap.due(1):
        call()
    assert called == ["b", "a"]


def test_after_a_standstill_peers_are_heard_first() -> None:
    clock, called = Clock(), list[str]()
    clock.timers.at("session", 2000, lambda: called.append("gone"))
    (sleep,) = clock.loop.asleep()
    clock.now_ms = 10_000
    sleep.fire()
    (sleep,) = clock.loop.asleep()
    assert (called, sleep.delay) == ([], READING_MS / 1000)
    clock.timers.at("session", 12_000, lambda: called.append("gone"))  # a heartbeat had come in time
    sleep.fire()
    assert called == []
    (sleep,) = clock.loop.asleep()
    assert sleep.delay == 2.0


def test_after_a_standstill_members_that_were_not_heard_are_removed() -> None:
    clock, called = Clock(), list[str]()
    clock.timers.at("session", 2000, lambda: called.append("gone"))
    clock.now_ms = 10_000
    for _ in range(2):
        (sleep,) = clock.loop.asleep()
        sleep.fire()
    assert called == ["gone"]


def test_a_postponed_timer_fires_later_and_one_that_is_not_set_never() -> None:
    heap, called = TimerHeap(), list[str]()
    heap.at("member", 10, lambda: called.append("member"))
    heap.postpone("member", 5)
    heap.postpone("nobody", 5)
    assert list(heap.due(14)) == []
    for call in heap.due(15):
        call()
    assert called == ["member"]
    assert len(heap) == 0
