"""How far each group was behind at the end of each window, from what was committed and where the logs ended. Pure.

Laws
    From its first commit on, a group's partition has a row in each window that has commits of anybody: who stops
    committing falls behind, and is seen to. How the records are cut into micro-batches changes nothing.
    What was taken back (expired, deleted, its topic gone) has a row that says so, and none after it.
    A lag that is not known is None, never 0. An end is no earlier than what was committed before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from rota.client.types import TopicPartition

Window = tuple[int, int]  # start and end, ms since the epoch
Of = tuple[str, str, int]  # group, topic, partition
At = tuple[int, TopicPartition]  # the end of a window; whose log

_NO_WINDOW: Final = (-(1 << 62), -(1 << 62))


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
    def of(self) -> Of:
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
    before = list(before)
    last = max((one.window for one in before), default=_NO_WINDOW)
    known = {one.of: one for one in before if one.window == last and one.committed is not None}
    by_window: dict[Window, dict[Of, Standing]] = {last: {}} if before else {}
    for one in told:
        by_window.setdefault(one.window, {})[one.of] = one
    rows: list[Standing] = []
    for window, here in sorted(by_window.items()):
        known = {of: one._replace(window=window) for of, one in known.items()}
        # what lies before the last micro-batch's newest window has had its rows
        rows += ({**known, **here} if window >= last else here).values()
        known |= {of: one for of, one in here.items() if of not in known or known[of].source_offset < one.source_offset}
        known = {of: one for of, one in known.items() if one.committed is not None}
    return sorted(rows, key=lambda one: (one.window, one.of))


def compared(rows: Iterable[Standing], ends: Mapping[At, int]) -> Iterator[Lag]:
    """The rows with their lag."""
    for one in rows:
        end = ends.get(one.at)
        lag = None if end is None or one.committed is None else max(0, end - one.committed)
        yield Lag(one, end, lag)
