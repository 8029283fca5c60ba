"""Writes decisions on partitions to the metadata store.

Laws
    SW1  A state node changes by compare-and-set on the state that the decision was made on. When it has changed
         meanwhile, the partition is read and decided again.
    SW2  A partition that cannot be written holds up no other: deleted topics are left out, and one that others
         change again and again is written in a commit of its own. What is not written in the end is logged, and
         its requesters do not get a success.
    SW4  A decision is written only while the name still belongs to the topic that it was made for: a topic that was
         created again has the same paths and versions.

Elections of many partitions share commits below the store's limit; the commits are under way at the same time. A
reassignment changes the topic's node as well, in the same commit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

import structlog

from rota.coordinator.controller.decisions import Decision
from rota.coordinator.metadata import commits, eager_tasks, topic_nodes, znodes
from rota.coordinator.metadata.store import BadNode, BadVersion, Check, Delete, NoNode, Op, Set, StoreError, StoreFailed
from rota.coordinator.metadata.topic import PartitionState, Topic
from rota.coordinator.metadata.topics import Topics

ATTEMPTS_MAX = 8  # to write partitions that others change at the same time
RESERVED_OPS = 10  # of a commit: the fence, a topic's node, registrations that are deleted

log = structlog.get_logger("rota.controller")

Decide = Callable[[Topic, PartitionState], PartitionState | None]


class Fenced(Exception):
    """Another controller has been elected: nothing was written."""


class StateWriter:
    """`topics` is the image; it has what was written when `write` returns."""

    def __init__(
        self,
        topics: Topics,
        on_unwritten: Callable[[Decision], None] = lambda _: None,
        on_answer: Callable[[], None] = lambda: None,
    ) -> None:
        """`on_unwritten` is called with each decision that concurrent changes prevented; the topic still exists.

        `on_answer` is called whenever the store has answered a change.
        """
        self._topics, self._on_unwritten, self._on_answer = topics, on_unwritten, on_answer

    async def write(self, decisions: Iterable[Decision], decide: Decide, fence: Check | None = None) -> int:
        """Write the decisions; return how many were written.

        `decide` is called for a partition that has changed since. Raises Fenced, StoreFailed.
        """
        states, replicas = list[Decision](), dict[bytes, list[Decision]]()
        for decision in decisions:
            if decision.has_changed_replicas:
                replicas.setdefault(decision.topic.topic_id, []).append(decision)
            else:
                states.append(decision)
        written = await eager_tasks.gather(self._write_portion(portion, decide, fence) for portion in portions(states))
        for of_topic in replicas.values():
            for portion in portions(of_topic):  # one after the other: each changes the topic's node
                written.append(await self._write_portion(portion, decide, fence))
        return sum(written)

    async def delete_and_write(
        self, deletes: Sequence[Delete], decisions: Sequence[Decision], decide: Decide, fence: Check
    ) -> int:
        """The same; the first commit also deletes nodes, so that a failover takes one round trip."""
        first = next(portions(decision for decision in decisions if not decision.has_changed_replicas), [])
        try:
            await self._commit([fence, *deletes, *self._ops(first)])
        except (BadVersion, NoNode, BadNode) as refused:
            _raise_if_fenced(refused, fence)
            for delete in deletes:
                await self._delete(delete, fence)
            return await self.write(decisions, decide, fence)
        await self._apply(first)
        written = {(decision.topic.topic_id, decision.before.index) for decision in first}
        rest = [entry for entry in decisions if (entry.topic.topic_id, entry.before.index) not in written]
        return len(first) + await self.write(rest, decide, fence)

    async def _delete(self, delete: Delete, fence: Check) -> None:
        try:
            await self._commit([fence, delete])
        except (BadVersion, NoNode) as refused:
            _raise_if_fenced(refused, fence)

    async def _write_portion(self, decisions: Sequence[Decision], decide: Decide, fence: Check | None) -> int:
        for _ in range(ATTEMPTS_MAX):
            if not decisions:
                return 0
            try:
                await self._commit([*([fence] if fence else []), *self._ops(decisions)])
            except (BadVersion, NoNode) as refused:
                _raise_if_fenced(refused, fence)
                decisions = await self._decide_again(decisions, decide)
                continue
            except BadNode as refused:
                if len(decisions) == 1:
                    raise StoreFailed(str(refused)) from refused
                break
            await self._apply(decisions)
            return len(decisions)
        return await self._write_halves(decisions, decide, fence)

    async def _commit(self, ops: Sequence[Op]) -> None:
        try:
            await self._topics.store.commit(ops)
        except StoreError:  # a refusal is an answer, too
            self._on_answer()
            raise
        self._on_answer()

    async def _write_halves(self, decisions: Sequence[Decision], decide: Decide, fence: Check | None) -> int:
        """SW2. Each half gets all attempts, or was too large with the other one.

        A single decision has had all attempts, and is not written.
        """
        if len(decisions) == 1:
            partition = {"topic": decisions[0].topic.name, "partition": decisions[0].before.index}
            log.warning("Partition state not written", **partition, reason=f"changed {ATTEMPTS_MAX} times by others")
            self._on_unwritten(decisions[0])
            return 0
        half = len(decisions) // 2
        written = [await self._write_portion(part, decide, fence) for part in (decisions[:half], decisions[half:])]
        return sum(written)

    def _ops(self, decisions: Sequence[Decision]) -> Iterator[Op]:
        """The compare-and-sets, with checks (SW4). All decisions that change replicas are of one topic."""
        changed = {decision.before.index: decision.after for decision in decisions if decision.has_changed_replicas}
        if changed:
            topic = self._topics.by_id(decisions[0].topic.topic_id) or decisions[0].topic
            states = tuple(changed.get(state.index, state) for state in topic.partitions)
            node = znodes.topic_node(replace(topic, partitions=states))
            yield Set(znodes.topic_path(topic.name), node, topic.version)
        yield from (topic_nodes.is_same(topic) for topic, _ in _by_topic(decisions))
        for decision in decisions:
            path = znodes.state_path(decision.topic.name, decision.before.index)
            yield Set(path, znodes.state_node(decision.after), decision.before.version)

    async def _apply(self, decisions: Sequence[Decision]) -> None:
        by_topic = _by_topic(decisions)
        for topic, of_topic in by_topic:
            after = [replace(decision.after, version=decision.before.version + 1) for decision in of_topic]
            self._topics.apply_states(topic.topic_id, after)
            if of_topic[0].has_changed_replicas:
                await self._topics.refresh(topic.name, ())

    async def _decide_again(self, decisions: Sequence[Decision], decide: Decide) -> list[Decision]:
        """Read the partitions, and decide about them as they are now.

        A decision of the other kind does not belong into this commit: the next look at the topic makes it again.
        """
        by_topic, has_changed_replicas = _by_topic(decisions), decisions[0].has_changed_replicas
        await eager_tasks.gather(
            self._topics.refresh(topic.name, [decision.before.index for decision in of_topic])
            for topic, of_topic in by_topic
        )
        again = [
            Decision(current, state, after)
            for topic, of_topic in by_topic
            if (current := self._topics.by_id(topic.topic_id)) is not None
            for state in (current.partitions[decision.before.index] for decision in of_topic)
            if (after := decide(current, state)) is not None
        ]
        for decision in again:
            if decision.has_changed_replicas != has_changed_replicas:
                self._on_unwritten(decision)
        return [decision for decision in again if decision.has_changed_replicas == has_changed_replicas]


def _raise_if_fenced(refused: StoreError, fence: Check | None) -> None:
    if fence is not None and refused.path == fence.path and not isinstance(refused, BadNode):
        raise Fenced from refused


def portions(decisions: Iterable[Decision]) -> Iterator[list[Decision]]:
    """Return as many as fit into one commit with a check for each topic, in order."""
    portion, topic_ids = list[Decision](), set[bytes]()
    for decision in decisions:
        topic_ids.add(decision.topic.topic_id)
        if len(portion) + len(topic_ids) + RESERVED_OPS > commits.OPS_PER_COMMIT_MAX:
            yield portion
            portion, topic_ids = [], {decision.topic.topic_id}
        portion.append(decision)
    if portion:
        yield portion


def _by_topic(decisions: Iterable[Decision]) -> list[tuple[Topic, list[Decision]]]:
    grouped: dict[bytes, list[Decision]] = {}
    for decision in decisions:
        grouped.setdefault(decision.topic.topic_id, []).append(decision)
    return [(of_topic[0].topic, of_topic) for of_topic in grouped.values()]
