"""A million commits (in the gate a tenth) to a thousand keys stay small."""

from __future__ import annotations

import pytest
from tests.soak import SOAK

from rota.coordinator.log.contract import LogConfig
from rota.protocol.records.record import read_all, write_pairs

from .log_worlds import WORLDS

KEYS, PER_BATCH = 1000, 10
CONFIG = LogConfig(segment_bytes=1 << 20, compact=True, delete=False, retention_ms=None)


@pytest.mark.parametrize(("name", "commits"), [("memory", 100_000), ("disk", 1_000_000 if SOAK else 100_000)])
def test_many_commits_to_few_keys_stay_small(name: str, commits: int) -> None:
    world = WORLDS[name](CONFIG)
    last: dict[bytes, tuple[int, bytes]] = {}
    largest = 0
    for number in range(0, commits, PER_BATCH):
        pairs = [
            (b"group-topic-partition-%d" % (commit * 7 % KEYS), b"%040d" % commit)
            for commit in range(number, number + PER_BATCH)
        ]
        base = world.log.append_trusted(write_pairs([*pairs], number), leader_epoch=0, now_ms=number).base_offset
        last |= {key: (base + n, value) for n, (key, value) in enumerate(pairs)}
        if number % 5000 == 0:
            world.log.compact(number)
            largest = max(largest, world.log.size_bytes)
    assert largest < 3 * CONFIG.segment_bytes
    world.reopen()
    found, offset = {}, world.log.log_start_offset
    while data := world.log.read(offset, 1 << 20):
        for record in read_all(data):
            assert record.key is not None
            assert record.value is not None
            found[record.key] = (record.offset, record.value)
            offset = record.offset + 1
    assert found == last
    assert world.log.log_end_offset == commits
    world.end()
