"""Every state that two members can bring a consumer group into: both of the consumer protocol, or one of each.

In each: a partition has one owner, epochs grow, stale epochs change nothing, replaying the log gives the same state, a
new target moves no more than it must, and requests of the clients alone bring the group to rest, with all partitions
owned.

The gate walks the first states, breadth first; the soak walks all of them, with lost answers and a topic that grows.
"""

from __future__ import annotations

from collections import deque
from itertools import product

import pytest
from tests.property.consumer_group_states import (
    OK,
    PARTITIONS,
    TOPIC,
    Classic,
    Client,
    Member,
    WalkNode,
    apply,
    heartbeat,
    heartbeat_classic,
    join,
    start,
    sync,
)
from tests.soak import SOAK
from tests.unit.coordinator.consumer_group.script import durable

from rota.coordinator.consumer_group.settings import ConsumerGroupSettings
from rota.coordinator.consumer_group.state import ConsumerGroupState
from rota.coordinator.group.transitions import GroupState

ROUNDS_MAX = 15
SESSION_MS = ConsumerGroupSettings().session_ms
NEVER = 1_000_000  # an epoch
STATES_MAX = 200_000 if SOAK else 250


def check_step(before: WalkNode, after: WalkNode) -> None:
    """What holds between two states that follow each other."""
    owned = after.owners()
    assert len(owned) == len(set(owned)), after.path  # CG1
    old, new = before.script.hosted.consumer, after.script.hosted.consumer
    if old is None or new is None:
        return
    assert new.epoch >= old.epoch, after.path
    assert new.target_epoch >= old.target_epoch, after.path
    if new.target_epoch > old.target_epoch and old.target_epoch > 1:
        for who in old.targets.keys() & new.targets.keys() & old.members.keys():
            was, now = ({*target.values()} for target in (old.targets[who], new.targets[who]))
            first, second = (frozenset().union(*parts) for parts in (was, now))
            assert first <= second or second <= first, after.path  # CG12


def check_node(node: WalkNode) -> None:
    check_restart(node)
    check_stale(node)
    check_commits(node.copied())
    check_progress(node.copied())


def check_restart(node: WalkNode) -> None:
    """G5."""
    assert durable(node.script.restarted().hosted) == durable(node.script.hosted), node.path


def check_stale(node: WalkNode) -> None:
    """G3. An epoch that was never given changes nothing."""
    before, size = durable(node.script.hosted), len(node.script.log)
    for who, client in node.clients.items():
        if isinstance(client, Member) and client.epoch > 0:
            assert node.script.heartbeat(who, NEVER, instance=client.instance).error is not OK, node.path
    assert (durable(node.script.hosted), len(node.script.log)) == (before, size), node.path


def check_commits(node: WalkNode) -> None:
    """G1. A commit in an older epoch is taken for a partition that the member owns, and for no other."""
    group = node.script.hosted.consumer
    topic = node.script.topics.get(TOPIC)
    assert topic is not None
    if group is None:
        return
    for who, index in product(node.clients, range(topic.partition_count)):
        known = group.members.get(who)
        if known is None or known.epoch <= 1:
            continue
        code = node.script.commit(who, known.epoch - 1, index)
        assert code is not OK or group.owners.get((topic.topic_id, index)) == who, node.path
        assert node.script.commit(who, known.epoch + 1, index) is not OK, node.path


def check_progress(node: WalkNode) -> None:
    """With heartbeats alone the group comes to rest, and every partition has an owner.

    A static member that was fenced needs a timeout: the instance is its own until its session is over, as in Kafka.
    """
    present = [who for who, client in node.clients.items() if is_present(client)]
    go_on_together(node, present, 100)
    if any(is_fenced_static(node.clients[who]) for who in present):
        go_on_together(node, present, SESSION_MS // 10)
    topic, group = node.script.topics.get(TOPIC), node.script.hosted.consumer
    assert topic is not None
    if not present or (group is not None and set(group.members) != set(present)):
        return  # somebody went silently, or comes back
    owned = sorted(index for who in present for index in node.clients[who].owned)
    # in a group of classic members alone their leader looks for new partitions, and these clients do not
    count = max(len(owned), PARTITIONS) if group is None else topic.partition_count
    assert owned == list(range(count)), node.path
    if group is None:
        assert node.script.hosted.state is GroupState.STABLE, node.path
    else:
        assert group.state is ConsumerGroupState.STABLE, node.path


def is_present(client: Client) -> bool:
    return client.step != "out" if isinstance(client, Classic) else client.epoch > 0


def is_fenced_static(client: Client) -> bool:
    return isinstance(client, Member) and client.instance is not None and client.epoch == 0


def go_on_together(node: WalkNode, present: list[str], interval_ms: int) -> None:
    for _ in range(ROUNDS_MAX):
        for who in present:
            go_on(node, who)
        node.script.advance(interval_ms)
        node.take_answers()


def go_on(node: WalkNode, who: str) -> None:
    client = node.clients[who]
    if isinstance(client, Member):
        heartbeat(node, who)
        after = node.clients[who]
        if isinstance(after, Member) and after.unapplied is not None:
            apply(node, who)
    elif client.step in ("join", "out"):
        join(node, who)
    elif client.step == "sync":
        sync(node, who)
    elif client.step:
        heartbeat_classic(node, who)
    node.take_answers()


def walk(clients: dict[str, Client], without: str = "nothing") -> int:
    """The number of states that were walked. `without` is a word of the actions that are left out."""
    first = start(clients)
    queue, seen, walked = deque([first]), {first.shape()}, 0
    while queue and walked < STATES_MAX:
        node = queue.popleft()
        walked += 1
        check_node(node)
        for name, action in node.actions():
            if without in name:
                continue
            successor = node.after(name, action)
            check_step(node, successor)
            shape = successor.shape()
            if shape not in seen:
                seen.add(shape)
                queue.append(successor)
    assert not (SOAK and queue), "the walk is not exhaustive"
    return walked


WALKS: dict[str, dict[str, Client]] = {
    "two of the consumer protocol": {"a": Member(), "b": Member()},
    "one of each": {"a": Member(), "c": Classic()},
    "one of each, the classic one eager": {"a": Member(), "c": Classic(is_eager=True)},
    "a static member and another": {"a": Member(instance="i"), "b": Member()},
}


@pytest.mark.parametrize("clients", WALKS.values(), ids=WALKS)
def test_all_that_two_members_can_do(clients: dict[str, Client]) -> None:
    assert walk(dict(clients), without="grows" if SOAK else "nothing") >= 150
