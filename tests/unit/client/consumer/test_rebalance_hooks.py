"""The hooks: what the user sees while a callback runs, and what is left afterwards."""

from __future__ import annotations

import pytest

from rota.client.consumer.delivered_records import DeliveredRecords
from rota.client.consumer.listener import Listener, Partitions
from rota.client.consumer.positions import Positions
from rota.client.consumer.rebalance_hooks import RebalanceHooks
from rota.client.types import ConsumerRecord, TopicPartition

FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)


class Consumer:
    """The parts of one."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.positions = Positions()
        self.delivered = DeliveredRecords(self.positions)
        self.hooks = RebalanceHooks(self.positions, self.delivered, self, lambda: self.calls.append("changed"))
        self.positions.assign([FIRST, SECOND])
        self.positions.seek(FIRST, 5)
        self.positions.seek(SECOND, 5)
        self.delivered.put({item: [ConsumerRecord(*item, 4, -1, 0, None, None)] for item in (FIRST, SECOND)})

    async def commit_before_rejoin(self) -> None:
        self.calls.append("commit")

    async def commit_before_revoking(self) -> None:
        self.calls.append("commit again")

    async def wait_until_answered(self) -> None:
        self.calls.append("wait")


@pytest.fixture
def consumer() -> Consumer:
    return Consumer()


async def test_before_a_rejoin_the_automatic_commit_runs(consumer: Consumer) -> None:
    await consumer.hooks.before_rejoin()
    assert consumer.calls == ["commit"]


@pytest.mark.parametrize("fails", [False, True])
async def test_revoked_partitions_are_assigned_until_the_callback_returns(consumer: Consumer, fails: bool) -> None:
    async def revoked(partitions: Partitions) -> None:
        assert partitions == (FIRST,)
        assert FIRST in consumer.positions.assigned
        assert consumer.delivered.done()[FIRST].offset == 4
        assert consumer.hooks.is_called_by_current_task
        if fails:
            raise ZeroDivisionError

    consumer.hooks.listener = Listener(on_revoked=revoked)
    if fails:
        with pytest.raises(ZeroDivisionError):
            await consumer.hooks.revoked((FIRST,))
    else:
        await consumer.hooks.revoked((FIRST,))
    assert consumer.positions.assigned == {SECOND}
    assert [item.partition for item in consumer.delivered.left] == [1]
    assert not consumer.hooks.is_called_by_current_task
    assert consumer.calls == ["commit again", *([] if fails else ["wait"]), "changed"]


async def test_records_of_lost_partitions_are_dropped_before_the_callback(consumer: Consumer) -> None:
    def lost(_: Partitions) -> None:
        assert [item.partition for item in consumer.delivered.left] == [1]

    consumer.hooks.listener = Listener(on_lost=lost)
    await consumer.hooks.lost((FIRST,))
    assert consumer.positions.assigned == {SECOND}


async def test_on_assigned_may_seek_and_kept_partitions_keep_their_positions(consumer: Consumer) -> None:
    third = TopicPartition("orders", 2)

    def assigned(added: Partitions) -> None:
        assert added == (third,)
        consumer.positions.seek(third, 9)

    consumer.hooks.listener = Listener(on_assigned=assigned)
    await consumer.hooks.assigned((SECOND, third), (third,))
    assert consumer.positions.assigned == {SECOND, third}
    assert consumer.positions.of(third).offset == 9
    assert consumer.delivered.done()[SECOND].offset == 4
