"""A broker alone opens no store; a malformed zookeeper.connect is a refused setting."""

from __future__ import annotations

import pytest

from rota.coordinator.config.broker import BrokerConfig
from rota.coordinator.config.definition import ConfigRefused
from rota.coordinator.store_opener import store_opener


def test_a_broker_alone_has_no_store_to_open() -> None:
    assert store_opener(BrokerConfig({})) is None


async def test_a_malformed_address_is_a_refused_setting() -> None:
    open_store = store_opener(BrokerConfig({"zookeeper.connect": "host:none"}))
    assert open_store is not None
    with pytest.raises(ConfigRefused, match=r"zookeeper\.connect"):
        await open_store()
