"""uniform for members with different subscriptions, as Kafka's UniformHeterogeneousAssignmentBuilder does.

Each member keeps what it has of the topics that it still subscribes to. Free partitions go to the subscriber with the
fewest; topics with the most partitions per subscriber first. Then partitions move from the subscribers with the most to
those with the fewest, topic by topic, until no move is an improvement or ROUNDS_MAX is reached.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Final

from rota.coordinator.consumer_group.assignors.spec import GroupSpec, uuid_order
from rota.coordinator.consumer_group.member import Partitions

ROUNDS_MAX: Final = 16
NO_OWNER: Final = -1


def assign(spec: GroupSpec) -> dict[str, Partitions]:
    """Return the partitions of each member."""
    return _Builder(spec).build()


class _Builder:
    """Members are numbered in the order of the specification."""

    def __init__(self, spec: GroupSpec) -> None:
        self._spec = spec
        self._subscribers: dict[bytes, list[int]] = defaultdict(list)
        for number, member in enumerate(spec.members.values()):
            for topic_id in member.topic_ids:
                self._subscribers[topic_id].append(number)
        self._owners = {topic_id: [NO_OWNER] * spec.partition_counts[topic_id] for topic_id in self._subscribers}
        self._sizes = [0] * len(spec.members)

    def build(self) -> dict[str, Partitions]:
        if not self._subscribers:
            return {}
        self._keep()
        loads = _Loads(self._sizes)
        free = {tid: [i for i, owner in enumerate(owners) if owner == NO_OWNER] for tid, owners in self._owners.items()}
        for topic_id in self._ordered(topic_id for topic_id, indexes in free.items() if indexes):
            loads.begin(self._subscribers[topic_id])
            for index in free[topic_id]:
                self._move(topic_id, index, loads.next_least())
        self._balance(loads)
        return self._result()

    def _keep(self) -> None:
        """A new coordinator may know fewer partitions than the one that gave the target."""
        counts = self._spec.partition_counts
        for number, member in enumerate(self._spec.members.values()):
            for topic_id, indexes in member.target.items():
                if topic_id in member.topic_ids:
                    for index in indexes:
                        if index < counts[topic_id]:
                            self._move(topic_id, index, number)

    def _move(self, topic_id: bytes, index: int, number: int) -> None:
        owners = self._owners[topic_id]
        if owners[index] != NO_OWNER:
            self._sizes[owners[index]] -= 1
        owners[index] = number
        self._sizes[number] += 1

    def _ordered(self, topic_ids: Iterable[bytes]) -> list[bytes]:
        def order(topic_id: bytes) -> tuple[float, int, tuple[int, int]]:
            count = len(self._subscribers[topic_id])
            return -self._spec.partition_counts[topic_id] / count, count, uuid_order(topic_id)

        return sorted(topic_ids, key=order)

    def _balance(self, loads: _Loads) -> None:
        ordered = self._ordered(topic_id for topic_id, numbers in self._subscribers.items() if len(numbers) >= 2)
        last_moved = None  # the topic of which partitions were moved last
        for _ in range(ROUNDS_MAX):
            for topic_id in ordered:
                if topic_id == last_moved:
                    return
                if self._balance_topic(topic_id, loads) or last_moved is None:
                    last_moved = topic_id

    def _balance_topic(self, topic_id: bytes, loads: _Loads) -> int:
        """Return how many partitions were moved."""
        if loads.begin(self._subscribers[topic_id]) <= 1:
            return 0
        owners = self._owners[topic_id]
        owned: dict[int, list[int]] = defaultdict(list)
        for index, owner in enumerate(owners):
            owned[owner].append(index)
        moved = 0
        while loads.gap() > 1:
            number = loads.next_most(owned)
            if number is None:
                break
            index, least = owned[number].pop(), loads.next_least()
            if loads.gap() <= 1:
                break
            self._move(topic_id, index, least)
            moved += 1
        return moved

    def _result(self) -> dict[str, Partitions]:
        result: list[dict[bytes, set[int]]] = [{} for _ in self._sizes]
        for topic_id, owners in self._owners.items():
            for index, owner in enumerate(owners):
                if owner != NO_OWNER:
                    result[owner].setdefault(topic_id, set()).add(index)
        return {
            member_id: {topic_id: frozenset(indexes) for topic_id, indexes in assigned.items()}
            for member_id, assigned in zip(self._spec.members, result, strict=True)
        }


class _Loads:
    """Walks the subscribers of one topic from both ends: the least loaded upwards, the most loaded downwards.

    The range of the least loaded is [0, _least_end) of the sorted subscribers: each of them has `_least_level`
    partitions, or one more when it is before `_next_least`. The range of the most loaded is
    [_most_begin, _most_end); members that have no partition of the topic to give leave it at its end.
    """

    def __init__(self, sizes: list[int]) -> None:
        self._sizes = sizes
        self._sorted: list[int] = []
        self._least_end = self._least_level = self._next_least = 0
        self._most_begin = self._most_end = self._most_level = self._next_most = 0

    def begin(self, numbers: Iterable[int]) -> int:
        """Start with these members; return how many partitions the first and the last are apart."""
        self._sorted = sorted(numbers, key=lambda number: (self._sizes[number], number))
        least, most = self._sizes[self._sorted[0]], self._sizes[self._sorted[-1]]
        self._least_end, self._least_level, self._next_least = 0, least - 1, 0
        self._most_begin = self._most_end = len(self._sorted)
        self._most_level, self._next_most = most + 1, len(self._sorted) - 1
        return most - least

    def gap(self) -> int:
        """Return how far the two ranges are apart."""
        return self._most_level - self._least_level

    def next_least(self) -> int:
        """Return the member that gets the next partition."""
        if self._next_least >= self._least_end:
            self._least_level += 1
            while self._least_end < len(self._sorted) and self._size_at(self._least_end) == self._least_level:
                self._least_end += 1
            self._next_least = 0
        self._next_least += 1
        return self._sorted[self._next_least - 1]

    def next_most(self, owned: dict[int, list[int]]) -> int | None:
        """Return the member that gives the next partition of those `owned`; None when no member has any to give."""
        while True:
            if self._next_most < self._most_begin:
                self._lower_most()
            if self._next_most < 0:
                return None
            number = self._sorted[self._next_most]
            self._next_most -= 1
            if owned.get(number):
                return number
            self._exclude(self._next_most + 1)

    def _lower_most(self) -> None:
        if self._most_end <= self._most_begin and self._most_begin > 0:
            self._most_level = self._size_at(self._most_begin - 1)  # all of the range were excluded
        else:
            self._most_level -= 1
        while self._most_begin > 0 and self._size_at(self._most_begin - 1) == self._most_level:
            self._most_begin -= 1
        self._next_most = self._most_end - 1

    def _exclude(self, position: int) -> None:
        end = self._most_end - 1
        self._sorted[position], self._sorted[end] = self._sorted[end], self._sorted[position]
        self._most_end = end

    def _size_at(self, position: int) -> int:
        return self._sizes[self._sorted[position]]
