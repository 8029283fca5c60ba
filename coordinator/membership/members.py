"""The other brokers: one Member for each registration, and the claims that change it.

Laws
    FD1  Of all claims about one life that with the highest (incarnation, status) wins, in whatever order and however
         often they arrive. So all nodes that received the same claims agree.
    FD2  The status moves along TRANSITIONS only. Only a higher incarnation, which the broker itself made, leads back.
"""

from __future__ import annotations

from typing import Final

from rota.coordinator.membership.contract import Address
from rota.coordinator.membership.datagrams import Claim, Status
from rota.protocol.dataclass import dataclass

TRANSITIONS: Final = {
    (Status.ALIVE, Status.SUSPECT): "it answers no ping, or another broker suspects it",
    (Status.ALIVE, Status.DEAD): "another broker declared it dead",
    (Status.SUSPECT, Status.ALIVE): "it refuted the suspicion with a higher incarnation",
    (Status.SUSPECT, Status.DEAD): "the suspicion timeout is over, or another broker declared it dead",
    (Status.DEAD, Status.ALIVE): "it refuted its death with a higher incarnation",
    (Status.DEAD, Status.SUSPECT): "it refuted its death, and another broker suspects it again",
}


@dataclass(slots=True)
class Member:
    """One life of another broker. `last_received_ms` is when its last datagram arrived; None: never."""

    broker_id: int
    epoch: int
    address: Address
    status: Status = Status.ALIVE
    incarnation: int = 0
    suspected_ms: int = 0  # since when it is suspected
    suspicion_ms: int = 0  # how long it may refute, before the factor of the node's health
    resend_ms: int | None = None  # when its suspicion is sent to it again; None: other nodes send it
    last_received_ms: int | None = None

    def merge(self, claim: Claim) -> bool:
        """Apply a claim about this life; return whether it changed anything."""
        if (claim.incarnation, claim.status) <= (self.incarnation, self.status):
            return False
        self.incarnation, self.status = claim.incarnation, Status(claim.status)
        return True

    def claim(self, status: Status | None = None, incarnation: int | None = None) -> Claim:
        """Return a claim about this registration, by default with its present status and incarnation."""
        return Claim(
            broker_id=self.broker_id,
            epoch=self.epoch,
            incarnation=self.incarnation if incarnation is None else incarnation,
            status=self.status if status is None else status,
        )

    def refutation_ms(self, factor: int) -> int:
        """The deadline for a suspect's refutation. It is not dead while its datagrams arrive."""
        return max(self.suspected_ms, self.last_received_ms or 0) + self.suspicion_ms * factor

    def postpone(self, delay_ms: int) -> None:
        """Give a suspect so much more time."""
        self.suspected_ms += delay_ms
        if self.resend_ms is not None:
            self.resend_ms += delay_ms
