"""Decodes the metrics that a client pushed: OpenTelemetry's MetricsData, with the package `opentelemetry-proto`.

Law
    TM4 Whatever bytes a client pushed, decoding them ends in bounded memory: DECODED_BYTES_MAX after decompression and
        POINTS_MAX values with TEXT_CHARS_MAX of each text and LABELS_MAX labels, after VISITED_MAX messages. What
        cannot be read is reported, not raised.
    TM5 What is returned can be written as JSON: a number that JSON has not is a text.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

from rota.coordinator.observe.client_telemetry import ClientInstance
from rota.protocol.records.codecs import decompress
from rota.protocol.records.errors import CorruptBatch

DECODED_BYTES_MAX: Final = 1 << 20
POINTS_MAX: Final = 2_000
VISITED_MAX: Final = 2 * POINTS_MAX  # messages: scopes and metrics without values, too
TEXT_CHARS_MAX: Final = 256
LABELS_MAX: Final = 32
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
    for visited, point in enumerate(_visited(data)):
        if len(points) == POINTS_MAX or visited == VISITED_MAX:
            return points, f"only the first {len(points)} values are shown"
        if point is not None:
            points.append(point)
    return points, ""


def _visited(data: Any) -> Iterator[Point | None]:
    """Yield each message: a value, or None for one that only contains others."""
    for resource in data.resource_metrics:
        yield None
        for scope in resource.scope_metrics:
            yield None
            for metric in scope.metrics:
                yield None
                yield from _metric(metric)


def _metric(metric: Any) -> Iterator[Point]:
    kind, name, unit = metric.WhichOneof("data"), metric.name[:TEXT_CHARS_MAX], metric.unit[:TEXT_CHARS_MAX]
    for point in getattr(metric, kind).data_points if kind else ():
        yield {"metric": name, "unit": unit, "labels": _labels(point), **_value(kind, point)}


def _value(kind: str, point: Any) -> dict[str, Any]:
    if kind in ("gauge", "sum"):
        which = point.WhichOneof("value")
        return {"value": None if which is None else _number(getattr(point, which))}
    return {"value": _number(point.sum), "count": point.count}


def _number(value: float) -> float | str:
    return value if math.isfinite(value) else str(value)


def _labels(point: Any) -> dict[str, str]:
    return {each.key[:TEXT_CHARS_MAX]: _label(each.value) for each in islice(point.attributes, LABELS_MAX)}


def _label(value: Any) -> str:
    which = value.WhichOneof("value") or "string_value"
    if which in ("array_value", "kvlist_value"):
        return f"({which})"  # as large as a push
    return str(
        getattr(value, which)[:TEXT_CHARS_MAX] if which in ("string_value", "bytes_value") else getattr(value, which)
    )
