"""A cluster of failure detectors from a seed: virtual time, a network that loses, delays, doubles and cuts.

Nodes share one clock; a frozen node handles nothing until it thaws, then what waited comes first or last, as drawn.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from heapq import heappop, heappush
from random import Random

from rota.coordinator.membership.contract import Address, Alive, Change, Dead, Effects, Send, Suspected, SwimSettings
from rota.coordinator.membership.datagrams import Status
from rota.coordinator.membership.swim import Swim

SECRET = b"of the simulation"
SOCKET_DATAGRAMS_MAX = 500  # of a frozen node; the kernel drops the rest


@dataclass
class Network:
    """What happens to a datagram. Times in ms; `cut` holds pairs (from, to)."""

    loss: float = 0.0
    doubled: float = 0.0
    delay_ms: tuple[int, int] = (0, 3)
    cut: set[tuple[int, int]] = field(default_factory=set)


@dataclass
class Node:
    """One broker's detector and what it reported."""

    swim: Swim
    changes: list[tuple[int, Change]] = field(default_factory=list)  # (ms, change)
    frozen_until_ms: int = 0
    is_dead: bool = False
    socket: list[tuple[bytes, Address]] = field(default_factory=list)


class SwimWorld:
    """`count` registered brokers, ids from 1, epochs from 101."""

    def __init__(
        self,
        seed: int,
        count: int,
        network: Network | None = None,
        settings: SwimSettings | None = None,
        *,
        registered: bool = True,
    ) -> None:
        self.random, self.network, self.now_ms = Random(seed), network or Network(), 0
        self.settings = settings or SwimSettings()
        self.nodes: dict[int, Node] = {}
        self.registered: dict[int, int] = {}  # broker id -> epoch
        self.epochs = 100
        self.sent: dict[int, int] = defaultdict(int)  # datagrams by sender
        self.sent_bytes = 0
        self._heap: list[tuple[int, int, int, bytes, Address]] = []  # time, number, receiver, datagram, source
        self._number = 0
        for broker_id in range(1, count + 1):
            self.start(broker_id)
        if registered:
            self.publish()

    # ---- what a test does

    def start(self, broker_id: int) -> None:
        """Start or restart a broker; it has a new registration, which nobody has read yet."""
        swim = Swim(broker_id, self.settings, SECRET, Random(self.random.random()))
        self.nodes[broker_id] = Node(swim)
        self.epochs += 1
        self.registered[broker_id] = self.epochs

    def publish(self, *to: int) -> None:
        """Let these brokers, or all, read the registrations."""
        image = {broker_id: (epoch, address(broker_id)) for broker_id, epoch in self.registered.items()}
        for broker_id in to or tuple(self.nodes):
            node = self.nodes[broker_id]
            if not node.is_dead:
                self._perform(broker_id, node.swim.members_changed(image, self.now_ms))

    def kill(self, broker_id: int) -> None:
        """It handles and sends nothing any more; its registration stays."""
        self.nodes[broker_id].is_dead = True

    def freeze(self, broker_id: int, ms: int) -> None:
        """It handles nothing for this time; datagrams wait in its socket."""
        self.nodes[broker_id].frozen_until_ms = self.now_ms + ms

    def accuse(self, by: int, of: int) -> None:
        """Broker `by` sees a connection to `of` break."""
        self._perform(by, self.nodes[by].swim.accuse(of, self.now_ms))

    def cut(self, item: set[int], other: set[int], *, both: bool = True) -> None:
        """Lose every datagram from one side to the other."""
        self.network.cut |= {(a, b) for a in item for b in other}
        if both:
            self.network.cut |= {(b, a) for a in item for b in other}

    def heal(self) -> None:
        """Undo all cuts."""
        self.network.cut.clear()

    def run(self, ms: int) -> None:
        """Let this time pass."""
        end_ms = self.now_ms + ms
        while (at_ms := self._next_ms()) <= end_ms:
            self.now_ms = max(self.now_ms, at_ms)
            self._deliver_due()
            self._tick_due()
        self.now_ms = end_ms

    # ---- what a test asks

    def alive(self) -> list[int]:
        """The brokers that run."""
        return [broker_id for broker_id, node in self.nodes.items() if not node.is_dead]

    def status(self, by: int, of: int) -> Status:
        """How one broker sees another."""
        return self.nodes[by].swim.members[of].status

    def statuses(self, of: int) -> set[Status]:
        """How the running brokers see this one."""
        return {self.status(by, of) for by in self.alive() if by != of}

    def deaths(self, of: int | None = None) -> list[tuple[int, int, int]]:
        """(time, by, of) of every death that a running broker declared."""
        return [
            (at_ms, by, change.broker_id)
            for by in self.alive()
            for at_ms, change in self.nodes[by].changes
            if isinstance(change, Dead) and of in (None, change.broker_id)
        ]

    # ---- the wheel

    def _next_ms(self) -> int:
        times = [self._heap[0][0]] if self._heap else []
        for node in self._running():
            deadline_ms = node.swim.next_deadline_ms
            if deadline_ms is not None:
                times.append(max(deadline_ms, node.frozen_until_ms))
            if node.socket:
                times.append(node.frozen_until_ms)
        return min(times, default=1 << 60)

    def _running(self) -> list[Node]:
        return [node for node in self.nodes.values() if not node.is_dead]

    def _deliver_due(self) -> None:
        while self._heap and self._heap[0][0] <= self.now_ms:
            _, _, receiver, datagram, source = heappop(self._heap)
            node = self.nodes[receiver]
            if node.is_dead:
                continue
            if node.frozen_until_ms > self.now_ms:
                node.socket += [(datagram, source)][: SOCKET_DATAGRAMS_MAX - len(node.socket)]
            else:
                self._perform(receiver, node.swim.received(datagram, source, self.now_ms))

    def _tick_due(self) -> None:
        for broker_id, node in list(self.nodes.items()):
            if node.is_dead or node.frozen_until_ms > self.now_ms:
                continue
            ticks_first = self.random.random() < 0.5
            if ticks_first:
                self._tick(broker_id, node)
            waiting, node.socket = node.socket, []
            for datagram, source in waiting:
                self._perform(broker_id, node.swim.received(datagram, source, self.now_ms))
            if not ticks_first:
                self._tick(broker_id, node)

    def _tick(self, broker_id: int, node: Node) -> None:
        deadline_ms = node.swim.next_deadline_ms
        if deadline_ms is not None and deadline_ms <= self.now_ms:
            self._perform(broker_id, node.swim.tick(self.now_ms))

    def _perform(self, broker_id: int, effects: Effects) -> None:
        for effect in effects:
            match effect:
                case Send(to, datagram):
                    self._send(broker_id, to[1], datagram)
                case Suspected() | Dead() | Alive():
                    self.nodes[broker_id].changes.append((self.now_ms, effect))

    def _send(self, sender: int, receiver: int, datagram: bytes) -> None:
        self.sent[sender] += 1
        self.sent_bytes += len(datagram)
        if (sender, receiver) in self.network.cut or self.random.random() < self.network.loss:
            return
        for _ in range(1 + (self.random.random() < self.network.doubled)):
            self._number += 1
            at_ms = self.now_ms + self.random.randint(*self.network.delay_ms)
            heappush(self._heap, (at_ms, self._number, receiver, datagram, address(sender)))


def address(broker_id: int) -> Address:
    """Where a broker of the simulation listens."""
    return ("127.0.0.1", broker_id)
