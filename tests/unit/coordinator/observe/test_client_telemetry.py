"""TM1-TM3: the metrics that clients push."""

from __future__ import annotations

import pytest

from rota.coordinator.observe import client_telemetry
from rota.coordinator.observe.client_telemetry import ClientTelemetry, Push, Subscription, shown, subscription_of
from rota.protocol.errors import ErrorCode
from rota.protocol.records.batch import Codec

ONE, TWO = b"1" * 16, b"2" * 16
LABELS = {"client_id": "app-1", "client_software_name": "librdkafka"}
SUBSCRIPTION = Subscription(("a.",), 1_000, 7)


def push(
    metrics: bytes = b"m", *, subscription_id: int = 7, terminating: bool = False, codec: int = Codec.NONE
) -> Push:
    return Push(subscription_id, terminating, codec, metrics, bytes_max=1 << 20, wall_ms=5)


class Client:
    """One instance; `at` is the time of the next request, in ms."""

    def __init__(self, telemetry: ClientTelemetry, instance_id: bytes = ONE) -> None:
        self._telemetry, self._id = telemetry, instance_id

    def request(self, at: int) -> ErrorCode:
        return self._telemetry.request(self._id, LABELS, SUBSCRIPTION, at)

    def push(self, at: int, what: Push | None = None) -> ErrorCode:
        return self._telemetry.push(self._id, LABELS, SUBSCRIPTION, what or push(), at)


def test_a_push_follows_each_request_at_once_and_else_its_interval() -> None:
    client = Client(ClientTelemetry())
    assert client.request(0) == client.push(1) == ErrorCode.NONE
    assert client.push(1_000) == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert client.push(1_001) == ErrorCode.NONE
    assert client.request(1_500) == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert client.request(2_001) == client.push(2_002) == ErrorCode.NONE


def test_after_its_last_push_a_client_is_refused() -> None:
    client = Client(ClientTelemetry())
    assert client.request(0) == client.push(1) == ErrorCode.NONE
    assert client.push(2, push(terminating=True)) == ErrorCode.NONE
    assert client.push(5_000) == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    ("what", "code"),
    [
        (push(subscription_id=8), ErrorCode.UNKNOWN_SUBSCRIPTION_ID),
        (push(codec=9), ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        (push(b"m" * ((1 << 20) + 1)), ErrorCode.TELEMETRY_TOO_LARGE),
    ],
)
def test_a_refused_push_is_not_stored_and_can_be_repeated_at_once(what: Push, code: ErrorCode) -> None:
    telemetry = ClientTelemetry()
    client = Client(telemetry)
    assert client.request(0) == ErrorCode.NONE
    assert client.push(1, what) == code
    assert (telemetry.pushes, telemetry.refused, telemetry.instances()[ONE].push) == (0, 1, b"")
    expected = ErrorCode.THROTTLING_QUOTA_EXCEEDED if code is ErrorCode.TELEMETRY_TOO_LARGE else ErrorCode.NONE
    assert client.request(2) == expected


def test_subscription_ids_are_equal_on_all_brokers_so_a_moved_client_may_push() -> None:
    subscriptions = [{"metrics": "b.,a.", "interval.ms": "500"}, {"metrics": "a.", "match": "client_id=app-.*"}]
    first, second = (subscription_of(ONE, LABELS, list(order)) for order in (subscriptions, subscriptions[::-1]))
    assert first == second
    assert (first.metrics, first.interval_ms) == (("a.", "b."), 500)
    assert first.subscription_id != subscription_of(TWO, LABELS, subscriptions).subscription_id
    telemetry = ClientTelemetry()
    here = push(subscription_id=first.subscription_id)
    assert telemetry.push(ONE, LABELS, first, here, 0) == ErrorCode.NONE


def test_subscriptions_match_by_every_attribute_that_they_name() -> None:
    match = "client_id=app-[0-9],client_software_name=librdkafka"
    assert subscription_of(ONE, LABELS, [{"metrics": "*", "match": match}]).metrics == ("*",)
    for other in ({**LABELS, "client_id": "app-10"}, {**LABELS, "client_software_name": "x"}, {}):
        assert subscription_of(ONE, other, [{"metrics": "*", "match": match}]).metrics == ()


def test_instances_and_bytes_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_telemetry, "INSTANCES_MAX", 3)
    monkeypatch.setattr(client_telemetry, "PUSHED_BYTES_MAX", 100)
    telemetry = ClientTelemetry()
    ids = [bytes([number]) * 16 for number in range(5)]
    for instance_id in ids:
        telemetry.request(instance_id, {"client_id": "x" * 30_000}, SUBSCRIPTION, 0)
    assert list(telemetry.instances()) == ids[2:]
    assert len(telemetry.instances()[ids[4]].labels["client_id"]) == client_telemetry.LABEL_CHARS_MAX
    for instance_id in ids[2:]:
        assert Client(telemetry, instance_id).push(1, push(b"m" * 40)) == ErrorCode.NONE
    assert list(telemetry.instances()) == ids[3:]
    assert sum(len(each.push) for each in telemetry.instances().values()) == 80
    for at in range(2_000, 9_000, 1_000):
        assert Client(telemetry, ids[4]).push(at, push(b"m" * 60)) == ErrorCode.NONE
    assert len(telemetry) == 2


def test_an_instance_shows_its_client_and_its_pushes() -> None:
    telemetry = ClientTelemetry()
    Client(telemetry).request(0)
    Client(telemetry).push(1, push(b"abc"))
    (instance,) = shown(telemetry)["instances"]
    assert (instance["client_id"], instance["pushes"], instance["pushed_bytes"], instance["last_push_ms"]) == (
        "app-1",
        1,
        3,
        5,
    )
