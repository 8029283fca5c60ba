"""The end of a turn, with a loop that the test turns by hand."""

from __future__ import annotations

from typing import Any

from rota.coordinator.scheduling.tick_queue import Call, TickQueue


class Loop:
    def __init__(self) -> None:
        self.ready: list[Call] = []
        self.failures: list[dict[str, Any]] = []
        self.tick_queue = TickQueue(self.ready.append, self.failures.append)

    def turn(self) -> None:
        ready, self.ready[:] = list(self.ready), []
        for call in ready:
            call()


def test_calls_run_in_order_and_once() -> None:
    loop, done = Loop(), list[int]()
    for number in range(3):
        loop.tick_queue(lambda number=number: done.append(number))  # type: ignore[misc]
    assert done == []
    loop.turn()
    loop.turn()
    assert done == [0, 1, 2]
    assert not loop.ready


def test_calls_queued_by_a_call_run_in_the_same_tick_and_their_calls_in_the_next() -> None:
    loop, done = Loop(), list[str]()

    def write() -> None:
        done.append("write")
        loop.tick_queue(reply)

    def reply() -> None:
        done.append("reply")
        loop.tick_queue(write)

    loop.tick_queue(write)
    loop.turn()
    assert done == ["write", "reply"]
    loop.turn()
    assert done == ["write", "reply"] * 2


def test_a_failing_call_does_not_affect_the_others() -> None:
    loop, done = Loop(), list[str]()

    def fails() -> None:
        raise ZeroDivisionError

    loop.tick_queue(fails)
    loop.tick_queue(lambda: done.append("other"))
    loop.turn()
    assert done == ["other"]
    assert isinstance(loop.failures[0]["exception"], ZeroDivisionError)
    loop.tick_queue(lambda: done.append("later"))
    loop.turn()
    assert done == ["other", "later"]
