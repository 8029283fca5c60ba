"""The registration of a broker: it creates `/brokers/ids/N`, and `/controller` if absent, for its session.

The nodes have the fields that Kafka brokers wrote with ZooKeeper, so that tools which read them keep working, and two
of Rota's: `directory_id`, the id of the broker's log folder, and `swim`, its UDP address.

Laws
    RG1 At most one broker of an id is registered. A registration of an earlier session is replaced only by a broker on
        the same log folder, which proves that the other one has ended, because the folder is locked.
    RG2 The last registration of a broker is known while it is down, to each broker, also to one that starts then. One
        that is damaged hides no other broker.
    RG3 Only the registration of a broker that is down is forgotten: one that registers at that time is remembered.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

import structlog

from rota.coordinator.config.listeners import Endpoint
from rota.coordinator.metadata import eager_tasks, znodes
from rota.coordinator.metadata.brokers import BrokerRegistration
from rota.coordinator.metadata.store import (
    BadVersion,
    Create,
    Delete,
    NodeExists,
    NoNode,
    Stat,
    Store,
    StoreFailed,
    Watch,
)
from rota.protocol.dataclass import dataclass

log = structlog.get_logger("rota.metadata")


class AlreadyRegistered(StoreFailed):
    """Another live broker has the same id."""


@dataclass(frozen=True, slots=True)
class Registration:
    """What a broker says of itself. `swim` is HOST:PORT."""

    endpoints: Sequence[Endpoint]
    rack: str | None = None
    directory_id: str = ""
    swim: str = ""


async def register(
    store: Store, broker_id: int, registration: Registration, *, wall_ms: int, wait_seconds: float = 0
) -> int:
    """Create the broker's ephemeral node; return the number of the change, the broker epoch (KIP-903).

    A node of another broker may be that of a session which has not expired yet: wait for its end, up to
    `wait_seconds`. Raises AlreadyRegistered, StoreFailed.
    """
    path = znodes.broker_path(broker_id)
    while True:
        with suppress(NodeExists):
            await store.create(path, _broker_node(registration, wall_ms), ephemeral=True)
        own = await end_earlier(store, broker_id, registration.directory_id, wait_seconds=wait_seconds)
        if own is not None:
            return own.created


async def remember(
    store: Store, broker_id: int, registration: Registration, *, wall_ms: int, noted_epoch: int = -1
) -> None:
    """RG2. Keep what this broker says of itself for the time when it is down. Raises StoreFailed.

    `noted_epoch` is that of the last registration that its folder knows (CM5).
    """
    path = znodes.last_registration_path(broker_id)
    node = _broker_node(registration, wall_ms, {"broker_epoch": noted_epoch})
    try:
        await store.set(path, node)
    except NoNode:
        with suppress(NodeExists):
            await store.create(path, node)


async def last_epoch(store: Store, broker_id: int) -> int:
    """CM5. Return the epoch that the folder of this broker knew last; -1 if that is not known. Raises StoreFailed."""
    path = znodes.last_registration_path(broker_id)
    with suppress(NoNode, znodes.UnreadableNode):
        data, _ = await store.get(path)
        with znodes.reading(path):
            return znodes.read_noted_epoch(data)
    return -1


async def forget(store: Store, broker_id: int) -> None:
    """RG3. Delete the last registration of a broker that is down.

    That it is down holds in the same commit: versions do not show it, as they begin anew when another request has
    deleted the node. Raises NoNode when there is none, BadVersion when the broker registers meanwhile, StoreFailed.
    """
    path, live = znodes.last_registration_path(broker_id), znodes.broker_path(broker_id)
    _, stat = await store.get(path)
    try:
        await store.commit([Create(live, ephemeral=True), Delete(live), Delete(path, stat.version)])
    except NodeExists as why:
        raise BadVersion(path) from why


async def last_registrations(store: Store, broker_ids: Iterable[int]) -> list[BrokerRegistration]:
    """RG2. Return what these brokers said of themselves; nothing of one that has never done so, or that is damaged.

    Raises StoreFailed.
    """
    found = await eager_tasks.gather(_last_registration(store, broker_id) for broker_id in broker_ids)
    return [registration for registration in found if registration is not None]


async def _last_registration(store: Store, broker_id: int) -> BrokerRegistration | None:
    path = znodes.last_registration_path(broker_id)
    try:
        data, _ = await store.get(path)
        with znodes.reading(path):
            return znodes.read_broker(broker_id, data, -1)
    except NoNode:
        return None
    except znodes.UnreadableNode as why:
        log.warning("Last registration of a broker cannot be read", broker=broker_id, reason=str(why))
        return None


async def end_earlier(store: Store, broker_id: int, directory_id: str, *, wait_seconds: float) -> Stat | None:
    """Return the node that this session has created; else None, as soon as that of another session is deleted (RG1).

    Raises AlreadyRegistered, StoreFailed.
    """
    path, node_deleted = znodes.broker_path(broker_id), asyncio.Event()
    try:
        data, stat = await store.get(path, _watch(node_deleted) if wait_seconds else None)
    except NoNode:
        return None
    if stat.owner == store.session_id:
        return stat
    with znodes.reading(path):
        other = znodes.read_broker(broker_id, data, stat.created)
    if directory_id and other.directory_id == directory_id:
        with suppress(NoNode, BadVersion):
            await store.delete(path, stat.version)
    elif not wait_seconds or not await _is_set(node_deleted, wait_seconds):
        raise AlreadyRegistered(
            f"a broker of node.id {broker_id} is alive at {other.endpoints[0] if other.endpoints else '?'}; "
            "give this one another node.id, or stop the other one"
        )
    return None


async def claim_controller(store: Store, broker_id: int, *, wall_ms: int) -> int:
    """Become the controller unless another broker is; return the controller's id. Raises StoreFailed."""
    try:
        await store.create(znodes.CONTROLLER, znodes.controller_node(broker_id, wall_ms), ephemeral=True)
    except NodeExists:
        data, _ = await store.get(znodes.CONTROLLER)
        return znodes.read_controller(data)
    return broker_id


def _watch(event: asyncio.Event) -> Watch:
    return lambda _: event.set()


async def _is_set(event: asyncio.Event, seconds: float) -> bool:
    with suppress(TimeoutError):
        await asyncio.wait_for(event.wait(), seconds)
    return event.is_set()


def _broker_node(registration: Registration, wall_ms: int, more: Mapping[str, object] | None = None) -> bytes:
    endpoints, first = registration.endpoints, registration.endpoints[0]
    node = {
        "version": 5,
        "host": first.host,
        "port": first.port,
        "jmx_port": -1,
        "timestamp": str(wall_ms),
        "endpoints": [str(endpoint) for endpoint in endpoints],
        "listener_security_protocol_map": {endpoint.listener: "PLAINTEXT" for endpoint in endpoints},
        "features": {},
        "rack": registration.rack,
    }
    own = {"directory_id": registration.directory_id, "swim": registration.swim}
    return znodes.json_bytes({**node, **{name: value for name, value in own.items() if value}, **(more or {})})
