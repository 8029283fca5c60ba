"""Produce and Fetch under quotas of clients (KIP-13, KIP-124, KIP-219, KIP-599)."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from tests.unit.coordinator.api.data_world import World, answered, batch, fetch_request, produce_request, produces
from tests.unit.coordinator.api.test_alter_client_quotas import alter, entry

from rota.coordinator.api.access.table import guarded
from rota.coordinator.api.create_partitions import create_partitions
from rota.coordinator.api.create_topics import create_topics
from rota.coordinator.api.delete_topics import delete_topics
from rota.coordinator.api.fetch import fetch
from rota.coordinator.api.metadata import metadata
from rota.coordinator.api.node import Call
from rota.coordinator.api.produce import produce
from rota.coordinator.api.throttling import measured
from rota.coordinator.network.call import CloseConnection
from rota.coordinator.network.dispatch import ApiHandler
from rota.coordinator.observe.counters import ApiCounters
from rota.coordinator.replica.client_throttle import ClientThrottle
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.coordinator.security.acl import Entry, ResourcePattern
from rota.coordinator.security.authorizer import Authorizer
from rota.coordinator.security.principal import ANONYMOUS, USER, Principal
from rota.coordinator.security.sasl.session import SaslSession
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from rota.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from rota.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from rota.protocol.messages.heartbeat import HeartbeatResponse
from rota.protocol.messages.list_offsets import ListOffsetsRequest
from rota.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from rota.protocol.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from rota.protocol.messages.write_txn_markers import WriteTxnMarkersRequest
from rota.protocol.wire import UUID_ZERO

BURST_WINDOWS = 10
QUOTA = ErrorCode.THROTTLING_QUOTA_EXCEEDED
RECORDS = batch(b"x" * 10_000)


class Throttled(World):
    """A broker with a quota of user ANONYMOUS that is `spare` times the batch over all windows."""

    def __init__(self, key: str, spare: float) -> None:
        super().__init__()
        ClientThrottle(
            self.node.topics,
            partial(setattr, self.node, "client_throttle"),
            self.node.now_ms,
            windows=BURST_WINDOWS + 1,
            window_ms=1_000,
            mutation_burst_ms=11_000,
        )
        self.topic()
        self.muted_ms: list[int] = []
        self.rate = int(spare * len(RECORDS) / BURST_WINDOWS)
        self.set(key, self.rate)

    def set(self, key: str, rate: int | None) -> None:
        assert alter(self, entry({"user": "ANONYMOUS"}, (key, rate))) == [(0, None)]

    def send_request(self, api: Any, request: Any, version: int) -> Any:
        call = Call(version, "test", "/127.0.0.1", "127.0.0.1", 9092, 1, mute=self.muted_ms.append)
        return api(self.node, call, request)


@pytest.mark.parametrize("acks", [-1, 1])
def test_a_producer_above_its_quota_is_throttled_and_its_records_are_written(acks: int) -> None:
    world = Throttled("producer_byte_rate", 1.5)
    assert world.send_request(produce, produce_request(RECORDS, acks=acks), 9).throttle_time_ms == 0
    response = world.send_request(produce, produce_request(RECORDS, acks=acks), 9)
    over_ms = 1_000 * 2 * len(RECORDS) // world.rate - 10_000
    assert response.throttle_time_ms in (over_ms, over_ms + 1)
    assert world.muted_ms == [response.throttle_time_ms]
    assert world.partition().high_watermark == 2


def test_records_that_are_refused_for_want_of_permission_count() -> None:
    """CQ15. As records of an unknown topic do; in Kafka both."""
    world = Throttled("producer_byte_rate", 1.5)
    serve = guarded(0, "produce", produce)
    entry = Entry.parse("ALLOW WRITE * User:ANONYMOUS")
    for patterns, topics in (((), ("t", "u")), (("t",), ("t", "u")), (("t", "u"), ("t", "u"))):
        world.set("producer_byte_rate", world.rate)
        world.node.authorizer = Authorizer()
        for name in patterns:
            world.node.authorizer.replace(ResourcePattern.parse(f"TOPIC:LITERAL:{name}"), [entry])
        world.now_ms += 1_000_000
        world.muted_ms.clear()
        response = world.send_request(serve, produces([(name, 0, RECORDS) for name in topics]), 9)
        assert response.throttle_time_ms == max(world.muted_ms) > 0
        codes = {topic.name: topic.partition_responses[0].error_code for topic in response.responses}
        assert codes == {name: (3 if name == "u" else 0) if name in patterns else 29 for name in topics}
    world.node.authorizer = Authorizer()
    world.muted_ms.clear()
    with pytest.raises(CloseConnection):
        world.send_request(serve, produce_request(RECORDS, acks=0), 9)
    assert world.muted_ms


def test_a_producer_without_responses_is_muted() -> None:
    world = Throttled("producer_byte_rate", 0.5)
    assert world.send_request(produce, produce_request(RECORDS, acks=0), 9) is None
    assert len(world.muted_ms) == 1


def test_a_throttled_consumer_gets_an_empty_response_and_its_records_after_the_throttle_time() -> None:
    world = Throttled("consumer_byte_rate", 1.5)
    world.send_request(produce, produce_request(RECORDS), 9)
    send_request = partial(world.send_request, fetch, fetch_request(("t", 0, 0)), 12)
    assert send_request().responses[0].partitions[0].records
    throttled = send_request()
    assert (throttled.responses, throttled.session_id, throttled.error_code) == ((), 0, 0)
    assert world.muted_ms == [throttled.throttle_time_ms]
    world.now_ms += BURST_WINDOWS * 1_000 + throttled.throttle_time_ms
    assert send_request().responses[0].partitions[0].records
    assert len(world.muted_ms) == 1


def test_a_session_goes_on_after_a_throttled_response() -> None:
    world = Throttled("consumer_byte_rate", 1.5)
    first = world.send_request(fetch, fetch_request(("t", 0, 0), session_epoch=0), 12)
    assert first.session_id > 0
    for _ in range(2):
        world.send_request(produce, produce_request(RECORDS), 9)
    session = {"session_id": first.session_id, "max_bytes": len(RECORDS)}
    send_request = partial(world.send_request, fetch)
    sent = send_request(fetch_request(("t", 0, 0), session_epoch=1, **session), 12)
    assert sent.responses[0].partitions[0].records
    throttled = send_request(fetch_request(("t", 0, 1), session_epoch=2, **session), 12)
    assert (throttled.session_id, throttled.responses, throttled.error_code) == (first.session_id, (), 0)
    assert throttled.throttle_time_ms > 0
    world.now_ms += 2 * BURST_WINDOWS * 1_000
    assert send_request(fetch_request(session_epoch=3, **session), 12).responses[0].partitions[0].records


def test_a_fetch_that_waited_is_throttled_when_it_ends() -> None:
    world = Throttled("consumer_byte_rate", 1.5)
    world.send_request(produce, produce_request(RECORDS), 9)
    send_request = partial(world.send_request, fetch, version=12)
    send_request(fetch_request(("t", 0, 0)))
    reply = send_request(fetch_request(("t", 0, 1), max_wait_ms=500))
    assert not reply.answered
    world.set("consumer_byte_rate", world.rate // 2)
    world.after(500)
    response = answered(reply)
    assert response.responses == ()
    assert world.muted_ms == [response.throttle_time_ms]


def test_without_quotas_nothing_is_throttled() -> None:
    world = Throttled("producer_byte_rate", 0.1)
    world.set("producer_byte_rate", None)
    assert world.node.client_throttle is None
    assert world.send_request(produce, produce_request(RECORDS), 9).throttle_time_ms == 0
    assert world.muted_ms == []


def test_requests_of_the_broker_itself_are_not_throttled() -> None:
    world = Throttled("producer_byte_rate", 0.1)
    assert world.serve(produce, produce_request(RECORDS), 9).throttle_time_ms == 0
    world.set("consumer_byte_rate", 1)
    for _ in range(2):
        assert world.serve(fetch, fetch_request(("t", 0, 0)), 12).throttle_time_ms == 0


class Clock:
    def __init__(self) -> None:
        self.now_ns = 0

    def __call__(self) -> int:
        return self.now_ns


def handler_of(serve: Any, now_ns: Clock, api: str = "Any") -> ApiHandler:
    def work(*arguments: Any) -> Any:
        now_ns.now_ns += 10_000_000
        return (None, 0)

    counters = ApiCounters()
    return measured(ApiHandler(work, work, serve, True, True, False, work, api, 0, counters, False), now_ns)  # type: ignore[arg-type]


def test_the_time_of_the_loop_counts_and_throttles() -> None:
    """CQ12. 100 percent: a request of 1 s in each second."""
    world, clock = Throttled("producer_byte_rate", 1_000.0), Clock()
    world.set("request_percentage", 100)
    response, delayed = HeartbeatResponse(error_code=0), DelayedReply[HeartbeatResponse]()

    def serve(node: Any, call: Call, request: Any) -> Any:
        clock.now_ns += 4_980_000_000
        return delayed if request == "delayed" else response

    handler = handler_of(serve, clock)
    world.send_request(handler.serve, None, 0)
    handler.encode(response)
    handler.decode(b"")
    assert world.send_request(handler.serve, None, 0).throttle_time_ms == 0
    throttled = world.send_request(handler.serve, None, 0)
    assert (throttled.throttle_time_ms, response.throttle_time_ms) == (1_000, 0)
    world.send_request(handler.serve, "delayed", 0)
    delayed.answer(response)
    assert delayed.value is not None
    assert delayed.value.throttle_time_ms == 1_000
    assert world.muted_ms == [1_000, 1_000]
    throttle = world.node.client_throttle
    assert throttle is not None
    assert throttle.throttled == {"request_percentage": (2, 2_000)}


def of_a_follower(api: str) -> Any:
    """A request as a follower sends it, or anybody that says it is one."""
    if api == "Fetch":
        request = fetch_request(("t", 0, 0))
        request.replica_id = 2
        return request
    if api == "ListOffsets":
        return ListOffsetsRequest(replica_id=2, topics=())
    if api == "OffsetForLeaderEpoch":
        return OffsetForLeaderEpochRequest(replica_id=2, topics=())
    return WriteTxnMarkersRequest(markers=())


def is_throttled(api: str, authorizer: Authorizer | None, request: Any = None) -> bool:
    """Whether requests that take far more time than the quota of their client allows are throttled."""
    world, clock = Throttled("producer_byte_rate", 1_000.0), Clock()
    world.set("request_percentage", 1)
    world.node.authorizer = authorizer

    def serve(node: Any, call: Call, request: Any) -> Any:
        clock.now_ns += 1_000_000_000
        return HeartbeatResponse(error_code=0)

    handler = handler_of(serve, clock, api)
    for _ in range(3):
        world.send_request(handler.serve, request or of_a_follower(api), 4)
        world.serve(handler.serve, None, 4)  # the broker itself
    return bool(world.muted_ms)


def grants(operation: str) -> Authorizer:
    authorizer = Authorizer()
    authorizer.replace(
        ResourcePattern.parse("CLUSTER:LITERAL:kafka-cluster"), [Entry.parse(f"ALLOW {operation} * User:ANONYMOUS")]
    )
    return authorizer


@pytest.mark.parametrize("api", ["Fetch", "WriteTxnMarkers"])
def test_what_brokers_ask_is_exempt_from_the_request_quota(api: str) -> None:
    assert not is_throttled(api, None)
    assert not is_throttled(api, grants("CLUSTER_ACTION"))
    assert is_throttled("Fetch", None, fetch_request(("t", 0, 0)))


@pytest.mark.parametrize("api", ["Fetch", "WriteTxnMarkers", "ListOffsets", "OffsetForLeaderEpoch"])
def test_who_only_says_to_be_a_broker_is_not_exempt_from_the_request_quota(api: str) -> None:
    assert is_throttled(api, grants("DESCRIBE"))


@pytest.mark.parametrize("api", ["ListOffsets", "OffsetForLeaderEpoch"])
def test_what_brokers_ask_as_clients_do_is_not_exempt_as_in_kafka(api: str) -> None:
    assert is_throttled(api, None)
    assert is_throttled(api, grants("CLUSTER_ACTION"))


def test_what_a_client_sends_until_it_has_authenticated_counts_for_no_quota() -> None:
    """CQ17. The quota is that of a user ANONYMOUS, who may log in as well."""
    world, clock = Throttled("producer_byte_rate", 1_000.0), Clock()
    world.set("request_percentage", 1)
    handler = handler_of(lambda *_: setattr(clock, "now_ns", clock.now_ns + 1_000_000_000), clock, "SaslAuthenticate")
    for principal in (ANONYMOUS, Principal(USER, "ANONYMOUS")):
        call = Call(1, "test", "/127.0.0.1", "127.0.0.1", 9092, 1, mute=world.muted_ms.append, sasl=SaslSession({}))
        call.principal = principal
        handler.serve(world.node, call, None)
        assert bool(world.muted_ms) is (principal is not ANONYMOUS)


def mutate(world: Throttled, api: Any, request: Any, version: int) -> tuple[list[int], int]:
    """The error codes of the topics, and the throttle time."""
    response = answered(world.send_request(api, request, version))
    topics = getattr(response, "topics", None) or getattr(response, "results", None) or response.responses
    return [each.error_code for each in topics], response.throttle_time_ms


def creates(*names: str) -> CreateTopicsRequest:
    topics = tuple(
        CreatableTopic(name=name, num_partitions=10, replication_factor=1, assignments=(), configs=()) for name in names
    )
    return CreateTopicsRequest(topics=topics, timeout_ms=1_000)


def test_mutations_above_the_quota_are_refused_where_clients_know_the_error() -> None:
    """CQ13."""
    world = Throttled("producer_byte_rate", 1_000.0)
    world.set("controller_mutation_rate", 1)
    assert mutate(world, create_topics, creates("a", "b", "c"), 7) == ([0, 0, QUOTA], 9_000)
    grow = CreatePartitionsRequest(topics=(CreatePartitionsTopic(name="a", count=11, assignments=None),), timeout_ms=9)
    assert mutate(world, create_partitions, grow, 3) == ([QUOTA], 9_000)
    delete = DeleteTopicsRequest(topics=(DeleteTopicState(name="a", topic_id=UUID_ZERO),), timeout_ms=9)
    assert mutate(world, delete_topics, delete, 6) == ([QUOTA], 9_000)
    assert world.muted_ms == [9_000] * 3
    world.now_ms += 9_000
    assert mutate(world, delete_topics, delete, 6) == ([0], 0)


def test_mutations_above_the_quota_are_done_and_throttled_in_early_versions() -> None:
    world = Throttled("producer_byte_rate", 1_000.0)
    world.set("controller_mutation_rate", 1)
    assert mutate(world, create_topics, creates("a", "b", "c"), 5) == ([0, 0, 0], 19_000)
    grow = CreatePartitionsRequest(topics=(CreatePartitionsTopic(name="a", count=11, assignments=None),), timeout_ms=9)
    assert mutate(world, create_partitions, grow, 2) == ([0], 20_000)
    delete = DeleteTopicsRequest(topic_names=("a",), timeout_ms=9)
    assert mutate(world, delete_topics, delete, 4) == ([0], 31_000)
    assert world.muted_ms == [19_000, 20_000, 31_000]


def test_topics_that_metadata_creates_count_as_mutations() -> None:
    """CQ13. As in Kafka the response is that for a topic that does not exist yet, and the client asks again."""
    world = Throttled("producer_byte_rate", 1_000.0)
    world.set("controller_mutation_rate", 1)
    names = [f"auto-{index}" for index in range(15)]
    request = MetadataRequest(topics=tuple(MetadataRequestTopic(name=name) for name in names))
    response = answered(world.send_request(metadata, request, 9))
    assert {topic.error_code for topic in response.topics} == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert (response.throttle_time_ms, world.muted_ms) == (0, [])
    assert sum(name in world.node.topics for name in names) == 12
    assert world.node.client_throttle is not None
    assert world.node.client_throttle.throttled == {"controller_mutation_rate": (3, 0)}
    world.now_ms += 1_000
    answered(world.send_request(metadata, request, 9))
    assert sum(name in world.node.topics for name in names) == 13
    assert mutate(world, create_topics, creates("a"), 7) == ([QUOTA], 1_000)
