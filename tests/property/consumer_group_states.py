"""Nodes for the exhaustive walk of a consumer group: the group, its timers, two clients and one topic.

The clients behave as consumers do: a member of the consumer protocol gives partitions up before it says so, and takes
nothing over while it does not know whether its last heartbeat was handled; a classic one revokes before it joins again
(cooperative) or whenever it joins (eager). Answers of the consumer protocol may be lost.

`WalkNode.shape` is what of a node matters. Times and tokens do not, of epochs only their order does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy, deepcopy
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from tests.unit.coordinator.consumer_group.mixed_script import MixedScript, assignment, read
from tests.unit.coordinator.consumer_group.script import REBALANCE_MS, Script, TopicsInMemory, compact, named

from rota.coordinator.consumer_group.settings import ConsumerGroupSettings
from rota.coordinator.consumer_group.state import ConsumerGroup
from rota.coordinator.consumer_group.topics import metadata_hash
from rota.coordinator.group.effects import Joined, Synced
from rota.coordinator.group.events import TimerFired
from rota.coordinator.group.state import GroupConfig
from rota.protocol.errors import ErrorCode

TOPIC, PARTITIONS, PARTITIONS_MAX = "t", 2, 3
NOTHING: frozenset[int] = frozenset()
SESSION, OK = "session:", ErrorCode.NONE


class Epoch(NamedTuple):
    """A number of which only the order matters."""

    number: int


# ---- clients


@dataclass(frozen=True, slots=True)
class Member:
    """A client of the consumer protocol. `told` is the assignment that it has still to take over."""

    epoch: int = 0
    owned: frozenset[int] = NOTHING
    unapplied: frozenset[int] | None = None
    is_full: bool = False  # the next heartbeat says everything, because an answer was lost
    instance: str | None = None

    @property
    def shape(self) -> tuple[Any, ...]:
        return (Epoch(self.epoch), *map(_sorted, (self.owned, self.unapplied)), self.is_full)


@dataclass(frozen=True, slots=True)
class Classic:
    """A client of the classic protocol. `step` is the request that it sends next, or "" while one waits."""

    is_eager: bool = False
    step: str = "out"  # out, join, sync, beat
    generation: int = -1
    owned: frozenset[int] = NOTHING
    leads: bool = False
    waiting: int | None = None  # the token of the request that waits
    has_lapsed: bool = False  # it was removed, and does not know it until an assignment comes

    @property
    def shape(self) -> tuple[Any, ...]:
        waits = self.waiting is not None
        return (self.step, Epoch(self.generation), _sorted(self.owned), self.leads, waits, self.has_lapsed)


Client = Member | Classic


@dataclass(slots=True)
class WalkNode:
    """A group and its clients, and how we came here."""

    script: MixedScript
    clients: dict[str, Client]
    path: tuple[str, ...] = ()

    def copied(self) -> WalkNode:
        return WalkNode(copied(self.script), dict(self.clients), self.path)

    def after(self, name: str, action: Callable[[WalkNode], None]) -> WalkNode:
        successor = self.copied()
        successor.path = (*self.path, name)
        action(successor)
        successor.take_answers()
        successor.script.log = compact(successor.script.log)
        return successor

    def actions(self) -> Iterator[tuple[str, Callable[[WalkNode], None]]]:
        """What may happen next."""
        for who, client in self.clients.items():
            for verb in verbs(client):
                yield f"{who} {verb}", lambda node, who=who, verb=verb: ACTIONS[verb](node, who)  # type: ignore[misc]
        for key in self.script.timers:
            yield f"{key} fires", lambda node, key=key: fire(node.script, key)  # type: ignore[misc]
        topic = self.script.topics.get(TOPIC)
        if topic is not None and topic.partition_count < PARTITIONS_MAX:
            yield "the topic grows", lambda node: node.script.topics.set(TOPIC, PARTITIONS_MAX)

    def take_answers(self) -> None:
        """Classic clients take the answers that have come."""
        for who, client in self.clients.items():
            if isinstance(client, Classic) and client.waiting in self.script.replies:
                answer = self.script.replies.pop(client.waiting)
                self.clients[who] = client = after_answer(replace(client, waiting=None), answer)
            if isinstance(client, Classic) and client.owned and not self.knows(who):
                self.clients[who] = replace(client, has_lapsed=True)

    def knows(self, who: str) -> bool:
        hosted = self.script.hosted
        members = hosted.members.by_id if hosted.consumer is None else hosted.consumer.members
        return who in members

    def owners(self) -> list[int]:
        """The partitions that clients work on whom the coordinator knows in their epoch."""
        group = self.script.hosted.consumer
        if group is None:
            return []
        found = []
        for who, client in self.clients.items():
            known, epoch = group.members.get(who), epoch_of(client)
            if isinstance(client, Classic) and client.has_lapsed:
                continue
            if known is not None and epoch > 0 and epoch in (known.epoch, known.previous_epoch):
                found += list(client.owned)
        return found

    def shape(self) -> tuple[Any, ...]:
        hosted = self.script.hosted
        classic = (
            hosted.state.name,
            Epoch(hosted.generation),
            tuple(
                (m.member_id, _protocols(m.protocols), m.assignment, m.join is not None, m.sync is not None, m.is_new)
                for m in hosted.members
            ),
            tuple(sorted(hosted.members.unsynced)),
            hosted.hard is not None,
        )
        topic = self.script.topics.get(TOPIC)
        assert topic is not None
        return _ranked(
            (
                classic,
                None if hosted.consumer is None else _shape_of(hosted.consumer),
                tuple((who, client.shape) for who, client in self.clients.items()),
                tuple(sorted(self.script.timers)),
                topic.partition_count,
            )
        )


def start(clients: dict[str, Client]) -> WalkNode:
    script = MixedScript(
        TopicsInMemory(t=PARTITIONS),
        ConsumerGroupSettings(assignment_interval_ms=0),
        config=GroupConfig(initial_rebalance_delay_ms=0),
    )
    return WalkNode(script, clients)


def copied(script: MixedScript) -> MixedScript:
    """A copy with a group and topics of its own. What never changes is shared."""
    other = copy(script)
    other.topics = copy(script.topics)
    other.topics._topics = dict(script.topics._topics)
    group = script.hosted.consumer
    shared = [script.config, script.settings, *(() if group is None else group.members.values())]
    memo: dict[int, Any] = {id(each): each for each in shared}
    memo[id(script.topics)] = other.topics
    other.hosted = deepcopy(script.hosted, memo)
    other.timers, other.replies = dict(script.timers), dict(script.replies)
    other.log, other.notes, other.written = list(script.log), [], []
    return other


# ---- what clients do


def verbs(client: Client) -> tuple[str, ...]:
    if isinstance(client, Classic):
        match client.step:
            case "out":
                return ("joins",)
            case "":
                return ()
            case "join":
                return ("joins", "leaves classic")
            case "sync":
                return ("syncs", "leaves classic")
            case _:
                return ("beats classic", "joins", "leaves classic")
    if client.epoch == 0:
        return ("beats", "loses an answer")
    applies = ("applies",) if client.unapplied is not None and not client.is_full else ()
    return (*applies, "beats", "loses an answer", "leaves")


def heartbeat_fields(client: Member) -> dict[str, Any]:
    joins = {"names": (TOPIC,), "rebalance_ms": REBALANCE_MS} if client.epoch == 0 or client.is_full else {}
    return {"owned": {TOPIC: client.owned} if client.owned else {}, "instance": client.instance, **joins}


def heartbeat(node: WalkNode, who: str) -> None:
    client = node.clients[who]
    assert isinstance(client, Member)
    reply = node.script.heartbeat(who, client.epoch, **heartbeat_fields(client))
    if reply.error is not OK:
        node.clients[who] = Member(instance=client.instance)
        return
    unapplied = named(reply)
    node.clients[who] = replace(
        client,
        epoch=reply.member_epoch,
        unapplied=client.unapplied
        if unapplied is None
        else _or_none(frozenset(unapplied.get(TOPIC, ())), client.owned),
        is_full=False,
    )


def lose_answer(node: WalkNode, who: str) -> None:
    client = node.clients[who]
    assert isinstance(client, Member)
    node.script.heartbeat(who, client.epoch, **heartbeat_fields(client))
    node.clients[who] = replace(client, is_full=client.epoch > 0)


def apply(node: WalkNode, who: str) -> None:
    client = node.clients[who]
    assert isinstance(client, Member)
    assert client.unapplied is not None
    node.clients[who] = replace(client, owned=client.unapplied, unapplied=None)


def leave(node: WalkNode, who: str) -> None:
    client = node.clients[who]
    assert isinstance(client, Member)
    node.script.leave(who, -1 if client.instance is None else -2, instance=client.instance)
    node.clients[who] = Member(instance=client.instance)


def join(node: WalkNode, who: str) -> None:
    client = node.clients[who]
    assert isinstance(client, Classic)
    owned = NOTHING if client.is_eager or client.step == "out" else client.owned
    answer = node.script.c_join(
        "" if client.step == "out" else who,
        fresh=who,
        owned={TOPIC: tuple(sorted(owned))} if owned else {},
        version=0 if client.is_eager else 1,
    )
    node.clients[who] = after_answer(replace(client, owned=owned, step="", waiting=node.script.last), answer)


def sync(node: WalkNode, who: str) -> None:
    client = node.clients[who]
    assert isinstance(client, Classic)
    topic = node.script.topics.get(TOPIC)
    assert topic is not None
    parts = {who: assignment({TOPIC: range(topic.partition_count)})} if client.leads else {}
    answer = node.script.c_sync(who, client.generation, raw=parts)
    node.clients[who] = after_answer(replace(client, step="", waiting=node.script.last), answer)


def heartbeat_classic(node: WalkNode, who: str) -> None:
    client = node.clients[who]
    assert isinstance(client, Classic)
    code = node.script.c_heartbeat(who, client.generation)
    if code is not OK:
        node.clients[who] = refused(client, code)


def leave_classic(node: WalkNode, who: str) -> None:
    client = node.clients[who]
    assert isinstance(client, Classic)
    node.script.c_leave((who, None))
    node.clients[who] = Classic(client.is_eager)


ACTIONS: dict[str, Callable[[WalkNode, str], None]] = {
    "beats": heartbeat,
    "loses an answer": lose_answer,
    "applies": apply,
    "leaves": leave,
    "joins": join,
    "syncs": sync,
    "beats classic": heartbeat_classic,
    "leaves classic": leave_classic,
}


def after_answer(client: Classic, answer: Joined | Synced | None) -> Classic:
    """The classic client after the answer to its JoinGroup or SyncGroup; None: it waits."""
    if answer is None:
        return client
    if answer.error is not OK:
        return refused(client, answer.error)
    if isinstance(answer, Joined):
        leads = answer.leader == answer.member_id
        return replace(client, step="sync", waiting=None, generation=answer.generation, leads=leads)
    owned = frozenset(read(answer.assignment).get(TOPIC, ())) if answer.assignment else NOTHING
    must_join = bool(client.owned - owned)  # it revoked partitions
    return replace(client, step="join" if must_join else "beat", waiting=None, owned=owned, has_lapsed=False)


def refused(client: Classic, code: ErrorCode) -> Classic:
    if code is ErrorCode.REBALANCE_IN_PROGRESS:
        return replace(client, step="join", waiting=None)
    if code is ErrorCode.ILLEGAL_GENERATION:  # it keeps its member id and nothing else
        return Classic(client.is_eager, step="join")
    assert code is ErrorCode.UNKNOWN_MEMBER_ID
    return Classic(client.is_eager)


def fire(script: Script, key: str) -> None:
    """Let time pass until the timer fires; a session is over then: no heartbeat came."""
    at, who = script.timers.pop(key), key.removeprefix(SESSION)
    group = script.hosted.consumer
    deadline_ms = 0
    if key.startswith(SESSION):
        found = [each.deadline_ms for each in script.hosted.members if each.member_id == who]
        deadline_ms = max(found, default=0) if group is None else group.deadlines.get(who, 0)
    script.now_ms = max(script.now_ms, at, deadline_ms)
    script.perform(script.hosted.step(TimerFired(key), script.now_ms, script.wall_ms))


def epoch_of(client: Client) -> int:
    return client.epoch if isinstance(client, Member) else client.generation


# ---- shapes


def _shape_of(group: ConsumerGroup) -> tuple[Any, ...]:
    members = tuple(
        (
            each.member_id,
            (Epoch(each.epoch), Epoch(each.previous_epoch), each.state.name),
            _owned(each.assigned),
            _owned(each.pending),
            each.classic and each.classic.protocols,
        )
        for each in sorted(group.members.values(), key=lambda each: each.member_id)
    )
    return (
        (Epoch(group.epoch), Epoch(group.target_epoch), group.is_target_checked),
        members,
        tuple(sorted((who, tuple(map(_sorted, target.values()))) for who, target in group.targets.items())),
        group.topics_version == group.topics.version,
        group.metadata_hash == metadata_hash(group.subscribed_topics(), group.topics),
        tuple(sorted((who, Epoch(epoch)) for who, epoch in group.revoking.items())),
        tuple(sorted(group.joining)),
        tuple(sorted(group.syncing)),
    )


def _owned(owned: Any) -> tuple[Any, ...]:
    return tuple((index, Epoch(epoch)) for of_topic in owned.values() for index, epoch in sorted(of_topic.items()))


def _protocols(given: Any) -> tuple[tuple[str, bytes], ...]:
    return tuple((each.name, each.metadata) for each in given)


def _sorted(partitions: Any) -> tuple[int, ...] | None:
    return None if partitions is None else tuple(sorted(partitions))


def _or_none(unapplied: frozenset[int], owned: frozenset[int]) -> frozenset[int] | None:
    return None if unapplied == owned else unapplied


def _ranked(shape: tuple[Any, ...]) -> tuple[Any, ...]:
    """The shape with the rank of each epoch above 0 in place of the epoch."""
    numbers = sorted({epoch.number for epoch in _epochs(shape) if epoch.number > 0})
    ranks = {number: rank for rank, number in enumerate(numbers, 1)}

    def with_ranks(part: Any) -> Any:
        if isinstance(part, Epoch):
            return ranks.get(part.number, part.number)
        return tuple(map(with_ranks, part)) if type(part) is tuple else part

    ranked: tuple[Any, ...] = with_ranks(shape)
    return ranked


def _epochs(part: Any) -> Iterator[Epoch]:
    if isinstance(part, Epoch):
        yield part
    elif type(part) is tuple:
        for each in part:
            yield from _epochs(each)
