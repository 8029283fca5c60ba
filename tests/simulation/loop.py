"""A deterministic event loop: the seed decides time, the order of tasks and the network.

asyncio's own `BaseEventLoop` with three parts replaced:
    clock     `time()` is a number that jumps to the next timer when no task can run
    schedule  ready callbacks run in an order drawn from the seed; those of one task stay in order
    network   `create_connection` and `create_server` use links in memory (net.py)

Work for a thread runs at once in the loop. A simulated minute takes milliseconds.
"""

from __future__ import annotations

import asyncio
import hashlib
import random
import time
from asyncio import base_events, events
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import ExitStack
from typing import Any, TypeVar
from unittest import mock
from weakref import WeakKeyDictionary

from tests.simulation.net import WHO, End, Link, Network, Server

T = TypeVar("T")
EPOCH_S = 1_700_000_000.0  # what the clock on the wall says at the beginning
TURNS_MAX = 300_000  # a world that is still busy after so many turns is livelocked


class Deadlock(AssertionError):
    """Everybody waits and no timer is set: nothing can happen any more."""


class Livelock(AssertionError):
    """Turn after turn and no end."""


class _Jump:
    """In the selector's place: waiting for the network is moving the clock."""

    def __init__(self, loop: SimLoop) -> None:
        self._loop = loop

    def select(self, timeout: float | None) -> list[Any]:
        if timeout is None:
            raise Deadlock("everybody waits, and nothing will happen")
        self._loop.now += timeout
        return []

    def close(self) -> None: ...


class SimLoop(base_events.BaseEventLoop):
    """Use `simulate`. `network` is where delays, cuts and silent links are set."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.now, self.turns, self.random = 0.0, 0, random.Random(seed)
        self.trace = hashlib.sha1(usedforsecurity=False)  # of every turn, and of all bytes that were sent
        self.network = Network(self)
        self.failures: list[dict[str, Any]] = []
        self.dead: set[str] = set()  # who begins nothing any more
        self._owners: WeakKeyDictionary[asyncio.Task[Any], str] = WeakKeyDictionary()
        self._selector = _Jump(self)
        self._clock_resolution = 1e-9
        self.set_exception_handler(lambda _, context: self.failures.append(context))

    def time(self) -> float:
        return self.now

    def wall(self) -> float:
        """What `time.time()` says meanwhile."""
        return EPOCH_S + self.now

    def _process_events(self, event_list: list[Any]) -> None:
        assert not event_list

    def _run_once(self) -> None:
        self.turns += 1
        if self.turns > TURNS_MAX:
            raise Livelock(f"still busy after {self.turns} turns")
        ready = list(self._ready)  # type: ignore[attr-defined]
        self.trace.update(f"{self.now!r} {len(ready)}".encode())
        if len(ready) > 1:
            self._ready = deque(self._shuffled(ready))
        super()._run_once()  # type: ignore[misc]

    def _shuffled(self, ready: list[Any]) -> list[Any]:
        """In any order, but what one object is to be told in the order in which it happened (as sockets and streams
        rely on it)."""
        order = list(ready)
        self.random.shuffle(order)
        by_owner: dict[int, deque[Any]] = {}
        for handle in ready:
            by_owner.setdefault(_owner(handle), deque()).append(handle)
        return [by_owner[_owner(handle)].popleft() for handle in order]

    def call_soon_threadsafe(self, callback: Any, *args: Any, context: Any = None) -> Any:
        return self.call_soon(callback, *args, context=context)

    def run_in_executor(self, executor: Any, call: Callable[..., Any], *args: Any) -> Any:
        """At once: nothing in a simulation has a thread."""
        done = self.create_future()
        try:
            done.set_result(call(*args))
        except Exception as failure:  # noqa: BLE001  # handed to whoever waits
            done.set_exception(failure)
        return done

    # ---- whose doing is what

    def create_task(self, coro: Any, *, name: Any = None, context: Any = None) -> Any:
        task = super().create_task(coro, name=name, context=context)
        self._owners[task] = who = WHO.get() if context is None else context.get(WHO, "")
        if who in self.dead:
            task.cancel()  # before its first step
        return task

    def call_at(self, when: float, callback: Any, *args: Any, context: Any = None) -> Any:
        """A crashed process has no timers: what its cancelled tasks schedule never runs."""
        handle = super().call_at(when, callback, *args, context=context)
        if (WHO.get() if context is None else context.get(WHO, "")) in self.dead:
            handle.cancel()
        return handle

    def tasks_of(self, who: str) -> list[asyncio.Task[Any]]:
        """Those that are not done."""
        return [task for task, owner in self._owners.items() if owner == who and not task.done()]

    def timers_of(self, who: str) -> list[asyncio.TimerHandle]:
        """Those that will still ring; what is under way on a link is nobody's."""
        return [
            item
            for item in self._scheduled  # type: ignore[attr-defined]
            if not item._cancelled
            and item._context.get(WHO, "") == who
            and not isinstance(getattr(item._callback, "__self__", None), End)
        ]

    async def crash(self, who: str, *, is_silent: bool) -> None:
        """The process is gone, or its machine: then nobody is told."""
        for link in self.links_of(who):
            if is_silent:
                link.silence()
            else:
                link.cut()
        self.dead.add(who)
        for task in self.tasks_of(who):
            task.cancel()
        while left := self.tasks_of(who):
            await asyncio.wait(left)
        for timer in self.timers_of(who):
            timer.cancel()
        for link in self.links_of(who):
            link.client.abort()

    def links_of(self, who: str) -> list[Link]:
        return [link for link in self.network.open_links() if link.who == who and not link.client.is_lost]

    # ---- the network

    async def create_connection(  # type: ignore[override]
        self,
        protocol_factory: Callable[[], Any],
        host: str | None = None,
        port: int | None = None,
        *,
        ssl: Any = None,
        **_: Any,
    ) -> tuple[Any, Any]:
        """Raises ConnectionResetError for TLS: no listener of this network speaks it."""
        assert host is not None
        assert port is not None
        if ssl is not None:
            raise ConnectionResetError("a listener without TLS hangs up on the first message of a TLS handshake")
        return await self.network.connect(protocol_factory, (host, port))

    async def create_server(  # type: ignore[override]
        self, protocol_factory: Callable[[], Any], host: Any = None, port: Any = None, *, sock: Any = None, **_: Any
    ) -> Server:
        where = sock.getsockname()[:2] if sock is not None else (host, port)
        return self.network.listen(protocol_factory, where)

    async def create_datagram_endpoint(  # type: ignore[override]
        self, protocol_factory: Callable[[], Any], local_addr: Any = None, **_: Any
    ) -> tuple[Any, Any]:
        return self.network.datagrams.bind(protocol_factory(), local_addr)

    def remove_reader(self, fd: Any) -> bool:
        return False

    async def getaddrinfo(self, host: Any, port: Any, **_: Any) -> list[Any]:  # type: ignore[override]
        return [(2, 1, 6, "", (host, port))]


def _owner(handle: Any) -> int:
    call = handle._callback
    owner = getattr(call, "__self__", None)
    return id(handle) if owner is None else id(owner)


class FakeSocket:
    """What connections, listeners and the failure detector need of a socket. The kernel knows nothing of it."""

    family = 2

    def __init__(self, where: tuple[str, int]) -> None:
        self._where = where

    def getsockname(self) -> tuple[str, int]:
        return self._where

    def fileno(self) -> int:
        return -1

    def setsockopt(self, *_: Any) -> None: ...

    def listen(self) -> None: ...

    def close(self) -> None: ...


def simulate(seed: int, main: Callable[[SimLoop], Coroutine[Any, Any, T]]) -> T:
    """What `main` returns. Chance, clocks and sockets are those of the seed while it runs."""
    loop, secret = SimLoop(seed), random.Random(f"secret {seed}")
    before = random.getstate()
    random.seed(seed)
    try:
        with ExitStack() as stack:
            stack.enter_context(mock.patch.object(random, "_urandom", secret.randbytes))  # of `secrets`
            stack.enter_context(mock.patch.object(time, "time", loop.wall))
            return loop.run_until_complete(main(loop))
    except BaseException as failure:
        failure.add_note(f"seed={seed} at t={loop.now:.3f} s after {loop.turns} turns")
        raise
    finally:
        random.setstate(before)
        _close(loop)


def _close(loop: SimLoop) -> None:
    """Whatever a run that failed has left is ended, and says nothing."""
    loop.turns = 0
    loop.set_exception_handler(lambda _, __: None)
    try:
        while left := asyncio.all_tasks(loop):
            for task in left:
                task.cancel()
            loop.run_until_complete(asyncio.wait(left, timeout=60))
        loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        loop.close()
        events.set_event_loop(None)
