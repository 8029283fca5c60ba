"""The HTTP application: paths, the functions that serve them, and the guard around all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.routing import Route

from rota.coordinator.observe.lag_service import Lag
from rota.coordinator.web import console
from rota.coordinator.web.api import Api
from rota.coordinator.web.broker_requests import BrokerRequests
from rota.coordinator.web.events import Events
from rota.coordinator.web.guard import Guard
from rota.coordinator.web.health import Health
from rota.coordinator.web.lag_source import LagSource
from rota.coordinator.web.metrics import Metrics
from rota.coordinator.web.samples import LAG_KEPT_MS
from rota.coordinator.web.session_api import SessionApi
from rota.coordinator.web.site import Site

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from rota.coordinator.web.login import Login


class App:
    """The HTTP application of one broker. An ASGI server calls `serve`."""

    def __init__(self, site: Site) -> None:
        config = site.node.config
        self.requests, self.events = BrokerRequests(site.node), Events(site)
        self.lag = Lag(LagSource(self.requests), now_ms=site.node.now_ms, wall_ms=site.node.wall_ms)
        site.node.groups.lag_watch.cached = lambda group_id: self.lag.cached(group_id, LAG_KEPT_MS)
        self.login = login = open_login(site)
        self.routes = _routes(site, self.requests, self.events, self.lag, login)
        hosts = {*config.rota_http_allowed_hosts, config.http.host if config.http is not None else ""}
        self.serve: ASGIApp = Guard(Starlette(routes=self.routes), hosts, is_read_only=site.is_read_only, login=login)

    def stop(self) -> None:
        """End the streams of events, and close connections to other brokers."""
        self.events.stop()
        self.requests.stop()


def open_login(site: Site) -> Login | None:
    """Return the login of the console; None when everybody may use it (rota.http.login)."""
    if not site.node.config.rota_http_login:
        return None
    from rota.coordinator.web.login import Login

    return Login(site.node, is_secure=site.node.config.rota_http_tls)


def _routes(site: Site, requests: BrokerRequests, events: Events, lag: Lag, login: Login | None) -> list[Route]:
    health = Health(site)
    return [
        Route("/metrics", Metrics(site, lag).serve, methods=["GET"]),
        Route("/healthz", health.healthz, methods=["GET"]),
        Route("/readyz", health.readyz, methods=["GET"]),
        *Api(site, requests, events, lag, login).routes(),
        *SessionApi(login).routes(),
        *console.routes(),
    ]
