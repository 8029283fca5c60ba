"""The HTTP application: paths, the functions that serve them, and the guard around all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.routing import Route

from rota.coordinator.web.guard import Guard
from rota.coordinator.web.health import Health
from rota.coordinator.web.metrics import Metrics
from rota.coordinator.web.samples import Samples
from rota.coordinator.web.site import Site
from rota.transport.handshake import software_version

if TYPE_CHECKING:
    from starlette.types import ASGIApp


def routes(site: Site) -> list[Route]:
    """Return the table of paths."""
    health = Health(site)
    return [
        Route("/metrics", Metrics(Samples(site, software_version())).serve, methods=["GET"]),
        Route("/healthz", health.healthz, methods=["GET"]),
        Route("/readyz", health.readyz, methods=["GET"]),
    ]


def application(site: Site) -> ASGIApp:
    """Return the ASGI application of one broker."""
    config = site.node.config
    hosts = {*config.rota_http_allowed_hosts, config.http.host if config.http is not None else ""}
    return Guard(Starlette(routes=routes(site)), hosts, is_read_only=site.is_read_only)
