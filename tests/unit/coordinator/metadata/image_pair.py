"""Two brokers over one store: what one changes, the other's image follows."""

from __future__ import annotations

from itertools import count

from rota.coordinator.metadata.embedded import EmbeddedStore
from rota.coordinator.metadata.image_updater import ImageUpdater
from rota.coordinator.metadata.topics import Topics


class ImagePair:
    """`writer` changes the store; `image` is that of another broker, which follows it."""

    def __init__(self) -> None:
        self.store = EmbeddedStore()
        ids = count(1)
        self.writer = Topics(self.store, broker_id=1, fresh_uuid=lambda: next(ids).to_bytes(16, "big"))
        self.updater = ImageUpdater()
        self.image = Topics(self.store, broker_id=2, fresh_uuid=lambda: bytes(16), watch=self.updater.changed)
