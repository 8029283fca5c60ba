"""OpenTelemetry traces: a span for each request and for each rebalance, sent by OTLP over HTTP.

Only a broker with `rota.tracing.otlp.endpoint` imports this module and its packages, the extra `rota[tracing]`. Without
it requests and groups run exactly the code that they ran before.

Laws
    TR1 The spans are an account: whether the collector answers, is slow or is away changes no response and no group.
    TR2 Spans wait in a bounded queue, which a thread of the exporter sends; when it is full, spans are dropped.
    TR3 A span has names, versions, sizes and error codes. It has no record, no password, no token.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.sdk.trace.sampling import TraceIdRatioBased
from opentelemetry.trace import SpanKind, Status, StatusCode

from rota.coordinator.config.broker import BrokerConfig
from rota.coordinator.config.definition import ConfigRefused
from rota.coordinator.observe.explain import event_name
from rota.coordinator.observe.rebalances import Rebalance, rebalances
from rota.coordinator.observe.timeline import add_each, decoded_since
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.protocol.errors import ErrorCode
from rota.protocol.group_timeline import EventType, GroupEvent, is_end_of_rebalance
from rota.transport.handshake import software_version

if TYPE_CHECKING:
    from opentelemetry.trace import Span, Tracer

    from rota.coordinator.observe.timeline import EncodedEvents, Mistake, TimelineStore

NS_PER_MS: Final = 1_000_000
QUEUE_SPANS_MAX: Final = 2_048  # TR2
EXPORT_EVERY_MS: Final = 1_000
EXPORT_TIMEOUT_S: Final = 5  # of one batch, retries included
STOP_TIMEOUT_S: Final = 2  # a stopping broker waits this long for its last spans
_NO_ERRORS: Final = (None, ErrorCode.NONE)


class Tracing:
    """The tracer of one broker."""

    def __init__(self, exporter: SpanExporter, *, node_id: int, cluster_id: str, version: str, ratio: float) -> None:
        """`ratio` is the share of requests and rebalances that get a span, from 0 to 1."""
        resource = {
            "service.name": "rota",
            "service.version": version,
            "service.instance.id": str(node_id),
            "messaging.kafka.cluster.id": cluster_id,
        }
        self._provider = TracerProvider(
            resource=Resource.create(resource), sampler=TraceIdRatioBased(ratio), shutdown_on_exit=False
        )
        self._provider.add_span_processor(
            BatchSpanProcessor(exporter, max_queue_size=QUEUE_SPANS_MAX, schedule_delay_millis=EXPORT_EVERY_MS)
        )
        self._tracer = self._provider.get_tracer("rota", version)

    def routes(self, routes: Mapping[int, Any]) -> TracedRoutes:
        """Return the same APIs, each with a span for every request."""
        return TracedRoutes(routes, self._tracer)

    def timelines(self, timelines: TimelineStore) -> TracedTimelines:
        """Return the same timelines, with a span for every rebalance that ends."""
        return TracedTimelines(timelines, self._tracer)

    async def stop(self) -> None:
        """Send the spans that wait, within STOP_TIMEOUT_S."""
        loop, sent = asyncio.get_running_loop(), asyncio.Event()

        def shut_down() -> None:
            self._provider.shutdown()
            with suppress(RuntimeError):  # the loop is closed: no task waits any more
                loop.call_soon_threadsafe(sent.set)

        threading.Thread(target=shut_down, name="rota-tracing-stop", daemon=True).start()
        with suppress(TimeoutError):
            await asyncio.wait_for(sent.wait(), STOP_TIMEOUT_S)


def open_tracing(config: BrokerConfig, cluster_id: str) -> Tracing:
    """Return the tracing that `rota.tracing.*` describes. Raises ConfigRefused for an endpoint that is no URL."""
    name, endpoint = "rota.tracing.otlp.endpoint", config.rota_tracing_otlp_endpoint
    url = urlsplit(endpoint)
    if url.scheme not in ("http", "https") or not url.hostname:
        expected = "expected the URL of an OTLP collector, as http://127.0.0.1:4318/v1/traces"
        raise ConfigRefused(name, f"Invalid value {endpoint!r} for configuration {name}: {expected}")
    return Tracing(
        OTLPSpanExporter(endpoint, timeout=EXPORT_TIMEOUT_S),
        node_id=config.node_id,
        cluster_id=cluster_id,
        version=software_version(),
        ratio=config.rota_tracing_sample_ratio,
    )


# ---- requests


class TracedRoutes(Mapping[int, Any]):
    """The routes of a broker by API key. A route is wrapped at its first use."""

    def __init__(self, routes: Mapping[int, Any], tracer: Tracer) -> None:
        self._routes, self._tracer = routes, tracer

    def __getitem__(self, key: int) -> Any:
        route = self._routes[key]
        return replace(route, serve=_traced(self._tracer, route.name, route.serve))

    def __iter__(self) -> Iterator[int]:
        return iter(self._routes)

    def __len__(self) -> int:
        return len(self._routes)


def _traced(tracer: Tracer, api: str, serve: Callable[[Any, Any, Any], Any]) -> Callable[[Any, Any, Any], Any]:
    def traced(node: Any, call: Any, request: Any) -> Any:
        span = tracer.start_span(f"{api} v{call.version}", kind=SpanKind.SERVER)
        if span.is_recording():
            span.set_attributes(_request_attributes(api, call, request))
        try:
            reply = serve(node, call, request)
        except Exception as error:
            span.set_status(Status(StatusCode.ERROR, type(error).__name__))
            span.end()
            raise
        if isinstance(reply, DelayedReply):
            return reply.map(lambda response: _ended(span, response))
        return _ended(span, reply)

    return traced


def _request_attributes(api: str, call: Any, request: Any) -> dict[str, str | int]:
    group_id = getattr(request, "group_id", None)
    transactional_id = getattr(request, "transactional_id", None)
    named = {"messaging.consumer.group.name": group_id, "messaging.kafka.transactional.id": transactional_id}
    return {
        "rpc.system": "kafka",
        "rpc.method": api,
        "messaging.system": "kafka",
        "messaging.kafka.api.version": call.version,
        "messaging.client.id": call.client_id or "",
        "client.address": call.client_host.lstrip("/"),
        "client.port": call.client_port,
        "messaging.kafka.listener": call.listener,
        "enduser.id": str(call.principal),
        "messaging.kafka.client.software": f"{call.software.name} {call.software.version}",
        **{name: value for name, value in named.items() if isinstance(value, str) and value},
    }


def _ended(span: Span, response: Any) -> Any:
    code = getattr(response, "error_code", None)
    if code not in _NO_ERRORS:
        span.set_attribute("messaging.kafka.error_code", int(code))
        span.set_status(Status(StatusCode.ERROR, _error_name(code)))
    span.end()
    return response


def _error_name(code: int) -> str:
    try:
        return ErrorCode(code).name
    except ValueError:
        return str(code)


# ---- rebalances


class TracedTimelines:
    """A TimelineStore that makes a span of each rebalance when it ends, with its phases as events."""

    def __init__(self, timelines: TimelineStore, tracer: Tracer) -> None:
        self._timelines, self._tracer = timelines, tracer

    def add(self, group_id: str, event: GroupEvent) -> None:
        """Add an event; the one that ends a rebalance makes its span."""
        self._timelines.add(group_id, event)
        if is_end_of_rebalance(event):
            events = decoded_since(self._timelines.encoded(group_id), EventType.REBALANCE_STARTED)
            found = rebalances(events)
            if found and found[-1].ended_ms == event.time_ms:
                _trace_rebalance(self._tracer, group_id, found[-1])

    def add_all(self, events: Iterable[tuple[str, GroupEvent]]) -> list[Mistake]:
        """Add events."""
        return add_each(self.add, events)

    def forget(self, group_id: str) -> None:
        """Forget a group that was deleted."""
        self._timelines.forget(group_id)

    def of(self, group_id: str) -> tuple[GroupEvent, ...]:
        """Return the group's events, oldest first; none for an unknown group."""
        return self._timelines.of(group_id)

    def encoded(self, group_id: str) -> EncodedEvents:
        """Return the bytes of the group's events."""
        return self._timelines.encoded(group_id)

    def groups(self) -> list[str]:
        """Return the groups that have events."""
        return self._timelines.groups()


def _trace_rebalance(tracer: Tracer, group_id: str, rebalance: Rebalance) -> None:
    span = tracer.start_span("rebalance", start_time=rebalance.started_ms * NS_PER_MS)
    if span.is_recording():
        span.set_attributes(_rebalance_attributes(group_id, rebalance))
        for event in rebalance.events:
            members = [member.member_id for member in event.members]
            attributes = {"members": members} if members else {}
            span.add_event(event_name(event), attributes, event.time_ms * NS_PER_MS)
    span.end(rebalance.ended_ms * NS_PER_MS)


def _rebalance_attributes(group_id: str, rebalance: Rebalance) -> dict[str, str | int | list[str]]:
    return {
        "messaging.system": "kafka",
        "messaging.consumer.group.name": group_id,
        "rota.rebalance.trigger": rebalance.trigger,
        "rota.rebalance.reason": rebalance.reason,
        "rota.rebalance.outcome": rebalance.outcome,
        "rota.rebalance.generation": rebalance.generation,
        "rota.rebalance.members": rebalance.member_count,
        "rota.rebalance.triggered_by": [member.member_id for member in rebalance.triggered_by],
        "rota.rebalance.waited_for": [member.member_id for member in rebalance.waited_for],
        "rota.rebalance.joins_ms": rebalance.joins_ms,
        "rota.rebalance.assignment_ms": rebalance.assignment_ms,
        "rota.rebalance.protocol": rebalance.protocol,
    }
