"""One request per broker, then one per key that is still pending; all of them by the deadline."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

import pytest
from tests.unit.client.admin.conftest import Pair
from tests.unit.client.network.scripted import CLOSE

from rota.client.admin.call_results import CallResults, ErrorContext, KeyResult, SentRequest
from rota.client.admin.requests import (
    CONCURRENT_REQUESTS_MAX,
    Deadline,
    request_all_brokers,
    request_each_broker,
    request_with_retries,
    run_concurrently,
)
from rota.client.errors import AdminFailed, BrokerError, TimedOut
from rota.client.network.cluster import Cluster
from rota.client.network.targets import Controller, Coordinator
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse

NOT_COORDINATOR, NON_EMPTY = ErrorCode.NOT_COORDINATOR, ErrorCode.NON_EMPTY_GROUP
FOUR = ("a", "b", "c", "d")


def new_results(*groups: str) -> CallResults[str, int]:
    return CallResults("deleting groups", 42, groups, lambda group: ErrorContext(group=group))


def build(groups: Sequence[str]) -> DeleteGroupsRequest:
    return DeleteGroupsRequest(groups_names=tuple(groups))


def read(sent: SentRequest[str], answer: DeleteGroupsResponse) -> Iterable[KeyResult[str, int]]:
    return (KeyResult(item.group_id, item.error_code, sent.node) for item in answer.results)


def respond(request: DeleteGroupsRequest, **codes: int) -> DeleteGroupsResponse:
    results = (DeletableGroupResult(group_id=name, error_code=codes.get(name, 0)) for name in request.groups_names)
    return DeleteGroupsResponse(results=tuple(results))


def requested_groups(pair: Pair) -> list[list[tuple[str, ...]]]:
    return [[item.groups_names for item in received] for received in pair.requests(DeleteGroupsRequest)]  # type: ignore[attr-defined]


async def delete(cluster: Cluster, deadline: Deadline, *groups: str) -> dict[str, int]:
    results = new_results(*groups)
    await request_each_broker(cluster, cluster.coordinator, Coordinator, results, build, read, deadline)
    return results.all_or_raise()


async def test_each_broker_receives_one_request_for_all_its_keys(
    pair: Pair, cluster: Cluster, deadline: Deadline
) -> None:
    pair.coordinators = {"c": 1, "d": 1}
    for broker in pair.both:
        broker.on(DeleteGroupsRequest, respond)
    assert await delete(cluster, deadline, *FOUR) == {"a": 0, "b": 0, "c": 1, "d": 1}
    assert [sorted(map(sorted, item)) for item in requested_groups(pair)] == [[["a", "b"]], [["c", "d"]]]


async def test_a_key_whose_coordinator_moved_is_requested_alone(
    pair: Pair, cluster: Cluster, deadline: Deadline
) -> None:
    def moved(request: DeleteGroupsRequest) -> DeleteGroupsResponse:
        pair.coordinators["b"] = 1
        return respond(request, b=NOT_COORDINATOR)

    pair.one.on(DeleteGroupsRequest, moved)
    pair.two.on(DeleteGroupsRequest, respond)
    assert await delete(cluster, deadline, "a", "b") == {"a": 0, "b": 1}
    assert requested_groups(pair)[1] == [("b",)]


async def test_a_lost_response_is_retried_key_by_key(pair: Pair, cluster: Cluster, deadline: Deadline) -> None:
    pair.one.on(DeleteGroupsRequest, lambda request: CLOSE if len(request.groups_names) > 1 else respond(request))
    assert await delete(cluster, deadline, "a", "b") == {"a": 0, "b": 0}


async def test_a_final_failure_is_raised_with_the_successes(pair: Pair, cluster: Cluster, deadline: Deadline) -> None:
    pair.one.on(DeleteGroupsRequest, lambda request: respond(request, b=NON_EMPTY))
    with pytest.raises(AdminFailed) as failed:
        await delete(cluster, deadline, "a", "b")
    assert failed.value.done == {"a": 0}
    assert failed.value.codes == {NON_EMPTY}
    assert len(requested_groups(pair)[0]) == 1


async def test_a_retry_leaves_out_final_keys(pair: Pair, cluster: Cluster, deadline: Deadline) -> None:
    codes = [{"a": NON_EMPTY, "b": ErrorCode.NOT_CONTROLLER}, {}]
    pair.one.on(DeleteGroupsRequest, lambda request: respond(request, **codes.pop(0)))
    results = new_results("a", "b", "c")
    await request_with_retries(cluster, Controller(), results, build, read, deadline)
    assert (results.done, list(results.failed)) == ({"b": 0, "c": 0}, ["a"])
    assert requested_groups(pair)[0] == [("a", "b", "c"), ("b",)]


async def test_at_the_deadline_the_last_code_is_raised(pair: Pair, cluster: Cluster, soon: Deadline) -> None:
    pair.one.on(DeleteGroupsRequest, lambda request: respond(request, a=ErrorCode.NOT_CONTROLLER))
    results = new_results("a")
    await request_with_retries(cluster, Controller(), results, build, read, soon)
    failure = results.failed["a"]
    assert isinstance(failure, BrokerError)
    assert (failure.code, failure.group) == (ErrorCode.NOT_CONTROLLER, "a")


async def test_a_request_without_a_response_ends_at_the_deadline(pair: Pair, cluster: Cluster, soon: Deadline) -> None:
    pair.one.on(DeleteGroupsRequest, lambda _: None)
    results = new_results("a", "b")
    await request_with_retries(cluster, Controller(), results, build, read, soon)
    with pytest.raises(TimedOut, match="deleting groups"):
        results.all_or_raise()


async def test_every_broker_receives_a_request(pair: Pair, cluster: Cluster, deadline: Deadline) -> None:
    pair.one.on(DeleteGroupsRequest, respond)
    pair.two.on(DeleteGroupsRequest, lambda request: respond(request, all=NON_EMPTY))
    results = CallResults[int, str]("asking", 42, (0, 1), lambda node: ErrorContext(broker=str(node)))

    def read_all(sent: SentRequest[int], answer: DeleteGroupsResponse) -> Iterable[KeyResult[int, str]]:
        yield KeyResult(sent.node, answer.results[0].error_code, "done")

    await request_all_brokers(cluster, results, lambda _: build(("all",)), read_all, deadline)
    assert (results.done, list(results.failed)) == ({0: "done"}, [1])


async def test_the_timeout_of_a_broker_is_less_than_that_of_the_client() -> None:
    assert Deadline(60_000, 1_000).broker_timeout_ms < 1_000
    assert 0 < Deadline(50, 1_000).broker_timeout_ms < 50
    assert Deadline(0, 1_000).remaining_ms == 1


async def test_concurrent_calls_are_limited() -> None:
    running, most = 0, 0

    async def work() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1

    await run_concurrently([work] * (CONCURRENT_REQUESTS_MAX * 3))
    assert (running, most) == (0, CONCURRENT_REQUESTS_MAX)
