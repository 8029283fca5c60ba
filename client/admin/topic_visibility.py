"""Wait until the metadata of a broker shows the changes of the controller.

Laws
    A created topic is visible when the broker returns its id and a leader for each of its partitions. A deleted topic
    is invisible when the broker does not know its name, or returns another id for it. A topic that this client may not
    describe is not waited for: no broker will show it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from rota.client.admin.call_results import UNKNOWN_TOPIC_CODES, CallResults
from rota.client.admin.requests import Deadline
from rota.client.errors import KafkaError, TimedOut
from rota.client.network.cluster import Cluster
from rota.client.network.targets import AnyNode
from rota.protocol.dataclass import dataclass
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
class ExpectedTopic:
    """The expected number of partitions with a leader; 0: the topic does not exist. `id` None: any id."""

    partitions: int
    id: bytes | None
    name: str

    def matches(self, topic: MetadataResponseTopic) -> bool:
        """Whether the topic in a metadata response is as expected, or hidden from this client."""
        if topic.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            return True
        is_other_topic = self.id is not None and any(topic.topic_id) and topic.topic_id != self.id
        if self.partitions == 0:
            return is_other_topic or topic.error_code in UNKNOWN_TOPIC_CODES
        led = [partition for partition in topic.partitions if partition.leader_id >= 0]
        return not topic.error_code and not is_other_topic and len(led) == len(topic.partitions) >= self.partitions


async def wait_until_visible(
    cluster: Cluster, results: CallResults[K, V], expected: Mapping[K, ExpectedTopic], deadline: Deadline
) -> None:
    """Request metadata until all topics are as expected. A topic that is not by the deadline fails with TimedOut in
    `results`; nothing is raised."""
    missing = dict(expected)

    def request(_: int) -> MetadataRequest:
        topics = tuple(MetadataRequestTopic(name=name) for name in {topic.name for topic in missing.values()})
        return MetadataRequest(topics=topics, allow_auto_topic_creation=False)

    def codes(answer: MetadataResponse) -> Iterable[int]:
        visible = {topic.name: topic for topic in answer.topics}
        for key, topic in expected.items():
            if topic.name in visible and topic.matches(visible[topic.name]):
                missing.pop(key, None)
        return [ErrorCode.LEADER_NOT_AVAILABLE] * bool(missing)  # a code that is retried

    cause: KafkaError | None = None
    if missing:
        try:
            await cluster.send_request_until(
                AnyNode(), request, codes, what="waiting for topics", timeout_ms=deadline.remaining_ms
            )
        except KafkaError as failure:
            cause = failure
    for key, topic in missing.items():
        timeout = TimedOut(f"{results.what}: {topic.name} is done, but no broker showed it in time; look again later")
        timeout.__cause__ = cause
        results.fail(key, timeout)
