"""The move of a partition to other replicas (KIP-455). Pure: one partition at a time.

A reassignment has two steps. When it begins, `replicas` holds the target and, behind it, the replicas that will leave;
`adding` and `removing` say which these are. When every replica that was added is in the ISR, those that leave are
removed from `replicas` and from the ISR, and the reassignment is complete.

Laws
    RA1  A reassignment completes only when each added replica is in the ISR and the ISR is as large without those that
        leave as min.insync.replicas asks for; it never leaves the ISR empty.
    RA2  A cancelled reassignment leaves the replicas that the partition had before, in some order.
    RA3  The leader epoch grows when a replica is removed, so that its fetches are refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rota.coordinator.controller.election import LiveBrokers, elect, first_eligible
from rota.coordinator.metadata.topic import PartitionState


def target_of(state: PartitionState) -> tuple[int, ...]:
    """Return the replicas that the partition will have when its reassignment is complete."""
    return tuple(broker for broker in state.replicas if broker not in state.removing)


def original_of(state: PartitionState) -> tuple[int, ...]:
    """Return the replicas that the partition had before its reassignment."""
    return tuple(broker for broker in state.replicas if broker not in state.adding)


def is_under_way(state: PartitionState) -> bool:
    return bool(state.adding or state.removing)


def begin(state: PartitionState, target: Sequence[int], live: LiveBrokers, minimum: int = 1) -> PartitionState | None:
    """Return the state with that target. A reassignment that is under way is replaced.

    A target of the same replicas in another order is complete at once. None when the ISR would be empty without the
    replicas that the earlier reassignment was adding.
    """
    original = original_of(state)
    replicas = tuple(dict.fromkeys((*target, *original)))
    adding = tuple(broker for broker in replicas if broker not in original)
    removing = tuple(broker for broker in replicas if broker not in target)
    return _with_replicas(state, replicas, live, minimum, adding=adding, removing=removing)


def complete(state: PartitionState, live: LiveBrokers, minimum: int = 1) -> PartitionState | None:
    """Return the state after the reassignment; None while it has to wait, or when there is none."""
    target = target_of(state)
    if not is_under_way(state) or not set(state.adding) <= set(state.isr):
        return None
    if len(set(target).intersection(state.isr)) < min(minimum, len(target)):
        return None
    return _with_replicas(state, target, live, minimum)


def cancel(state: PartitionState, live: LiveBrokers, minimum: int = 1) -> PartitionState | None:
    """Return the state without its reassignment; None when no original replica is in the ISR."""
    return _with_replicas(state, original_of(state), live, minimum)


def _with_replicas(
    state: PartitionState,
    replicas: tuple[int, ...],
    live: LiveBrokers,
    minimum: int,
    *,
    adding: tuple[int, ...] = (),
    removing: tuple[int, ...] = (),
) -> PartitionState | None:
    """Return the state with these replicas; None if that left the ISR empty. RA3."""
    isr = tuple(broker for broker in state.isr if broker in replicas)
    if not isr:
        return None
    changed = replace(state, replicas=replicas, adding=adding, removing=removing).with_isr(isr, minimum)
    if set(state.replicas) <= set(replicas):
        return changed
    keeps_leader = state.leader in isr and live.has_leader(state)
    return elect(changed, state.leader if keeps_leader else first_eligible(changed, isr, live), isr, live)
