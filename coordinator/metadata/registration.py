"""The registration of a broker: it creates `/brokers/ids/N`, and `/controller` if absent, for its session.

The nodes have the fields that Kafka brokers wrote with ZooKeeper, so that tools which read them keep working.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from rota.coordinator.config.listeners import Endpoint
from rota.coordinator.metadata import znodes
from rota.coordinator.metadata.store import NodeExists, Store


class AlreadyRegistered(Exception):
    """Another live broker has the same id."""


async def register(
    store: Store, broker_id: int, endpoints: Sequence[Endpoint], *, rack: str | None = None, wall_ms: int
) -> None:
    """Create the broker's ephemeral node. Raises AlreadyRegistered, StoreFailed."""
    path = f"{znodes.BROKER_IDS}/{broker_id}"
    try:
        await store.create(path, _broker_node(endpoints, rack, wall_ms), ephemeral=True)
    except NodeExists:
        raise AlreadyRegistered(f"a broker of id {broker_id} is alive") from None


async def claim_controller(store: Store, broker_id: int, *, wall_ms: int) -> int:
    """Become the controller unless another broker is; return the controller's id. Raises StoreFailed."""
    node = {"version": 2, "brokerid": broker_id, "timestamp": str(wall_ms), "kraftControllerEpoch": -1}
    try:
        await store.create(znodes.CONTROLLER, znodes.json_bytes(node), ephemeral=True)
    except NodeExists:
        data, _ = await store.get(znodes.CONTROLLER)
        return int(json.loads(data)["brokerid"])
    return broker_id


def _broker_node(endpoints: Sequence[Endpoint], rack: str | None, wall_ms: int) -> bytes:
    first = endpoints[0]
    return znodes.json_bytes(
        {
            "version": 5,
            "host": first.host,
            "port": first.port,
            "jmx_port": -1,
            "timestamp": str(wall_ms),
            "endpoints": [str(endpoint) for endpoint in endpoints],
            "listener_security_protocol_map": {endpoint.listener: "PLAINTEXT" for endpoint in endpoints},
            "features": {},
            "rack": rack,
        }
    )
