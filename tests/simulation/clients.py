"""The clients of a simulated world: members whose connections are slow, break and reconnect."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from tests.simulation.member import Member, VersionedRequest

if TYPE_CHECKING:
    from tests.simulation.world import World

WIRE_MS_MAX = 30
THINK_MS_MAX = 1_000
PATIENCE_MS = 25_000  # more than a rebalance takes
ABANDONED_SHARE = 0.02  # of the requests are not waited for
DIE_EVERY_MS = 20_000
AWAY_MS_MAX = 4_000
STILL_ARRIVES = 0.7  # of the answers that were sent before the connection broke
SLEEPS = 0.3  # instead of dying: it comes back and does not know that it was removed
ASLEEP_MS_MAX = 15_000


class Loner(Member):
    """Commits and reads without being a member of anything."""

    def next(self, now: float) -> VersionedRequest:
        if self.random.random() < 0.3:
            return self.fetch(now), 7
        return self.commit_as(now, self.random.randrange(3), -1), 8

    def received(self, request: Any, answer: Any | None, now: float) -> None:
        super().received(request, answer, now)
        self.state = "outside"


class Client:
    """One connection at a time, one request at a time."""

    def __init__(self, name: str, world: World, make: Callable[[], Member]) -> None:
        self.name, self.world, self._make = name, world, make
        self.member = make()
        self._number = 0  # of the request under way: whatever belongs to an earlier one is too late
        self._pending: Any = None
        self._coming: Any = None  # an answer on its way: it may arrive though the broker that sent it is dead
        self._over = False

    def begin(self) -> None:
        self.world.at(self.world.soon(DIE_EVERY_MS), self.die)
        self._next_request(1)

    def _send(self, number: int) -> None:
        if number != self._number or self._over:
            return
        world = self.world
        if self.member.state == "left":
            self.member = self._make()
        request, version = self.member.next(world.now_ms)
        self._pending = request
        world.log_line(f"{self.name} asks {request}")
        received = partial(self._answered, number, world.life)
        world.at(world.soon(WIRE_MS_MAX), partial(self._arrive, world.life, request, version, received))
        patience_ms = world.soon(100) if world.random.random() < ABANDONED_SHARE else PATIENCE_MS
        world.at(patience_ms, partial(self._lose_patience, number))

    def _arrive(self, life: int, request: Any, version: int, received: Callable[[Any], None]) -> None:
        """What was sent arrives even if the sender hung up; a crash of the broker loses it."""
        if life == self.world.life:
            self.world.arrive(request, version, self.name, received)

    def _answered(self, number: int, life: int, body: Any) -> None:
        if number == self._number:
            self._coming = body
        self.world.at(self.world.soon(WIRE_MS_MAX), partial(self._receive, number, life, body))

    def _receive(self, number: int, life: int, body: Any) -> None:
        if number != self._number or life != self.world.life:
            return
        self.world.log_line(f"{self.name} hears {body}")
        self._take(body)
        self._next_request(self.world.soon(THINK_MS_MAX))

    def _take(self, body: Any | None) -> None:
        requests, self._pending, self._coming = self._pending, None, None
        self.member.received(requests, body, self.world.now_ms)

    def _next_request(self, wait_ms: int) -> None:
        self._number += 1
        self.world.at(wait_ms, partial(self._send, self._number))

    def _lose_patience(self, number: int) -> None:
        if number == self._number:
            self.cut()

    def cut(self) -> None:
        """The connection is gone; it comes back with the next request."""
        if self._over:
            return
        if self._pending is not None:
            self._take(self._coming if self.world.random.random() < STILL_ARRIVES else None)
        self._next_request(self.world.soon(500))

    def die(self) -> None:
        """A process that is killed: nobody hears of it, and after a while there is another in its place."""
        if self._over:
            return
        if self.world.random.random() < SLEEPS:
            self.world.log_line(f"{self.name} falls asleep")
            self.cut()
            self._next_request(self.world.soon(ASLEEP_MS_MAX))
        else:
            self.world.log_line(f"{self.name} dies")
            self.member.claim(self.world.now_ms)
            self.member, self._pending, self._coming = self._make(), None, None
            self._next_request(self.world.soon(AWAY_MS_MAX))
        self.world.at(self.world.soon(DIE_EVERY_MS), self.die)

    def end(self) -> None:
        self._over = True
        self._number += 1
        self.member.claim(self.world.now_ms)
