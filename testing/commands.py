"""The commands of a broker under test, as JSON: the same in process, over the control port and for any language."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, Final

from rota.coordinator.consumer_group.machine import HostedGroup
from rota.coordinator.consumer_group.member import Member as ConsumerMember
from rota.coordinator.consumer_group.steps import bump_epoch
from rota.coordinator.group import rebalance
from rota.coordinator.group.effects import Step
from rota.coordinator.group.members import Member
from rota.coordinator.group_coordinator import GroupShard
from rota.coordinator.metadata.topic import CONSUMER_OFFSETS, PartitionState, Refusal
from rota.coordinator.observe.explain import as_json, event_sentence, sentences
from rota.coordinator.observe.rebalances import rebalances
from rota.protocol.errors import ErrorCode
from rota.protocol.group_timeline import GroupEvent
from rota.testing.advance import advance
from rota.testing.errors import CommandRefused
from rota.testing.group_snapshot import snapshot
from rota.testing.host import Host, until
from rota.testing.hosted_broker import HostedBroker, NotRunning
from rota.testing.reply_faults import check_rule
from rota.testing.reply_rules import Action, ReplyRule
from rota.testing.sessions import end_session

ADVANCE_MS_MAX: Final = 10 * 365 * 86_400_000  # timestamps stay far below the limits of int64
REASON: Final = "the test kit was asked for a rebalance"


class Commands:
    """Performs commands on the brokers of a host. A method below `perform` is a command of that name."""

    def __init__(self, host: Host) -> None:
        self._host = host

    async def perform(self, command: str, arguments: dict[str, Any]) -> Any:
        """Perform a command and return its result, which is plain JSON. Raises CommandRefused."""
        method = _COMMANDS.get(command)
        if method is None:
            raise CommandRefused(f"unknown command {command!r}; there are {', '.join(_COMMANDS)}")
        try:
            inspect.signature(method).bind(self, **arguments)
            return await method(self, **arguments)
        except (TypeError, ValueError, NotRunning, TimeoutError) as why:
            raise CommandRefused(f"{command}: {why}") from why

    # ---- brokers

    async def info(self) -> dict[str, Any]:
        """The addresses and states of the brokers."""
        brokers = [
            {"id": each.broker_id, "address": each.address, "running": each.is_running, "frozen": each.is_frozen}
            for each in self._host
        ]
        return {"bootstrap_servers": self._host.bootstrap, "brokers": brokers}

    async def kill(self, broker: int | None = None) -> None:
        """End a broker as SIGKILL does."""
        await self._host.ensure_internal_topics()
        await self._host.get(broker).kill()

    async def stop(self, broker: int | None = None) -> None:
        """Stop a broker in order."""
        await self._host.ensure_internal_topics()
        await self._host.get(broker).stop()

    async def restart(self, broker: int | None = None) -> None:
        """Start a broker again at its address; a running one is stopped first."""
        hosted = self._host.get(broker)
        await hosted.stop()
        await hosted.start()

    async def freeze(self, broker: int | None = None) -> None:
        """Serve nothing until `thaw`."""
        self._host.get(broker).freeze()

    async def thaw(self, broker: int | None = None) -> None:
        """Serve again."""
        self._host.get(broker).thaw()

    async def advance(self, ms: int, expire_sessions: bool = False) -> None:
        """Move the brokers' clocks ahead; live members stay unless `expire_sessions`."""
        if isinstance(ms, bool) or not isinstance(ms, int) or not 0 <= ms <= ADVANCE_MS_MAX:
            raise CommandRefused(f"advance: ms is {ms}; it is a whole number from 0 to {ADVANCE_MS_MAX}, ten years")
        await advance(self._host, ms, expire_sessions=expire_sessions)

    async def disk(self, full: bool | None = None, delay_ms: int | None = None, broker: int | None = None) -> None:
        """Let writes fail for want of space, or writes and syncs take longer. None leaves as it is."""
        hosted = self._host.get(broker)
        if hosted.is_in_memory:
            raise CommandRefused("disk: this broker keeps its logs in memory; start it with a data folder")
        hosted.disk.is_full = hosted.disk.is_full if full is None else full
        hosted.disk.delay_ms = hosted.disk.delay_ms if delay_ms is None else delay_ms

    async def create_topic(self, name: str, partitions: int = 1, configs: dict[str, str] | None = None) -> None:
        """Create a topic with as many replicas as the brokers allow by default."""
        broker = self._host.running().broker
        copies = min(broker.config.default_replication_factor, len(broker.topics.brokers))
        created = await broker.topics.create(name, partitions, copies, configs=configs or {})
        if isinstance(created, Refusal):
            raise CommandRefused(f"create_topic: {created.message}")
        await until(lambda: all(self._host.leader(name, i) for i in range(partitions)), f"{name} got no leaders")

    async def move_leader(self, topic: str, partition: int, broker: int) -> None:
        """Let another replica of the ISR lead a partition."""
        from rota.coordinator.controller.election import LiveBrokers, elect_preferred
        from rota.coordinator.controller_service.requests import ClusterRequests

        known = self._host.running().broker.topics
        found = known.get(topic)
        if found is None or not 0 <= partition < len(found.partitions):
            raise CommandRefused(f"move_leader: no partition {topic}-{partition}")

        def election(state: PartitionState, live: LiveBrokers, _minimum: int) -> PartitionState | Refusal:
            elected = elect_preferred(replace(state, replicas=(broker,)), live)
            if elected is None:
                return Refusal(ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, f"broker {broker} is not in the ISR")
            return replace(elected, replicas=state.replicas)

        results = await ClusterRequests(known).elect([(found, partition)], election)
        refusal = results[topic, partition]
        if refusal is not None:
            raise CommandRefused(f"move_leader: {refusal.message}")
        moved = self._host.get(broker)
        await until(lambda: self._host.leader(topic, partition) is moved, f"broker {broker} does not lead it")

    async def move_coordinator(self, group: str, broker: int) -> None:
        """Let another broker coordinate a group: the leader of its partition of the offsets topic moves."""
        await self._host.running().broker.groups.ensure_topic()
        await self.move_leader(CONSUMER_OFFSETS, self._host.offsets_partition(group), broker)

    # ---- replies and connections

    async def add_fault(self, action: str, **fields: Any) -> dict[str, Any]:
        """Add a fault; see ReplyRule for the fields."""
        rule = ReplyRule(action=Action(action), **fields)
        check_rule(rule)
        return self._host.rules.add(rule).as_json()

    async def fault(self, rule_id: int) -> dict[str, Any] | None:
        """A fault with its hits; null when it was removed."""
        rule = self._host.rules.get(rule_id)
        return None if rule is None else rule.as_json()

    async def remove_fault(self, rule_id: int) -> None:
        """End a fault."""
        self._host.rules.remove(rule_id)

    async def clear_faults(self) -> None:
        """End all faults of replies and disks, and thaw frozen brokers."""
        self._host.rules.clear()
        for hosted in self._host:
            hosted.disk.is_full, hosted.disk.delay_ms = False, 0
            hosted.thaw()

    async def close_connections(self, client_id: str = "*") -> int:
        """Cut off the connections of clients whose id matches the pattern; the result is how many."""
        return sum(hosted.faults.close_connections(client_id) for hosted in self._host if hosted.is_running)

    # ---- groups

    async def group(self, group: str) -> dict[str, Any]:
        """A group's state, members with their assignments, and committed offsets."""
        if CONSUMER_OFFSETS not in self._host.running().broker.topics:
            return {**snapshot(group, None), "state": "Dead"}
        return snapshot(group, self._host.coordinator(group))

    async def timeline(self, group: str) -> list[dict[str, Any]]:
        """The events of a group's timeline, oldest first; `sentence` says each one in English."""
        return [{**as_json(event), "sentence": event_sentence(event)} for event in self._events(group)]

    async def why(self, group: str) -> list[str]:
        """What the last rebalance of a group was about, in sentences."""
        found = rebalances(self._events(group))
        return list(sentences(found[-1])) if found else []

    async def rebalance(self, group: str) -> None:
        """Begin a rebalance of a group: its members join again, or get a new target in the next group epoch."""
        hosted, shard, machine = self._machine(group)
        if not machine.summary.member_count:
            raise CommandRefused(f"group {group!r} has no members")
        step = Step(hosted.broker.now_ms(), hosted.broker.wall_ms())
        if machine.consumer is None:
            rebalance.prepare_or_complete(machine, step, REASON, trigger="test", members=())
        else:
            bump_epoch(machine.consumer, step, f"{REASON}.", "test")
        shard.perform(machine, step.effects)

    async def expire_member(self, group: str, member: str) -> None:
        """Remove a member as if its session had timed out. `member` is a member id, client id or instance id."""
        hosted, shard, machine = self._machine(group)
        matching = [each for each in _members(machine) if member in (each.member_id, each.client_id, each.instance_id)]
        if len(matching) != 1:
            ids = ", ".join(each.member_id for each in _members(machine))
            raise CommandRefused(f"expire_member: {len(matching)} members are {member!r}; group {group} has [{ids}]")
        if isinstance(matching[0], Member):
            matching[0].is_new = False
        end_session(hosted, shard, machine, matching[0].member_id)

    def _events(self, group: str) -> tuple[GroupEvent, ...]:
        hosted = self._host.coordinator(group)
        return () if hosted is None else hosted.broker.groups.events_of(group)

    def _machine(self, group: str) -> tuple[HostedBroker, GroupShard, HostedGroup]:
        hosted = self._host.coordinator(group)
        if hosted is None:
            raise CommandRefused(f"no broker coordinates group {group!r}")
        shard = hosted.broker.groups.ready(group)
        if isinstance(shard, ErrorCode):
            raise CommandRefused(f"group {group!r} is not loaded: {shard.name}")
        machine = shard.machines.get(group)
        if machine is None:
            raise CommandRefused(f"there is no group {group!r}")
        return hosted, shard, machine


def _members(group: HostedGroup) -> list[Member | ConsumerMember]:
    return [*group.members] if group.consumer is None else [*group.consumer.members.values()]


_COMMANDS: Final[dict[str, Callable[..., Awaitable[Any]]]] = {
    name: method
    for name, method in vars(Commands).items()
    if not name.startswith("_") and name != "perform" and inspect.iscoroutinefunction(method)
}
