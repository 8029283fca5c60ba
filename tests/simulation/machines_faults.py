"""What disturbs a simulated cluster: processes, network and store have their faults at the same time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

from tests.simulation.machines_image import NOT_REGISTERED

if TYPE_CHECKING:
    from tests.simulation.machines_broker import Life
    from tests.simulation.machines_world import MachinesWorld


class Faults:
    """`begin` it, then `heal`."""

    FIRST_MS: ClassVar[float] = 700.0  # none before
    OFTEN_MS: ClassVar[tuple[float, ...]] = (400.0, 1_000.0, 3_000.0)  # one is drawn for each kind
    CUT_AFTER_MS: ClassVar[tuple[float, float]] = (300.0, 1_500.0)  # of calm, before a power cut
    KILL_WITHIN_MS: ClassVar[float] = 900.0  # after a power cut, of another broker

    def __init__(self, world: MachinesWorld) -> None:
        self.world, self.random, self.heap = world, world.random, world.heap
        self._until_ms = 0.0
        self._is_calm = False  # no other faults, before a power cut and until it was noticed

    def begin(self, for_ms: float) -> None:
        self._until_ms = for_ms
        self._every([self._kill, self._kill, self._kill_all, self._stop, self._freeze, self._cut_power])
        self._every([self._part, self._part, self._lose, self._calm])
        self._every([self._disconnect, self._expire, self._lose_answer])
        self._every([self._flush, self._checkpoint, self._jump_clock, self._lie])

    def heal(self) -> None:
        self.world.network.heal()
        for disk in self.world.disks.values():
            disk.lies = False
        for broker, life in self.world.lives.items():
            if life is None:
                self.world.start(broker)
            else:
                life.run(life.store.reconnect)

    def _every(self, kinds: list[Callable[[], None]]) -> None:
        mean_ms = self.random.choice(self.OFTEN_MS)

        def fire() -> None:
            if self.heap.now_ms < self._until_ms:
                if not self._is_calm:
                    self.random.choice(kinds)()
                self.heap.after(self.random.expovariate(1 / mean_ms), fire)

        self.heap.after(self.FIRST_MS + self.random.expovariate(1 / mean_ms), fire)

    def _victim(self) -> Life | None:
        up = self.world.up()
        return self.random.choice(up) if up else None

    def _later(self, ms: float, call: Callable[[], None]) -> None:
        """Only while the run lasts: `heal` undoes it otherwise."""
        self.heap.after(ms, lambda: None if self.world.is_over else call())

    # ---- processes

    def _start_later(self, broker: int) -> None:
        def start() -> None:
            if self.world.lives[broker] is None:
                self.world.log_line(f"broker {broker} starts")
                self.world.start(broker)

        self._later(self.random.choice((0.0, 100.0, 800.0, 3_000.0)), start)

    def _kill(self) -> None:
        life = self._victim()
        if life is not None:
            is_silent = self.random.random() < 0.3
            self.world.log_line(f"broker {life.broker_id} is killed{' silently' if is_silent else ''}")
            self.world.kill(life, is_silent=is_silent)
            self._start_later(life.broker_id)

    def _kill_all(self) -> None:
        self.world.log_line("all brokers are killed")
        for life in self.world.up():
            self.world.kill(life)
            self._start_later(life.broker_id)

    def _stop(self) -> None:
        life = self._victim()
        if life is not None and life.has_joined:
            self.world.log_line(f"broker {life.broker_id} is stopped")
            life.run(lambda: life.tasks.spawn(life.stop()))
            self._start_later(life.broker_id)
            self._later(3_500, lambda: self.world.lives[life.broker_id] is None and self.world.start(life.broker_id))

    def _freeze(self) -> None:
        life = self._victim()
        if life is not None:
            ms = self.random.choice((50.0, 300.0, 1_000.0, 2_500.0))
            self.world.log_line(f"broker {life.broker_id} is frozen for {ms:.0f} ms")
            life.freeze(ms)

    def _cut_power(self) -> None:
        """One machine, when nothing else is wrong; nothing else happens until that was noticed.

        What no other broker needs to have would be lost, as with Kafka: docs/SKIPPED.md.
        """
        self._is_calm = True
        self.world.network.heal()
        self._later(self.random.uniform(*self.CUT_AFTER_MS), self._cut_power_of_one)

    def _cut_power_of_one(self) -> None:
        life, up = self._victim(), self.world.up()
        if (
            life is None
            or len(up) < len(self.world.lives)
            or not all(map(self._is_well, up))
            or not self._is_spare(life)
        ):
            self._is_calm = False
            return
        self.world.log_line(f"broker {life.broker_id} loses power")
        self.world.cut_power(life)
        self._start_later(life.broker_id)
        self._await_return(life.broker_id)
        if self._have_all(others := [other for other in up if other is not life]) and self.random.random() < 0.5:
            self._later(
                self.random.uniform(0, self.KILL_WITHIN_MS), lambda: self._kill_another(self.random.choice(others))
            )

    def _kill_another(self, life: Life) -> None:
        """CM5. The third broker has all."""
        if not life.is_dead:
            self.world.log_line(f"broker {life.broker_id} is killed meanwhile")
            self.world.kill(life, is_silent=self.random.random() < 0.5)
            self._start_later(life.broker_id)

    def _await_return(self, broker: int) -> None:
        life = self.world.lives[broker]
        if life is not None and life.image.own_epoch != NOT_REGISTERED:
            self._is_calm = False
        else:
            self._later(200, lambda: self._await_return(broker))

    def _is_well(self, life: Life) -> bool:
        is_frozen = life.frozen_until_ms > self.heap.now_ms
        return life.store.is_connected and life.image.own_epoch != NOT_REGISTERED and not is_frozen

    def _is_spare(self, life: Life) -> bool:
        """Whether in each partition another broker has to have everything that is committed."""
        states = (self.world.state(name) for name in self.world.topics)
        return all({*state.isr, *state.elr} - {life.broker_id} for state in states)

    def _have_all(self, lives: list[Life]) -> bool:
        return all(life.broker_id in self.world.state(name).isr for name in self.world.topics for life in lives)

    # ---- the network

    def _part(self) -> None:
        brokers = list(self.world.lives)
        one = self.random.choice(brokers)
        others = [other for other in brokers if other != one][: self.random.choice((1, 2))]
        way = self.random.choice(("is not heard", "does not hear", "neither"))
        self.world.log_line(f"broker {one}: {way} by {others}")
        for other in others:
            if way != "does not hear":
                self.world.network.blocked.add((one, other))
            if way != "is not heard":
                self.world.network.blocked.add((other, one))
        self._later(self.random.choice((200.0, 1_000.0, 4_000.0)), self.world.network.blocked.clear)

    def _lose(self) -> None:
        network = self.world.network
        network.lost = self.random.choice((0.0, 0.02, 0.2))
        network.doubled = self.random.choice((0.0, 0.3))
        network.late = self.random.choice((0.0, 0.05, 0.3))
        self.world.log_line(f"messages: {network.lost} lost, {network.doubled} doubled, {network.late} late")

    def _calm(self) -> None:
        network = self.world.network
        network.lost = network.doubled = network.late = 0.0

    # ---- the store

    def _disconnect(self) -> None:
        life = self._victim()
        if life is not None:
            ms = self.random.choice((20.0, 400.0, 2_000.0, 4_500.0))
            self.world.log_line(f"broker {life.broker_id} cannot reach the store for {ms:.0f} ms")
            life.store.disconnect()
            self._later(ms, lambda: life.run(life.store.reconnect))

    def _expire(self) -> None:
        life = self._victim()
        if life is not None:
            self.world.log_line(f"the session of broker {life.broker_id} ends")
            life.store.expire()

    def _lose_answer(self) -> None:
        life = self._victim()
        if life is not None:
            self.world.log_line(f"broker {life.broker_id} loses its next answer of the store")
            life.store.lose_next_answer()

    # ---- disks and clocks

    def _flush(self) -> None:
        life = self._victim()
        if life is not None:
            for name, partition in life.partitions.items():
                life.disk.flush(name)
                life.run(partition.flushed)

    def _checkpoint(self) -> None:
        life = self._victim()
        if life is not None:
            life.checkpoint()

    def _jump_clock(self) -> None:
        life = self._victim()
        if life is not None:
            life.disk.skew_ms = self.random.choice((0, -3_600_000, 3_600_000))

    def _lie(self) -> None:
        life = self._victim()
        if life is not None:
            life.disk.lies = not life.disk.lies
