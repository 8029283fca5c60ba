"""Datagrams between registered brokers: sent ones are sealed with claims, received ones are admitted or discarded.

Laws
    FD13 A node without a registration of its own sends nothing and handles nothing. It handles datagrams to its present
         life from lives that are registered, and no others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from rota.coordinator.membership.contract import Address, Send
from rota.coordinator.membership.datagram_limits import RateLimits, ReplayWindow
from rota.coordinator.membership.datagrams import CLAIMS_MAX, Claim, Datagram, DatagramCodec, Kind, Status
from rota.coordinator.membership.gossip import Gossip
from rota.coordinator.membership.members import Member


class Channel:
    """The datagrams of node `node_id`. `discarded` counts those that were not handled, by reason."""

    def __init__(self, node_id: int, secret: bytes) -> None:
        self.node_id = node_id
        self.epoch: int | None = None  # of this node's registration
        self.incarnation = 0
        self.gossip = Gossip()
        self.discarded: Counter[str] = Counter()
        self._codec, self._limits = DatagramCodec(secret), RateLimits()
        self._windows: dict[int, tuple[int, ReplayWindow]] = {}  # by broker id; with the epoch
        self.sent = 0  # datagrams; the number of the last one is its counter

    def admit(self, raw: bytes, source: Address, members: Mapping[int, Member], now_ms: int) -> Datagram | None:
        """Return the datagram if it is for this life, from a life that is registered, and new."""
        if self.epoch is None:
            reason = "not registered"
        elif (datagram := self._codec.open(raw)) is None:
            reason = "not authentic"
        elif (datagram.receiver, datagram.receiver_epoch) != (self.node_id, self.epoch):
            reason = "other receiver"
        elif (sender := members.get(datagram.sender)) is None or sender.epoch != datagram.sender_epoch:
            reason = "unknown sender"
        elif not self._replay_window(sender).accept(datagram.counter):
            reason = "replayed"
        elif not self._limits.accept(source, now_ms):
            reason = "rate limit"
        else:
            return datagram
        self.discarded[reason] += 1
        return None

    def _replay_window(self, sender: Member) -> ReplayWindow:
        """The counters of this life that were seen. They are kept while it is not registered."""
        epoch, window = self._windows.get(sender.broker_id, (None, None))
        if window is None or epoch != sender.epoch:
            window = ReplayWindow()
            self._windows[sender.broker_id] = (sender.epoch, window)
        return window

    def seal(self, to: Member, kind: Kind, sequence: int, subject: tuple[int, int]) -> Send:
        """Return a datagram with claims; the claim about a receiver that is not alive is the first one."""
        assert self.epoch is not None, "a node without a registration sends nothing"
        about = [] if to.status is Status.ALIVE else [to.claim()]
        self.sent += 1
        datagram = Datagram(
            kind=kind,
            sender=self.node_id,
            sender_epoch=self.epoch,
            incarnation=self.incarnation,
            receiver=to.broker_id,
            receiver_epoch=to.epoch,
            counter=self.sent,
            sequence=sequence,
            subject=subject[0],
            subject_epoch=subject[1],
            claims=(*about, *self.gossip.take(CLAIMS_MAX - len(about))),
        )
        return Send(to.address, self._codec.seal(datagram))

    def own_claim(self) -> Claim:
        """The claim that this life of this node is alive in its incarnation."""
        assert self.epoch is not None, "a node without a registration claims nothing"
        return Claim(broker_id=self.node_id, epoch=self.epoch, incarnation=self.incarnation, status=Status.ALIVE)
