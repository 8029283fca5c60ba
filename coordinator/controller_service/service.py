"""The controller of a cluster, as a task on each broker: one of them is the controller, the others compete for it.

Laws
    CT3  A broker that is not the controller any more decides nothing: it looks at `/controller` again after each change
         of it and after each failure of the store, and before it acts. One that is not registered claims nothing.
    FN3  A report of a death counts only if the store, asked after it, confirms a change at once. A broker that gets no
         answer is cut off, and others are perhaps alive: they are asked again (controller.fencing). After each late
         answer in a row the next may take twice as long: a slow store holds up no failover for ever. Nor does a
         controller that writes much meanwhile: each answer to its changes counts.
    CT4  A change of the brokers or topics is decided on soon after the image has it; what fails, for whatever reason,
         is decided again.

The task sleeps until something has changed, then looks at the whole present state (`controller.decisions`): it keeps
nothing that a new controller would miss, except which registrations it has acted upon.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final

import structlog

from rota.coordinator.controller.decisions import (
    AllowsUnclean,
    Decision,
    balance,
    decide_each,
    decide_partition,
    find_partitions_to_change,
)
from rota.coordinator.controller.election import LiveBrokers
from rota.coordinator.controller.fencing import Answers, Fencing
from rota.coordinator.controller_service.ownership import Controller, ControllerNode
from rota.coordinator.controller_service.state_writer import Fenced, StateWriter
from rota.coordinator.metadata import znodes
from rota.coordinator.metadata.changes import (
    BrokersChanged,
    Change,
    ConfigChanged,
    ConfigKind,
    PartitionsAdded,
    PartitionsChanged,
    ResourceConfigChanged,
    TopicCreated,
)
from rota.coordinator.metadata.image import NOT_REGISTERED
from rota.coordinator.metadata.repeated_warning import RepeatedWarning
from rota.coordinator.metadata.store import Check, Delete, SessionState, StoreError, StoreFailed, WatchEvent
from rota.coordinator.metadata.topic import PartitionState, Topic
from rota.coordinator.metadata.topics import Topics
from rota.coordinator.scheduling.timers import Timers
from rota.protocol.dataclass import dataclass

RETRY_MS: Final = 200  # after a failure of the store
ANSWER_MS_MAX: Final = 300  # of the store to a broker that is connected, and whose event loop has time
NEVER_MS: Final = -1
PARTITIONS_PER_SLICE: Final = 4_000  # that are decided on before they are written

log = structlog.get_logger("rota.controller")


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerConfig:
    """`allows_unclean` is unclean.leader.election.enable of a topic."""

    allows_unclean: AllowsUnclean
    auto_rebalance: bool = True  # auto.leader.rebalance.enable
    rebalance_interval_ms: int = 300_000  # leader.imbalance.check.interval.seconds
    imbalance_percentage: int = 10  # leader.imbalance.per.broker.percentage


class ControllerService:
    """`start` it when the image is loaded and this broker is registered; `stop` it before the store is closed."""

    def __init__(
        self,
        topics: Topics,
        config: ControllerConfig,
        *,
        timers: Timers,
        now_ms: Callable[[], int],
        wall_ms: Callable[[], int],
        ping_dead: Callable[[], None],
    ) -> None:
        """`ping_dead` asks the failure detector to ping the brokers that it takes for dead."""
        self._ping_dead = ping_dead
        self._topics, self._config, self._timers, self._now_ms = topics, config, timers, now_ms
        self._node = ControllerNode(topics.store, topics.broker_id, wall_ms)
        self._writer = StateWriter(topics, self._unwritten, self._answered)
        self._fencing = Fencing()
        self._answers, self._is_reported = Answers(), False  # reported: since the store was asked last
        self._requested_ms = NEVER_MS  # when the store was asked last: no later report counts yet
        self._answer_ms_max = ANSWER_MS_MAX
        self._controller: Controller | None = None
        self._is_outdated = True  # `_controller` has to be read again
        self._known_epoch, self._known = -1, dict[int, int]()  # registrations acted upon, as the controller of an epoch
        self._fenced: dict[int, int] = {}  # registrations that were deleted; the image may not know that yet
        self._stale: set[str] | None = None  # topics to look at; None: all
        self._stopping = self._balance_is_due = False
        self._wake, self._interruption = asyncio.Event(), RepeatedWarning(log, "Controller interrupted")
        self._task: asyncio.Task[None] | None = None

    @property
    def is_controller(self) -> bool:
        return self._controller is not None and self._controller.is_mine and not self._is_outdated

    async def start(self) -> None:
        """Compete for being the controller; return when there is one. Raises StoreFailed."""
        self._topics.on_change(self._image_changed)
        self._topics.store.on_session(self._session_changed)
        await self._find_controller()
        self._task = asyncio.get_running_loop().create_task(self._run())
        self._wake.set()
        self._balance_later()

    async def stop(self, *, resign: bool = True) -> None:
        """Stop deciding; with `resign` delete `/controller`, so that another broker becomes the controller."""
        self._stopping = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})
        for key in ("retry", "fence", "balance"):
            self._timers.cancel(("controller", key))
        if resign and self._controller is not None and self._controller.is_mine:
            with suppress(StoreFailed):
                await self._node.resign(self._controller)
        self._controller = None

    def begin_shutdown(self) -> None:
        """Elect this broker from now on only for partitions that no other can lead, and not as the controller."""
        self._stopping = True

    def registered(self) -> None:
        """This broker is registered, and competes for being the controller from now on."""
        self._wake.set()

    def broker_died(self, broker_id: int, epoch: int) -> None:
        """The failure detector has found a broker dead, in the registration of that epoch.

        The controller fences it. Any broker replaces a controller that is dead.
        """
        self._fencing.report_dead(broker_id, epoch, self._now_ms())
        self._answers.await_one(self._now_ms())
        self._is_reported = True
        self._wake.set()

    def broker_alive(self, broker_id: int) -> None:
        """The broker has responded: the report of its death was wrong, or it is alive again."""
        self._fencing.report_alive(broker_id)

    # ---- what wakes the task

    def _image_changed(self, change: Change) -> None:
        match change:
            case BrokersChanged(brokers):
                self._fenced = {
                    broker_id: epoch
                    for broker_id, epoch in self._fenced.items()
                    if broker_id in brokers and brokers[broker_id].epoch == epoch
                }
                self._stale = None
            case ResourceConfigChanged(ConfigKind.BROKERS):  # perhaps unclean.leader.election.enable
                self._stale = None
            case TopicCreated(topic) | PartitionsAdded(topic) | PartitionsChanged(topic) | ConfigChanged(topic):
                if self._stale is not None:
                    self._stale.add(topic.name)
            case _:
                return
        self._wake.set()

    def _controller_changed(self, _: WatchEvent) -> None:
        self._is_outdated = True
        self._wake.set()

    def _session_changed(self, state: SessionState) -> None:
        if state is not SessionState.SUSPENDED:
            self._is_outdated = True
            self._wake.set()

    def _wake_at(self, key: str, at_ms: int) -> None:
        self._timers.at(("controller", key), at_ms, self._wake.set)

    def _balance_later(self) -> None:
        def fire() -> None:
            self._balance_is_due = True
            self._balance_later()
            self._wake.set()

        if self._config.auto_rebalance:
            self._timers.at(("controller", "balance"), self._now_ms() + self._config.rebalance_interval_ms, fire)

    # ---- the task

    async def _run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            try:
                await self._check_connection()
                await self._find_controller()
                await self._control()
                self._interruption.succeeded()
            except (StoreFailed, StoreError, Fenced) as failure:
                self._interruption.failed(str(failure) or type(failure).__name__)
                self._look_again_soon()
            except Exception as mistake:  # noqa: BLE001  # the cluster must not be without a controller for it
                self._interruption.failed_by_mistake(mistake)
                self._look_again_soon()
            at_ms = self._fencing.next_ms(self._requested_ms)
            if at_ms is not None:
                self._wake_at("fence", at_ms)

    def _look_again_soon(self) -> None:
        """CT4. At everything."""
        self._is_outdated, self._stale = True, None
        self._wake_at("retry", self._now_ms() + RETRY_MS)

    async def _check_connection(self) -> None:
        """FN3. Before a report counts: ask the store, in the way of a change. Raises StoreFailed.

        Any server answers a read, also one that is cut off from the others together with this broker.
        """
        self._requested_ms = self._now_ms()
        self._is_reported = False
        self._answers.await_one(self._requested_ms)
        if not self._dead():
            self._answers.take_longest_ms(self._requested_ms, is_over=True)
            return
        is_answered = False
        try:
            with suppress(StoreError):  # a refusal is an answer, too
                await self._topics.store.commit([Check(znodes.BROKER_IDS, 0)])
            is_answered = True
        finally:
            self._connection_checked(is_answered=is_answered)

    def _connection_checked(self, *, is_answered: bool) -> None:
        now_ms = self._now_ms()
        if is_answered:
            self._answers.received(now_ms)
        longest_ms = self._answers.take_longest_ms(now_ms, is_over=not self._is_reported)
        is_connected = is_answered and longest_ms <= self._answer_ms_max
        if is_answered:
            self._answer_ms_max = ANSWER_MS_MAX if is_connected else 2 * self._answer_ms_max
        if not is_connected:
            self._fencing.was_cut_off(now_ms)
            self._ping_dead()

    def _answered(self) -> None:
        self._answers.received(self._now_ms())

    async def _find_controller(self) -> None:
        """Read `/controller`; claim it while there is no controller or a dead one."""
        while self._is_outdated or (self._controller is not None and self._is_claimable(self._controller)):
            self._is_outdated = False  # before the read: what changes during it is read again
            controller = await self._node.read(self._controller_changed)
            if self._is_claimable(controller):
                self._is_outdated = True
                await self._node.claim(controller)
            else:
                self._set_controller(controller)

    def _is_claimable(self, controller: Controller) -> bool:
        """Whether there is no controller, or one that is dead: a broker, or an earlier life of this one.

        A broker that is not registered could decide nothing; another one may have its id.
        """
        if controller.is_mine or self._stopping or self._topics.broker_epoch == NOT_REGISTERED:
            return False
        if controller.broker_id in (None, self._topics.broker_id):
            return True
        return controller.broker_id in self._dead()

    def _set_controller(self, controller: Controller) -> None:
        if controller.is_mine and controller.epoch != self._known_epoch:
            log.info("Controller elected: this broker", controller_epoch=controller.epoch)
            self._known_epoch, self._known, self._stale = controller.epoch, {}, None
        self._controller = controller

    def _dead(self) -> frozenset[int]:
        """FN3. The live registrations' brokers whose reports counted when the store was asked."""
        return self._fencing.due(self._epochs(), self._requested_ms)

    def _epochs(self) -> dict[int, int]:
        """The registrations of the live brokers."""
        brokers = self._topics.brokers.values()
        return {entry.broker_id: entry.epoch for entry in brokers if self._fenced.get(entry.broker_id) != entry.epoch}

    # ---- decisions

    async def _control(self) -> None:
        """Fence dead brokers; bring each partition into the state that it should have. Raises Fenced, StoreFailed."""
        controller, epochs = self._controller, self._epochs()
        if controller is None or not controller.is_mine or self._topics.broker_id not in epochs:
            return  # a broker that is not registered yet does not see the cluster as it is
        dead = self._dead() - {self._topics.broker_id}
        live = self._live({broker_id: epoch for broker_id, epoch in epochs.items() if broker_id not in dead})
        live = replace(live, controller_epoch=controller.epoch)
        partitions = find_partitions_to_change(self._stale_topics(everything=bool(dead)), live)
        written = await self._write(partitions, live, controller, dead, epochs)
        self._known = dict(live.epochs)
        if written:
            log.info("Partitions changed by the controller", partitions=written, fenced=sorted(dead))
        elif self._balance_is_due:
            await self._balance(live, controller)

    async def _write(
        self,
        partitions: Sequence[tuple[Topic, PartitionState]],
        live: LiveBrokers,
        controller: Controller,
        dead: frozenset[int],
        epochs: Mapping[int, int],
    ) -> int:
        """Decide and write slice by slice, because clients wait for the first ones and the loop has other work."""
        allows_unclean, min_isr, written = self._config.allows_unclean, self._topics.min_insync_replicas, 0

        def again(topic: Topic, state: PartitionState) -> PartitionState | None:
            return decide_partition(topic, state, live, allows_unclean, min_isr)

        for begin in range(0, max(len(partitions), 1), PARTITIONS_PER_SLICE):
            portion = partitions[begin : begin + PARTITIONS_PER_SLICE]
            decisions = decide_each(portion, live, allows_unclean, min_isr)
            if dead and not begin:
                deletes = [Delete(znodes.broker_path(broker_id)) for broker_id in dead]
                written += await self._writer.delete_and_write(deletes, decisions, again, controller.fence)
                self._has_fenced(dead, epochs)
            else:
                written += await self._writer.write(decisions, again, controller.fence)
        return written

    def _live(self, epochs: Mapping[int, int]) -> LiveBrokers:
        stopping = frozenset({self._topics.broker_id} if self._stopping else ())
        restarted = frozenset(
            broker_id for broker_id, epoch in epochs.items() if self._known.get(broker_id, epoch) != epoch
        )
        return LiveBrokers(epochs, stopping, restarted)

    def _stale_topics(self, *, everything: bool) -> list[Topic]:
        stale, self._stale = self._stale, set()
        if stale is None or everything:
            return list(self._topics)
        return [topic for name in stale if (topic := self._topics.get(name)) is not None]

    def _has_fenced(self, dead: frozenset[int], epochs: Mapping[int, int]) -> None:
        for broker_id in dead:
            self._fenced[broker_id] = epochs[broker_id]
            self._fencing.fenced(broker_id, self._now_ms())
            log.warning("Broker fenced", broker=broker_id, broker_epoch=epochs[broker_id])

    def _unwritten(self, decision: Decision) -> None:
        """CT4. Decide on that topic again soon, also if no watch reports a change of it."""
        if self._stale is not None:
            self._stale.add(decision.topic.name)
        self._wake_at("retry", self._now_ms() + RETRY_MS)

    async def _balance(self, live: LiveBrokers, controller: Controller) -> None:
        """Elect preferred leaders."""
        self._balance_is_due = False
        decisions = balance(list(self._topics), live, self._config.imbalance_percentage)
        await self._writer.write(decisions, lambda _topic, _state: None, controller.fence)
