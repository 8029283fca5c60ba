"""One heap of events in virtual time, coroutines that wait for them, and a network that a seed disturbs.

A coroutine here waits for nothing but a `Wait`: there is no asyncio, so that an event costs microseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from dataclasses import dataclass, field
from functools import partial
from heapq import heappop, heappush
from itertools import count
from random import Random
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.simulation.machines_broker import Life

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
        self._next_number = count().__next__

    def after(self, ms: float, call: Callable[[], None]) -> None:
        heappush(self._heap, (self.now_ms + ms, self._next_number(), call))

    def run(self, until_ms: float, touched: list[Any], check: Callable[[], None]) -> None:
        """Let time pass, calling `check` after each event that has put something into `touched`."""
        heap, events = self._heap, 0
        while heap and heap[0][0] <= until_ms:
            self.now_ms, _, call = heappop(heap)
            events += 1
            call()
            if touched:
                check()
        self.now_ms = until_ms
        self.events += events


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
        is_doubled = is_datagram and self.heap.random.random() < self.doubled
        if (source, to) not in self.blocked:
            self._send(arrive)
            if is_doubled:
                self._send(arrive)

    def _send(self, arrive: Callable[[], None]) -> None:
        heap = self.heap
        draw = heap.random.random
        if draw() >= self.lost:
            first, last = self.LATE_MS if draw() < self.late else self.delays_ms
            heap.after(first + (last - first) * draw(), arrive)

    def heal(self) -> None:
        self.blocked.clear()
        self.lost = self.doubled = self.late = 0.0


class Exchange:
    """A request to `to` on a connection of its own: `received` gets its answer once, or None when there will be none.

    `life` is the process that it goes to, if there is one.
    """

    __slots__ = ("_is_over", "_life", "_network", "_received", "_source", "_to")

    def __init__(
        self, network: Network, source: int, to: int, life: Life | None, received: Callable[[Any], None]
    ) -> None:
        self._network, self._source, self._to, self._life = network, source, to, life
        self._received, self._is_over = received, False

    def receive(self, answer: Any = None) -> None:
        if not self._is_over:
            self._is_over = True
            if self._life is not None:
                self._life.exchanges.pop(self, None)
            self._received(answer)

    def reply(self, answer: Any) -> None:
        assert self._life is not None
        assert not self._life.is_dead, "a dead process answers"
        self._network.send(self._to, self._source, partial(self.receive, answer))

    def disconnect(self) -> None:
        """The requester notices that the process is gone."""
        self._network.heap.after(1.0, self.receive)


class Tasks:
    """The coroutines and timers of one process; after `stop` none of them goes on."""

    def __init__(self, run: Callable[[Callable[[], None]], None], heap: Heap) -> None:
        """`run` runs a call as an event of the process."""
        self._run, self._heap, self.is_stopped = run, heap, False
        self.has_stood_still = False  # any event notices that, also that of a timer that was cancelled
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
        return Wait(lambda resume: self.after(ms, partial(resume, None, None)))

    def after(self, ms: float, call: Callable[[], None]) -> None:
        """Call it as an event of this process, unless it has stopped."""
        self._heap.after(ms, partial(self._run, call))

    # ---- timers by key, as partitions and coordinators set them; `at_ms` is of `Heap.now_ms`

    def at(self, key: object, at_ms: float, call: Callable[[], None]) -> None:
        timers, armed = self._timers, object()
        timers[key] = armed

        def fire() -> None:
            if timers.get(key) is armed:
                del timers[key]
                call()

        def come() -> None:
            if self.has_stood_still or timers.get(key) is armed:
                self._run(fire)

        self._heap.after(max(at_ms - self._heap.now_ms, 0), come)

    def cancel(self, key: object) -> None:
        self._timers.pop(key, None)
