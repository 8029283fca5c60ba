"""Which replica leads a partition, and which are in its ISR, as brokers come and go. Pure: one partition at a time.

Laws
    R1  A new leader is in the ISR or in the ELR, unless an unclean election is allowed. Each election has a new leader
        epoch, and a leader epoch has one leader in one registration of its broker.
    R2  The ISR is never empty: when none of its members is alive, it stays as it is and the partition has no leader.
    R3  A leadership ends with the registration that it was given to: a broker that registered again is elected again
        before it leads, also when it is the only replica.
    ELR1 Whoever leaves the ISR below min.insync.replicas stays eligible (KIP-966): its log has every committed record,
        as nothing is committed before the ELR is empty again. It leads when nobody of the ISR can. Who may have lost
        records is in neither, as long as another broker is; an unclean election empties the ELR.

The leader epoch stays when only the ISR shrinks (KAFKA-15021): followers and clients need no new metadata for it.
Source: Kafka's PartitionChangeBuilder, KIP-966 and KIP-841 (a broker that shuts down or died leaves the ISR), KIP-903.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from rota.coordinator.metadata.topic import PartitionState

NO_LEADER: Final = -1
NO_EPOCH: Final = -1


@dataclass(frozen=True, slots=True)
class LiveBrokers:
    """The brokers that can lead: the epoch of each live broker's registration.

    `controller_epoch` is that of the controller that decides; -1 for another broker, which leaves the epoch as it is.
    `stopping` are in a controlled shutdown: they lead only what nobody else can. `restarted` have registered again
    since the controller last looked: they leave each ISR that has another live member, as after a death.
    """

    epochs: Mapping[int, int]
    stopping: frozenset[int] = frozenset()
    restarted: frozenset[int] = frozenset()
    controller_epoch: int = NO_EPOCH

    def leads(self, state: PartitionState) -> bool:
        """Whether the leader is alive in the registration that it was elected in."""
        return state.leader != NO_LEADER and self.epochs.get(state.leader) == state.leader_broker_epoch


def maintain(
    state: PartitionState, live: LiveBrokers, minimum: int = 1, *, unclean: bool = False
) -> PartitionState | None:
    """Return the state that the partition should have now; None when it has it already.

    `minimum` is min.insync.replicas.
    """
    isr = surviving_isr(state, live)
    after = state if isr == state.isr else state.with_isr(isr, minimum)
    if live.leads(state) and state.leader in isr:
        return None if after is state else replace(after, controller_epoch=_controller_epoch(state, live))
    leader = first_eligible(state, isr, live)
    if leader == NO_LEADER and unclean:
        leader = first_eligible(state, state.replicas, live)
        after = state if leader == NO_LEADER else replace(state, isr=(leader,), elr=())
    if leader == state.leader == NO_LEADER:
        return None
    return elect(after, leader, after.isr, live)


def elect(state: PartitionState, leader: int, isr: tuple[int, ...], live: LiveBrokers) -> PartitionState:
    """Return the state with that leader, in a new leader epoch."""
    return replace(
        state,
        leader=leader,
        isr=isr,
        leader_epoch=state.leader_epoch + 1,
        controller_epoch=_controller_epoch(state, live),
        leader_broker_epoch=live.epochs.get(leader, NO_EPOCH),
    )


def _controller_epoch(state: PartitionState, live: LiveBrokers) -> int:
    return max(state.controller_epoch, live.controller_epoch)


def surviving_isr(state: PartitionState, live: LiveBrokers) -> tuple[int, ...]:
    """Return the ISR without the members that are dead, restarted or stopping; never empty (R2).

    A member whose earlier life led counts as restarted. Brokers that have all committed records are preferred in this
    order: members that stay, members that restarted, the first of the ELR that stays, members that stop, the first of
    the ELR.
    """
    alive = tuple([broker for broker in state.isr if broker in live.epochs and broker in state.replicas])
    staying = tuple([broker for broker in alive if broker not in live.stopping]) if live.stopping else alive
    whole = tuple([broker for broker in staying if not _has_restarted(state, broker, live)])
    if whole or staying or not state.elr:
        return whole or staying or alive or state.isr
    eligible = [broker for broker in state.replicas if broker in state.elr and broker in live.epochs]
    stayers = [broker for broker in eligible if broker not in live.stopping]
    return tuple(stayers[:1]) or alive or tuple(eligible[:1]) or state.isr


def _has_restarted(state: PartitionState, broker: int, live: LiveBrokers) -> bool:
    if broker in live.restarted:
        return True
    return broker == state.leader and state.leader_broker_epoch not in (NO_EPOCH, live.epochs[broker])


def first_eligible(state: PartitionState, members: tuple[int, ...], live: LiveBrokers) -> int:
    """Return the first replica in the order of the assignment that is alive and among `members`; NO_LEADER if none."""
    for broker in state.replicas:
        if broker in members and broker in live.epochs:
            return broker
    return NO_LEADER


def without_unclean_replica(
    state: PartitionState, broker: int, live: LiveBrokers, minimum: int = 1
) -> PartitionState | None:
    """Return the state without that broker in the ISR and the ELR, also as the leader.

    The ELR takes the place of an ISR that has no other member. None if the broker is in neither, or alone in them.
    """
    isr = tuple([member for member in state.isr if member != broker])
    elr = tuple([member for member in state.elr if member != broker])
    if (isr, elr) in (((), ()), (state.isr, state.elr)):
        return None
    after = state.with_isr(isr, minimum, lacking=(broker,)) if isr else replace(state, isr=elr, elr=())
    return elect(after, NO_LEADER, after.isr, live) if state.leader == broker else after


def without_eligibility(state: PartitionState, broker: int) -> PartitionState | None:
    """Return the state without that broker in the ELR; None if it is not in it."""
    return replace(state, elr=tuple(m for m in state.elr if m != broker)) if broker in state.elr else None


def elect_preferred(state: PartitionState, live: LiveBrokers) -> PartitionState | None:
    """Return the state with the preferred replica, the first of the assignment, as leader; None if it cannot lead."""
    preferred = state.replicas[0]
    if preferred not in state.isr or preferred not in live.epochs or preferred in live.stopping:
        return None
    return elect(state, preferred, state.isr, live)
