"""`/session`: the login of the console as HTTP. GET who is logged in, POST /session/login and /session/logout."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from rota.coordinator.web.actions import text
from rota.coordinator.web.api import NO_STORE, body_of, failed
from rota.coordinator.web.broker_requests import ApiError
from rota.coordinator.web.guard import host_of

if TYPE_CHECKING:
    from starlette.requests import Request

    from rota.coordinator.web.login import Login, Session


class SessionApi:
    """The paths of the login; without one (`login` None) GET /session says that none is needed."""

    def __init__(self, login: Login | None) -> None:
        self._login = login

    def routes(self) -> list[Route]:
        """Return the paths."""
        shown = Route("/session", self._show, methods=["GET"])
        if self._login is None:
            return [shown]
        return [
            shown,
            Route("/session/login", self._log_in, methods=["POST"]),
            Route("/session/logout", self._log_out, methods=["POST"]),
        ]

    async def _show(self, request: Request) -> Response:
        session = None if self._login is None else self._login.session_of(request.headers)
        return JSONResponse(self._document(request, session), headers=NO_STORE)

    async def _log_in(self, request: Request) -> Response:
        from rota.coordinator.web.login import LoginRefused

        assert self._login is not None
        try:
            body = await body_of(request)
            user, password = text(body, "user"), text(body, "password")
            cookie, session = await self._login.log_in(user, password, host_of(request.scope))
        except ApiError as error:
            return failed(error)
        except LoginRefused as refused:
            return JSONResponse({"error": str(refused)}, refused.status, headers=NO_STORE)
        return JSONResponse(self._document(request, session), headers={**NO_STORE, "set-cookie": cookie})

    async def _log_out(self, request: Request) -> Response:
        assert self._login is not None
        cookie = self._login.log_out(request.headers)
        return JSONResponse(self._document(request, None), headers={**NO_STORE, "set-cookie": cookie})

    def _document(self, request: Request, session: Session | None) -> dict[str, Any]:
        if self._login is None or session is None:
            return {"needs_login": self._login is not None, "user": None, "role": None, "action_token": "1"}
        role = self._login.role(session, host_of(request.scope))
        name = session.principal.name
        return {"needs_login": False, "user": name, "role": role.value, "action_token": session.action_token}
