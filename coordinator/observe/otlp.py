"""Decodes the metrics that a client pushed: OpenTelemetry's MetricsData, with the package `opentelemetry-proto`.

Law
    TM4 Whatever bytes a client pushed, decoding them ends in bounded memory: DECODED_BYTES_MAX after decompression and
        POINTS_MAX values; what cannot be read is reported, not raised.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from rota.coordinator.observe.client_telemetry import ClientInstance
from rota.protocol.records.codecs import decompress
from rota.protocol.records.errors import CorruptBatch

DECODED_BYTES_MAX: Final = 4 << 20
POINTS_MAX: Final = 2_000
NOT_INSTALLED: Final = "install rota[telemetry] to see the values"

Point = dict[str, Any]


def decode(instance: ClientInstance) -> tuple[list[Point], str]:
    """Return the values of the instance's last push, and why there are none or not all; "" when all are there."""
    try:
        from google.protobuf.message import DecodeError
        from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData
    except ImportError:
        return [], NOT_INSTALLED
    try:
        data = MetricsData.FromString(decompress(instance.codec, instance.push, DECODED_BYTES_MAX))
    except (CorruptBatch, DecodeError) as error:
        return [], f"the push cannot be read: {error}"
    points: list[Point] = []
    for point in _points(data):
        if len(points) == POINTS_MAX:
            return points, f"only the first {POINTS_MAX} values are shown"
        points.append(point)
    return points, ""


def _points(data: Any) -> Iterator[Point]:
    for resource in data.resource_metrics:
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                yield from _metric(metric)


def _metric(metric: Any) -> Iterator[Point]:
    kind = metric.WhichOneof("data")
    for point in getattr(metric, kind).data_points if kind else ():
        yield {"metric": metric.name, "unit": metric.unit, "labels": _labels(point), **_value(kind, point)}


def _value(kind: str, point: Any) -> dict[str, Any]:
    if kind in ("gauge", "sum"):
        which = point.WhichOneof("value")
        return {"value": None if which is None else getattr(point, which)}
    return {"value": point.sum, "count": point.count}


def _labels(point: Any) -> dict[str, str]:
    return {
        each.key: str(getattr(each.value, each.value.WhichOneof("value") or "string_value"))
        for each in point.attributes
    }
