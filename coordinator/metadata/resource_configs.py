"""The configs of brokers, groups and client metrics subscriptions: nodes of the metadata store, read into the image.

Laws
    RC1 A change is in the store before a reader sees it, and in the image before its caller goes on.
    RC2 A change is made on top of what the store has: of two at one time, one is made on top of the other.
    RC3 What has no configs of its own has no node.
    RC4 A node that cannot be read counts as empty, but one of ACLs denies everything: it may have held a DENY. A change
        of it is made on top of that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Final
from weakref import WeakValueDictionary

import structlog

from rota.coordinator.metadata import eager_tasks, znodes
from rota.coordinator.metadata.changes import ConfigKind
from rota.coordinator.metadata.image import Image
from rota.coordinator.metadata.store import BadNode, BadVersion, NodeExists, NoNode, Store, Watch
from rota.coordinator.metadata.topic import Refusal
from rota.protocol.errors import ErrorCode

UNREADABLE: Final[Mapping[str, Mapping[str, str]]] = {ConfigKind.ACLS: {"DENY ALL * User:*": ""}}  # RC4
RETRIES_MAX: Final = 8  # of a change that other brokers' changes were faster than

log = structlog.get_logger("rota.metadata")

Update = Callable[[Mapping[str, str]], Mapping[str, str] | Refusal]


class ResourceConfigs:
    """Reads from `store` into `image`. `watch` is set on every node that is read, as in `Topics`."""

    def __init__(self, image: Image, store: Store, watch: Watch | None) -> None:
        self._image, self._store, self._watch = image, store, watch
        self._locks: WeakValueDictionary[tuple[ConfigKind, str], asyncio.Lock] = WeakValueDictionary()

    async def refresh_all(self) -> None:
        """Read all of them. Raises StoreFailed."""
        for kind in ConfigKind:
            await self.refresh_kind(kind, all_again=True)

    async def refresh_kind(self, kind: ConfigKind, *, all_again: bool = False) -> None:
        """Read those that appeared or disappeared; with `all_again` all of one kind. Raises StoreFailed."""
        children = await self._store.children(f"{znodes.CONFIGS}/{kind}", self._watch)
        names, known = {znodes.read_resource_name(child) for child in children}, set(self._image.configured(kind))
        await eager_tasks.gather(
            self.refresh(kind, name) for name in sorted(names | known if all_again else names ^ known)
        )

    async def refresh(self, kind: ConfigKind, name: str) -> None:
        """Read one into the image. Raises StoreFailed."""
        async with self._lock(kind, name):
            await self._refresh(kind, name)

    async def update(self, kind: ConfigKind, name: str, update: Update) -> Refusal | None:
        """Replace the own configs with what `update` returns for the present ones, or return its refusal.

        Raises StoreFailed.
        """
        async with self._lock(kind, name):
            for _ in range(RETRIES_MAX):
                try:
                    return await self._update(kind, name, update)
                except (BadVersion, NodeExists, NoNode):
                    continue  # RC2: another broker was faster
                except BadNode as error:
                    return Refusal(ErrorCode.INVALID_REQUEST, str(error))
            return Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, f"other brokers change the configs of {name}; try again")

    # ---- inside

    async def _refresh(self, kind: ConfigKind, name: str) -> None:
        try:
            data, _ = await self._store.get(znodes.resource_config_path(kind, name), self._watch)
            configs = read_configs(kind, name, data)
        except NoNode:
            configs = {}
        self._image.apply_configs(kind, name, configs)

    async def _update(self, kind: ConfigKind, name: str, update: Update) -> Refusal | None:
        path, version = znodes.resource_config_path(kind, name), None
        before: Mapping[str, str] = {}
        try:
            data, stat = await self._store.get(path)
            version, before = stat.version, read_configs(kind, name, data)
        except NoNode:
            pass
        after = update(before)
        if isinstance(after, Refusal):
            return after
        if version is None and after:
            await self._store.create(path, znodes.config_node(after))
        elif version is not None and after:
            await self._store.set(path, znodes.config_node(after), version)
        elif version is not None:
            await self._store.delete(path, version)
        await self._refresh(kind, name)
        return None

    def _lock(self, kind: ConfigKind, name: str) -> asyncio.Lock:
        lock = self._locks.get((kind, name))
        if lock is None:
            lock = self._locks[kind, name] = asyncio.Lock()
        return lock


def read_configs(kind: str, name: str, data: bytes) -> Mapping[str, str]:
    """Return the configs in a node (RC4)."""
    try:
        return znodes.read_config(data)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:  # another program wrote it
        count_as = UNREADABLE.get(kind, {})
        log.warning("Configs cannot be read", kind=kind, name=name, count_as=dict(count_as), reason=repr(error))
        return count_as
