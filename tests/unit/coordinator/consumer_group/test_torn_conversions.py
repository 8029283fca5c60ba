"""A conversion of which a crash kept only the first records: large ones are several batches."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.unit.coordinator.consumer_group.mixed_script import MixedScript, classic_pair, read, settled
from tests.unit.coordinator.consumer_group.script import Script

from rota.coordinator.consumer_group import records as consumer_records
from rota.coordinator.group import records as group_records
from rota.protocol.errors import ErrorCode


def upgraded() -> tuple[MixedScript, int]:
    script = classic_pair()
    before = len(script.log)
    script.join("a", "t")
    return script, before


def downgraded() -> tuple[MixedScript, int]:
    script = settled()
    before = len(script.log)
    script.leave("a")
    return script, before


def cut(script: Script, length: int) -> MixedScript:
    """The group as it is loaded from the first records of the log."""
    other = MixedScript(topics=script.topics, settings=script.settings)
    for key, value in script.log[:length]:
        record = group_records.decode(key, value) or consumer_records.decode(key, value)
        assert record is not None
        other.hosted.replay(record)
        other.log.append((key, value))
    other.perform(other.hosted.loaded(other.now_ms, other.wall_ms))
    return other


def share(script: MixedScript, ids: list[str]) -> set[int]:
    """Let the members join as often as they have to; return the partitions that they get."""
    for _ in range(6):
        for place, name in enumerate(ids):
            answer = script.c_join(name, fresh=f"n{place}")
            if answer is not None and answer.error is ErrorCode.UNKNOWN_MEMBER_ID:
                answer = script.c_join("", fresh=f"n{place}")
                ids[place] = f"n{place}"
    script.advance(6_000)
    if script.hosted.consumer is None:
        script.replies.clear()
        generation = script.hosted.generation
        parts = {ids[0]: {"t": (0, 1)}, ids[1]: {"t": (2, 3)}}
        synced = [script.c_sync(name, generation, parts) for name in (script.hosted.leader_or_none, *ids)]
        return {index for each in synced[1:] if each is not None for index in read(each.assignment)["t"]}
    owned = [script.assigned(name).get("t", set()) for name in script.group.members]
    return set().union(*owned)


@pytest.mark.parametrize("conversion", [upgraded, downgraded])
def test_members_that_stay_get_all_partitions_wherever_the_log_ends(
    conversion: Callable[[], tuple[MixedScript, int]],
) -> None:
    script, before = conversion()
    for length in range(before, len(script.log) + 1):
        other = cut(script, length)
        if other.hosted.consumer is not None:
            other.c_leave(*((name, None) for name in list(other.group.members) if name == "a"))
        assert share(other, ["c1", "c2"]) == {0, 1, 2, 3}, f"{length - before} records"
