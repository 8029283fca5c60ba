"""How a broker connects to the metadata store of its cluster, from its settings."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from rota.coordinator.config.broker import BrokerConfig
from rota.coordinator.config.definition import ConfigRefused
from rota.coordinator.metadata.store import Store


def store_opener(config: BrokerConfig) -> Callable[[], Awaitable[Store]] | None:
    """Return how to connect to the metadata store of a cluster; None for a broker alone. Raises ConfigRefused."""
    if not config.zookeeper_connect:
        return None

    tls = None
    if config.zookeeper_ssl_client_enable:
        from rota.coordinator.security.zookeeper_tls import zookeeper_tls

        tls = zookeeper_tls(config)

    async def open_store() -> Store:
        from rota.coordinator.metadata.zookeeper import ZooKeeperStore  # a broker alone does not pay for it

        try:
            store = ZooKeeperStore(
                config.zookeeper_connect,
                session_timeout_ms=config.zookeeper_session_timeout_ms,
                connection_timeout_ms=config.zookeeper_connection_timeout_ms,
                digest=config.rota_zookeeper_digest or None,
                set_acl=config.zookeeper_set_acl,
                tls=tls,
            )
        except ValueError as error:
            raise ConfigRefused("zookeeper.connect", str(error)) from None
        return await store.open()

    return open_store
