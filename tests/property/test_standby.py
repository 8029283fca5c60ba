"""A standby that follows a growing log equals its leader, whatever is written or compacted, in slices of any size."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from tests.unit.coordinator.runtime.toy import ToyWorld

from rota.coordinator.runtime import replay as replay_module
from rota.protocol.errors import ErrorCode

PUT = st.tuples(st.sampled_from(["a", "b", "c"]), st.integers(0, 3), st.none() | st.integers(0, 9))


class Standbys(RuleBasedStateMachine):
    """One leader, one standby on the same log; now and then the standby takes over and the leader follows."""

    @initialize(slice_bytes=st.sampled_from([1, 300, 1 << 18]), apply=st.sampled_from([1, 3, 128]))
    def begin(self, slice_bytes: int, apply: int) -> None:
        self.before = replay_module.SLICE_BYTES, replay_module.APPLY_RECORDS_MAX
        replay_module.SLICE_BYTES, replay_module.APPLY_RECORDS_MAX = slice_bytes, apply  # type: ignore[misc]
        self.epoch = 0
        self.leader = ToyWorld().lead(0)
        self.standby = ToyWorld(self.leader.partitions)
        self.standby.runtime.follow(0)
        self.acknowledged: dict[tuple[str, int], int | None] = {}

    def teardown(self) -> None:
        if hasattr(self, "before"):
            replay_module.SLICE_BYTES, replay_module.APPLY_RECORDS_MAX = self.before  # type: ignore[misc]

    @rule(puts=st.lists(PUT, min_size=1, max_size=9))
    def numbers_are_written(self, puts: list[tuple[str, int, int | None]]) -> None:
        answers = [self.leader.put(*put) for put in puts]
        self.leader.settle()
        assert all(answer.value is ErrorCode.NONE for answer in answers)
        self.acknowledged.update({(name, slot): value for name, slot, value in puts})
        self.standby.runtime.log_grew(0)

    @rule(ticks=st.integers(1, 4))
    def the_standby_reads_a_little(self, ticks: int) -> None:
        for _ in range(ticks):
            self.standby.tick()

    @rule()
    def the_standby_reads_to_the_end(self) -> None:
        self.standby.settle()
        assert self.standby.numbers() == self.leader.numbers()

    @rule()
    def the_log_is_compacted(self) -> None:
        self.leader.partitions[0].log.compact(self.leader.now_ms, force=True)

    @rule()
    def the_standby_takes_over(self) -> None:
        self.epoch += 1
        before = self.leader.numbers()
        self.leader.runtime.resign(0, self.epoch)
        self.leader.runtime.follow(0)
        self.standby.lead(self.epoch)
        self.leader, self.standby = self.standby, self.leader
        assert self.leader.numbers() == before

    @rule()
    def a_loader_from_the_start_is_the_same(self) -> None:
        loader = ToyWorld(self.leader.partitions).lead()
        assert loader.numbers() == self.leader.numbers() == self.expected()

    def expected(self) -> dict[str, dict[int, int]]:
        numbers: dict[str, dict[int, int]] = {}
        for (name, slot), value in self.acknowledged.items():
            if value is not None:
                numbers.setdefault(name, {})[slot] = value
        return numbers


TestStandbys = Standbys.TestCase
TestStandbys.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
