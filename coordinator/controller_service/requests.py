"""Changes of partitions that any broker may make, at a client's request or when it stops, without the controller.

Each change is decided on the present state of the partition and written by compare-and-set on it, so that it is safe
whichever broker makes it; the controller completes reassignments. Source: KIP-460, KIP-455, Kafka's
ReplicationControlManager (whose messages are used).

Laws
    CT5  A controlled shutdown returns when every leadership that another broker can take was handed over.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from rota.coordinator.controller import reassignment
from rota.coordinator.controller.decisions import Decision, hand_over, hand_over_partition
from rota.coordinator.controller.election import (
    NO_LEADER,
    LiveBrokers,
    elect_preferred,
    maintain,
    without_unclean_replica,
)
from rota.coordinator.controller_service.state_writer import StateWriter
from rota.coordinator.metadata import placement
from rota.coordinator.metadata.store import ChangedByOthers
from rota.coordinator.metadata.topic import PartitionState, Refusal, Topic
from rota.coordinator.metadata.topics import Topics
from rota.protocol.errors import ErrorCode

Target = tuple[int, ...]
Election = Callable[[PartitionState, LiveBrokers, int], PartitionState | Refusal]  # with min.insync.replicas

NOT_NEEDED = Refusal(ErrorCode.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition.")
PREFERRED_NOT_AVAILABLE = Refusal(ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, "The preferred leader was not available.")
CHANGED_BY_OTHERS = Refusal(ErrorCode.REQUEST_TIMED_OUT, "Other brokers changed the partition again and again.")
NONE_ELIGIBLE = Refusal(ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, "Eligible topic partition leaders are not available.")


def live_brokers(topics: Topics) -> LiveBrokers:
    """Return the registered brokers."""
    return LiveBrokers({broker_id: entry.epoch for broker_id, entry in topics.brokers.items()})


def preferred_election(state: PartitionState, live: LiveBrokers, _minimum: int = 1) -> PartitionState | Refusal:
    """Elect the first replica of the assignment."""
    if state.leader == state.replicas[0] and live.has_leader(state):
        return NOT_NEEDED
    return elect_preferred(state, live) or PREFERRED_NOT_AVAILABLE


def unclean_election(state: PartitionState, live: LiveBrokers, minimum: int = 1) -> PartitionState | Refusal:
    """Elect any live replica of a partition without leader."""
    if live.has_leader(state):
        return NOT_NEEDED
    elected = maintain(state, live, minimum, unclean=True)
    return NONE_ELIGIBLE if elected is None or elected.leader == NO_LEADER else elected


class ClusterRequests:
    """Each method raises StoreFailed."""

    def __init__(self, topics: Topics) -> None:
        self._topics = topics

    async def elect(
        self, partitions: Sequence[tuple[Topic, int]], election: Election
    ) -> dict[tuple[str, int], Refusal | None]:
        """Elect leaders; return the refusal for each partition, None where a leader was elected."""
        live, results, decisions = live_brokers(self._topics), dict[tuple[str, int], Refusal | None](), []
        for topic, index in partitions:
            after = election(topic.partitions[index], live, self._topics.min_insync_replicas(topic))
            results[topic.name, index] = after if isinstance(after, Refusal) else None
            if not isinstance(after, Refusal):
                decisions.append(Decision(topic, topic.partitions[index], after))

        def again(topic: Topic, state: PartitionState) -> PartitionState | None:
            after = election(state, live, self._topics.min_insync_replicas(topic))
            results[topic.name, state.index] = after if isinstance(after, Refusal) else None
            return None if isinstance(after, Refusal) else after

        def unwritten(decision: Decision) -> None:
            results[decision.topic.name, decision.before.index] = CHANGED_BY_OTHERS

        await StateWriter(self._topics, unwritten).write(decisions, again)
        return results

    async def reassign(
        self, topic: Topic, targets: Mapping[int, Target | None], *, is_replication_change_allowed: bool = True
    ) -> dict[int, Refusal | None]:
        """Begin the reassignment of partitions of one topic, or cancel it (None); return the refusals.

        A new replica may be absent: the reassignment waits for it (PL2).
        """
        live, results, decisions = live_brokers(self._topics), dict[int, Refusal | None](), []
        known = self._topics.absent_brokers().union(live.epochs)

        def change(topic: Topic, state: PartitionState) -> PartitionState | None:
            target, minimum = targets[state.index], self._topics.min_insync_replicas(topic)
            after = reassign(
                topic, state, target, live, known, minimum, is_replication_change_allowed=is_replication_change_allowed
            )
            results[state.index] = after if isinstance(after, Refusal) else None
            return None if isinstance(after, Refusal) or after == state else after

        for index in targets:
            after = change(topic, topic.partitions[index])
            if after is not None:
                decisions.append(Decision(topic, topic.partitions[index], after))

        def unwritten(decision: Decision) -> None:
            results[decision.before.index] = CHANGED_BY_OTHERS

        await StateWriter(self._topics, unwritten).write(decisions, change)
        return results

    async def hand_over(self) -> int:
        """Hand over this broker's leaderships and leave each ISR; return how many partitions changed (CT5)."""
        live, broker_id, min_isr = live_brokers(self._topics), self._topics.broker_id, self._topics.min_insync_replicas

        def again(topic: Topic, state: PartitionState) -> PartitionState | None:
            return hand_over_partition(state, live, broker_id, min_isr(topic))

        return await StateWriter(self._topics).write(hand_over(self._topics, live, broker_id, min_isr), again)

    async def leave_isrs(self, logs: Collection[tuple[str, int]] | None = None) -> int:
        """Take this broker out of each ISR and ELR in which it is not alone; return how many partitions changed.

        With `logs` of these partitions (topic, index) alone.
        It is not registered. Raises StoreFailed when it is still in one of them. The states of its other partitions are
        written again: a leader that wants to add it, as it was in its earlier life, finds a new version (KIP-903).
        """
        live, broker_id, unwritten = live_brokers(self._topics), self._topics.broker_id, list[Decision]()

        def again(topic: Topic, state: PartitionState) -> PartitionState | None:
            if broker_id in state.replicas and broker_id not in (*state.isr, *state.elr):
                return state
            return without_unclean_replica(state, broker_id, live, self._topics.min_insync_replicas(topic))

        decisions = [
            Decision(topic, state, after)
            for topic in self._topics
            for state in topic.partitions
            if (logs is None or (topic.name, state.index) in logs) and (after := again(topic, state)) is not None
        ]
        await StateWriter(self._topics, unwritten.append).write(decisions, again)
        if unwritten:
            raise ChangedByOthers(
                f"others change {len(unwritten)} partitions, such as {unwritten[0].topic.name}, all the time"
            )
        return sum(decision.after != decision.before for decision in decisions)

    async def hand_over_partition(
        self, name: str, index: int, *, lost_records: bool = False, unclean: bool = False
    ) -> int:
        """The same for one partition, whose log has failed here: this broker is not in the ELR either.

        `lost_records`: recovery found a shorter log; the brokers of the ELR become the ISR if it has no other member.
        `unclean`: recovery has failed, and any other replica that is alive may lead (UE1). R1. Raises StoreFailed when
        it was not written.
        """
        live, broker_id, min_isr = live_brokers(self._topics), self._topics.broker_id, self._topics.min_insync_replicas
        topic = self._topics.get(name)
        state = self._topics.partition(name, index)

        def again(topic: Topic, state: PartitionState) -> PartitionState | None:
            how = {"lost_records": lost_records, "unclean": unclean}
            return hand_over_partition(state, live, broker_id, min_isr(topic), has_failed=True, **how)

        if topic is None or state is None or (after := again(topic, state)) is None:
            return 0
        unwritten = list[Decision]()
        written = await StateWriter(self._topics, unwritten.append).write([Decision(topic, state, after)], again)
        if unwritten:
            raise ChangedByOthers(f"others change {name}-{index} all the time")
        return written


def reassign(
    topic: Topic,
    state: PartitionState,
    target: Target | None,
    live: LiveBrokers,
    known: Collection[int],
    minimum: int = 1,
    *,
    is_replication_change_allowed: bool,
) -> PartitionState | Refusal:
    """Return the state that begins (or, without target, cancels) a reassignment, or why it is refused.

    `known` are the brokers that may get replicas.
    """
    name = f"{topic.name}-{state.index}"
    if target is None:
        return _cancel(name, state, live, minimum)
    refusal = placement.refuse_replicas(target, known)
    if refusal is not None:
        return refusal
    current = len(reassignment.target_of(state))
    if not is_replication_change_allowed and len(target) != current:
        why = f"The replication factor is changed from {current} to {len(target)}"
        return Refusal(ErrorCode.INVALID_REPLICATION_FACTOR, why)
    return reassignment.begin(state, target, live, minimum) or _needs_unclean(name)


def _cancel(name: str, state: PartitionState, live: LiveBrokers, minimum: int) -> PartitionState | Refusal:
    if not reassignment.is_under_way(state):
        return Refusal(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, f"{name} is not being reassigned.")
    return reassignment.cancel(state, live, minimum) or _needs_unclean(name)


def _needs_unclean(name: str) -> Refusal:
    why = f"Unable to revert partition assignment for {name} because it would require an unclean leader election."
    return Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, why)
