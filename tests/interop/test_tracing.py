"""A broker with an OpenTelemetry collector beside it: what a real consumer did arrives there as spans."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from tests.interop.kit import unique

from rota.testing import running_broker

TIMEOUT_S = 20
EXPORTERS = ("rota-tracing-stop", "Otel")  # what the names of their threads begin with


@pytest.fixture(autouse=True)
def exporters_end() -> Iterator[None]:
    """No exporter outlives its test: one that waits for a retry draws random numbers, which Hypothesis reports as an
    error of the property that runs at that moment."""
    yield
    for thread in threading.enumerate():
        if thread.name.startswith(EXPORTERS):
            thread.join(TIMEOUT_S)
            assert not thread.is_alive(), thread.name


class Collector:
    """An OTLP receiver on a free port. `spans` is complete when the broker has stopped."""

    def __init__(self, status: int) -> None:
        self.spans: list[Any] = []
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                received = ExportTraceServiceRequest.FromString(body)
                for resource in received.resource_spans:
                    for scope in resource.scope_spans:
                        collector.spans += scope.spans
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *args: Any) -> None:
                """Be quiet."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1/traces"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(TIMEOUT_S)


@contextmanager
def collector(status: int = 200) -> Iterator[Collector]:
    receiver = Collector(status)
    receiver.start()
    try:
        yield receiver
    finally:
        receiver.stop()


def consume_one(address: str, group: str) -> None:
    """Produce a record, consume and commit it as a group of one."""
    topic = unique("traced")
    producer = Producer({"bootstrap.servers": address})
    producer.produce(topic, b"one")
    assert producer.flush(TIMEOUT_S) == 0
    settings = {"bootstrap.servers": address, "group.id": group, "auto.offset.reset": "earliest", "client.id": "reader"}
    consumer = Consumer(settings)
    consumer.subscribe([topic])
    record = consumer.poll(TIMEOUT_S)
    assert record is not None
    assert record.value() == b"one"
    consumer.commit(record, asynchronous=False)
    consumer.close()


def attributes(span: Any) -> dict[str, str]:
    return {each.key: each.value.string_value for each in span.attributes}


def test_the_requests_and_the_rebalance_of_a_consumer_arrive_as_spans() -> None:
    group = unique("group")
    with collector() as receiver, running_broker(properties={"rota.tracing.otlp.endpoint": receiver.url}) as broker:
        consume_one(broker.bootstrap_servers, group)
    of_group = [span for span in receiver.spans if attributes(span).get("messaging.consumer.group.name") == group]
    names = {span.name.partition(" ")[0] for span in of_group}
    assert {"JoinGroup", "SyncGroup", "OffsetCommit", "LeaveGroup", "rebalance"} <= names
    assert "Produce" in {span.name.partition(" ")[0] for span in receiver.spans}
    rebalance = next(span for span in of_group if span.name == "rebalance")
    assert attributes(rebalance)["rota.rebalance.trigger"] == "member-joined"
    assert [event.name for event in rebalance.events][-1] == "assigned"
    join = next(span for span in of_group if span.name.startswith("JoinGroup"))
    assert attributes(join)["messaging.client.id"] == "reader"
    assert all(span.end_time_unix_nano >= span.start_time_unix_nano for span in receiver.spans)


@pytest.mark.parametrize("status", [400, 503], ids=["refuses", "fails"])
def test_a_collector_that_does_not_take_the_spans_changes_nothing_for_clients(status: int) -> None:
    with (
        collector(status) as receiver,
        running_broker(properties={"rota.tracing.otlp.endpoint": receiver.url}) as broker,
    ):
        consume_one(broker.bootstrap_servers, unique("group"))


def test_a_collector_that_is_away_changes_nothing_for_clients() -> None:
    with running_broker(properties={"rota.tracing.otlp.endpoint": "http://127.0.0.1:9/v1/traces"}) as broker:
        consume_one(broker.bootstrap_servers, unique("group"))
