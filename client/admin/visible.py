"""Waiting until a broker shows what the controller has done.

Laws
    A topic that was asked for counts as there when the broker that is asked shows all its partitions with leaders,
    under its id; a deleted one as gone when that broker does not know it, or knows another topic of that name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from rota.client.admin.asking import Deadline
from rota.client.admin.outcomes import UNKNOWN, Outcomes
from rota.client.errors import KafkaError, TimedOut
from rota.client.network.cluster import Cluster
from rota.client.network.targets import AnyNode
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)

K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Expected:
    """So many partitions with a leader, 0: no such topic. `id` None: whatever id it has."""

    partitions: int
    id: bytes | None
    name: str

    def holds(self, seen: MetadataResponseTopic) -> bool:
        """Whether this is what a broker shows."""
        another = self.id is not None and any(seen.topic_id) and seen.topic_id != self.id
        if self.partitions == 0:
            return another or seen.error_code in UNKNOWN
        led = [one for one in seen.partitions if one.leader_id >= 0]
        return not seen.error_code and not another and len(led) == len(seen.partitions) >= self.partitions


async def until_visible(
    cluster: Cluster, outcomes: Outcomes[K, V], expected: Mapping[K, Expected], deadline: Deadline
) -> None:
    """What is done but not visible in time has failed as TimedOut, which says so: see `outcomes`."""
    hidden = dict(expected)

    def request(_: int) -> MetadataRequest:
        topics = tuple(MetadataRequestTopic(name=name) for name in {one.name for one in hidden.values()})
        return MetadataRequest(topics=topics, allow_auto_topic_creation=False)

    def codes(answer: MetadataResponse) -> Iterable[int]:
        seen = {one.name: one for one in answer.topics}
        for key, one in expected.items():
            if one.name in seen and one.holds(seen[one.name]):
                hidden.pop(key, None)
        return [ErrorCode.LEADER_NOT_AVAILABLE] * bool(hidden)  # "ask again"

    why: KafkaError | None = None
    if hidden:
        try:
            await cluster.ask_until(AnyNode(), request, codes, what="looking", timeout_ms=deadline.left_ms)
        except KafkaError as failure:
            why = failure
    for key, one in hidden.items():
        late = TimedOut(f"{outcomes.what}: {one.name} is done, but no broker showed it in time; look again later")
        late.__cause__ = why
        outcomes.fail(key, late)
