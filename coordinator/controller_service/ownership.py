"""The node `/controller`: which broker is the controller, and how a broker becomes it.

Laws
    CT1  Each controller has an epoch of its own: `/controller` is created and `/controller_epoch` is set in one commit.
         A controller checks the version of `/controller_epoch` in each of its writes, so that a former one changes
         nothing.
    CT2  A dead controller's node is deleted only together with its epoch: never that of a controller elected meanwhile.

Source: Kafka's KafkaZkClient.registerControllerAndIncrementControllerEpoch.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from rota.coordinator.metadata import znodes
from rota.coordinator.metadata.store import (
    BadVersion,
    Check,
    Create,
    Delete,
    NodeExists,
    NoNode,
    Op,
    Set,
    Store,
    StoreError,
    Watch,
)
from rota.protocol.dataclass import dataclass

FIRST_EPOCH = b"0"  # before the first controller


@dataclass(frozen=True, slots=True)
class Controller:
    """What the store says: `broker_id` is None while there is no controller; `is_mine`: of this session.

    `epoch_version` is the version of `/controller_epoch` in the time of this controller.
    """

    broker_id: int | None
    is_mine: bool
    epoch: int
    epoch_version: int

    @property
    def fence(self) -> Check:
        """The operation that lets a commit succeed only while this controller is the last one elected (CT1)."""
        return Check(znodes.CONTROLLER_EPOCH, self.epoch_version)


class ControllerNode:
    """Reads and claims `/controller` for one broker. Each method raises StoreFailed."""

    def __init__(self, store: Store, broker_id: int, wall_ms: Callable[[], int]) -> None:
        self._store, self._broker_id, self._wall_ms = store, broker_id, wall_ms

    async def read(self, watch: Watch) -> Controller:
        """Return the controller; `watch` is called at the next change of it.

        The epoch is read first: if another controller is elected between the two reads, its epoch is newer than the
        one returned, and a commit that depends on that fails (CT2).
        """
        epoch, version = await self._read_epoch()
        if await self._store.exists(znodes.CONTROLLER, watch) is not None:
            with suppress(NoNode):
                data, stat = await self._store.get(znodes.CONTROLLER, watch)
                is_mine = stat.owner == self._store.session_id
                with znodes.reading(znodes.CONTROLLER):
                    return Controller(znodes.read_controller(data), is_mine, epoch, version)
        return Controller(None, False, epoch, version)

    async def claim(self, seen: Controller) -> Controller | None:
        """Become the controller in place of `seen`, which is none or dead; None if another broker was faster."""
        node = znodes.controller_node(self._broker_id, self._wall_ms())
        ops: list[Op] = [
            Create(znodes.CONTROLLER, node, ephemeral=True),
            Set(znodes.CONTROLLER_EPOCH, str(seen.epoch + 1).encode(), seen.epoch_version),
        ]
        if seen.broker_id is not None:
            ops.insert(0, Delete(znodes.CONTROLLER))
        try:
            await self._store.commit(ops)
        except (NodeExists, NoNode, BadVersion):
            return None
        return Controller(self._broker_id, True, seen.epoch + 1, seen.epoch_version + 1)

    async def resign(self, mine: Controller) -> None:
        """Delete the node, unless another controller has been elected."""
        with suppress(StoreError):
            await self._store.commit([mine.fence, Delete(znodes.CONTROLLER)])

    async def _read_epoch(self) -> tuple[int, int]:
        try:
            data, stat = await self._store.get(znodes.CONTROLLER_EPOCH)
        except NoNode:
            with suppress(NodeExists):
                await self._store.create(znodes.CONTROLLER_EPOCH, FIRST_EPOCH)
            data, stat = await self._store.get(znodes.CONTROLLER_EPOCH)
        with znodes.reading(znodes.CONTROLLER_EPOCH):
            return int(data), stat.version
