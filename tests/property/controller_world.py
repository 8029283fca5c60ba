"""One partition on three brokers, as the controller and the leader change it: the laws of an election after each event.

A committed record is on every member of the ISR. `has_all` are the brokers whose logs have every committed record: what
is committed while the ISR is {1, 2} is missed by 3. Processes crash and keep their disks.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from rota.coordinator.controller import reassignment
from rota.coordinator.controller.decisions import decide_partition, hand_over
from rota.coordinator.controller.election import LiveBrokers, elect_preferred
from rota.coordinator.metadata.topic import PartitionState, Topic

BROKERS = (1, 2, 3)
TOPIC = Topic(name="t", topic_id=bytes(16), partitions=())


@dataclass(frozen=True, slots=True)
class World:
    """`known` are the registrations that the controller has acted upon; a new controller has acted upon none."""

    state: PartitionState
    epochs: tuple[tuple[int, int], ...]
    known: tuple[tuple[int, int], ...]
    has_all: frozenset[int]
    last_epoch: int = 10

    @property
    def live(self) -> LiveBrokers:
        known = dict(self.known)
        restarted = {broker for broker, epoch in self.epochs if known.get(broker, epoch) != epoch}
        return LiveBrokers(dict(self.epochs), restarted=frozenset(restarted))

    def key(self) -> object:
        """What distinguishes two worlds for the future: epochs count only as older, known or unknown ones."""
        state, epochs, known = self.state, dict(self.epochs), dict(self.known)
        registrations = tuple((broker, known.get(broker) in (None, epoch)) for broker, epoch in self.epochs)
        leads = epochs.get(state.leader) == state.leader_broker_epoch
        members = frozenset(state.isr)
        return state.leader, members, state.replicas, state.adding, state.removing, leads, registrations, self.has_all

    # ---- events: each returns the worlds that may come of it

    def kill(self, broker: int) -> World:
        return replace(self, epochs=tuple(entry for entry in self.epochs if entry[0] != broker))

    def start(self, broker: int) -> World:
        """Register, perhaps before anybody saw that the earlier life had ended."""
        epoch = self.last_epoch + 1
        epochs = {**dict(self.epochs), broker: epoch}
        return replace(self, epochs=tuple(sorted(epochs.items())), last_epoch=epoch)

    def write(self) -> World:
        """A record is committed: the ISR has it. It needs a leader that counts, and the members alive."""
        alive = dict(self.epochs)
        if not self.live.leads(self.state) or not all(broker in alive for broker in self.state.isr):
            return self
        return replace(self, has_all=frozenset(self.state.isr))

    def expand(self, broker: int) -> World:
        """The leader adds a follower that has caught up with it."""
        state = self.state
        if not self.live.leads(state) or broker in state.isr or broker not in state.replicas:
            return self
        if broker not in dict(self.epochs):
            return self
        return replace(self, state=replace(state, isr=(*state.isr, broker)), has_all=self.has_all | {broker})

    def shrink(self, broker: int) -> World:
        """The leader removes a follower that lags."""
        state = self.state
        if not self.live.leads(state) or broker not in state.isr or broker == state.leader:
            return self
        return replace(self, state=replace(state, isr=tuple(member for member in state.isr if member != broker)))

    def control(self, *, unclean: bool = False) -> World:
        after = decide_partition(TOPIC, self.state, self.live, lambda _: unclean)
        return replace(self, state=after or self.state, known=self.epochs)

    def fail_over(self) -> World:
        """A new controller: it has seen nobody register again."""
        return replace(self, known=())

    def stop(self, broker: int) -> World:
        """A controlled shutdown of the broker, which makes the changes itself."""
        if broker not in dict(self.epochs):
            return self
        decisions = hand_over(
            [replace(TOPIC, partitions=(self.state,))], replace(self.live, restarted=frozenset()), broker
        )
        return replace(self, state=decisions[0].after) if decisions else self

    def prefer(self) -> World:
        return replace(self, state=elect_preferred(self.state, self.live) or self.state)

    def reassign(self, target: tuple[int, ...]) -> World:
        return replace(self, state=reassignment.begin(self.state, target, self.live) or self.state)

    def cancel(self) -> World:
        return replace(self, state=reassignment.cancel(self.state, self.live) or self.state)


def first_world(replicas: tuple[int, ...] = BROKERS) -> World:
    registered = tuple((broker, 10) for broker in BROKERS)
    state = PartitionState(index=0, leader=replicas[0], replicas=replicas, isr=replicas, leader_broker_epoch=10)
    return World(state, registered, registered, frozenset(replicas))


def check(before: World, after: World, *, unclean: bool = False) -> None:
    """R1, R2, R3, RA1 for one step."""
    old, new = before.state, after.state
    assert new.isr, "R2: the ISR is empty"
    assert set(new.isr) <= set(new.replicas), "a member of the ISR is no replica"
    assert len(set(new.isr)) == len(new.isr)
    assert new.leader == -1 or new.leader in new.isr, "R1: the leader is not in the ISR"
    assert unclean or set(new.isr) <= after.has_all, "R1: a member of the ISR misses a committed record"
    assert new.leader_epoch >= old.leader_epoch
    if (new.leader, new.leader_broker_epoch) != (old.leader, old.leader_broker_epoch):
        assert new.leader_epoch > old.leader_epoch, "R1, R3: two leaders in one epoch"
    if not unclean and new.leader_epoch > old.leader_epoch and new.leader != -1:
        assert new.leader in old.isr, "R1: elected from outside the ISR"
    if set(new.replicas) < set(old.replicas) and old.removing:
        assert set(old.adding) <= set(old.isr) or set(new.replicas) == set(reassignment.original_of(old)), "RA1"


def check_settled(world: World) -> None:
    """After the controller has acted: whoever can lead does, and nothing is left to decide (R4)."""
    state, alive = world.state, dict(world.epochs)
    assert decide_partition(TOPIC, state, world.live, lambda _: False) is None, "R4"
    if any(member in alive for member in state.isr):
        assert world.live.leads(state), "a partition that could have a leader has none"
        assert all(member in alive for member in state.isr), "a dead broker is in the ISR"
