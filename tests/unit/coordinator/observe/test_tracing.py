"""Spans of requests and rebalances: what they say, and that they change nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from tests.unit.coordinator.observe.events import Timeline, member

from rota.coordinator.config.broker import BrokerConfig
from rota.coordinator.config.definition import ConfigRefused
from rota.coordinator.network.call import Call, Route
from rota.coordinator.observe.timeline import Timelines
from rota.coordinator.observe.tracing import Tracing, open_tracing
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.protocol.errors import ErrorCode
from rota.protocol.group_timeline import EventType, Trigger


class Collected(SpanExporter):
    """An exporter that keeps the spans."""

    def __init__(self) -> None:
        self.spans: list[ReadableSpan] = []

    def export(self, spans: Any) -> SpanExportResult:
        self.spans += spans
        return SpanExportResult.SUCCESS


@dataclass
class Request:
    """The part of a request that a span shows, and one that it must not."""

    group_id: str = "orders"
    auth_bytes: bytes = b"secret-token"


@dataclass
class Response:
    error_code: int = 0


async def spans_of(ratio: float, work: Callable[[Tracing], None]) -> list[ReadableSpan]:
    collected = Collected()
    tracing = Tracing(collected, node_id=3, cluster_id="c", version="1", ratio=ratio)
    work(tracing)
    await tracing.stop()
    return collected.spans


def route(serve: Callable[[Any, Call, Any], Any]) -> dict[int, Route]:
    return {12: Route(12, "Heartbeat", range(5), 4, Request, Response, serve)}


CALL = Call(4, "app", "/127.0.0.1", "127.0.0.1", 9092, client_port=5000)


async def test_a_request_has_a_span_with_client_group_and_version() -> None:
    def serve_one(tracing: Tracing) -> None:
        served = tracing.routes(route(lambda node, call, request: Response()))[12].serve(None, CALL, Request())
        assert served == Response()

    (span,) = await spans_of(1.0, serve_one)
    assert span.name == "Heartbeat v4"
    assert span.attributes is not None
    assert span.attributes["messaging.consumer.group.name"] == "orders"
    assert span.attributes["messaging.client.id"] == "app"
    assert span.attributes["client.address"] == "127.0.0.1"
    assert span.resource.attributes["service.instance.id"] == "3"
    assert span.status.is_unset
    assert "secret-token" not in span.to_json()


async def test_a_delayed_reply_ends_its_span_when_it_is_given() -> None:
    reply: DelayedReply[Response] = DelayedReply()
    received: list[Response] = []

    def serve_one(tracing: Tracing) -> None:
        tracing.routes(route(lambda node, call, request: reply))[12].serve(None, CALL, Request()).then(received.append)
        reply.answer(Response(int(ErrorCode.REBALANCE_IN_PROGRESS)))

    (span,) = await spans_of(1.0, serve_one)
    assert received == [Response(27)]
    assert span.status.description == "REBALANCE_IN_PROGRESS"


async def test_an_exception_of_an_api_is_raised_and_is_in_the_span() -> None:
    def fail(node: Any, call: Call, request: Any) -> Any:
        raise ValueError("a text with data of the client")

    def serve_one(tracing: Tracing) -> None:
        with pytest.raises(ValueError, match="data of the client"):
            tracing.routes(route(fail))[12].serve(None, CALL, Request())

    (span,) = await spans_of(1.0, serve_one)
    assert span.status.description == "ValueError"
    assert "data of the client" not in span.to_json()


async def test_requests_outside_the_sample_have_no_span() -> None:
    def serve_one(tracing: Tracing) -> None:
        assert tracing.routes(route(lambda node, call, request: None))[12].serve(None, CALL, Request()) is None

    assert await spans_of(0.0, serve_one) == []


async def test_a_rebalance_has_one_span_from_its_start_to_its_end() -> None:
    written = (
        Timeline()
        .add(EventType.REBALANCE_STARTED, member("m1-a"), trigger=Trigger.MEMBER_EXPIRED)
        .add(EventType.GENERATION_STARTED, after_ms=500, generation=2, duration_ms=500)
        .add(EventType.ASSIGNED, after_ms=200, generation=2, duration_ms=200)
        .add(EventType.MEMBER_JOINED, member("m2-b"))
    ).events

    def rebalance(tracing: Tracing) -> None:
        timelines = tracing.timelines(Timelines())
        for event in written:
            timelines.add("orders", event)
        assert len(timelines.of("orders")) == 4
        assert timelines.groups() == ["orders"]
        timelines.forget("orders")
        assert timelines.groups() == []

    (span,) = await spans_of(1.0, rebalance)
    assert (span.start_time, span.end_time) == (written[0].time_ms * 1_000_000, written[2].time_ms * 1_000_000)
    assert span.attributes is not None
    assert span.attributes["rota.rebalance.trigger"] == "member-expired"
    assert span.attributes["rota.rebalance.triggered_by"] == ("m1-a",)
    assert span.attributes["rota.rebalance.joins_ms"] == 500
    assert [each.name for each in span.events] == ["rebalance-started", "generation-started", "assigned"]


@pytest.mark.parametrize(
    ("end", "state"), [(EventType.RECONCILED, "Stable"), (EventType.DOWNGRADED, "Stable"), (EventType.EMPTIED, "Empty")]
)
async def test_tl14_a_rebalance_by_the_broker_has_one_span_until_the_members_have_their_partitions(
    end: EventType, state: str
) -> None:
    written = (
        Timeline()
        .add(EventType.REBALANCE_STARTED, member("m1-a"), trigger=Trigger.MEMBER_JOINED, generation=2)
        .add(EventType.ASSIGNED, generation=3, duration_ms=0, state="Reconciling")
        .add(EventType.RECONCILIATION_STARTED, generation=3)
        .add(end, generation=3, duration_ms=2_000, state=state)
    ).events

    def rebalance(tracing: Tracing) -> None:
        timelines = tracing.timelines(Timelines())
        for event in written:
            timelines.add("orders", event)

    (span,) = await spans_of(1.0, rebalance)
    assert (span.start_time, span.end_time) == (written[0].time_ms * 1_000_000, written[3].time_ms * 1_000_000)


@pytest.mark.parametrize("endpoint", ["127.0.0.1:4318", "ftp://h/x", "http://"])
def test_an_endpoint_that_is_no_url_is_refused_by_name(endpoint: str) -> None:
    config = BrokerConfig({"log.dirs": "/d", "rota.tracing.otlp.endpoint": endpoint})
    with pytest.raises(ConfigRefused, match=r"rota\.tracing\.otlp\.endpoint: expected the URL of an OTLP collector"):
        open_tracing(config, "c")
