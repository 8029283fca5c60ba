"""`/healthz` (the process turns its loop) and `/readyz` (the broker serves clients, or says why it does not)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import JSONResponse

from rota.coordinator.web.site import Site, not_ready

if TYPE_CHECKING:
    from starlette.requests import Request


class Health:
    """The two endpoints of one broker."""

    def __init__(self, site: Site) -> None:
        self._site = site

    async def healthz(self, request: Request) -> JSONResponse:
        """Answer 200, which shows that the event loop runs."""
        watch = self._site.loop_watch
        return JSONResponse({"status": "ok", "loop_stalls": watch.stalls}, headers={"cache-control": "no-store"})

    async def readyz(self, request: Request) -> JSONResponse:
        """Answer 200 when the broker is ready, else 503 with the reasons."""
        reasons = list(not_ready(self._site))
        offline = [repr(each) for each in self._site.node.partitions.all() if each.offline is not None]
        body = {"ready": not reasons, "reasons": reasons, "offline_partitions": len(offline)}
        return JSONResponse(body, 503 if reasons else 200, headers={"cache-control": "no-store"})
