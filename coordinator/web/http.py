"""Opens the HTTP listener of a broker, if `rota.http.listener` is set. Only then are its packages imported."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.coordinator.config.definition import ConfigRefused
from rota.coordinator.web.site import IsrCounts, Site

if TYPE_CHECKING:
    from rota.coordinator.api.node import Node
    from rota.coordinator.network.connections import Connections
    from rota.coordinator.web.server import HttpServer


class Http:
    """The HTTP side of one broker; without a server when there is no listener."""

    def __init__(self, site: Site, server: HttpServer | None) -> None:
        self.site, self._server = site, server

    @property
    def url(self) -> str:
        """The URL of the console, as a browser on this machine reaches it; empty without a listener."""
        if self._server is None:
            return ""
        address = self._server.address
        host = "localhost" if address.is_every_interface else address.host
        scheme = "https" if self.site.node.config.rota_http_tls else "http"
        return f"{scheme}://[{host}]:{address.port}/" if ":" in host else f"{scheme}://{host}:{address.port}/"

    async def stop(self) -> None:
        """Close the listener and its connections."""
        if self._server is not None:
            await self._server.stop()
            self._server = None


async def open_http(node: Node, connections: Connections, isr_counts: IsrCounts | None) -> Http:
    """Listen, if that is configured. Raises CannotListen, and ConfigRefused when a package is missing."""
    site, endpoint = Site(node, connections, isr_counts), node.config.http
    if endpoint is None:
        return Http(site, None)
    try:
        from rota.coordinator.web.server import HttpServer
    except ImportError as missing:
        reason = f"rota.http.listener needs a package that is not installed: {missing.name}; pip install 'rota[broker]'"
        raise ConfigRefused("rota.http.listener", reason) from missing
    server = HttpServer(site)
    await server.start(endpoint)
    return Http(site, server)
