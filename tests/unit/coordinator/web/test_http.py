"""The listener is opened when it is configured, and only then."""

from __future__ import annotations

import subprocess
import sys

import pytest
from tests.unit.coordinator.web.conftest import PROPERTIES

from rota.coordinator.broker import Broker
from rota.coordinator.config.broker import BrokerConfig
from rota.coordinator.config.definition import ConfigRefused
from rota.coordinator.config.listeners import Endpoint
from rota.coordinator.network.listener import CannotListen
from rota.coordinator.web.http import Http

WITHOUT_LISTENER = """
import asyncio, sys
from rota.coordinator.broker import Broker
from rota.coordinator.config.broker import BrokerConfig
async def main():
    async with Broker(BrokerConfig({"listeners": "PLAINTEXT://127.0.0.1:0"}), memory=True) as broker:
        assert broker.console_url == ""
        print(sorted({"starlette", "uvicorn", "h11", "prometheus_client", "opentelemetry"} & set(sys.modules)))
asyncio.run(main())
"""


def test_a_broker_without_the_listener_imports_nothing_for_it() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT_LISTENER], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


async def test_the_url_is_one_that_a_browser_can_open() -> None:
    async with Broker(BrokerConfig(PROPERTIES), memory=True) as broker:
        url = broker.console_url
        assert url.startswith("http://127.0.0.1:")
        for host, shown in (("", "localhost"), ("0.0.0.0", "localhost"), ("::1", "[::1]"), ("b.example", "b.example")):
            server = broker.http._server
            assert server is not None
            server.address = Endpoint("HTTP", host, 80)
            assert Http(broker.http.site, server).url == f"http://{shown}:80/"
    assert broker.console_url == ""


async def test_an_address_in_use_is_an_error_of_the_start() -> None:
    async with Broker(BrokerConfig(PROPERTIES), memory=True) as broker:
        address = broker.console_url.removeprefix("http://").rstrip("/")
        with pytest.raises(CannotListen, match="in use"):
            await Broker(BrokerConfig({**PROPERTIES, "rota.http.listener": address}), memory=True).start()


async def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "rota.coordinator.web.server", raising=False)
    monkeypatch.delitem(sys.modules, "rota.coordinator.web.app", raising=False)
    monkeypatch.setitem(sys.modules, "starlette.applications", None)
    with pytest.raises(ConfigRefused, match=r"not installed: starlette.*rota\[broker\]"):
        await Broker(BrokerConfig(PROPERTIES), memory=True).start()


def test_an_address_is_host_and_port() -> None:
    assert BrokerConfig({"rota.http.listener": "[::1]:80"}).http == Endpoint("HTTP", "::1", 80)
    assert BrokerConfig().http is None
    for wrong in ("8080", "host", "host:", "host:99999", "http://host:80"):
        with pytest.raises(ConfigRefused, match="HOST:PORT"):
            BrokerConfig({"rota.http.listener": wrong})
