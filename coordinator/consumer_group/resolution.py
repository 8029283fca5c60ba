"""The resolution of a group's regular expressions: each is matched with the names of all topics, a slice at a time.

Laws
    RX3 A slice is at most SLICE_WORK_MAX and one match (`regular_expression.NAME_WORK_MAX`) or one compilation: other
        groups are served between two slices. An expression that takes more work than `work_max` matches no topic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from typing import Final

from rota.coordinator.consumer_group.regular_expression import TooExpensive, compile_expression
from rota.protocol.dataclass import dataclass

SLICE_WORK_MAX: Final = 20_000  # instructions of expressions: some milliseconds
WORK_PER_NAME: Final = 1_000  # that an expression may take on average
WORK_MIN: Final = 1_000_000
DESCRIBE_WORK: Final = 10  # of one look into the ACLs


@dataclass(slots=True, eq=False)
class Resolution:
    """`can_describe` returns whether the client that caused the resolution may describe a topic.

    `version` is that of the topics when `names` was read. `found` has the topics of each expression in the end,
    `expensive` the expressions that were given up.
    """

    expressions: Sequence[str]
    names: Sequence[str]
    can_describe: Callable[[str], bool]
    version: int
    found: dict[str, frozenset[str]] = field(default_factory=dict)
    expensive: list[str] = field(default_factory=list)
    _steps: Iterator[int] = field(init=False)

    def __post_init__(self) -> None:
        self._steps = self._work()

    def run_slice(self) -> bool:
        """Do one slice of the work; return whether all is done."""
        done = 0
        for work in self._steps:
            done += work
            if done >= SLICE_WORK_MAX:
                return False
        return True

    def _work(self) -> Iterator[int]:
        """Do one step after the other; yield what each has cost."""
        for text in self.expressions:
            topics: set[str] = set()
            try:
                yield from self._match(text, topics)
            except TooExpensive:
                self.expensive.append(text)
                topics.clear()
            self.found[text] = frozenset(topics)

    def _match(self, text: str, topics: set[str]) -> Iterator[int]:
        expression = compile_expression(text)
        yield expression.size
        work_max, before = work_max_of(len(self.names)), 0
        for name in self.names:
            is_found = expression.matches(name) and self.can_describe(name)
            if is_found:
                topics.add(name)
            if expression.work > work_max:
                raise TooExpensive
            yield expression.work - before + DESCRIBE_WORK * is_found
            before = expression.work


def work_max_of(names: int) -> int:
    """Return how many instructions an expression may visit for that number of topics."""
    return max(WORK_MIN, names * WORK_PER_NAME)
