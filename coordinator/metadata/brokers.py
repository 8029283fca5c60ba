"""A broker as the cluster knows it: the content of its node `/brokers/ids/N`, which lives as long as its session."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from rota.coordinator.config.listeners import Endpoint
from rota.protocol.dataclass import dataclass

_PORT: Final = re.compile(r"[0-9]{1,5}")


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerRegistration:
    """One life of a live broker.

    `epoch` is the number of the change that created the node (ZooKeeper's czxid; the broker epoch of KIP-903): a broker
    that registers again has a larger one; -1 for a broker without a cluster. `directory_id` names its log folder,
    `swim` is its UDP address as HOST:PORT.
    """

    broker_id: int
    epoch: int = -1
    endpoints: tuple[Endpoint, ...] = ()
    rack: str | None = None
    directory_id: str = ""
    swim: str = ""

    def endpoint(self, listener: str) -> Endpoint | None:
        """The address of that listener; of the first listener when the broker has none of that name."""
        for endpoint in self.endpoints:
            if endpoint.listener == listener:
                return endpoint
        return self.endpoints[0] if self.endpoints else None


def swim_addresses(brokers: Mapping[int, BrokerRegistration]) -> Iterator[tuple[int, tuple[int, tuple[str, int]]]]:
    """Iterate over (broker id, (epoch, (host, port))) of the brokers that have a failure detector with an address."""
    for broker_id, broker in brokers.items():
        host, _, port = broker.swim.rpartition(":")
        if host and _PORT.fullmatch(port) and 0 < int(port) <= 0xFFFF:
            yield broker_id, (broker.epoch, (host, int(port)))
