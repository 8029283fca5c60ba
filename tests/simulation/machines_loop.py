"""One heap of events in virtual time, coroutines that wait for them, and a network that a seed disturbs.

A coroutine here waits for nothing but a `Wait`: there is no asyncio, so that an event costs microseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from random import Random
from typing import Any

Resume = Callable[[Any, BaseException | None], None]  # with the result, or what is raised


class Wait:
    """`result = await Wait(begin)`: `begin` gets the call that goes on, which is to be called once."""

    __slots__ = ("begin",)

    def __init__(self, begin: Callable[[Resume], None]) -> None:
        self.begin = begin

    def __await__(self) -> Generator[Wait, Any, Any]:
        return (yield self)


class Heap:
    """Events in the order of their times; those of one time in the order in which they were added."""

    def __init__(self, seed: int) -> None:
        self.random, self.now_ms, self.events = Random(seed), 0.0, 0
        self._heap: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()

    def after(self, ms: float, call: Callable[[], None]) -> None:
        heappush(self._heap, (self.now_ms + ms, next(self._numbers), call))

    def run(self, until_ms: float, each: Callable[[], None]) -> None:
        """Let time pass, calling `each` after each event."""
        heap = self._heap
        while heap and heap[0][0] <= until_ms:
            self.now_ms, _, call = heappop(heap)
            self.events += 1
            call()
            each()
        self.now_ms = until_ms


@dataclass
class Network:
    """What happens to messages between places; a client is at place 0, which every broker reaches.

    `blocked` has (from, to). A request or its answer is lost, or late, so that a later one overtakes it; a datagram may
    be doubled as well.
    """

    heap: Heap
    lost: float = 0.0
    doubled: float = 0.0
    delays_ms: tuple[float, float] = (0.1, 2.0)
    late: float = 0.0  # of the messages take `LATE_MS`
    blocked: set[tuple[int, int]] = field(default_factory=set)

    LATE_MS = (20.0, 900.0)

    def send(self, source: int, to: int, arrive: Callable[[], None], *, is_datagram: bool = False) -> None:
        random = self.heap.random
        for _ in range(1 + (is_datagram and random.random() < self.doubled)):
            if (source, to) not in self.blocked and random.random() >= self.lost:
                self.heap.after(self._delay(random), arrive)

    def _delay(self, random: Random) -> float:
        return random.uniform(*(self.LATE_MS if random.random() < self.late else self.delays_ms))

    def heal(self) -> None:
        self.blocked.clear()
        self.lost = self.doubled = self.late = 0.0


class Tasks:
    """The coroutines and timers of one process; after `stop` none of them goes on."""

    def __init__(self, run: Callable[[Callable[[], None]], None], heap: Heap) -> None:
        """`run` runs a call as an event of the process."""
        self._run, self._heap, self.is_stopped = run, heap, False
        self._timers: dict[object, object] = {}

    def stop(self) -> None:
        self.is_stopped = True

    def spawn(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """Run it up to its first wait, then on as its waits end."""

        def go_on(value: Any = None, error: BaseException | None = None) -> None:
            if self.is_stopped:
                return
            try:
                wait = coroutine.send(value) if error is None else coroutine.throw(error)
            except StopIteration:
                return
            wait.begin(go_on)

        go_on()

    def sleep(self, ms: float) -> Wait:
        return Wait(lambda resume: self.after(ms, lambda: resume(None, None)))

    def after(self, ms: float, call: Callable[[], None]) -> None:
        """Call it as an event of this process, unless it has stopped."""
        self._heap.after(ms, lambda: self._run(call))

    # ---- timers by key, as partitions and coordinators set them; `at_ms` is of `Heap.now_ms`

    def at(self, key: object, at_ms: float, call: Callable[[], None]) -> None:
        armed = self._timers[key] = object()

        def fire() -> None:
            if self._timers.get(key) is armed:
                del self._timers[key]
                call()

        self.after(max(at_ms - self._heap.now_ms, 0), fire)

    def cancel(self, key: object) -> None:
        self._timers.pop(key, None)
