"""The surroundings of the controller's decisions in a simulated broker, as `controller_service/service` has them."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from tests.simulation.machines_image import NOT_REGISTERED
from tests.simulation.machines_loop import Resume, Wait

from rota.coordinator.controller.decisions import decide_partition, find_partitions_to_change, hand_over_partition
from rota.coordinator.controller.election import LiveBrokers, elect_preferred
from rota.coordinator.controller.fencing import Fencing
from rota.coordinator.controller.reassignment import is_under_way
from rota.coordinator.controller_service.ownership import Controller, ControllerNode
from rota.coordinator.metadata import znodes
from rota.coordinator.metadata.store import Delete, Op, StoreError, StoreFailed, WatchEvent
from rota.coordinator.metadata.topic import PartitionState, Topic

if TYPE_CHECKING:
    from tests.simulation.machines_broker import Life

RETRY_MS: Final = 200
BALANCE_MS: Final = 4_000  # leader.imbalance.check.interval.seconds


class ControllerTask:
    """Competes for `/controller`; while it has it, it fences the dead and elects."""

    def __init__(self, life: Life) -> None:
        self.life, self.image, self.fencing = life, life.image, Fencing()
        self.node = ControllerNode(life.store, life.broker_id, life.wall_ms)  # type: ignore[arg-type]
        self.controller: Controller | None = None
        self.is_outdated, self.is_stopping, self._balance_is_due = True, False, False
        self._known_epoch, self._known = -1, dict[int, int]()
        self._fenced: dict[int, int] = {}
        self._woken, self._resume = False, None

    _resume: Resume | None

    def start(self) -> None:
        self.life.tasks.spawn(self._run())
        self._balance_later()

    def wake(self) -> None:
        self._woken = True
        resume, self._resume = self._resume, None
        if resume is not None:
            self.life.tasks.after(0, lambda: resume(None, None))

    def session_changed(self) -> None:
        self.is_outdated = True
        self.wake()

    def _changed(self, _: WatchEvent) -> None:
        self.session_changed()

    def _balance_later(self) -> None:
        def fire() -> None:
            self._balance_is_due = True
            self.wake()
            self._balance_later()

        self.life.tasks.after(BALANCE_MS, fire)

    def _sleep(self) -> Wait:
        def begin(resume: Resume) -> None:
            self._resume = resume
            if self._woken:
                self.wake()

        return Wait(begin)

    async def _run(self) -> None:
        while True:
            await self._sleep()
            self._woken = False
            try:
                await self._find_controller()
                await self._control()
            except (StoreFailed, StoreError):
                self.is_outdated = True
                self.life.tasks.after(RETRY_MS, self.wake)
            at_ms = self.fencing.next_ms(self.life.now_ms())
            if at_ms is not None:
                self.life.tasks.at("fence", at_ms, self.wake)

    async def _find_controller(self) -> None:
        while self.is_outdated or (self.controller is not None and self._is_claimable(self.controller)):
            self.is_outdated = False
            controller = await self.node.read(self._changed)
            if self._is_claimable(controller):
                self.is_outdated = True
                await self.node.claim(controller)
                continue
            if controller.is_mine and controller.epoch != self._known_epoch:
                self.life.world.log_line(f"controller {self.life.broker_id} epoch {controller.epoch}")
                self._known_epoch, self._known = controller.epoch, {}
            self.controller = controller

    def _is_claimable(self, controller: Controller) -> bool:
        if controller.is_mine or self.is_stopping:
            return False
        if controller.broker_id in (None, self.life.broker_id):
            return True
        return controller.broker_id in self.fencing.due(self._epochs(), self.life.now_ms())

    def _epochs(self) -> dict[int, int]:
        return {broker: epoch for broker, epoch in self.image.epochs.items() if self._fenced.get(broker) != epoch}

    async def _control(self) -> None:
        controller, epochs = self.controller, self._epochs()
        if controller is None or not controller.is_mine or self.is_outdated or self.life.broker_id not in epochs:
            return
        dead = self.fencing.due(epochs, self.life.now_ms()) - {self.life.broker_id}
        alive = {broker: epoch for broker, epoch in epochs.items() if broker not in dead}
        restarted = frozenset(broker for broker, epoch in alive.items() if self._known.get(broker, epoch) != epoch)
        stopping = frozenset({self.life.broker_id} if self.is_stopping else ())
        live = LiveBrokers(alive, stopping, restarted, controller.epoch)
        topics = [self.image.topic(name) for name in self.image.topics]
        decided = [
            (topic, state, self._decide(topic, state, live)) for topic, state in find_partitions_to_change(topics, live)
        ]
        await self._write([(topic, state, after) for topic, state, after in decided if after], dead, epochs, controller)
        self._known = alive
        if self._balance_is_due:
            self._balance_is_due = False
            await self._write(self._balanced(topics, live), frozenset(), {}, controller)

    def _balanced(self, topics: list[Topic], live: LiveBrokers) -> list[tuple[Topic, PartitionState, PartitionState]]:
        """The elections of preferred leaders."""
        decided = []
        for topic in topics:
            state = topic.partitions[0]
            after = None if is_under_way(state) else elect_preferred(state, live)
            if after is not None and after.leader != state.leader:
                decided.append((topic, state, after))
        return decided

    def _decide(self, topic: Topic, state: PartitionState, live: LiveBrokers) -> PartitionState | None:
        return decide_partition(topic, state, live, self._allows_unclean, lambda _: self.life.min_isr)

    def _allows_unclean(self, topic: Topic) -> bool:
        return topic.name in self.life.world.ALLOW_UNCLEAN

    async def _write(
        self,
        decided: list[tuple[Topic, PartitionState, PartitionState]],
        dead: frozenset[int],
        epochs: dict[int, int],
        controller: Controller,
    ) -> None:
        """One commit with the fence. Raises StoreError, after it has read again, when others have changed a state."""
        if not decided and not dead:
            return
        ops: list[Op] = [controller.fence, *(Delete(znodes.broker_path(broker)) for broker in sorted(dead))]
        for topic, state, after in decided:
            ops += self.image.write_ops(topic, after, state.version)
        try:
            await self.life.store.commit(ops)
        except StoreError:
            await self.image.load()
            raise
        for broker in sorted(dead):
            self.life.world.log_line(f"broker {broker} is fenced by {self.life.broker_id}")
            self._fenced[broker] = epochs[broker]
            self.fencing.fenced(broker, self.life.now_ms())
        for topic, state, after in decided:
            self.image.apply(topic.name, replace(after, version=state.version + 1))

    # ---- a controlled shutdown

    async def hand_over(self) -> None:
        """CT5. Leave each ISR, hand over the leaderships, end the registration. What fails is left as it is."""
        self.is_stopping = True
        for name in self.image.topics:
            for _ in range(4):
                after = self._handed_over(name)
                with suppress(StoreFailed, StoreError):
                    if after is None or await self.image.write(name, after):
                        break
        self.image.own_epoch = NOT_REGISTERED
        self.life.registration_changed()
        with suppress(StoreFailed, StoreError):
            await self.life.store.commit([Delete(znodes.broker_path(self.life.broker_id))])

    def _handed_over(self, name: str) -> PartitionState | None:
        if self.image.own_epoch == NOT_REGISTERED:
            return None
        return hand_over_partition(self.image.states[name], self.image.live(), self.life.broker_id, self.life.min_isr)
