"""TM4: pushed metrics are decoded within bounds, whatever they are."""

from __future__ import annotations

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


@given(st.binary(max_size=300), st.sampled_from(Codec))
def test_hostile_bytes_raise_nothing(data: bytes, codec: Codec) -> None:
    decode(pushed(data, codec))


def test_without_the_package_the_counts_remain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.proto.metrics.v1.metrics_pb2", None)
    assert decode(pushed(metrics())) == ([], otlp.NOT_INSTALLED)
