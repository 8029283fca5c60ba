from __future__ import annotations

import pytest
from tests.unit.coordinator.api.transaction_world import TransactionWorld

from rota.coordinator.api.add_offsets_to_txn import add_offsets_to_txn
from rota.coordinator.metadata.topic import CONSUMER_OFFSETS
from rota.coordinator.transaction.state import TransactionValue
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest

E = ErrorCode


def send_request(world: TransactionWorld, producer: tuple[int, int], id_: str = "tx", version: int = 4) -> ErrorCode:
    request = AddOffsetsToTxnRequest(
        transactional_id=id_, producer_id=producer[0], producer_epoch=producer[1], group_id="g"
    )
    return E(world.send_request(add_offsets_to_txn, request, version).error_code)


def test_the_partition_of_the_group_is_in_the_transaction() -> None:
    world = TransactionWorld()
    producer = world.began()
    assert send_request(world, producer) is E.NONE
    value = world.node.transactions.describe("tx")
    assert isinstance(value, TransactionValue)
    assert value.partitions == (("t", 0), (CONSUMER_OFFSETS, world.node.groups.partition_of("g")))


@pytest.mark.parametrize("version", range(5))
def test_each_version_says_that_a_producer_is_fenced(version: int) -> None:
    world = TransactionWorld()
    producer_id, epoch = world.began()
    code = send_request(world, (producer_id, epoch + 1), version=version)
    assert code is (E.INVALID_PRODUCER_EPOCH if version < 2 else E.PRODUCER_FENCED)


def test_an_id_is_needed() -> None:
    assert send_request(TransactionWorld(), (0, 0), id_="") is E.INVALID_REQUEST
