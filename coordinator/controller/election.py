"""Which replica leads a partition, and which are in its ISR, as brokers come and go. Pure: one partition at a time.

Laws
    R1  A new leader is in the ISR or in the ELR, unless an unclean election is allowed. Each election has a new leader
        epoch, and a leader epoch has one leader in one registration of its broker.
    R2  The ISR is never empty: when none of its members is alive, it stays as it is and the partition has no leader.
    R3  A leadership ends with the registration that it was given to: a broker that registered again is elected again
        before it leads, also when it is the only replica.
    ELR1 A replica that leaves the ISR below min.insync.replicas enters the ELR (KIP-966). It has every committed
        record, because nothing is committed until the ELR is empty again. It leads when no member of the ISR can. A
        broker that may have lost records leaves ISR and ELR if another broker is in them. An unclean election empties
        the ELR.

The leader epoch stays when only the ISR shrinks (KAFKA-15021): followers and clients need no new metadata for it.
Source: Kafka's PartitionChangeBuilder, KIP-966 and KIP-841 (a broker that shuts down or died leaves the ISR), KIP-903.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from rota.coordinator.metadata.topic import PartitionState
from rota.protocol.dataclass import dataclass

NO_LEADER: Final = -1
NO_EPOCH: Final = -1


@dataclass(frozen=True, slots=True)
class LiveBrokers:
    """The live brokers: `epochs` has the epoch of each broker's registration.

    `controller_epoch`: the epoch of the deciding controller; with -1 partitions keep their controller epoch.
    `stopping`: brokers in a controlled shutdown. They lead a partition only if no other broker can.
    `restarted`: brokers that have registered again since the controller's last decision. They leave each ISR that has
    another live member, as dead brokers do.
    """

    epochs: Mapping[int, int]
    stopping: frozenset[int] = frozenset()
    restarted: frozenset[int] = frozenset()
    controller_epoch: int = NO_EPOCH

    def has_leader(self, state: PartitionState) -> bool:
        """Return whether the leader is alive in the registration in which it was elected."""
        return state.leader != NO_LEADER and self.epochs.get(state.leader) == state.leader_broker_epoch


def maintain(
    state: PartitionState, live: LiveBrokers, minimum: int = 1, *, unclean: bool = False
) -> PartitionState | None:
    """Return the state that the partition should have now, or None if it has that state.

    `minimum` is min.insync.replicas; `unclean` allows a leader that is not in the ISR or the ELR.
    """
    isr = surviving_isr(state, live)
    after = state if isr == state.isr else state.with_isr(isr, minimum)
    if live.has_leader(state) and state.leader in isr:
        return None if after is state else replace(after, controller_epoch=_controller_epoch(state, live))
    leader = first_eligible(state, isr, live)
    if leader == NO_LEADER and unclean:
        leader = first_eligible(state, state.replicas, live)
        after = state if leader == NO_LEADER else replace(state, isr=(leader,), elr=())
    if leader == state.leader == NO_LEADER:
        return None
    return elect(after, leader, after.isr, live)


def elect(state: PartitionState, leader: int, isr: tuple[int, ...], live: LiveBrokers) -> PartitionState:
    """Return the state with this leader and ISR, in a new leader epoch."""
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
    """Return the ISR without its dead, restarted and stopping members. It is never empty (R2).

    A member that led the partition in an earlier registration counts as restarted. The result is the first of these
    that is not empty: members that neither restarted nor stop, members that do not stop, one live member of the ELR
    that does not stop, live members, one live member of the ELR, the ISR as it is.
    """
    live_members = tuple([broker for broker in state.isr if broker in live.epochs and broker in state.replicas])
    staying = (
        tuple([broker for broker in live_members if broker not in live.stopping]) if live.stopping else live_members
    )
    not_restarted = tuple([broker for broker in staying if not _has_restarted(state, broker, live)])
    if not_restarted or staying or not state.elr:
        return not_restarted or staying or live_members or state.isr
    eligible = [broker for broker in state.replicas if broker in state.elr and broker in live.epochs]
    eligible_staying = [broker for broker in eligible if broker not in live.stopping]
    return tuple(eligible_staying[:1]) or live_members or tuple(eligible[:1]) or state.isr


def _has_restarted(state: PartitionState, broker: int, live: LiveBrokers) -> bool:
    if broker in live.restarted:
        return True
    return broker == state.leader and state.leader_broker_epoch not in (NO_EPOCH, live.epochs[broker])


def first_eligible(state: PartitionState, members: tuple[int, ...], live: LiveBrokers) -> int:
    """Return the first live replica, in the order of the assignment, that is in `members`; NO_LEADER if none is."""
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
