"""Callbacks: async or plain, and which one is told what."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from rota.client.consumer.listener import Listener, Partitions
from rota.client.types import TopicPartition

SOME = (TopicPartition("orders", 0),)
Told = list[tuple[str, Partitions]]


@pytest.fixture
def told() -> Told:
    return []


async def slowly(told: Told, name: str, partitions: Partitions) -> None:
    await asyncio.sleep(0)
    told.append((name, partitions))


def at_once(told: Told, name: str, partitions: Partitions) -> None:
    told.append((name, partitions))


@pytest.mark.parametrize("how", [slowly, at_once])
async def test_each_event_calls_its_own_callback(told: Told, how: object) -> None:
    listener = Listener(*(partial(how, told, name) for name in ("assigned", "revoked", "lost")))  # type: ignore[arg-type]
    await listener.revoked(SOME)
    await listener.assigned(SOME)
    await listener.lost(SOME)
    assert told == [("revoked", SOME), ("assigned", SOME), ("lost", SOME)]


async def test_on_lost_is_on_revoked_when_none_was_given(told: Told) -> None:
    await Listener(on_revoked=partial(slowly, told, "revoked")).lost(SOME)
    assert told == [("revoked", SOME)]


async def test_only_on_assigned_is_called_with_no_partitions(told: Told) -> None:
    listener = Listener(*(partial(at_once, told, name) for name in ("assigned", "revoked", "lost")))
    await listener.assigned(())
    await listener.revoked(())
    await listener.lost(())
    assert told == [("assigned", ())]


async def test_without_callbacks_nothing_happens() -> None:
    listener = Listener()
    await listener.assigned(SOME)
    await listener.revoked(SOME)
    await listener.lost(SOME)
