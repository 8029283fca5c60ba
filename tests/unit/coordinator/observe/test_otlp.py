"""TM4: pushed metrics are decoded within bounds, whatever they are."""

from __future__ import annotations

import json
import sys

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from rota.coordinator.observe import otlp
from rota.coordinator.observe.client_telemetry import ClientInstance
from rota.coordinator.observe.otlp import decode
from rota.protocol.records.batch import Codec


def metrics(points: int = 1) -> bytes:
    data = MetricsData()
    scope = data.resource_metrics.add().scope_metrics.add()
    counted = scope.metrics.add(name="org.apache.kafka.producer.record.sends", unit="1")
    for number in range(points):
        point = counted.sum.data_points.add(as_int=number)
        label = point.attributes.add(key="node")
        label.value.string_value = "1"
    latency = scope.metrics.add(name="latency")
    latency.histogram.data_points.add(sum=1.5, count=3)
    return data.SerializeToString()


def pushed(data: bytes, codec: Codec = Codec.NONE) -> ClientInstance:
    return ClientInstance({}, codec=codec, push=data)


@pytest.mark.parametrize(
    ("codec", "compress"),
    [
        (Codec.NONE, bytes),
        (Codec.GZIP, cramjam.gzip.compress),
        (Codec.ZSTD, cramjam.zstd.compress),
        (Codec.LZ4, cramjam.lz4.compress),
        (Codec.SNAPPY, cramjam.snappy.compress_raw),
    ],
)
def test_values_of_a_push_in_every_codec(codec: Codec, compress: object) -> None:
    points, why = decode(pushed(bytes(compress(metrics())), codec))  # type: ignore[operator]
    assert why == ""
    assert points == [
        {"metric": "org.apache.kafka.producer.record.sends", "unit": "1", "labels": {"node": "1"}, "value": 0},
        {"metric": "latency", "unit": "", "labels": {}, "value": 1.5, "count": 3},
    ]


def test_a_bomb_is_not_unpacked() -> None:
    data = MetricsData()
    metric = data.resource_metrics.add().scope_metrics.add().metrics.add(name="a" * otlp.DECODED_BYTES_MAX)
    metric.gauge.data_points.add(as_int=1)
    bomb = bytes(cramjam.zstd.compress(data.SerializeToString()))
    assert len(bomb) < 10_000
    points, why = decode(pushed(bomb, Codec.ZSTD))
    assert (points, why[:23]) == ([], "the push cannot be read")


def test_many_values_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(otlp, "POINTS_MAX", 5)
    points, why = decode(pushed(metrics(9)))
    assert (len(points), why) == (5, "only the first 5 values are shown")


def varint(number: int) -> bytes:
    return bytes([number & 127 | 128]) + varint(number >> 7) if number > 127 else bytes([number])


def field(tag: int, body: bytes) -> bytes:
    return bytes([tag << 3 | 2]) + varint(len(body)) + body


def test_large_texts_are_cut_in_each_of_many_values() -> None:
    data = MetricsData()
    scope = data.resource_metrics.add().scope_metrics.add()
    metric = scope.metrics.add(name="n" * 300_000, unit="u" * 300_000)
    for number in range(otlp.POINTS_MAX):
        metric.gauge.data_points.add(as_int=number)
    label = metric.gauge.data_points[0].attributes.add(key="k" * 1000)
    label.value.string_value = "v" * 1000
    points, why = decode(pushed(data.SerializeToString()))
    assert (len(points), why) == (otlp.POINTS_MAX, "")
    assert len(json.dumps(points)) < otlp.POINTS_MAX * 4 * otlp.TEXT_CHARS_MAX


def test_a_label_that_is_a_tree_is_not_written_out() -> None:
    data = MetricsData()
    metric = data.resource_metrics.add().scope_metrics.add().metrics.add(name="m")
    label = metric.gauge.data_points.add(as_int=1).attributes.add(key="k")
    label.value.array_value.values.add(string_value="v" * 1000)
    ((point,), _) = decode(pushed(data.SerializeToString()))
    assert point["labels"] == {"k": "(array_value)"}


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_messages_without_values_are_visited_up_to_a_limit(monkeypatch: pytest.MonkeyPatch, depth: int) -> None:
    monkeypatch.setattr(otlp, "VISITED_MAX", 10)
    empty = bytes([(2 if depth > 1 else 1) << 3 | 2, 0]) * 20
    for tag in (2, 1)[3 - depth :]:
        empty = field(tag, empty)
    assert decode(pushed(empty)) == ([], "only the first 0 values are shown")


def test_labels_are_read_up_to_a_limit() -> None:
    data = MetricsData()
    point = data.resource_metrics.add().scope_metrics.add().metrics.add(name="m").gauge.data_points.add(as_int=1)
    for number in range(otlp.LABELS_MAX + 1):
        point.attributes.add(key=str(number))
    ((shown,), _) = decode(pushed(data.SerializeToString()))
    assert len(shown["labels"]) == otlp.LABELS_MAX


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_a_value_that_json_has_not_is_a_text(value: float) -> None:
    data = MetricsData()
    scope = data.resource_metrics.add().scope_metrics.add()
    scope.metrics.add(name="g").gauge.data_points.add(as_double=value)
    scope.metrics.add(name="h").histogram.data_points.add(sum=value, count=1)
    points, _ = decode(pushed(data.SerializeToString()))
    assert [point["value"] for point in points] == [str(value)] * 2
    json.dumps(points, allow_nan=False)


@given(st.binary(max_size=300), st.sampled_from(Codec))
def test_hostile_bytes_raise_nothing(data: bytes, codec: Codec) -> None:
    decode(pushed(data, codec))


def test_without_the_package_the_counts_remain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.proto.metrics.v1.metrics_pb2", None)
    assert decode(pushed(metrics())) == ([], otlp.NOT_INSTALLED)
