"""The metrics that clients push (KIP-714): subscriptions, due pushes, and the last push of each client.

Pure. A push is kept as it came; `otlp.py` decodes it for those who look at it.

Laws
    TM1 The memory is bounded whatever clients push: INSTANCES_MAX instances with LABEL_CHARS_MAX of each text, and
        PUSHED_BYTES_MAX of pushes. Beyond that the instances that were silent for longest are forgotten.
    TM2 The same subscriptions give an instance the same subscription id on every broker, so that a client that changes
        its broker may push there at once.
    TM3 A client pushes once in its push interval, and once after each GetTelemetrySubscriptions; after a push that says
        it is the last one, none is accepted.

Source: KIP-714; org.apache.kafka.server.ClientMetricsManager for what it leaves open.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, Final
from zlib import crc32

from rota.coordinator.config.client_metrics import CLIENT_METRICS, parse_match
from rota.protocol.dataclass import dataclass
from rota.protocol.errors import ErrorCode
from rota.protocol.records.batch import Codec

INSTANCES_MAX: Final = 4_096
LABEL_CHARS_MAX: Final = 256
PUSHED_BYTES_MAX: Final = 32 << 20
PUSH_BYTES_MAX: Final = 1 << 20  # of one push that is kept; a larger one is counted
ALL_METRICS: Final = "*"
COMPRESSION_TYPES: Final = (Codec.ZSTD, Codec.LZ4, Codec.GZIP, Codec.SNAPPY)
_INTERVAL_MS_DEFAULT: Final = int(CLIENT_METRICS["interval.ms"].default or 0)
_RETRIED: Final = (ErrorCode.UNKNOWN_SUBSCRIPTION_ID, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)


@dataclass(frozen=True, slots=True)
class Subscription:
    """The subscription of one instance: prefixes of metric names, and the push interval."""

    metrics: tuple[str, ...]
    interval_ms: int
    subscription_id: int


@dataclass(slots=True)
class ClientInstance:
    """One client instance. Times are elapsed ms; `pushed_at_ms` is ms since the epoch."""

    labels: Mapping[str, str]
    interval_ms: int = _INTERVAL_MS_DEFAULT
    get_ms: int | None = None
    push_ms: int | None = None
    last_error: ErrorCode = ErrorCode.NONE
    is_terminating: bool = False
    pushes: int = 0
    pushed_bytes: int = 0  # in all
    pushed_at_ms: int = -1
    codec: Codec = Codec.NONE
    push: bytes = field(default=b"", repr=False)  # the last one


class ClientTelemetry:
    """The client instances of one broker. `pushes`, `refused` and `pushed_bytes` count since the start."""

    def __init__(self) -> None:
        self.pushes = self.refused = self.pushed_bytes = 0
        self._instances: OrderedDict[bytes, ClientInstance] = OrderedDict()  # the one that was silent for longest first
        self._kept_bytes = 0

    def __len__(self) -> int:
        return len(self._instances)

    def instances(self) -> dict[bytes, ClientInstance]:
        """Return the known instances by id."""
        return dict(self._instances)

    def request(
        self, instance_id: bytes, labels: Mapping[str, str], subscription: Subscription, now_ms: int
    ) -> ErrorCode:
        """Handle a request for a subscription. Return THROTTLING_QUOTA_EXCEEDED when the client requests too often."""
        instance = self._instance(instance_id, labels)
        instance.interval_ms = subscription.interval_ms
        last_ms = max((each for each in (instance.get_ms, instance.push_ms) if each is not None), default=None)
        is_early = last_ms is not None and now_ms - last_ms < instance.interval_ms
        if is_early and instance.last_error not in _RETRIED:
            return self._refuse(instance, ErrorCode.THROTTLING_QUOTA_EXCEEDED)
        instance.get_ms, instance.last_error = now_ms, ErrorCode.NONE
        return ErrorCode.NONE

    def push(
        self, instance_id: bytes, labels: Mapping[str, str], subscription: Subscription, push: Push, now_ms: int
    ) -> ErrorCode:
        """A client pushes its metrics. Return NONE, or why they are not accepted (TM3)."""
        instance = self._instance(instance_id, labels)
        instance.interval_ms = subscription.interval_ms
        if instance.is_terminating:
            return self._refuse(instance, ErrorCode.INVALID_REQUEST)
        if not self._is_due(instance, now_ms) and not push.terminating:
            return self._refuse(instance, ErrorCode.THROTTLING_QUOTA_EXCEEDED)
        instance.push_ms = now_ms
        if push.subscription_id != subscription.subscription_id:
            return self._refuse(instance, ErrorCode.UNKNOWN_SUBSCRIPTION_ID)
        if push.compression_type not in (Codec.NONE, *COMPRESSION_TYPES):
            return self._refuse(instance, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
        if len(push.metrics) > push.bytes_max:
            return self._refuse(instance, ErrorCode.TELEMETRY_TOO_LARGE)
        instance.is_terminating, instance.last_error = push.terminating, ErrorCode.NONE
        if push.metrics:
            self._keep(instance, push)
        return ErrorCode.NONE

    # ---- inside

    def _instance(self, instance_id: bytes, labels: Mapping[str, str]) -> ClientInstance:
        instance = self._instances.get(instance_id)
        short = {name: text[:LABEL_CHARS_MAX] for name, text in labels.items()}
        if instance is None:
            instance = self._instances[instance_id] = ClientInstance(short)
        instance.labels = short
        self._instances.move_to_end(instance_id)
        self._forget()
        return instance

    def _is_due(self, instance: ClientInstance, now_ms: int) -> bool:
        if instance.push_ms is None or (instance.get_ms is not None and instance.get_ms > instance.push_ms):
            return True
        return now_ms - instance.push_ms >= instance.interval_ms

    def _refuse(self, instance: ClientInstance, code: ErrorCode) -> ErrorCode:
        self.refused += 1
        instance.last_error = code
        return code

    def _keep(self, instance: ClientInstance, push: Push) -> None:
        size = len(push.metrics)
        self.pushes += 1
        self.pushed_bytes += size
        instance.pushes += 1
        instance.pushed_bytes += size
        instance.pushed_at_ms, instance.codec = push.wall_ms, Codec(push.compression_type)
        kept = bytes(push.metrics) if size <= PUSH_BYTES_MAX else b""
        self._kept_bytes += len(kept) - len(instance.push)
        instance.push = kept
        self._forget()

    def _forget(self) -> None:
        """TM1."""
        while len(self._instances) > INSTANCES_MAX or self._kept_bytes > PUSHED_BYTES_MAX:
            _, forgotten = self._instances.popitem(last=False)
            self._kept_bytes -= len(forgotten.push)


@dataclass(frozen=True, slots=True)
class Push:
    """One PushTelemetry. `bytes_max` is telemetry.max.bytes; `wall_ms` is ms since the epoch."""

    subscription_id: int
    terminating: bool
    compression_type: int
    metrics: bytes
    bytes_max: int
    wall_ms: int


def subscription_of(
    instance_id: bytes, labels: Mapping[str, str], subscriptions: Sequence[Mapping[str, str]]
) -> Subscription:
    """Return the union of the subscriptions that match an instance, with the shortest interval."""
    matching = [each for each in subscriptions if _matches(each, labels)]
    names = {name.strip() for each in matching for name in each.get("metrics", "").split(",")} - {""}
    metrics = (ALL_METRICS,) if ALL_METRICS in names else tuple(sorted(names))
    intervals = [int(each.get("interval.ms", _INTERVAL_MS_DEFAULT)) for each in matching]
    interval_ms = min(intervals, default=_INTERVAL_MS_DEFAULT)
    number = crc32(instance_id + repr((metrics, interval_ms)).encode())
    return Subscription(metrics, interval_ms, number - (1 << 31))


def _matches(subscription: Mapping[str, str], labels: Mapping[str, str]) -> bool:
    patterns = parse_match(subscription.get("match", ""))
    return all(pattern.fullmatch(labels.get(name, "")[:LABEL_CHARS_MAX]) for name, pattern in patterns.items())


def shown(telemetry: ClientTelemetry) -> dict[str, Any]:
    """Return the instances and counts as JSON values, without the metrics themselves."""
    return {
        "pushes": telemetry.pushes,
        "pushed_bytes": telemetry.pushed_bytes,
        "refused": telemetry.refused,
        "instances": [
            {
                **instance.labels,
                "push_interval_ms": instance.interval_ms,
                "pushes": instance.pushes,
                "pushed_bytes": instance.pushed_bytes,
                "last_push_ms": instance.pushed_at_ms,
                "is_terminating": instance.is_terminating,
            }
            for instance in telemetry.instances().values()
        ],
    }
