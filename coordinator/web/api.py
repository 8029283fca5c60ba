"""`/api`: the table of its paths, the parameters of each, and how results and failures become responses.

`openapi.json` beside this file documents all of it; a test holds it equal to this table and to the answers.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import structlog
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from rota.coordinator.observe.explain import as_json
from rota.coordinator.observe.lag_service import Lag
from rota.coordinator.web import actions, api_cluster, api_groups, api_topics
from rota.coordinator.web.api_client_metrics import client_metrics, client_values
from rota.coordinator.web.broker_requests import ApiError, BrokerRequests
from rota.coordinator.web.events import Events
from rota.coordinator.web.guard import BODY_SECONDS_MAX, SESSION, host_of
from rota.coordinator.web.site import Site
from rota.transport.errors import KafkaError

if TYPE_CHECKING:
    from starlette.requests import Request

    from rota.coordinator.web.login import Login

log = structlog.get_logger("rota.http")

OPENAPI: Final = Path(__file__).with_name("openapi.json")
NO_STORE: Final = {"cache-control": "no-store"}
_json: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
PAGE_RECORDS: Final = 50
INT64_MAX: Final = (1 << 63) - 1
RECORDS_HIDDEN: Final = (
    "records are not shown: the console has no login and checks no ACLs, and this broker has an authorizer "
    "(authorizer.class.name). Use `rota consume`, set rota.http.login=true, or "
    "rota.http.read.only=false to let everybody who reaches the console read and act as the broker"
)

Read = Callable[["Request"], Awaitable[dict[str, Any]]]
Action = Callable[[BrokerRequests, actions.Body], Awaitable[dict[str, Any]]]


class Api:
    """The API of one broker."""

    def __init__(
        self, site: Site, requests: BrokerRequests, events: Events, lag: Lag, login: Login | None = None
    ) -> None:
        self._login = login
        self._site, self._requests, self._events, self._lags = site, requests, events, lag

    def routes(self) -> list[Route]:
        """Return the table of paths."""
        requests = self._requests
        reads: dict[str, Read] = {
            "cluster": self._cluster,
            "topics": lambda request: api_topics.topics(requests),
            "topic": lambda request: api_topics.topic(requests, parameter(request, "topic")),
            "records": self._records,
            "groups": lambda request: api_groups.groups(requests),
            "group": lambda request: api_groups.group(requests, parameter(request, "group")),
            "group/lag": self._lag,
            "group/timeline": lambda request: api_groups.timeline(requests, parameter(request, "group")),
            "group/why": lambda request: api_groups.why(requests, parameter(request, "group")),
            "client-metrics": lambda request: client_metrics(self._site),
            "client-metrics/values": lambda request: client_values(
                self._site.node.telemetry, parameter(request, "instance")
            ),
            "group/health": lambda request: api_groups.findings(requests, self._lags, parameter(request, "group")),
        }
        changes: dict[str, Action] = {
            "create-topic": actions.create_topic,
            "delete-group": actions.delete_group,
            "remove-member": actions.remove_member,
            "reset-offsets": actions.reset_offsets,
        }
        return [
            *(Route(f"/api/{path}", _reading(read), methods=["GET"]) for path, read in reads.items()),
            *(Route(f"/api/actions/{path}", self._acting(path, do), methods=["POST"]) for path, do in changes.items()),
            Route("/api/events", self._open_events, methods=["GET"]),
            Route("/api/openapi.json", _openapi, methods=["GET"]),
        ]

    async def _cluster(self, request: Request) -> dict[str, Any]:
        document = await api_cluster.cluster(self._site, self._requests)
        session = request.scope.get(SESSION)
        if self._login is not None and session is not None:
            is_operator = self._login.role(session, host_of(request.scope)).value == "operator"
            document["is_read_only"] = document["is_read_only"] or not is_operator
        return document

    def _check_read_allowed(self, request: Request) -> None:
        """WB18, WB21. Raises ApiError where the records of a topic are not shown."""
        if self._site.has_hidden_records:
            raise ApiError(403, RECORDS_HIDDEN)
        session, topic = request.scope.get(SESSION), parameter(request, "topic")
        if (
            self._login is not None
            and session is not None
            and not self._login.is_read_allowed(session, host_of(request.scope), topic)
        ):
            raise ApiError(403, f"you may not read records of {topic!r}: it needs READ on the topic")

    async def _lag(self, request: Request) -> dict[str, Any]:
        return as_json(await self._lags.get(parameter(request, "group")))

    async def _records(self, request: Request) -> dict[str, Any]:
        self._check_read_allowed(request)
        return await api_topics.records(
            self._requests,
            parameter(request, "topic"),
            integer(request, "partition", 0) or 0,
            offset=integer(request, "offset", None),
            time_ms=integer(request, "time_ms", None),
            limit=integer(request, "limit", PAGE_RECORDS) or PAGE_RECORDS,
        )

    async def _open_events(self, request: Request) -> Response:
        try:
            stream = self._events.open()
        except ApiError as error:
            return failed(error)
        return StreamingResponse(self._events.read(stream), media_type="text/event-stream", headers=NO_STORE)

    def _acting(self, name: str, do: Action) -> Callable[[Request], Awaitable[Response]]:
        async def serve(request: Request) -> Response:
            try:
                body = await body_of(request)
                result = await do(self._requests, body)
            except (ApiError, KafkaError) as error:
                return failed(error)
            session = request.scope.get(SESSION)
            user = None if session is None else str(session.principal)
            log.info(
                "Action of the console", action=name, user=user, **{key: body[key] for key in LOGGED if key in body}
            )
            return JSONResponse(result, headers=NO_STORE)

        return serve


LOGGED: Final = ("group", "topic", "member_id", "to", "dry_run")


def _reading(read: Read) -> Callable[[Request], Awaitable[Response]]:
    async def serve(request: Request) -> Response:
        try:
            return await respond(await read(request))
        except (ApiError, KafkaError) as error:
            return failed(error)

    return serve


async def respond(document: dict[str, Any]) -> Response:
    """Return the response with a document, which becomes text in a thread."""
    return Response(await asyncio.to_thread(text_of, document), media_type="application/json", headers=NO_STORE)


def text_of(document: dict[str, Any]) -> bytes:
    """Return the JSON of a document. Each entry of a list is written by itself: the encoder keeps the interpreter lock
    until it is done, so that one call would stop the loop from a thread as well."""
    values = (
        f"[{','.join(map(_json, value))}]" if isinstance(value, list) else _json(value) for value in document.values()
    )
    members = (f"{_json(name)}:{value}" for name, value in zip(document, values, strict=True))
    return f"{{{','.join(members)}}}".encode()


def failed(error: Exception) -> Response:
    """Return the response to a request that failed."""
    status = error.status if isinstance(error, ApiError) else 502
    return JSONResponse({"error": str(error)}, status, headers=NO_STORE)


def parameter(request: Request, name: str) -> str:
    """Return a parameter of the query that must be there. Raises ApiError."""
    value = request.query_params.get(name)
    if not value:
        raise ApiError(400, f"the parameter {name} is missing")
    return str(value)


def integer(request: Request, name: str, default: int | None) -> int | None:
    """Return a whole number of the query, 0 or more. Raises ApiError."""
    value = request.query_params.get(name)
    if value is None or value == "":
        return default
    if not value.isascii() or not value.isdecimal() or len(value) > 19 or int(value) > INT64_MAX:
        raise ApiError(400, f"the parameter {name} must be a whole number, 0 or more")
    return int(value)


async def body_of(request: Request) -> actions.Body:
    """Return the JSON object in the body. Raises ApiError."""
    try:
        async with asyncio.timeout(BODY_SECONDS_MAX):
            body = json.loads(await request.body())
    except TimeoutError:
        raise ApiError(408, "the body did not arrive in time") from None
    except (ValueError, RecursionError):
        raise ApiError(400, "the body is not JSON") from None
    if not isinstance(body, dict):
        raise ApiError(400, "the body must be a JSON object")
    return body


async def _openapi(request: Request) -> Response:
    return Response(OPENAPI.read_bytes(), media_type="application/json", headers=NO_STORE)
