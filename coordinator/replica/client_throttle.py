"""The throttle of this broker's clients, which follows the quotas of the image.

Law
    CQ8 A changed quota counts from the next request on. Without byte rates there is no throttle: `Node.client_throttle`
        is None, and requests are not measured.
"""

from __future__ import annotations

from collections.abc import Callable

from rota.coordinator.metadata.changes import Change, ResourceConfigChanged
from rota.coordinator.metadata.client_quotas import (
    CONSUMER_BYTE_RATE,
    KINDS,
    PRODUCER_BYTE_RATE,
    Entity,
    Quotas,
    all_quotas,
    entity_at,
    read_quotas,
)
from rota.coordinator.metadata.image import Image
from rota.coordinator.replica.client_rates import ClientRates


class ClientThrottle:
    """The rates of producers and of consumers. `install` gets it while there is any quota, else None."""

    def __init__(
        self,
        image: Image,
        install: Callable[[ClientThrottle | None], None],
        now_ms: Callable[[], int],
        *,
        windows: int,
        window_ms: int,
    ) -> None:
        self._image, self._install = image, install
        self.producers = ClientRates(now_ms, windows=windows, window_ms=window_ms)
        self.consumers = ClientRates(now_ms, windows=windows, window_ms=window_ms)
        for entity, quotas in all_quotas(image):
            self._set(entity, quotas)
        image.on_change(self._changed)

    def _changed(self, change: Change) -> None:
        if isinstance(change, ResourceConfigChanged) and change.kind in KINDS:
            configs = self._image.resource_configs(change.kind, change.name)
            self._set(entity_at(change.kind, change.name), read_quotas(configs))

    def _set(self, entity: Entity, quotas: Quotas) -> None:
        for rates, key in ((self.producers, PRODUCER_BYTE_RATE), (self.consumers, CONSUMER_BYTE_RATE)):
            if key in quotas:
                rates.limits[entity] = quotas[key]
            else:
                rates.limits.pop(entity, None)
        self._install(self if self.producers.limits or self.consumers.limits else None)
