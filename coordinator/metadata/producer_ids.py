"""Producer ids: drawn in blocks that are noted in the store first, so that none is ever given twice.

Law
    I1  An id is given at most once in the life of the cluster, whatever crashes; unused ids of a block are lost.
    I4  A node of which the last block cannot be read gives no id, and is not overwritten: ids would be given twice.
    I2  This broker claims one block at a time: producers that come meanwhile wait for it and share it.
"""

from __future__ import annotations

import asyncio
import json

from rota.coordinator.metadata import znodes
from rota.coordinator.metadata.store import BadVersion, NodeExists, Store, StoreFailed

BLOCK_IDS = 1000  # as Kafka's


class ProducerIds:
    """The ids of this broker. `take` waits for the store once a block."""

    def __init__(self, store: Store, *, broker_id: int) -> None:
        self._store, self._broker_id = store, broker_id
        self._next, self._end = 0, 0
        self._claiming = asyncio.Lock()

    async def take(self) -> int:
        """A fresh producer id. Raises StoreFailed."""
        while self._next >= self._end:
            async with self._claiming:
                if self._next >= self._end:  # another producer's claim may have ended meanwhile
                    start = await self._claim()
                    self._next, self._end = start, start + BLOCK_IDS
        taken = self._next
        self._next += 1
        return taken

    async def _claim(self) -> int:
        """Allocate a block of ids in the store and return its first id."""
        while True:
            try:
                if await self._store.exists(znodes.PRODUCER_IDS) is None:
                    await self._store.create(znodes.PRODUCER_IDS, self._block(0))
                    return 0
                data, stat = await self._store.get(znodes.PRODUCER_IDS)
                start = _end_of(data) + 1
                await self._store.set(znodes.PRODUCER_IDS, self._block(start), stat.version)
            except (NodeExists, BadVersion):
                continue  # another broker was faster
            return start

    def _block(self, start: int) -> bytes:
        end = start + BLOCK_IDS - 1
        return znodes.json_bytes(
            {"version": 1, "broker": self._broker_id, "block_start": str(start), "block_end": str(end)}
        )


def _end_of(data: bytes) -> int:
    """Return the last id of the block that is noted in the node. Raises StoreFailed."""
    try:
        return int(json.loads(data)["block_end"])
    except (ValueError, OverflowError, KeyError, TypeError) as why:
        raise StoreFailed(
            f"{znodes.PRODUCER_IDS} has {data[:100]!r} where JSON with the number block_end is expected: "
            "write one that is greater than every producer id that was given"
        ) from why
