from __future__ import annotations

from typing import Any

import pytest
from tests.unit.coordinator.api.access import access_world
from tests.unit.coordinator.api.access.access_world import GROUP, MISSING, TOPIC, TRANSACTION, AccessWorld, granted
from tests.unit.coordinator.api.transaction_world import errors_of, topics_of

from rota.protocol.errors import ErrorCode
from rota.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from rota.protocol.messages.describe_transactions import DescribeTransactionsRequest, TopicData
from rota.protocol.messages.list_transactions import ListTransactionsRequest

E = ErrorCode
WRITE, DESCRIBE = (f"TRANSACTIONAL_ID:LITERAL:{TRANSACTION} {operation}" for operation in ("WRITE", "DESCRIBE"))


def add(world: AccessWorld, **topics: tuple[int, ...]) -> dict[tuple[str, int], ErrorCode]:
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=TRANSACTION,
        v3_and_below_producer_id=0,
        v3_and_below_producer_epoch=0,
        v3_and_below_topics=topics_of(topics),
    )
    return errors_of(world.send(24, request, 3).results_by_topic_v3_and_below)


def test_a_producer_writes_to_its_transactional_id_and_to_every_topic() -> None:
    world = AccessWorld(granted(WRITE, f"TOPIC:LITERAL:{TOPIC} WRITE"))
    assert add(world, secret=(0, 1)) == {(TOPIC, 0): E.NONE, (TOPIC, 1): E.NONE}
    assert add(world, secret=(0,), t=(0,), missing=(0,)) == {
        (TOPIC, 0): E.OPERATION_NOT_ATTEMPTED,
        ("t", 0): E.TOPIC_AUTHORIZATION_FAILED,
        (MISSING, 0): E.TOPIC_AUTHORIZATION_FAILED,
    }
    denied = AccessWorld(granted(f"TOPIC:LITERAL:{TOPIC} WRITE"))
    assert add(denied, secret=(0,)) == {(TOPIC, 0): E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED}


def test_a_missing_partition_is_named_beside_a_denied_one() -> None:
    world = AccessWorld(granted(WRITE, f"TOPIC:LITERAL:{TOPIC} WRITE"))
    assert add(world, secret=(99,), t=(0,))[TOPIC, 99] is E.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("version", [4, 5])
def test_many_transactions_are_changed_by_brokers_alone(version: int) -> None:
    for request in access_world.add_partitions_to_txn(version):
        response = AccessWorld(granted(WRITE, f"TOPIC:LITERAL:{TOPIC} WRITE")).send(24, request, version)
        assert (response.error_code, response.results_by_transaction) == (E.CLUSTER_AUTHORIZATION_FAILED, ())
        response = AccessWorld(granted("CLUSTER:LITERAL:kafka-cluster CLUSTER_ACTION")).send(24, request, version)
        assert response.error_code == E.NONE
        assert errors_of(response.results_by_transaction[0].topic_results) == {(TOPIC, 0): E.NONE}


@pytest.mark.parametrize(
    ("grants", "code"),
    [
        ((WRITE, f"GROUP:LITERAL:{GROUP} READ"), E.NONE),
        ((WRITE,), E.GROUP_AUTHORIZATION_FAILED),
        ((f"GROUP:LITERAL:{GROUP} READ",), E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
    ],
)
def test_offsets_need_the_group_too(grants: tuple[str, ...], code: ErrorCode) -> None:
    (request,) = access_world.add_offsets_to_txn(4)
    assert AccessWorld(granted(*grants)).send(25, request, 4).error_code == code


def test_a_transaction_is_ended_with_write() -> None:
    (request,) = access_world.end_txn(4)
    assert AccessWorld(granted(WRITE)).send(26, request, 4).error_code == E.NONE
    assert AccessWorld(granted(DESCRIBE)).send(26, request, 4).error_code == E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


def described(*grants: str) -> list[Any]:
    request = DescribeTransactionsRequest(transactional_ids=(MISSING, TRANSACTION))
    return list(AccessWorld(granted(*grants)).send(65, request, 0).transaction_states)


def test_a_transaction_is_described_with_the_topics_that_may_be_described() -> None:
    missing, state = described(DESCRIBE)
    assert (missing.error_code, state.error_code, state.topics) == (E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, 0, ())
    _, state = described(DESCRIBE, f"TOPIC:LITERAL:{TOPIC} DESCRIBE")
    assert state.topics == (TopicData(topic=TOPIC, partitions=(0,)),)
    assert [(each.transactional_id, each.error_code) for each in described()] == [
        (MISSING, E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
        (TRANSACTION, E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
    ]


def test_a_list_has_the_ids_that_may_be_described() -> None:
    for grants, ids in ((DESCRIBE,), [TRANSACTION]), ((), []):
        response = AccessWorld(granted(*grants)).send(66, ListTransactionsRequest(), 1)
        assert [each.transactional_id for each in response.transaction_states] == ids
