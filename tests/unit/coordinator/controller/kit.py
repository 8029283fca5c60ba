"""Short forms for partitions and live brokers."""

from __future__ import annotations

from rota.coordinator.controller.election import LiveBrokers
from rota.coordinator.metadata.topic import PartitionState, Topic


def partition(
    replicas: tuple[int, ...] = (1, 2, 3),
    isr: tuple[int, ...] | None = None,
    leader: int | None = None,
    *,
    epoch: int = 5,
    lives: int = 10,
    index: int = 0,
    adding: tuple[int, ...] = (),
    removing: tuple[int, ...] = (),
    elr: tuple[int, ...] = (),
) -> PartitionState:
    """A partition led by the first member of its ISR, which was elected in the registration of epoch `lives`."""
    isr = replicas if isr is None else isr
    leader = isr[0] if leader is None else leader
    return PartitionState(
        index=index,
        leader=leader,
        replicas=replicas,
        isr=isr,
        leader_epoch=epoch,
        leader_broker_epoch=-1 if leader == -1 else lives,
        adding=adding,
        removing=removing,
        elr=elr,
    )


def live(*brokers: int, stopping: tuple[int, ...] = (), restarted: tuple[int, ...] = (), **epochs: int) -> LiveBrokers:
    """Brokers registered with epoch 10, or with that of `b1=11`."""
    known = dict.fromkeys(brokers, 10) | {int(name[1:]): epoch for name, epoch in epochs.items()}
    return LiveBrokers(known, frozenset(stopping), frozenset(restarted))


def topic(*partitions: PartitionState, name: str = "t", configs: dict[str, str] | None = None) -> Topic:
    return Topic(name=name, topic_id=name.encode().ljust(16), partitions=partitions, configs=configs or {})


Brief = tuple[int, tuple[int, ...], int]


def brief(state: PartitionState | None) -> Brief | None:
    """(leader, ISR, leader epoch)."""
    return None if state is None else (state.leader, state.isr, state.leader_epoch)
