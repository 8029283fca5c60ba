"""TLS with ZooKeeper: from Kafka's zookeeper.ssl.* properties to an `ssl.SSLContext`.

Law
    ZT1 ZooKeeper's certificate is verified, and its host name unless zookeeper.ssl.endpoint.identification.algorithm is
        empty. Files are read for each connection; those that cannot be used are refused at the start by their property.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable

from rota.coordinator.config.broker import BrokerConfig
from rota.coordinator.config.definition import ConfigRefused
from rota.transport.errors import SettingRefused
from rota.transport.tls import TlsSettings, client_context


def zookeeper_tls(config: BrokerConfig) -> Callable[[], ssl.SSLContext] | None:
    """Return what makes the context of a connection to ZooKeeper; None without TLS. Raises ConfigRefused."""
    if not config.zookeeper_ssl_client_enable:
        return None
    settings = _settings(config)
    try:
        client_context(settings)
    except SettingRefused as refused:
        name = f"zookeeper.{refused.setting.replace('_', '.')}"
        raise ConfigRefused(name, f"Configuration {name} {str(refused).partition(') ')[2]}") from None
    return lambda: client_context(settings)


def _settings(config: BrokerConfig) -> TlsSettings:
    return TlsSettings(
        keystore_location=config.zookeeper_ssl_keystore_location,
        keystore_type=config.zookeeper_ssl_keystore_type,
        keystore_password=config.zookeeper_ssl_keystore_password,
        truststore_location=config.zookeeper_ssl_truststore_location,
        truststore_type=config.zookeeper_ssl_truststore_type,
        truststore_password=config.zookeeper_ssl_truststore_password,
        endpoint_identification_algorithm=config.zookeeper_ssl_endpoint_identification_algorithm.lower(),
        enabled_protocols=config.zookeeper_ssl_enabled_protocols,
        cipher_suites=config.zookeeper_ssl_cipher_suites,
    )
