"""How far each group was behind at the end of each window, from what was committed and where the logs ended. Pure.

Laws
    A partition has a row for each window in which its group committed, and for the newest one of the micro-batch: who
    stops committing falls behind, and is seen to.
    What was taken back (expired, deleted, its topic gone) is not carried on.
    A lag that is not known is None, never 0. An end is no earlier than what was committed before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from rota.client.types import TopicPartition

Window = tuple[int, int]  # start and end, ms since the epoch
At = tuple[int, TopicPartition]  # the end of a window; whose log


class Standing(NamedTuple):
    """Where a group stood at the end of a window. `committed` None: the offset was taken back. `source_offset`: of the
    record that says so, in the partition of `__consumer_offsets` that has the group."""

    window: Window
    group: str
    topic: str
    partition: int
    committed: int | None
    source_offset: int

    @property
    def of(self) -> tuple[str, str, int]:
        """Whose."""
        return self.group, self.topic, self.partition

    @property
    def at(self) -> At:
        """Which end of which log it is compared with."""
        return self.window[1], TopicPartition(self.topic, self.partition)


class Lag(NamedTuple):
    """A row of the table."""

    standing: Standing
    end_offset: int | None
    lag: int | None


def standing(told: Iterable[Standing], before: Iterable[Standing]) -> list[Standing]:
    """Rows of this micro-batch: `told` by its records, one for each window; `before`: the rows of the last one."""
    told, before = list(told), list(before)
    last = max((one.window for one in before), default=None)
    # who has no row in the newest window was taken back
    known = {one.of: one for one in before if one.window == last}
    for one in sorted(told, key=lambda one: one.source_offset):
        known[one.of] = one
    newest = max((one.window for one in (*told, *before)), default=None)
    there = {one.of for one in told if one.window == newest}
    carried = [one._replace(window=newest) for one in known.values() if newest is not None and one.of not in there]
    return sorted(one for one in (*told, *carried) if one.committed is not None)


def compared(rows: Iterable[Standing], ends: Mapping[At, int]) -> Iterator[Lag]:
    """The rows with their lag."""
    for one in rows:
        assert one.committed is not None, "what was taken back has no row"
        end = ends.get(one.at)
        yield Lag(one, end, None if end is None else max(0, end - one.committed))
