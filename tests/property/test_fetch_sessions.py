"""A consumer that fetches in a session knows as much as one that asks for everything each time (F1, F3)."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.soak import examples
from tests.unit.coordinator.api.data_world import World, fetch_request

from rota.coordinator.api.fetch import fetch
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.fetch import FetchResponse, PartitionData

PARTITIONS = 4
Known = tuple[int, int, int]  # error, high watermark, log start

partition = st.integers(0, PARTITIONS - 1)


class Sessions(RuleBasedStateMachine):
    """`seen` is what the consumer was told last of each partition of its session, which it fetches from `offsets` on.

    A partition that is dropped and wanted again before the next fetch stays in the session: no request forgets it.
    """

    @initialize()
    def begin(self) -> None:
        self.world = World()
        self.world.topic(partitions=PARTITIONS)
        self.session, self.epoch = 0, 0
        self.offsets: dict[int, int] = {}
        self.named: set[int] = set()
        self.forgotten: set[int] = set()
        self.seen: dict[int, Known] = {}

    @rule(index=partition, count=st.integers(1, 3))
    def append(self, index: int, count: int) -> None:
        self.world.append(*[b"value"] * count, index=index)

    @rule(index=partition)
    def delete_records(self, index: int) -> None:
        log = self.world.partition(index=index).log
        log.delete_before(log.log_end_offset)

    @rule(index=partition, where=st.sampled_from(["start", "end", "end", "beyond"]))
    def seek(self, index: int, where: str) -> None:
        log = self.world.partition(index=index).log
        self.offsets[index] = {"start": log.log_start_offset, "end": log.log_end_offset}.get(where, 99)
        self.named.add(index)
        self.forgotten.discard(index)

    @rule(index=partition)
    def drop(self, index: int) -> None:
        if index in self.offsets:
            del self.offsets[index]
            self.named.discard(index)
            self.forgotten.add(index)

    @rule()
    def begin_again(self) -> None:
        self.epoch = 0

    @rule(limit=st.sampled_from([1, 200, 1 << 20]))
    def fetch(self, limit: int) -> None:
        self._fetched(limit)

    def _fetched(self, limit: int) -> set[int]:
        """One fetch in the session; then the consumer must know the truth of every partition that it names.

        Which partitions gave records.
        """
        if self.epoch == 0:
            self.named, self.forgotten, self.seen = set(self.offsets), set(), {}
        request = fetch_request(
            *(("t", index, self.offsets[index]) for index in sorted(self.named)),
            forgotten=[("t", index) for index in sorted(self.forgotten)],
            session_id=self.session,
            session_epoch=self.epoch,
            max_bytes=limit,
        )
        response = self.world.serve(fetch, request, 12)
        assert isinstance(response, FetchResponse)
        assert response.error_code == ErrorCode.NONE
        for index in self.forgotten:
            self.seen.pop(index, None)
        self.named, self.forgotten = set(), set()
        self.session = response.session_id
        self.epoch = self.epoch + 1 if self.session else 0
        return self._learn(response)

    @rule(some=st.sets(partition, min_size=2))
    def no_partition_starves(self, some: set[int]) -> None:
        """Answers with room for one batch come round to every partition that has records."""
        for index in some:
            self.append(index, 1)
            self.seek(index, "start")
        if self.epoch == 0:
            self._fetched(limit=1)
        gave: set[int] = set()
        for _ in range(PARTITIONS):
            gave |= self._fetched(limit=1)
        assert gave == {index for index in self.offsets if self._has_records(index)}

    def _learn(self, response: FetchResponse) -> set[int]:
        answers = [answer for topic in response.responses for answer in topic.partitions]
        for item in answers:
            self.seen[item.partition_index] = item.error_code, item.high_watermark, item.log_start_offset
        assert self.seen == self._truth()
        return {item.partition_index for item in answers if item.records}

    def _truth(self) -> dict[int, Known]:
        full = self.world.serve(
            fetch, fetch_request(*(("t", item, offset) for item, offset in self.offsets.items())), 12
        )
        answers: list[PartitionData] = [answer for topic in full.responses for answer in topic.partitions]
        return {item.partition_index: (item.error_code, item.high_watermark, item.log_start_offset) for item in answers}

    def _has_records(self, index: int) -> bool:
        log = self.world.partition(index=index).log
        return log.log_start_offset <= self.offsets[index] < log.log_end_offset

    @invariant()
    def one_session_at_most(self) -> None:
        assert len(self.world.node.fetch_sessions) <= 1


TestFetchSessions = Sessions.TestCase
TestFetchSessions.settings = settings(max_examples=examples(60), stateful_step_count=30, deadline=None)


def test_a_partition_that_is_dropped_and_wanted_again_between_two_fetches_is_still_known() -> None:
    """No request has forgotten it: unchanged it is left out of the answer, as Kafka 4.3.1 leaves it out."""
    state = Sessions()
    state.begin()
    for _ in range(2):
        state.seek(0, "end")
        state.fetch(1 << 20)
        state.drop(0)
    assert state.seen == {0: (ErrorCode.NONE, 0, 0)}
