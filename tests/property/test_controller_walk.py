"""Every sequence of events of one partition on three brokers, up to a depth, and random ones beyond it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from tests.property.controller_world import BROKERS, World, check, check_settled, first_world
from tests.soak import SOAK, examples

DEEP = 8 if SOAK else 7
TARGETS = ((2,), (3, 1), (2, 3, 1))


def events(world: World) -> Iterator[World]:
    for broker in BROKERS:
        yield world.kill(broker)
        yield world.start(broker)
        yield world.expand(broker)
        yield world.shrink(broker)
        yield world.stop(broker)
        if world.minimum > 1:
            yield world.lose_power(broker)
            yield world.give_up(broker)
    yield world.write()
    yield world.fail_over()
    yield world.prefer()
    yield world.cancel()
    for target in TARGETS:
        yield world.reassign(target)


@pytest.mark.parametrize(
    ("replicas", "minimum", "depth"),
    [((1, 2, 3), 1, DEEP), ((1, 2), 1, DEEP), ((1,), 1, DEEP), ((1, 2, 3), 2, DEEP - 2), ((1, 2), 2, DEEP - 2)],
    ids=str,
)
def test_every_sequence_of_events_keeps_the_laws(replicas: tuple[int, ...], minimum: int, depth: int) -> None:
    level, seen = [first_world(replicas, minimum)], set[object]()
    for _ in range(depth):
        following = list[World]()
        for world in level:
            controlled = world.control()
            check(world, controlled)
            check_settled(controlled)
            for after in events(world):
                check(world, after)
                if after.key() not in seen:
                    seen.add(after.key())
                    following.append(after)
            if controlled.key() not in seen:
                seen.add(controlled.key())
                following.append(controlled)
        level = following
    assert len(seen) > 1000


class Partition(RuleBasedStateMachine):
    """Longer conversations, with unclean elections: they give up R1's records and nothing else."""

    world: World
    lost: bool

    @initialize(replicas=st.sampled_from([(1, 2, 3), (2, 3), (3,)]), minimum=st.integers(1, 3))
    def begin(self, replicas: tuple[int, ...], minimum: int) -> None:
        self.world, self.lost = first_world(replicas, minimum), False

    def step(self, event: Callable[[], World]) -> None:
        after = event()
        check(self.world, after, unclean=self.lost)
        self.world = after

    @rule(
        broker=st.sampled_from(BROKERS),
        event=st.sampled_from(["kill", "start", "expand", "shrink", "stop", "lose_power", "give_up"]),
    )
    def broker_event(self, broker: int, event: str) -> None:
        self.step(lambda: getattr(self.world, event)(broker))

    @rule(event=st.sampled_from(["write", "fail_over", "prefer", "cancel"]))
    def partition_event(self, event: str) -> None:
        self.step(getattr(self.world, event))

    @rule(replicas=st.sampled_from(TARGETS))
    def reassign(self, replicas: tuple[int, ...]) -> None:
        self.step(lambda: self.world.reassign(replicas))

    @rule()
    def control(self) -> None:
        self.step(self.world.control)
        check_settled(self.world)

    @rule()
    def control_unclean(self) -> None:
        self.lost = self.lost or self.world.control(unclean=True) != self.world.control()
        self.step(lambda: self.world.control(unclean=True))


TestPartition = Partition.TestCase
TestPartition.settings = settings(max_examples=examples(80), stateful_step_count=40, deadline=None)
