"""Each hook calls its method of the consumer."""

from __future__ import annotations

import pytest

from rota.client.group import effects as out
from rota.client.group.effects import Partitions
from rota.client.group.hooks import call_hook
from rota.client.types import TopicPartition

ZERO, ONE = (TopicPartition("t", 0),), (TopicPartition("t", 1),)


class Recorder:
    """Writes down its calls."""

    def __init__(self) -> None:
        self.calls: list[tuple[object, ...]] = []

    async def before_rejoin(self) -> None:
        self.calls.append(("before_rejoin",))

    async def revoked(self, partitions: Partitions) -> None:
        self.calls.append(("revoked", partitions))

    async def lost(self, partitions: Partitions) -> None:
        self.calls.append(("lost", partitions))

    async def assigned(self, owned: Partitions, added: Partitions) -> None:
        self.calls.append(("assigned", owned, added))

    async def last_commit(self) -> None:
        self.calls.append(("last_commit",))


@pytest.mark.parametrize(
    ("hook", "call"),
    [
        (out.BeforeRejoin(), ("before_rejoin",)),
        (out.Revoke(ZERO), ("revoked", ZERO)),
        (out.Lose(ZERO), ("lost", ZERO)),
        (out.Assign(ZERO + ONE, ONE), ("assigned", ZERO + ONE, ONE)),
        (out.BeforeLeaving(), ("last_commit",)),
    ],
)
async def test_each_hook_calls_its_method(hook: out.Hook, call: tuple[object, ...]) -> None:
    recorder = Recorder()
    await call_hook(recorder, hook, recorder.last_commit)
    assert recorder.calls == [call]


async def test_a_membership_without_a_last_commit_just_leaves() -> None:
    recorder = Recorder()
    await call_hook(recorder, out.BeforeLeaving(), None)
    assert recorder.calls == []
