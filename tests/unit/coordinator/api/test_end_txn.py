from __future__ import annotations

import pytest
from tests.unit.coordinator.api.transaction_world import TransactionWorld

from rota.protocol.errors import ErrorCode

E = ErrorCode


@pytest.mark.parametrize("version", range(6))
def test_each_version_says_that_a_producer_is_fenced(version: int) -> None:
    world = TransactionWorld()
    producer_id, epoch = world.began()
    assert world.end((producer_id, epoch + 1), version=version) == (
        E.INVALID_PRODUCER_EPOCH if version < 2 else E.PRODUCER_FENCED,
        -1,
        -1,
    )
    assert world.state() == "Ongoing"


@pytest.mark.parametrize("version", range(6))
def test_a_transaction_is_committed(version: int) -> None:
    world = TransactionWorld()
    producer_id, epoch = world.began()
    error, _, next_epoch = world.end((producer_id, epoch), version=version)
    assert (error, next_epoch) == (E.NONE, epoch + (version == 5))
    assert world.state() == "CompleteCommit"


def test_without_an_id_or_its_coordinator_nothing_ends() -> None:
    world = TransactionWorld()
    assert world.end((0, 0), id_="")[0] is E.INVALID_REQUEST
    assert world.end((0, 0), id_="unknown")[0] is E.INVALID_PRODUCER_ID_MAPPING
    assert world.end((0, 0), id_="unknown", version=5)[0] is E.INVALID_PRODUCER_ID_MAPPING
