"""Positions: what stays and what goes, and position_epochs that are never the same."""

from __future__ import annotations

import pytest
from tests.unit.client.consumer.kit import P0, P1, P2

from rota.client.consumer.positions import Positions
from rota.client.errors import IllegalUse
from rota.client.types import OffsetAndMetadata


@pytest.fixture
def positions() -> Positions:
    positions = Positions()
    positions.assign([P0, P1])
    return positions


def test_a_new_partition_has_no_offset(positions: Positions) -> None:
    assert positions.assigned == {P0, P1}
    assert positions.without_offset() == (P0, P1)
    assert positions.of(P0).reset is None
    assert list(positions.fetchable()) == []


def test_a_partition_that_stays_assigned_keeps_its_position_and_pause(positions: Positions) -> None:
    positions.seek(P0, 5, 2)
    positions.pause([P0])
    position_epoch = positions.of(P0).position_epoch
    positions.assign([P0, P2])
    kept = positions.of(P0)
    assert (kept.offset, kept.leader_epoch, kept.paused, kept.position_epoch) == (5, 2, True, position_epoch)
    assert positions.assigned == {P0, P2}


def test_a_partition_assigned_again_is_new(positions: Positions) -> None:
    positions.seek(P0, 5)
    positions.pause([P0])
    position_epoch = positions.of(P0).position_epoch
    positions.drop([P0])
    assert positions.find(P0) is None
    positions.assign([P0, P1])
    back = positions.of(P0)
    assert (back.offset, back.paused) == (None, False)
    assert back.position_epoch > position_epoch


def test_every_move_is_another_next_epoch(positions: Positions) -> None:
    position_epochs = {positions.of(P0).position_epoch, positions.of(P1).position_epoch}
    for move in (lambda: positions.seek(P0, 5), lambda: positions.reset(P0, "latest"), lambda: positions.seek(P0, 5)):
        move()
        position_epochs.add(positions.of(P0).position_epoch)
    assert len(position_epochs) == 5


def test_a_reset_takes_the_offset_and_a_seek_ends_it(positions: Positions) -> None:
    positions.seek(P0, 5, 1)
    positions.reset(P0, "earliest")
    found = positions.of(P0)
    assert (found.offset, found.leader_epoch, found.reset) == (None, -1, "earliest")
    assert positions.without_offset() == (P0, P1)
    positions.seek(P0, 0)
    assert positions.of(P0).reset is None
    assert positions.without_offset() == (P1,)


def test_paused_partitions_are_not_fetchable(positions: Positions) -> None:
    positions.seek(P0, 5)
    positions.seek(P1, 6)
    positions.pause([P0])
    assert positions.paused == {P0}
    assert [partition for partition, _ in positions.fetchable()] == [P1]
    positions.resume([P0])
    assert [partition for partition, _ in positions.fetchable()] == [P0, P1]


def test_a_pause_is_for_all_or_none(positions: Positions) -> None:
    for change in (positions.pause, positions.resume):
        with pytest.raises(IllegalUse, match="orders-2 is not assigned to this consumer; assigned: orders-0, orders-1"):
            change([P0, P2])
    assert positions.paused == frozenset()


def test_consumed_has_the_positions_with_an_offset(positions: Positions) -> None:
    positions.seek(P1, 7, 3)
    assert positions.consumed() == {P1: OffsetAndMetadata(7, leader_epoch=3)}


def test_no_log_has_negative_offsets(positions: Positions) -> None:
    with pytest.raises(IllegalUse, match="offset -1 of orders-0"):
        positions.seek(P0, -1)
    assert positions.of(P0).offset is None


def test_an_unassigned_partition_cannot_be_moved(positions: Positions) -> None:
    for move in (lambda: positions.seek(P2, 1), lambda: positions.reset(P2, "latest"), lambda: positions.of(P2)):
        with pytest.raises(IllegalUse):
            move()
