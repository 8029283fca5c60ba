"""What may be committed, in whose name."""

from __future__ import annotations

import asyncio

import pytest
from tests.unit.client.consumer.bookkeeper import GROUP, Bookkeeper, Group, consuming
from tests.unit.client.consumer.kit import P0, P1, batch

from rota.client.errors import CommitFailed, ConfigError, IllegalUse
from rota.client.types import GroupMetadata, OffsetAndMetadata
from rota.protocol.errors import ErrorCode


def feed() -> Bookkeeper:
    keeper = Bookkeeper(2)
    keeper.write(0, batch(0, 10))
    return keeper


async def test_commit_accepts_numbers_and_offset_and_metadata() -> None:
    keeper = feed()
    async with consuming(keeper, enable_auto_commit=False) as consumer:
        consumer.assign([P0, P1])
        await consumer.commit({P0: 3, P1: OffsetAndMetadata(4, "note")})
        assert keeper.committed == {0: 3, 1: 4}
        assert await consumer.committed(P0) == {P0: OffsetAndMetadata(3)}
        assert (await consumer.committed())[P1] == OffsetAndMetadata(4)
        with pytest.raises(IllegalUse, match="below 0"):
            await consumer.commit({P0: -1})


async def test_without_offsets_everything_that_was_handed_out_is_committed() -> None:
    keeper = feed()
    async with consuming(keeper, enable_auto_commit=False) as consumer:
        consumer.assign(P0)
        await consumer.commit()
        assert keeper.commits == []
        for _ in range(3):
            await asyncio.wait_for(consumer.getone(), 10)
        await consumer.commit()
        assert keeper.committed == {0: 3}


async def test_with_manual_assignment_the_group_metadata_has_no_member() -> None:
    async with consuming(feed(), group_instance_id="one") as consumer:
        consumer.assign(P0)
        assert consumer.group == GroupMetadata(GROUP, group_instance_id="one")
    group = Group()
    group.write(0, batch(0, 1))
    async with consuming(group) as consumer:
        consumer.subscribe(["orders"])
        await asyncio.wait_for(consumer.getone(), 10)
        await consumer.unsubscribe()
        assert consumer.group.generation_id == 1
        consumer.assign(P0)
        assert consumer.group == GroupMetadata(GROUP)


async def test_without_a_membership_nothing_is_committed_for_a_subscription() -> None:
    keeper = feed()
    async with consuming(keeper) as consumer:
        consumer.subscribe(["orders"])
        with pytest.raises(CommitFailed, match="not joined"):
            await consumer.commit({P0: 1})
        with pytest.raises(CommitFailed, match="not joined"):
            consumer.commit_soon({P0: 1})
    assert keeper.commits == []


async def test_without_a_group_nothing_is_committed() -> None:
    async with consuming(feed(), group_id=None) as consumer:
        consumer.assign(P0)
        for call in (consumer.commit, consumer.committed):
            with pytest.raises(ConfigError, match=r"group_id \(group\.id\)"):
                await call()


@pytest.mark.parametrize("code", [ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.STALE_MEMBER_EPOCH])
async def test_error_codes_of_newer_brokers_for_an_ended_membership_raise_commit_failed(code: ErrorCode) -> None:
    keeper = feed()
    keeper.refusals = [int(code)]
    async with consuming(keeper, enable_auto_commit=False) as consumer:
        consumer.assign(P0)
        with pytest.raises(CommitFailed, match=code.name):
            await consumer.commit({P0: 1})
