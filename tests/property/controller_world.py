"""One partition on three brokers, as the controller and the leader change it: the laws of an election after each event.

A committed record is on every member of the ISR. `has_all` are the brokers whose logs have every committed record: what
is committed while the ISR is {1, 2} is missed by 3. A process that crashes keeps its log, a machine that loses its
power does not: its broker gives up its places in ISR and ELR before it registers again. Fewer machines than
min.insync.replicas have lost their power at any time, and one with all records never does when no other member of ISR
or ELR has them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from rota.coordinator.controller import reassignment
from rota.coordinator.controller.decisions import decide_partition, hand_over
from rota.coordinator.controller.election import LiveBrokers, elect_preferred, without_unclean_replica
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
    minimum: int = 1
    powerless: frozenset[int] = frozenset()  # machines that have lost their power; the brokers seem to be registered
    last_epoch: int = 10

    @property
    def live(self) -> LiveBrokers:
        known = dict(self.known)
        restarted = {broker for broker, epoch in self.epochs if known.get(broker, epoch) != epoch}
        return LiveBrokers(dict(self.epochs), restarted=frozenset(restarted))

    @property
    def alive(self) -> frozenset[int]:
        return frozenset(dict(self.epochs)) - self.powerless

    @property
    def _has_leader(self) -> bool:
        return self.live.has_leader(self.state) and self.state.leader not in self.powerless

    def key(self) -> object:
        """What distinguishes two worlds for the future: epochs count only as older, known or unknown ones."""
        state, epochs, known = self.state, dict(self.epochs), dict(self.known)
        registrations = tuple((broker, known.get(broker) in (None, epoch)) for broker, epoch in self.epochs)
        leads = epochs.get(state.leader) == state.leader_broker_epoch
        members = frozenset(state.isr)
        partition = state.leader, members, frozenset(state.elr), state.replicas, state.adding, state.removing
        return partition, leads, registrations, self.has_all, self.powerless

    # ---- events: each returns the worlds that may come of it

    def kill(self, broker: int) -> World:
        return replace(self, epochs=tuple(entry for entry in self.epochs if entry[0] != broker))

    def start(self, broker: int) -> World:
        """Register, perhaps before anybody saw that the earlier life had ended."""
        if broker in self.powerless:
            return self
        epoch = self.last_epoch + 1
        epochs = {**dict(self.epochs), broker: epoch}
        return replace(self, epochs=tuple(sorted(epochs.items())), last_epoch=epoch)

    def lose_power(self, broker: int) -> World:
        """The machine loses what its broker has not flushed. Nobody knows that yet."""
        state, powerless = self.state, self.powerless | {broker}
        others = self.has_all.intersection({*state.isr, *state.elr}) - powerless
        replicas = min(len(reassignment.target_of(state)), len(reassignment.original_of(state)))
        if len(powerless) >= min(self.minimum, replicas) or not others:
            return self
        return replace(self, powerless=powerless, has_all=self.has_all - powerless)

    def give_up(self, broker: int) -> World:
        """CM5. The machine has power again; its broker ends its earlier registration, and leaves ISR and ELR."""
        if broker not in self.powerless:
            return self
        world = self.kill(broker)
        after = without_unclean_replica(world.state, broker, world.live, self.minimum)
        return replace(world, state=after or world.state, powerless=self.powerless - {broker})

    def write(self) -> World:
        """A record is committed: the ISR has it. It needs a leader that counts, enough members, and all of them alive.

        Nothing is committed while a broker is in the ELR (L4).
        """
        state = self.state
        if not self._has_leader or not self.alive.issuperset(state.isr) or state.elr:
            return self
        if len(state.isr) < min(self.minimum, len(state.replicas)):
            return self
        return replace(self, has_all=frozenset(state.isr))

    def expand(self, broker: int) -> World:
        """The leader adds a follower that has caught up with it."""
        state = self.state
        if not self._has_leader or broker in state.isr or broker not in state.replicas:
            return self
        if broker not in self.alive:
            return self
        after = state.with_isr((*state.isr, broker), self.minimum)
        return replace(self, state=after, has_all=self.has_all | {broker})

    def shrink(self, broker: int) -> World:
        """The leader removes a follower that lags."""
        state = self.state
        if not self._has_leader or broker not in state.isr or broker == state.leader:
            return self
        isr = tuple(member for member in state.isr if member != broker)
        return replace(self, state=state.with_isr(isr, self.minimum))

    def control(self, *, unclean: bool = False) -> World:
        after = decide_partition(TOPIC, self.state, self.live, lambda _: unclean, lambda _: self.minimum)
        return replace(self, state=after or self.state, known=self.epochs)

    def fail_over(self) -> World:
        """A new controller: it has seen nobody register again."""
        return replace(self, known=())

    def stop(self, broker: int) -> World:
        """A controlled shutdown of the broker, which makes the changes itself."""
        if broker not in self.alive:
            return self
        live, topic = replace(self.live, restarted=frozenset()), replace(TOPIC, partitions=(self.state,))
        decisions = hand_over([topic], live, broker, lambda _: self.minimum)
        return replace(self, state=decisions[0].after) if decisions else self

    def prefer(self) -> World:
        return replace(self, state=elect_preferred(self.state, self.live) or self.state)

    def reassign(self, target: tuple[int, ...]) -> World:
        return self._moved(reassignment.begin(self.state, target, self.live, self.minimum))

    def cancel(self) -> World:
        return self._moved(reassignment.cancel(self.state, self.live, self.minimum))

    def _moved(self, after: PartitionState | None) -> World:
        """Nobody takes replicas away so that only machines without power are left in the ISR, or will be."""
        if after is None:
            return self
        staying = min(len(after.isr), len(reassignment.target_of(after)))
        return self if self.powerless and staying <= len(self.powerless) else replace(self, state=after)


def first_world(replicas: tuple[int, ...] = BROKERS, minimum: int = 1) -> World:
    registered = tuple((broker, 10) for broker in BROKERS)
    state = PartitionState(index=0, leader=replicas[0], replicas=replicas, isr=replicas, leader_broker_epoch=10)
    return World(state, registered, registered, frozenset(replicas), minimum)


def check(before: World, after: World, *, unclean: bool = False) -> None:
    """R1, R2, R3, ELR1, RA1 for one step."""
    old, new = before.state, after.state
    assert new.isr, "R2: the ISR is empty"
    assert set(new.isr) <= set(new.replicas), "a member of the ISR is no replica"
    assert len(set(new.isr)) == len(new.isr)
    assert new.leader == -1 or new.leader in new.isr, "R1: the leader is not in the ISR"
    claims = {*new.isr, *new.elr}
    assert not set(new.elr) & set(new.isr), "ELR1: a broker is in both"
    assert set(new.elr) <= set(new.replicas), "ELR1: a broker of the ELR is no replica"
    assert unclean or claims - after.powerless <= after.has_all, "R1, ELR1: one of ISR or ELR misses a committed record"
    assert unclean or claims & after.has_all, "R1, ELR1: nobody of ISR and ELR has all records, another broker has"
    assert new.leader_epoch >= old.leader_epoch
    if (new.leader, new.leader_broker_epoch) != (old.leader, old.leader_broker_epoch):
        assert new.leader_epoch > old.leader_epoch, "R1, R3: two leaders in one epoch"
    if not unclean and new.leader_epoch > old.leader_epoch and new.leader != -1:
        assert new.leader in (*old.isr, *old.elr), "R1: elected from outside ISR and ELR"
    if set(new.replicas) < set(old.replicas) and old.removing:
        isr = {*old.isr, *new.isr} if unclean else set(old.isr)  # an unclean election may come first, in the same step
        assert set(old.adding) <= isr or set(new.replicas) == set(reassignment.original_of(old)), "RA1"


def check_settled(world: World) -> None:
    """After the controller has acted: whoever can lead does, and nothing is left to decide (R4)."""
    state, alive = world.state, dict(world.epochs)
    assert decide_partition(TOPIC, state, world.live, lambda _: False, lambda _: world.minimum) is None, "R4"
    if any(member in alive for member in (*state.isr, *state.elr)):
        assert world.live.has_leader(state), "a partition that could have a leader has none"
        assert all(member in alive for member in state.isr), "a dead broker is in the ISR"
