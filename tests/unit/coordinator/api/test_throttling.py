"""Produce and Fetch under quotas of clients (KIP-13, KIP-219)."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from tests.unit.coordinator.api.data_world import World, answered, batch, fetch_request, produce_request
from tests.unit.coordinator.api.test_alter_client_quotas import alter, entry

from rota.coordinator.api.fetch import fetch
from rota.coordinator.api.node import Call
from rota.coordinator.api.produce import produce
from rota.coordinator.replica.client_throttle import ClientThrottle

BURST_WINDOWS = 10
RECORDS = batch(b"x" * 10_000)


class Throttled(World):
    """A broker with a quota of user ANONYMOUS that is `spare` times the batch over all windows."""

    def __init__(self, key: str, spare: float) -> None:
        super().__init__()
        ClientThrottle(
            self.node.topics,
            partial(setattr, self.node, "client_throttle"),
            self.node.now_ms,
            windows=BURST_WINDOWS + 1,
            window_ms=1_000,
        )
        self.topic()
        self.muted_ms: list[int] = []
        self.rate = int(spare * len(RECORDS) / BURST_WINDOWS)
        self.set(key, self.rate)

    def set(self, key: str, rate: int | None) -> None:
        assert alter(self, entry({"user": "ANONYMOUS"}, (key, rate))) == [(0, None)]

    def ask(self, api: Any, request: Any, version: int) -> Any:
        call = Call(version, "test", "/127.0.0.1", "127.0.0.1", 9092, 1, mute=self.muted_ms.append)
        return api(self.node, call, request)


@pytest.mark.parametrize("acks", [-1, 1])
def test_a_producer_above_its_quota_is_throttled_and_its_records_are_written(acks: int) -> None:
    world = Throttled("producer_byte_rate", 1.5)
    assert world.ask(produce, produce_request(RECORDS, acks=acks), 9).throttle_time_ms == 0
    response = world.ask(produce, produce_request(RECORDS, acks=acks), 9)
    over_ms = 1_000 * 2 * len(RECORDS) // world.rate - 10_000
    assert response.throttle_time_ms in (over_ms, over_ms + 1)
    assert world.muted_ms == [response.throttle_time_ms]
    assert world.partition().high_watermark == 2


def test_a_producer_without_responses_is_muted() -> None:
    world = Throttled("producer_byte_rate", 0.5)
    assert world.ask(produce, produce_request(RECORDS, acks=0), 9) is None
    assert len(world.muted_ms) == 1


def test_a_throttled_consumer_gets_an_empty_response_and_its_records_after_the_throttle_time() -> None:
    world = Throttled("consumer_byte_rate", 1.5)
    world.ask(produce, produce_request(RECORDS), 9)
    ask = partial(world.ask, fetch, fetch_request(("t", 0, 0)), 12)
    assert ask().responses[0].partitions[0].records
    throttled = ask()
    assert (throttled.responses, throttled.session_id, throttled.error_code) == ((), 0, 0)
    assert world.muted_ms == [throttled.throttle_time_ms]
    world.now_ms += BURST_WINDOWS * 1_000 + throttled.throttle_time_ms
    assert ask().responses[0].partitions[0].records
    assert len(world.muted_ms) == 1


def test_a_session_goes_on_after_a_throttled_response() -> None:
    world = Throttled("consumer_byte_rate", 1.5)
    first = world.ask(fetch, fetch_request(("t", 0, 0), session_epoch=0), 12)
    assert first.session_id > 0
    for _ in range(2):
        world.ask(produce, produce_request(RECORDS), 9)
    session = {"session_id": first.session_id, "max_bytes": len(RECORDS)}
    ask = partial(world.ask, fetch)
    sent = ask(fetch_request(("t", 0, 0), session_epoch=1, **session), 12)
    assert sent.responses[0].partitions[0].records
    throttled = ask(fetch_request(("t", 0, 1), session_epoch=2, **session), 12)
    assert (throttled.session_id, throttled.responses, throttled.error_code) == (first.session_id, (), 0)
    assert throttled.throttle_time_ms > 0
    world.now_ms += 2 * BURST_WINDOWS * 1_000
    assert ask(fetch_request(session_epoch=3, **session), 12).responses[0].partitions[0].records


def test_a_fetch_that_waited_is_throttled_when_it_ends() -> None:
    world = Throttled("consumer_byte_rate", 1.5)
    world.ask(produce, produce_request(RECORDS), 9)
    ask = partial(world.ask, fetch, version=12)
    ask(fetch_request(("t", 0, 0)))
    reply = ask(fetch_request(("t", 0, 1), max_wait_ms=500))
    assert not reply.answered
    world.set("consumer_byte_rate", world.rate // 2)
    world.after(500)
    response = answered(reply)
    assert response.responses == ()
    assert world.muted_ms == [response.throttle_time_ms]


def test_without_quotas_nothing_is_throttled() -> None:
    world = Throttled("producer_byte_rate", 0.1)
    world.set("producer_byte_rate", None)
    assert world.node.client_throttle is None
    assert world.ask(produce, produce_request(RECORDS), 9).throttle_time_ms == 0
    assert world.muted_ms == []


def test_requests_of_the_broker_itself_are_not_throttled() -> None:
    world = Throttled("producer_byte_rate", 0.1)
    assert world.serve(produce, produce_request(RECORDS), 9).throttle_time_ms == 0
    world.set("consumer_byte_rate", 1)
    for _ in range(2):
        assert world.serve(fetch, fetch_request(("t", 0, 0)), 12).throttle_time_ms == 0
