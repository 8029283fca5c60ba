"""The claims that ride on datagrams: each a bounded number of times, those that were sent least first.

Laws
    FD10  At most one claim about each broker is queued, the latest; each is sent at most `repeats` times.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rota.coordinator.membership.datagrams import CLAIMS_MAX, Claim

REPEATS_FACTOR: Final = 3  # times the logarithm of the number of brokers, as in SWIM


class Gossip:
    """The queue of claims of one broker."""

    def __init__(self) -> None:
        self._queued: dict[int, tuple[int, Claim]] = {}  # broker id -> times left, claim

    def __len__(self) -> int:
        return len(self._queued)

    def put(self, claim: Claim, brokers: int) -> None:
        """Queue a claim for a cluster of so many brokers. It replaces an older one about the same broker."""
        self._queued[claim.broker_id] = (repeats(brokers), claim)

    def keep(self, lives: Mapping[int, int]) -> None:
        """Forget the claims about other lives than these, epochs by broker id."""
        self._queued = {
            broker_id: entry for broker_id, entry in self._queued.items() if lives.get(broker_id) == entry[1].epoch
        }

    def take(self, limit: int = CLAIMS_MAX) -> list[Claim]:
        """Return at most `limit` claims for one datagram."""
        if not self._queued:
            return []
        chosen = sorted(self._queued.items(), key=lambda item: -item[1][0])[:limit]
        for broker_id, (left, claim) in chosen:
            if left > 1:
                self._queued[broker_id] = (left - 1, claim)
            else:
                del self._queued[broker_id]
        return [claim for _, (_, claim) in chosen]


def repeats(brokers: int) -> int:
    """How often a claim is sent on, in a cluster of so many brokers."""
    return REPEATS_FACTOR * max(brokers, 1).bit_length()
