"""The pings that wait for an answer, whose turn it is to be pinged, and how far this node trusts its own clock and net.

Laws
    FD11  Every broker is pinged once in each round over all of them, in a new random order for each round.
    FD12  Health is from 0 (good) to HEALTH_MAX. Timeouts are multiplied by health + 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Final

from rota.coordinator.membership.contract import RandomSource
from rota.protocol.dataclass import dataclass

HEALTH_MAX: Final = 4
RELAYS_MAX: Final = 256  # pings on behalf of others at one time
SEQUENCE_MAX: Final = (1 << 31) - 1  # from 1; pings without an awaited ACK have 0


@dataclass(slots=True)
class Probe:
    """A ping that waits for its ACK: first directly, then through `helpers` other brokers."""

    broker_id: int
    epoch: int
    sequence: int
    began_ms: int
    deadline_ms: int
    resend_ms: int
    is_indirect: bool = False
    is_accused: bool = False  # a broken connection made this node ask
    helpers: int = 0
    nacks: set[int] = field(default_factory=set)

    def has_witness(self) -> bool:
        """Whether every helper answered that it got no answer from the target: the fault is not in this node."""
        return 0 < self.helpers <= len(self.nacks)


@dataclass(slots=True)
class Relay:
    """A ping on behalf of `requester`, which knows it by `requester_sequence`. At the deadline it gets a NACK."""

    requester: int
    requester_sequence: int
    broker_id: int
    epoch: int
    deadline_ms: int


class Probes:
    """The pings of this node that wait for an ACK, its own and those on behalf of others, by their sequence number."""

    def __init__(self) -> None:
        self.own: dict[int, Probe] = {}
        self.relays: dict[int, Relay] = {}
        self._sequence = 0

    def begin(self, broker_id: int, epoch: int, now_ms: int, deadline_ms: int) -> Probe:
        """Begin a ping of this node; it is not sent yet."""
        probe = Probe(broker_id, epoch, self._next_sequence(), now_ms, deadline_ms, deadline_ms)
        self.own[probe.sequence] = probe
        return probe

    def relay(self, relay: Relay) -> int | None:
        """Begin a ping on behalf of another broker; return its sequence number, None when there are too many."""
        if len(self.relays) >= RELAYS_MAX:
            return None
        sequence = self._next_sequence()
        self.relays[sequence] = relay
        return sequence

    def of(self, broker_id: int) -> Probe | None:
        """The ping of this node that waits for this broker."""
        return next((probe for probe in self.own.values() if probe.broker_id == broker_id), None)

    def acknowledged(self, sequence: int, broker_id: int, epoch: int) -> Probe | Relay | None:
        """End and return the ping that this ACK answers."""
        waits = self.own.get(sequence) or self.relays.get(sequence)
        if waits is None or (waits.broker_id, waits.epoch) != (broker_id, epoch):
            return None
        return self.own.pop(sequence, None) or self.relays.pop(sequence)

    def expired(self, now_ms: int) -> list[Probe]:
        """The pings of this node whose deadline has come."""
        return [probe for probe in self.own.values() if probe.deadline_ms <= now_ms]

    def take_expired_relays(self, now_ms: int) -> list[Relay]:
        """End and return the pings on behalf of others whose deadline has come."""
        expired = [sequence for sequence, relay in self.relays.items() if relay.deadline_ms <= now_ms]
        return [self.relays.pop(sequence) for sequence in expired]

    def deadlines(self) -> list[int]:
        """When to look again."""
        deadlines = [min(probe.deadline_ms, probe.resend_ms) for probe in self.own.values()]
        deadlines += [relay.deadline_ms for relay in self.relays.values()]
        return deadlines

    def postpone(self, delay_ms: int) -> None:
        """Move all deadlines."""
        for probe in self.own.values():
            probe.deadline_ms += delay_ms
            probe.resend_ms += delay_ms
        for relay in self.relays.values():
            relay.deadline_ms += delay_ms

    def keep(self, lives: Mapping[int, int]) -> None:
        """Drop the pings of and for other lives than these, epochs by broker id."""
        self.own = {key: probe for key, probe in self.own.items() if lives.get(probe.broker_id) == probe.epoch}
        self.relays = {
            key: relay
            for key, relay in self.relays.items()
            if lives.get(relay.broker_id) == relay.epoch and relay.requester in lives
        }

    def _next_sequence(self) -> int:
        self._sequence = self._sequence % SEQUENCE_MAX + 1
        return self._sequence


class Health:
    """How far this node has to doubt itself (Lifeguard's local health multiplier)."""

    def __init__(self) -> None:
        self.level = 0

    @property
    def factor(self) -> int:
        """The factor of all timeouts."""
        return self.level + 1

    def degrade(self) -> None:
        """A ping failed without a witness, this node was suspected, or it stood still."""
        self.level = min(self.level + 1, HEALTH_MAX)

    def recover(self) -> None:
        """A ping was answered in time."""
        self.level = max(self.level - 1, 0)


class Rotation:
    """The order in which brokers are pinged."""

    def __init__(self, random: RandomSource) -> None:
        self._random = random
        self._left: list[int] = []
        self._all: list[int] = []

    def reset(self, broker_ids: list[int]) -> None:
        """The brokers from now on; those that are new come at a random place in the round."""
        known = set(self._all)
        self._all = list(broker_ids)
        self._left = [broker_id for broker_id in self._left if broker_id in set(broker_ids)]
        for broker_id in broker_ids:
            if broker_id not in known:
                self._left.insert(self._random.randrange(len(self._left) + 1), broker_id)

    def take(self) -> int:
        """Return whose turn it is. There must be a broker."""
        if not self._left:
            self._left = list(self._all)
            self._random.shuffle(self._left)
        return self._left.pop()


def sample(random: RandomSource, items: list[int], count: int) -> list[int]:
    """Return `count` of the items, or all, drawn at random."""
    items = list(items)
    if len(items) > count:
        random.shuffle(items)
    return items[:count]
