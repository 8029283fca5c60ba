"""Callbacks: async or plain, and which one is told what."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from rota.client.consumer.listener import Listener, Partitions
from rota.client.types import TopicPartition

SOME = (TopicPartition("orders", 0),)
Notice = list[tuple[str, Partitions]]


@pytest.fixture
def answer() -> Notice:
    return []


async def slowly(answer: Notice, name: str, partitions: Partitions) -> None:
    await asyncio.sleep(0)
    answer.append((name, partitions))


def at_once(answer: Notice, name: str, partitions: Partitions) -> None:
    answer.append((name, partitions))


@pytest.mark.parametrize("how", [slowly, at_once])
async def test_each_event_calls_its_own_callback(answer: Notice, how: object) -> None:
    listener = Listener(*(partial(how, answer, name) for name in ("assigned", "revoked", "lost")))  # type: ignore[arg-type]
    await listener.revoked(SOME)
    await listener.assigned(SOME)
    await listener.lost(SOME)
    assert answer == [("revoked", SOME), ("assigned", SOME), ("lost", SOME)]


async def test_on_lost_is_on_revoked_when_none_was_given(answer: Notice) -> None:
    await Listener(on_revoked=partial(slowly, answer, "revoked")).lost(SOME)
    assert answer == [("revoked", SOME)]


async def test_only_on_assigned_is_called_with_no_partitions(answer: Notice) -> None:
    listener = Listener(*(partial(at_once, answer, name) for name in ("assigned", "revoked", "lost")))
    await listener.assigned(())
    await listener.revoked(())
    await listener.lost(())
    assert answer == [("assigned", ())]


async def test_without_callbacks_nothing_happens() -> None:
    listener = Listener()
    await listener.assigned(SOME)
    await listener.revoked(SOME)
    await listener.lost(SOME)
