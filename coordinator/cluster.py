"""A broker's membership of a cluster: the shared metadata store, the image of it, and this broker's registration.

Laws
    CM1 A broker leads nothing while it is not registered: before it joins, after its session has expired, and after the
        controller has deleted its registration. It then reads the whole image and registers again.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

import structlog

from rota.coordinator.config.broker import BrokerConfig
from rota.coordinator.config.listeners import Endpoint
from rota.coordinator.metadata import znodes
from rota.coordinator.metadata.changes import BrokersChanged, Change
from rota.coordinator.metadata.image import NOT_REGISTERED
from rota.coordinator.metadata.image_updater import ImageUpdater
from rota.coordinator.metadata.registration import AlreadyRegistered, Registration, register
from rota.coordinator.metadata.store import SessionState, Store, StoreError, StoreFailed
from rota.coordinator.metadata.topics import Topics

log = structlog.get_logger("rota.cluster")

ID_BYTES: Final = 16
REGISTER_AGAIN_SECONDS: Final = 0.2  # after a registration that failed
WILDCARDS: Final = ("", "0.0.0.0", "::")


class Cluster:
    """`open` reads the image, `join` registers; `leave` and `close` end the membership."""

    def __init__(
        self, config: BrokerConfig, store: Store, *, cluster_id: str | None, wall_ms: Callable[[], int]
    ) -> None:
        """`cluster_id` is that of the log folder, for the first broker of a new cluster; None or "" for a new one."""
        self._config, self._store, self._wall_ms = config, store, wall_ms
        self._updater = ImageUpdater()
        self.topics = Topics(
            store,
            broker_id=config.node_id,
            fresh_uuid=lambda: os.urandom(ID_BYTES),
            cluster_id=cluster_id,
            watch=self._updater.changed,
        )
        self.topics.broker_epoch = NOT_REGISTERED
        self.directory_id = ""
        self._registration: Registration | None = None
        self._joining: asyncio.Task[None] | None = None
        self._leaving = False

    async def open(self, *, was_clean: bool) -> None:
        """Read the image and keep it up to date from now on. Raises StoreFailed."""
        await self._updater.follow(self.topics)
        self._store.on_session(self._session_changed)
        self.topics.on_change(self._changed)

    async def join(self, endpoints: Sequence[Endpoint], wall_ms: int) -> None:
        """Register this broker with the addresses for clients. Raises AlreadyRegistered, StoreFailed."""
        self._registration = Registration(
            [_reachable(endpoint) for endpoint in endpoints],
            rack=self._config.broker_rack,
            directory_id=self.directory_id,
        )
        await self._register()

    async def leave(self) -> None:
        """End the registration: other brokers take over what this one leads."""
        self._leaving = True
        if self._joining is not None:
            self._joining.cancel()
        if self.topics.broker_epoch != NOT_REGISTERED:
            self.topics.apply_registration(NOT_REGISTERED)
            try:
                await self._store.delete(znodes.broker_path(self._config.node_id))
            except (StoreError, StoreFailed) as error:
                log.warning("Registration could not be deleted; it ends with the session", reason=str(error))

    async def close(self) -> None:
        """Stop following the store and end its session."""
        await self._updater.close()
        await self._store.close()

    abandon = close

    def replicas_for(self, configured: int) -> int:
        """The replicas of an internal topic: those configured; its creation fails while fewer brokers are alive."""
        return configured

    # ---- inside

    async def _register(self) -> None:
        assert self._registration is not None, "join comes first"
        wait_seconds = self._config.zookeeper_session_timeout_ms / 1000
        epoch = await register(
            self._store,
            self._config.node_id,
            self._registration,
            wall_ms=self._wall_ms(),
            wait_seconds=wait_seconds,
        )
        log.info("Registered", broker=self._config.node_id, epoch=epoch)
        self.topics.apply_registration(epoch)

    def _changed(self, change: Change) -> None:
        """The registration of this broker was deleted: another broker took it for dead."""
        if not isinstance(change, BrokersChanged) or self.topics.broker_epoch == NOT_REGISTERED:
            return
        own = change.brokers.get(self._config.node_id)
        if own is None or own.epoch != self.topics.broker_epoch:
            self._fenced("its registration was deleted")

    def _session_changed(self, state: SessionState) -> None:
        if state is SessionState.EXPIRED:
            self._fenced("its session has expired")
        elif state is SessionState.CONNECTED:
            self._updater.session_began()

    def _fenced(self, reason: str) -> None:
        """CM1. Lead nothing, then join again."""
        log.warning("Fenced: this broker leads nothing until it is registered again", reason=reason)
        self.topics.apply_registration(NOT_REGISTERED)
        if self._registration is not None and not self._leaving and self._joining is None:
            self._joining = asyncio.get_running_loop().create_task(self._join_again())

    async def _join_again(self) -> None:
        try:
            while True:
                try:
                    await self.topics.refresh_all()
                    await self._register()
                    return
                except (StoreFailed, AlreadyRegistered) as error:
                    log.warning("Registration failed; trying again", reason=str(error))
                    await asyncio.sleep(REGISTER_AGAIN_SECONDS)
        finally:
            self._joining = None


def _reachable(endpoint: Endpoint) -> Endpoint:
    """The address of a listener for other hosts: a listener on every interface is reached by the host's name."""
    return replace(endpoint, host=socket.gethostname()) if endpoint.host in WILDCARDS else endpoint
