"""The throttle of this broker's clients, which follows the quotas of the image.

Laws
    CQ8 A changed quota counts from the next request on. Without quotas there is no throttle: `install` gets None, and
        requests are not measured.
    CQ14 A quota of any size, infinity included, is a throttle time that a response can say.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from rota.coordinator.metadata.changes import Change, ResourceConfigChanged
from rota.coordinator.metadata.client_quotas import (
    CONNECTION_CREATION_RATE,
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    IP,
    KINDS,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    Entity,
    Quotas,
    all_quotas,
    entity_at,
    read_quotas,
)
from rota.coordinator.metadata.image import Image
from rota.coordinator.replica.client_rates import ClientRates
from rota.coordinator.replica.connection_rates import ConnectionRates
from rota.coordinator.replica.mutation_rates import MutationRates

NS_PER_PERCENT: Final = 10_000_000  # of a second; 100 percent are one core


class ClientThrottle:
    """The rates of clients, by quota. `install` gets it while there is any quota, else None.

    Rates are measured over `windows` of `window_ms`; mutations have a burst of `mutation_burst_ms`.
    """

    def __init__(
        self,
        image: Image,
        install: Callable[[ClientThrottle | None], None],
        now_ms: Callable[[], int],
        *,
        windows: int,
        window_ms: int,
        mutation_burst_ms: int,
    ) -> None:
        self._image, self._install = image, install
        self.producers = ClientRates(now_ms, windows=windows, window_ms=window_ms)
        self.consumers = ClientRates(now_ms, windows=windows, window_ms=window_ms)
        self.requests = ClientRates(now_ms, windows=windows, window_ms=window_ms, throttle_ms_max=window_ms)  # in ns
        self.mutations = MutationRates(now_ms, burst_ms=mutation_burst_ms)
        self.connections = ConnectionRates(now_ms, windows=windows, window_ms=window_ms, delay_ms_max=window_ms)
        self.throttled: dict[str, tuple[int, int]] = {}  # by quota: how often a client was throttled, ms in all
        for entity, quotas in all_quotas(image):
            self._set(entity, quotas)
        image.on_change(self._changed)

    def count(self, quota: str, throttle_ms: int) -> None:
        """Count that a client is throttled by a quota."""
        times, total_ms = self.throttled.get(quota, (0, 0))
        self.throttled[quota] = times + 1, total_ms + throttle_ms

    def delay_ms(self, address: str) -> int:
        """Count a new connection of an address; return 0, or for how many ms it is held before it is closed."""
        delay_ms = self.connections.open(address)
        if delay_ms:
            self.count(CONNECTION_CREATION_RATE, delay_ms)
        return delay_ms

    def _changed(self, change: Change) -> None:
        if isinstance(change, ResourceConfigChanged) and change.kind in KINDS:
            configs = self._image.resource_configs(change.kind, change.name)
            self._set(entity_at(change.kind, change.name), read_quotas(configs))

    def _set(self, entity: Entity, quotas: Quotas) -> None:
        (kind, name), *_ = entity
        if kind == IP:
            self.connections.set_limit(name, quotas.get(CONNECTION_CREATION_RATE))
        else:
            self._set_limits(entity, quotas)
        limits = (self.producers, self.consumers, self.requests, self.mutations, self.connections)
        self._install(self if any(each.limits for each in limits) else None)

    def _set_limits(self, entity: Entity, quotas: Quotas) -> None:
        for rates, key, unit in (
            (self.producers, PRODUCER_BYTE_RATE, 1),
            (self.consumers, CONSUMER_BYTE_RATE, 1),
            (self.requests, REQUEST_PERCENTAGE, NS_PER_PERCENT),
            (self.mutations, CONTROLLER_MUTATION_RATE, 1),
        ):
            if key in quotas:
                rates.limits[entity] = quotas[key] * unit
            else:
                rates.limits.pop(entity, None)
