"""The groups of a simulated broker: the real coordinator and its API functions, on the partition of the offsets topic.

As `hosted_topic` does it: led where the partition is led, a standby where it is followed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from tests.unit.coordinator.api.data_world import World as Parts

from rota.coordinator.api.node import Call, Node
from rota.coordinator.group.state import GroupConfig
from rota.coordinator.group_coordinator import GroupCoordinator
from rota.coordinator.metadata.topic import CONSUMER_OFFSETS
from rota.coordinator.replica.partition import Watch
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.protocol.registry import APIS, snake_case

if TYPE_CHECKING:
    from tests.simulation.machines_broker import Life

GROUP_PARTITIONS = 3
COMMIT_TIMEOUT_MS = 1_500


@cache
def parts() -> Node:
    """What the API functions of groups look at: the topic whose offsets are committed, settings."""
    world = Parts()
    world.topic("t", GROUP_PARTITIONS)
    return world.node


@cache
def api_of(key: int) -> Callable[..., Any]:
    name = snake_case(APIS[key].name)
    function: Callable[..., Any] = getattr(import_module(f"rota.coordinator.api.{name}"), name)
    return function


async def _exists() -> bool:
    return True


class GroupHost:
    """One shard."""

    def __init__(self, life: Life) -> None:
        self.life, self._watch = life, None
        self.groups = GroupCoordinator(
            shards=1,
            config=GroupConfig(initial_rebalance_delay_ms=0, session_min_ms=100),
            partition=lambda _: life.partitions[CONSUMER_OFFSETS],
            timers=life.tasks,
            now_ms=life.now_ms,
            wall_ms=life.wall_ms,
            tick_queue=lambda tick: life.ticks.append(tick),
            ensure_topic=_exists,
            leader=lambda _: life.image.states[CONSUMER_OFFSETS].leader,
            commit_timeout_ms=COMMIT_TIMEOUT_MS,
        )
        self.node = replace(parts(), groups=self.groups, now_ms=life.now_ms, wall_ms=life.wall_ms)

    _watch: Watch | None

    def host(self) -> None:
        """Lead the shard of a partition that this broker leads; keep a standby of one that it follows."""
        state, partition = self.life.image.states[CONSUMER_OFFSETS], self.life.partitions[CONSUMER_OFFSETS]
        if self.life.image.is_leader(state):
            if self._watch is not None:
                partition.unwatch(self._watch)
                self._watch = None
            self.groups.lead(0, state.leader_epoch)
            return
        self.groups.resign(0, None if state.leader == self.life.broker_id else state.leader_epoch)
        if self._watch is None:
            self._watch = partition.watch(lambda: self.groups.log_grew(0))
        if not self.groups.is_standby(0):
            self.groups.follow(0)

    def truncated(self) -> None:
        if self.groups.is_standby(0):
            self.groups.follow(0)

    def serve(self, request: Any, version: int, client_id: str, reply: Callable[[Any], None]) -> None:
        call = Call(version, client_id, "/127.0.0.1", "127.0.0.1", 9092)
        answer = api_of(request.KEY)(self.node, call, request)
        if isinstance(answer, DelayedReply):
            answer.then(reply)
        else:
            reply(answer)
