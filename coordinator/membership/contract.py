"""The values that the failure detector takes and returns: settings, a source of randomness, effects."""

from __future__ import annotations

from typing import Any, Protocol

from rota.protocol.dataclass import dataclass

Address = tuple[str, int]
"""IP address and UDP port."""


@dataclass(frozen=True, slots=True)
class SwimSettings:
    """The properties under `rota.swim.`; times in ms.

    The defaults declare a broker dead after 500 ms of silence at the earliest (two ping timeouts and a suspicion), so
    that a broker whose event loop stands still for less is never fenced.
    """

    interval_ms: int = 200
    ping_timeout_ms: int = 100
    suspicion_timeout_ms: int = 300
    indirect_pings: int = 3


class RandomSource(Protocol):
    """The methods of `random.Random` that the machine calls."""

    def randrange(self, stop: int, /) -> int: ...

    def shuffle(self, x: list[Any], /) -> None: ...


@dataclass(frozen=True, slots=True)
class Send:
    """Send `datagram` to `address`; it may be lost."""

    address: Address
    datagram: bytes


@dataclass(frozen=True, slots=True)
class Suspected:
    """The broker did not answer, or another broker says so. It has a suspicion timeout to refute."""

    broker_id: int
    epoch: int


@dataclass(frozen=True, slots=True)
class Dead:
    """The broker did not refute in time: the life that registered with this epoch is over, or cut off."""

    broker_id: int
    epoch: int


@dataclass(frozen=True, slots=True)
class Alive:
    """A broker that was accused, suspected or declared dead has answered, or this node has registered again."""

    broker_id: int
    epoch: int


Change = Suspected | Dead | Alive
Effect = Send | Change
Effects = list[Effect]
