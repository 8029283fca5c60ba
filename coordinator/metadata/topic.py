"""One topic as the cluster knows it: immutable; a change makes a new one."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import field, replace

from rota.protocol.dataclass import dataclass
from rota.protocol.errors import ErrorCode, message

CONSUMER_OFFSETS = "__consumer_offsets"
TRANSACTION_STATE = "__transaction_state"
GROUP_TIMELINE = "__rota_group_timeline"
INTERNAL = frozenset({CONSUMER_OFFSETS, TRANSACTION_STATE, GROUP_TIMELINE})
CLUSTER_METADATA = "__cluster_metadata"
RESERVED = INTERNAL | {CLUSTER_METADATA, "__share_group_state"}  # no client may create them


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionState:
    """The replicas of a partition and its leader. `leader` is -1 when it has none.

    `leader_broker_epoch` is the epoch of the registration in which the leader was elected (-1: of no cluster). In a
    cluster a leadership counts only while the leader has that registration: a broker that registered again does not
    lead until it is elected again. `adding` and `removing` are replicas of a reassignment that is under way (KIP-455).
    `elr` are the eligible leader replicas (KIP-966): they have left the ISR and still have every committed record.
    `version` is that of the state node, on which every change of it is a compare-and-set.
    """

    index: int
    leader: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader_epoch: int = 0
    controller_epoch: int = 1
    leader_broker_epoch: int = -1
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    elr: tuple[int, ...] = ()
    version: int = field(default=0, compare=False)

    def with_isr(self, isr: tuple[int, ...], minimum: int, lacking: Collection[int] = ()) -> PartitionState:
        """Return the state with that ISR.

        While the ISR has fewer than `minimum` members (min.insync.replicas), nothing is committed: the members that
        leave it keep every committed record and are in the ELR, but those that are known to be `lacking` some.
        """
        elr: tuple[int, ...] = ()
        if len(isr) < min(minimum, len(self.replicas)):
            kept = {*self.isr, *self.elr}.difference(isr, lacking)
            elr = tuple([broker for broker in self.replicas if broker in kept])
        return replace(self, isr=isr, elr=elr)


def replicated_as(state: PartitionState, other: PartitionState) -> PartitionState:
    """Return `state` with the replicas of `other`, and with what a reassignment adds and removes there."""
    replicas, adding, removing = other.replicas, other.adding, other.removing
    if (state.replicas, state.adding, state.removing) == (replicas, adding, removing):
        return state
    return replace(state, replicas=replicas, adding=adding, removing=removing)


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """`topic_id` is 16 bytes and never given twice; `configs` holds only what was set for this topic.

    `version` is that of the topic's node.
    """

    name: str
    topic_id: bytes
    partitions: tuple[PartitionState, ...]
    configs: Mapping[str, str] = field(default_factory=dict)
    version: int = field(default=0, compare=False)

    @property
    def is_internal(self) -> bool:
        return self.name in INTERNAL

    @property
    def replication_factor(self) -> int:
        return len(self.partitions[0].replicas)


@dataclass(frozen=True, slots=True)
class Refusal:
    """The client's mistake, as the wire says it."""

    code: ErrorCode
    message: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "message", message(self.message))
