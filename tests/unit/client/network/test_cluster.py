"""Clusters of brokers that do what a test says."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest
from tests.unit.client.network.scripted import CLOSE, Scripted, eventually

from rota.client.config import ClientConfig
from rota.client.errors import BrokerError, IllegalUse, TimedOut, Unreachable, Unsupported
from rota.client.network.cluster import Cluster
from rota.client.network.targets import AnyNode, Controller, Coordinator, Leader, Node, TransactionCoordinator
from rota.client.types import TopicPartition
from rota.protocol.messages.api_versions import ApiVersion
from rota.protocol.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse
from rota.protocol.messages.fetch import FetchRequest, FetchResponse
from rota.protocol.messages.find_coordinator import Coordinator as Found
from rota.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from rota.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from rota.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from rota.protocol.messages.produce import NodeEndpoint, ProduceRequest

HEARTBEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
FETCH = FetchRequest(max_wait_ms=0, min_bytes=0)
ELECT = ElectLeadersRequest(election_type=0, topic_partitions=None, timeout_ms=1)
P0 = TopicPartition("t", 0)
FAST = {"retry_backoff_ms": 1, "retry_backoff_max_ms": 5, "reconnect_backoff_ms": 1, "reconnect_backoff_max_ms": 5}


@asynccontextmanager
async def scripted(count: int = 1) -> AsyncIterator[list[Scripted]]:
    """Brokers that know each other."""
    async with AsyncExitStack() as stack:
        brokers = [await stack.enter_async_context(Scripted(node)) for node in range(count)]
        for item in brokers:
            item.peers = brokers
        yield brokers


@asynccontextmanager
async def client(*brokers: Scripted, auto_create: bool = False, **settings: Any) -> AsyncIterator[Cluster]:
    addresses = tuple(item.address for item in brokers)
    cluster = Cluster(ClientConfig(bootstrap_servers=addresses, **(FAST | settings)), auto_create=auto_create)
    await cluster.start()
    try:
        yield cluster
    finally:
        await cluster.close()


def led_by(leader: int, epoch: int = 1, error: int = 0) -> MetadataResponseTopic:
    partition = MetadataResponsePartition(partition_index=0, leader_id=leader, leader_epoch=epoch)
    return MetadataResponseTopic(name="t", error_code=error, topic_id=b"\1" * 16, partitions=(partition,))


def responds(*codes: int, answer: type[Any] = HeartbeatResponse) -> Callable[[Any], Any]:
    """Answers with these codes, one after the other; the last for ever."""
    left = list(codes)
    return lambda _: answer(error_code=left.pop(0) if len(left) > 1 else left[0])


def code(answer: Any) -> list[int]:
    return [answer.error_code]


def coordinated(brokers: list[Scripted], *nodes: int) -> None:
    """FindCoordinator names these nodes, one after the other; the last for ever."""
    left = list(nodes)

    def found(_: Any) -> FindCoordinatorResponse:
        node = left.pop(0) if len(left) > 1 else left[0]
        item = Found(key="g", node_id=node, host="127.0.0.1", port=brokers[node].port)
        return FindCoordinatorResponse(coordinators=(item,))

    for item in brokers:
        item.on(FindCoordinatorRequest, found)


# ---- start and close


async def test_one_of_several_bootstrap_addresses_is_enough() -> None:
    async with scripted(2) as brokers:
        await brokers[0].stop()
        async with client(*brokers) as cluster:
            assert set(cluster.metadata.brokers) == {0, 1}
            assert cluster.metadata.cluster_id == "scripted"


async def test_if_no_broker_responds_the_error_names_all_addresses() -> None:
    async with scripted(3) as brokers:
        addresses = [item.address for item in brokers]
        await brokers[0].stop()
        await brokers[1].stop()
        brokers[2].on(MetadataRequest, lambda _: CLOSE)
        settings = {**FAST, "default_api_timeout_ms": 200}
        cluster = Cluster(ClientConfig(bootstrap_servers=tuple(addresses), **settings))  # type: ignore[arg-type]
        with pytest.raises(Unreachable, match="reaching a broker did not succeed within 200 ms") as failed:
            await cluster.start()
        assert all(address in str(failed.value) for address in addresses), str(failed.value)
        assert str(failed.value).count("connection refused") == 2


async def test_a_start_that_is_cancelled_leaves_nothing() -> None:
    async with scripted() as brokers:
        brokers[0].on(MetadataRequest, lambda _: None)
        cluster = Cluster(ClientConfig(bootstrap_servers=brokers[0].address))
        starting = asyncio.create_task(cluster.start())
        await eventually(lambda: len(brokers[0].requests) == 2)
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting
        await eventually(lambda: not brokers[0]._writers)


async def test_it_is_started_first_and_once() -> None:
    cluster = Cluster(ClientConfig(bootstrap_servers="127.0.0.1:1"))
    cluster.set_topics(["t"])
    cluster.request_refresh()
    assert cluster.metadata.brokers == {}
    with pytest.raises(IllegalUse, match="was not started"):
        await cluster.send_request(0, HEARTBEAT)
    with pytest.raises(IllegalUse, match="was not started"):
        await cluster.refresh()
    await cluster.close()
    async with scripted() as brokers, client(*brokers) as started:
        with pytest.raises(IllegalUse, match="started once"):
            await started.start()


async def test_closing_fails_all_pending_calls() -> None:
    async with scripted() as brokers:
        brokers[0].on(HeartbeatRequest, lambda _: None)
        async with client(*brokers) as cluster:
            pending = [asyncio.create_task(cluster.send_request(0, HEARTBEAT, lane=lane)) for lane in ("", "group")]
            finding = asyncio.create_task(cluster.until(lambda _: None, what="waiting"))
            await eventually(lambda: brokers[0].counted()[HeartbeatRequest] == 2)
            finding.cancel()
        failures = await asyncio.gather(*pending, return_exceptions=True)
        assert [type(item) for item in failures] == [Unreachable] * 2
        with pytest.raises(Unreachable):
            await cluster.send_request(0, HEARTBEAT)


async def test_background_work_ends_with_the_cluster(caplog: pytest.LogCaptureFixture) -> None:
    async with scripted() as brokers:
        ended: list[str] = []

        async def work() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                ended.append("work")

        async def fails() -> None:
            raise ZeroDivisionError

        async with client(*brokers) as cluster:
            cluster.background(work(), "work")
            cluster.background(fails(), "fails")
            await eventually(lambda: "a background task failed  task='fails'" in caplog.text)
            assert "ZeroDivisionError" in caplog.text
            assert ended == []
        assert ended == ["work"]


# ---- one attempt


async def test_asking_in_a_version() -> None:
    async with scripted() as brokers:
        brokers[0].on(HeartbeatRequest, responds(0))
        async with client(*brokers) as cluster:
            assert await cluster.send_request(0, HEARTBEAT, version_max=3) == HeartbeatResponse()
            assert brokers[0].headers[-1].api_version == 3
            assert await cluster.version(0, 12) == 4
            with pytest.raises(Unsupported):
                await cluster.send_request(0, HEARTBEAT, version_min=5)
            with pytest.raises(Unreachable, match="no broker 9 is known"):
                await cluster.send_request(9, HEARTBEAT)


async def test_the_bootstrap_connection_is_used_on() -> None:
    async with scripted() as brokers:
        brokers[0].on(HeartbeatRequest, responds(0))
        async with client(*brokers) as cluster:
            await cluster.send_request(0, HEARTBEAT)
            await cluster.version(0, 1)
            assert brokers[0].connections == 1


async def test_a_broker_that_does_not_serve_an_api() -> None:
    versions = tuple(ApiVersion(api_key=key, min_version=0, max_version=9) for key in (3, 18))
    async with Scripted(versions=versions) as broker, client(broker) as cluster:
        with pytest.raises(Unsupported, match="does not serve Heartbeat"):
            await cluster.send_request(0, HEARTBEAT)


async def test_lanes_do_not_hold_each_other_up() -> None:
    async with scripted() as brokers:
        brokers[0].on(HeartbeatRequest, lambda request: HeartbeatResponse() if request.member_id == "m" else None)
        stuck = HeartbeatRequest(group_id="g", generation_id=1, member_id="stuck")
        async with client(*brokers) as cluster:
            waiting = asyncio.create_task(cluster.send_request(0, stuck, lane="fetch"))
            await eventually(lambda: stuck in brokers[0].requests)
            assert await cluster.send_request(0, HEARTBEAT, lane="group") == HeartbeatResponse()
            waiting.cancel()


async def test_late_is_late_and_the_next_connection_is_a_new_one() -> None:
    async with scripted() as brokers:
        brokers[0].on(HeartbeatRequest, lambda _: None)
        async with client(*brokers) as cluster:
            with pytest.raises(TimedOut, match=r"broker 0 \(127.0.0.1:\d+\) did not answer within \d+ ms"):
                await cluster.send_request(0, HEARTBEAT, timeout_ms=300, lane="group")
            brokers[0].on(HeartbeatRequest, responds(0))
            assert await cluster.send_request(0, HEARTBEAT, lane="group") == HeartbeatResponse()
            assert brokers[0].connections == 3


async def test_nc1_a_call_with_a_time_of_its_own_closes_no_connection() -> None:
    async with scripted() as brokers, client(*brokers) as cluster:
        brokers[0].on(HeartbeatRequest, lambda _: None)
        with pytest.raises(TimedOut, match="a request to broker 0 did not succeed within 10 ms"):
            await cluster.send_request_within(10, 0, HEARTBEAT)
        assert cluster._all_brokers.ready(0, "") is not None


async def test_a_dial_counts_for_the_time_of_a_request() -> None:
    async with (
        scripted(2) as brokers,
        client(brokers[0], reconnect_backoff_ms=9_000, reconnect_backoff_max_ms=9_000) as cluster,
    ):
        await brokers[1].stop()
        with pytest.raises(Unreachable):
            await cluster.send_request(1, HEARTBEAT)
        with pytest.raises(TimedOut, match="no connection to broker 1 within 20 ms"):
            await cluster.send_request(1, HEARTBEAT, timeout_ms=20)


async def test_a_request_without_a_response_returns_none() -> None:
    async with scripted() as brokers:
        brokers[0].on(ProduceRequest, lambda _: None)
        async with client(*brokers) as cluster:
            assert await cluster.send_request(0, ProduceRequest(acks=0, timeout_ms=1)) is None
            await eventually(lambda: brokers[0].counted()[ProduceRequest])


# ---- until it worked


async def test_codes_that_pass_are_not_seen() -> None:
    async with scripted() as brokers:
        brokers[0].on(HeartbeatRequest, responds(14, 14, 0))
        async with client(*brokers) as cluster:
            answer = await cluster.send_request_until(Node(0), HEARTBEAT, code, what="beating")
            assert answer.error_code == 0
            assert brokers[0].counted()[HeartbeatRequest] == 3


@pytest.mark.parametrize("fatal", [30, 22, 24])
async def test_fatal_error_codes_are_returned_at_once(fatal: int) -> None:
    async with scripted() as brokers:
        brokers[0].on(HeartbeatRequest, responds(fatal))
        async with client(*brokers) as cluster:
            answer = await cluster.send_request_until(
                Node(0), HEARTBEAT, lambda item: [14, item.error_code], what="beating"
            )
            assert answer.error_code == fatal
            assert brokers[0].counted()[HeartbeatRequest] == 1


async def test_at_the_timeout_the_last_error_code_is_returned() -> None:
    async with scripted() as brokers:
        brokers[0].on(HeartbeatRequest, responds(14))
        async with client(*brokers) as cluster:
            assert (
                await cluster.send_request_until(Node(0), HEARTBEAT, code, what="beating", timeout_ms=200)
            ).error_code == 14


async def test_at_the_timeout_the_last_failure_is_in_the_error() -> None:
    async with scripted() as brokers:
        brokers[0].on(HeartbeatRequest, lambda _: CLOSE)
        async with client(*brokers) as cluster:
            with pytest.raises(TimedOut, match=r"beating did not succeed within 300 ms; .* broker 0 .* closed") as late:
                await cluster.send_request_until(Node(0), HEARTBEAT, code, what="beating", timeout_ms=300)
            assert isinstance(late.value.__cause__, Unreachable)
            brokers[0].on(HeartbeatRequest, lambda _: None)
            with pytest.raises(TimedOut, match="beating did not succeed within 40 ms"):
                await cluster.send_request_until(Node(0), HEARTBEAT, code, what="beating", timeout_ms=40)


async def test_a_timeout_of_one_caller_keeps_the_connection_open() -> None:
    gate = asyncio.Event()

    async def slow(_: Any) -> HeartbeatResponse:
        await gate.wait()
        return HeartbeatResponse()

    async with scripted() as brokers:
        brokers[0].on(HeartbeatRequest, slow)
        async with client(*brokers) as cluster:
            patient = asyncio.create_task(cluster.send_request(0, HEARTBEAT))
            with pytest.raises(TimedOut):
                await cluster.send_request_until(Node(0), HEARTBEAT, code, what="beating", timeout_ms=20)
            gate.set()
            assert await patient == HeartbeatResponse()


async def test_a_fresh_request_for_each_node() -> None:
    async with scripted() as brokers:
        brokers[0].on(HeartbeatRequest, responds(14, 0))
        async with client(*brokers) as cluster:
            requests: list[int] = []

            def made(node: int) -> HeartbeatRequest:
                requests.append(node)
                return HeartbeatRequest(group_id="g", generation_id=len(requests), member_id="m")

            await cluster.send_request_until(Node(0), made, code, what="beating")
            assert requests == [0, 0]
            assert [item.generation_id for item in brokers[0].requests if isinstance(item, HeartbeatRequest)] == [1, 2]


async def test_any_node_avoids_an_unreachable_broker() -> None:
    async with scripted(3) as brokers, client(brokers[0]) as cluster:
        for item in brokers:
            item.on(HeartbeatRequest, responds(0))
        await brokers[1].stop()
        for _ in range(5):
            await cluster.send_request_until(AnyNode(), HEARTBEAT, code, what="beating")
        assert brokers[0].counted()[HeartbeatRequest] == 5, "one connection is enough for whom it does not matter"


async def test_the_controller_is_followed() -> None:
    async with scripted(2) as brokers:
        for item in brokers:
            item.on(ElectLeadersRequest, responds(41, answer=ElectLeadersResponse))
        async with client(*brokers) as cluster:
            cluster_controller = cluster.metadata.controller
            other = brokers[1 - cluster_controller]
            other.on(ElectLeadersRequest, responds(0, answer=ElectLeadersResponse))
            for item in brokers:
                item.on(MetadataRequest, lambda _: other.metadata())
            assert (await cluster.send_request_until(Controller(), ELECT, code, what="creating")).error_code == 0
            assert cluster.metadata.controller == other.node


async def test_a_leader_is_found_followed_and_forgotten() -> None:
    async with scripted(2) as brokers:
        leaders = iter([led_by(-1), led_by(0), led_by(1, 2)])
        for item in brokers:
            item.on(
                MetadataRequest, lambda requests: brokers[0].metadata(*((next(leaders),) if requests.topics else ()))
            )
        brokers[0].on(FetchRequest, responds(6, answer=FetchResponse))
        brokers[1].on(FetchRequest, responds(0, answer=FetchResponse))
        async with client(brokers[0]) as cluster:
            await cluster.send_request_until(Leader(P0), FETCH, code, what="reading")
            assert brokers[0].counted()[FetchRequest] == brokers[1].counted()[FetchRequest] == 1
            for item in brokers:
                item.on(
                    MetadataRequest, lambda requests: brokers[0].metadata(*((led_by(1, 2),) if requests.topics else ()))
                )
            assert (await cluster.refresh()).topics == {}, "it was wanted for this one call"


async def test_a_leader_lookup_timeout_names_the_reason() -> None:
    async with scripted() as brokers:
        brokers[0].on(
            MetadataRequest, lambda requests: brokers[0].metadata(*([led_by(-1, error=3)] if requests.topics else ()))
        )
        async with client(*brokers) as cluster:
            with pytest.raises(TimedOut, match="reading did not succeed within 200 ms: t: UNKNOWN_TOPIC_OR_PARTITION"):
                await cluster.send_request_until(Leader(P0), FETCH, code, what="reading", timeout_ms=200)


async def test_a_coordinator_is_found_and_followed() -> None:
    async with scripted(2) as brokers:
        coordinated(brokers, 0, 1)
        brokers[0].on(HeartbeatRequest, responds(16))
        brokers[1].on(HeartbeatRequest, responds(0))
        async with client(brokers[0]) as cluster:
            await cluster.send_request_until(Coordinator("g"), HEARTBEAT, code, what="beating", lane="group")
            assert await cluster.coordinator("g") == 1


async def test_a_moved_coordinator_is_looked_up_again() -> None:
    async with scripted(2) as brokers:
        coordinated(brokers, 1, 0)
        brokers[0].on(HeartbeatRequest, responds(0))
        async with client(brokers[0]) as cluster:
            assert await cluster.coordinator("g") == 1
            await brokers[1].stop()
            await cluster.send_request_until(Coordinator("g"), HEARTBEAT, code, what="beating")
            assert await cluster.coordinator("g") == 0


async def test_a_coordinator_missing_from_metadata_can_be_used() -> None:
    async with scripted(2) as brokers:
        brokers[0].peers = brokers[:1]
        coordinated(brokers, 1)
        brokers[1].on(HeartbeatRequest, responds(0))
        async with client(brokers[0]) as cluster:
            assert (await cluster.send_request_until(Coordinator("g"), HEARTBEAT, code, what="beating")).error_code == 0


async def test_a_coordinator_lookup_times_out() -> None:
    async with scripted() as brokers:
        brokers[0].on(
            FindCoordinatorRequest, lambda _: FindCoordinatorResponse(coordinators=(Found(key="g", error_code=15),))
        )
        async with client(*brokers) as cluster:
            with pytest.raises(TimedOut, match="looking for the coordinator of group g did not succeed within 50 ms"):
                await cluster.coordinator("g", timeout_ms=50)
            brokers[0].on(
                FindCoordinatorRequest, lambda _: FindCoordinatorResponse(coordinators=(Found(key="g", error_code=24),))
            )
            with pytest.raises(BrokerError, match="INVALID_GROUP_ID"):
                await cluster.coordinator("g")


# ---- metadata


@pytest.mark.parametrize("target", [Coordinator("g"), TransactionCoordinator("g")])
async def test_nc11_a_request_whose_coordinator_is_not_found_in_time_names_the_last_response(target: Any) -> None:
    async with scripted() as brokers, client(*brokers) as cluster:
        loading = Found(key="g", node_id=-1, host="", port=-1, error_code=15)
        brokers[0].on(FindCoordinatorRequest, lambda _: FindCoordinatorResponse(coordinators=(loading,)))
        with pytest.raises(TimedOut, match=r"group g: COORDINATOR_NOT_AVAILABLE \(|id g: COORDINATOR_NOT_AVAILABLE \("):
            await cluster.send_request_until(target, HEARTBEAT, lambda _: (), what="asking", timeout_ms=40)
        with pytest.raises(TimedOut, match="no coordinator for group g: COORDINATOR_NOT_AVAILABLE"):
            await cluster.coordinator("g", timeout_ms=40)
        brokers[0].on(FindCoordinatorRequest, lambda _: None)
        with pytest.raises(TimedOut, match="has not answered yet"):
            await cluster.coordinator("g", timeout_ms=40)


async def test_nc11_each_of_those_that_wait_for_a_coordinator_names_the_last_response() -> None:
    async with scripted() as brokers, client(*brokers) as cluster:
        loading = Found(key="g", node_id=-1, host="", port=-1, error_code=15)
        brokers[0].on(FindCoordinatorRequest, lambda _: FindCoordinatorResponse(coordinators=(loading,)))
        waiting = [cluster.coordinator("g", timeout_ms=200) for _ in range(3)]
        for failure in await asyncio.gather(*waiting, return_exceptions=True):
            assert "COORDINATOR_NOT_AVAILABLE" in str(failure)


async def test_until_something_is_known() -> None:
    async with scripted() as brokers:
        answers = [led_by(-1, error=3), led_by(0)]
        brokers[0].on(
            MetadataRequest,
            lambda requests: brokers[0].metadata(
                *([answers.pop(0) if len(answers) > 1 else answers[0]] if requests.topics else [])
            ),
        )
        async with client(*brokers) as cluster:
            cluster.set_topics(["t"])
            assert await cluster.until(lambda known: known.leader(P0), what="looking") == 0
            with pytest.raises(ZeroDivisionError):
                await cluster.until(lambda _: 1 // 0, what="looking")


async def test_nc12_many_that_wait_for_the_same_share_the_requests() -> None:
    async with scripted() as brokers, client(*brokers, retry_backoff_ms=20, retry_backoff_max_ms=40) as cluster:
        waits = (cluster.until(lambda _: None, what="waiting", timeout_ms=300) for _ in range(100))
        assert {type(end) for end in await asyncio.gather(*waits, return_exceptions=True)} == {TimedOut}
        assert 1 < brokers[0].counted()[MetadataRequest] < 30


async def test_the_timeout_of_until_has_the_errors_of_the_brokers() -> None:
    async with scripted() as brokers:
        brokers[0].on(MetadataRequest, lambda _: brokers[0].metadata(led_by(-1, error=3)))
        async with client(*brokers) as cluster:
            cluster.set_topics(["t"])
            reply = r"looking for t did not succeed within 200 ms: t: UNKNOWN_TOPIC_OR_PARTITION"
            with pytest.raises(TimedOut, match=reply):
                await cluster.until(lambda known: known.leader(P0), what="looking for t", timeout_ms=200)
            await brokers[0].stop()
            brokers[0].on(MetadataRequest, lambda _: brokers[0].metadata())
            with pytest.raises(TimedOut):
                await cluster.refresh(timeout_ms=0)


async def test_wishes_before_the_start_count() -> None:
    async with scripted() as brokers:
        cluster = Cluster(ClientConfig(bootstrap_servers=brokers[0].address), auto_create=True)
        cluster.set_topics(["t"])
        await cluster.start()
        requests = [item for item in brokers[0].requests if isinstance(item, MetadataRequest)]
        assert [topic.name for topic in requests[0].topics or ()] == ["t"]
        assert requests[0].allow_auto_topic_creation
        await cluster.close()


async def test_an_answer_that_is_refused_as_a_whole_sends_us_back_to_bootstrap() -> None:
    """KIP-1102: REBOOTSTRAP_REQUIRED."""
    async with scripted(2) as brokers:
        brokers[0].peers = [brokers[1]]
        async with client(brokers[0]) as cluster:
            brokers[1].on(MetadataRequest, lambda _: MetadataResponse(error_code=129))
            brokers[0].peers = [brokers[0]]
            assert set((await cluster.refresh()).brokers) == {0}


async def test_a_cluster_that_moved_is_found_through_bootstrap() -> None:
    async with scripted(3) as brokers:
        brokers[0].peers = brokers[1:]
        async with client(brokers[0]) as cluster:
            await brokers[1].stop()
            await brokers[2].stop()
            brokers[0].peers = brokers[:1]
            assert set((await cluster.refresh()).brokers) == {0}


async def test_a_lost_connection_makes_metadata_stale() -> None:
    async with scripted() as brokers, client(*brokers) as cluster:
        count = brokers[0].counted()[MetadataRequest]
        brokers[0].drop()
        await eventually(lambda: brokers[0].counted()[MetadataRequest] > count)
        assert cluster.metadata.version == 1


async def test_a_leader_named_in_an_error_is_used() -> None:
    """KIP-951."""
    async with scripted(2) as brokers:
        brokers[0].peers = brokers[:1]
        brokers[0].on(MetadataRequest, lambda _: brokers[0].metadata(led_by(0)))
        brokers[1].on(HeartbeatRequest, responds(0))
        async with client(brokers[0]) as cluster:
            reply: list[int] = []
            cluster.on_change(lambda known: reply.append(known.leader(P0) or 0))
            cluster.take_leader_hint(P0, 1, 2)
            assert cluster.metadata.leader(P0) == 0, "nobody knows where 1 listens"
            cluster.add_brokers([NodeEndpoint(node_id=1, host="127.0.0.1", port=brokers[1].port, rack=None)])
            cluster.take_leader_hint(P0, 1, 2)
            assert cluster.metadata.leader(P0) == 1
            assert reply == [0, 1]
            assert await cluster.send_request(1, HEARTBEAT) == HeartbeatResponse()
