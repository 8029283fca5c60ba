"""Each answer is what Apache Kafka 4.3.1 gave to the same request, but for transactions, which are refused."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.coordinator.api.data_world import World, answered

from rota.coordinator.api.init_producer_id import init_producer_id
from rota.coordinator.metadata import eager_tasks
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse


def send_request(
    world: World, transactional_id: str | None = None, timeout_ms: int = 60_000, had: tuple[int, int] = (-1, -1)
) -> InitProducerIdResponse:
    request = InitProducerIdRequest(
        transactional_id=transactional_id,
        transaction_timeout_ms=timeout_ms,
        producer_id=had[0],
        producer_epoch=had[1],
    )
    reply: Any = world.serve(init_producer_id, request, 5)
    response = reply if isinstance(reply, InitProducerIdResponse) else answered(reply)
    assert isinstance(response, InitProducerIdResponse)
    return response


def test_each_producer_gets_an_id_of_its_own() -> None:
    world = World()
    ids = [send_request(world).producer_id for _ in range(2500)]
    assert len(set(ids)) == len(ids)
    assert {send_request(world).producer_epoch for _ in range(3)} == {0}


@pytest.mark.parametrize("had", [(3, 0), (99999, 7), (3, 32767)])
def test_a_producer_with_an_id_gets_a_new_one(had: tuple[int, int]) -> None:
    response = send_request(World(), had=had)
    assert (response.error_code, response.producer_epoch) == (0, 0)
    assert response.producer_id != had[0]


@pytest.mark.parametrize("timeout_ms", [-1, 10**9])
def test_the_timeout_of_no_transaction_does_not_matter(timeout_ms: int) -> None:
    assert send_request(World(), timeout_ms=timeout_ms).error_code == 0


@pytest.mark.parametrize(
    ("how", "code"),
    [
        ({"had": (-1, 5)}, ErrorCode.INVALID_REQUEST),
        ({"had": (5, -1)}, ErrorCode.INVALID_REQUEST),
        ({"transactional_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"transactional_id": "tx", "timeout_ms": 900_001}, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        ({"transactional_id": "tx", "timeout_ms": 0}, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        ({"transactional_id": "tx"}, ErrorCode.NOT_COORDINATOR),
    ],
)
def test_refusals(how: dict[str, Any], code: ErrorCode) -> None:
    response = send_request(World(), **how)
    assert (response.error_code, response.producer_id, response.producer_epoch) == (code, -1, -1)


def test_without_the_metadata_store_a_producer_gets_a_retriable_error() -> None:
    world = World()
    eager_tasks.run_eagerly(world.node.topics.store.close())
    response = send_request(world)
    assert response.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert ErrorCode.of(response.error_code).retriable
