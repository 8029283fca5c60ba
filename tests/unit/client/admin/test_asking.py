"""One request per broker, then one by one what has moved; all of it by the deadline."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

import pytest
from tests.unit.client.admin.conftest import Pair
from tests.unit.client.network.scripted import CLOSE

from rota.client.admin.asking import SIDE_BY_SIDE_MAX, Deadline, every_node, settle, settle_where, side_by_side
from rota.client.admin.outcomes import Answer, Asked, Outcomes, Place
from rota.client.errors import AdminFailed, BrokerError, TimedOut
from rota.client.network.cluster import Cluster
from rota.client.network.targets import Controller, Coordinator
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse

NOT_COORDINATOR, NON_EMPTY = ErrorCode.NOT_COORDINATOR, ErrorCode.NON_EMPTY_GROUP
FOUR = ("a", "b", "c", "d")


def outcomes(*groups: str) -> Outcomes[str, int]:
    return Outcomes("deleting groups", 42, groups, lambda group: Place(group=group))


def build(groups: Sequence[str]) -> DeleteGroupsRequest:
    return DeleteGroupsRequest(groups_names=tuple(groups))


def read(asked: Asked[str], answer: DeleteGroupsResponse) -> Iterable[Answer[str, int]]:
    return (Answer(one.group_id, one.error_code, asked.node) for one in answer.results)


def answered(request: DeleteGroupsRequest, **codes: int) -> DeleteGroupsResponse:
    results = (DeletableGroupResult(group_id=name, error_code=codes.get(name, 0)) for name in request.groups_names)
    return DeleteGroupsResponse(results=tuple(results))


def groups_asked(pair: Pair) -> list[list[tuple[str, ...]]]:
    return [[one.groups_names for one in asked] for asked in pair.asked(DeleteGroupsRequest)]  # type: ignore[attr-defined]


async def delete(cluster: Cluster, deadline: Deadline, *groups: str) -> dict[str, int]:
    asked = outcomes(*groups)
    await settle_where(cluster, cluster.coordinator, Coordinator, asked, build, read, deadline)
    return asked.results()


async def test_each_broker_is_asked_once_for_all_that_it_has(pair: Pair, cluster: Cluster, deadline: Deadline) -> None:
    pair.coordinators = {"c": 1, "d": 1}
    for broker in pair.both:
        broker.on(DeleteGroupsRequest, answered)
    assert await delete(cluster, deadline, *FOUR) == {"a": 0, "b": 0, "c": 1, "d": 1}
    assert [sorted(map(sorted, one)) for one in groups_asked(pair)] == [[["a", "b"]], [["c", "d"]]]


async def test_what_has_moved_is_followed_and_nothing_else_is_asked_again(
    pair: Pair, cluster: Cluster, deadline: Deadline
) -> None:
    def moved(request: DeleteGroupsRequest) -> DeleteGroupsResponse:
        pair.coordinators["b"] = 1
        return answered(request, b=NOT_COORDINATOR)

    pair.one.on(DeleteGroupsRequest, moved)
    pair.two.on(DeleteGroupsRequest, answered)
    assert await delete(cluster, deadline, "a", "b") == {"a": 0, "b": 1}
    assert groups_asked(pair)[1] == [("b",)]


async def test_a_lost_answer_is_asked_for_one_by_one(pair: Pair, cluster: Cluster, deadline: Deadline) -> None:
    pair.one.on(DeleteGroupsRequest, lambda request: CLOSE if len(request.groups_names) > 1 else answered(request))
    assert await delete(cluster, deadline, "a", "b") == {"a": 0, "b": 0}


async def test_what_fails_for_good_is_told_beside_what_worked(pair: Pair, cluster: Cluster, deadline: Deadline) -> None:
    pair.one.on(DeleteGroupsRequest, lambda request: answered(request, b=NON_EMPTY))
    with pytest.raises(AdminFailed) as failed:
        await delete(cluster, deadline, "a", "b")
    assert failed.value.done == {"a": 0}
    assert failed.value.codes == {NON_EMPTY}
    assert len(groups_asked(pair)[0]) == 1


async def test_a_retry_leaves_out_what_is_settled(pair: Pair, cluster: Cluster, deadline: Deadline) -> None:
    codes = [{"a": NON_EMPTY, "b": ErrorCode.NOT_CONTROLLER}, {}]
    pair.one.on(DeleteGroupsRequest, lambda request: answered(request, **codes.pop(0)))
    asked = outcomes("a", "b", "c")
    await settle(cluster, Controller(), asked, build, read, deadline)
    assert (asked.done, list(asked.failed)) == ({"b": 0, "c": 0}, ["a"])
    assert groups_asked(pair)[0] == [("a", "b", "c"), ("b",)]


async def test_by_the_deadline_the_last_code_is_told(pair: Pair, cluster: Cluster, soon: Deadline) -> None:
    pair.one.on(DeleteGroupsRequest, lambda request: answered(request, a=ErrorCode.NOT_CONTROLLER))
    asked = outcomes("a")
    await settle(cluster, Controller(), asked, build, read, soon)
    failure = asked.failed["a"]
    assert isinstance(failure, BrokerError)
    assert (failure.code, failure.group) == (ErrorCode.NOT_CONTROLLER, "a")


async def test_silence_ends_with_the_deadline(pair: Pair, cluster: Cluster, soon: Deadline) -> None:
    pair.one.on(DeleteGroupsRequest, lambda _: None)
    asked = outcomes("a", "b")
    await settle(cluster, Controller(), asked, build, read, soon)
    with pytest.raises(TimedOut, match="deleting groups"):
        asked.results()


async def test_every_broker_is_asked(pair: Pair, cluster: Cluster, deadline: Deadline) -> None:
    pair.one.on(DeleteGroupsRequest, answered)
    pair.two.on(DeleteGroupsRequest, lambda request: answered(request, all=NON_EMPTY))
    asked = Outcomes[int, str]("asking", 42, (0, 1), lambda node: Place(broker=str(node)))

    def told(by: Asked[int], answer: DeleteGroupsResponse) -> Iterable[Answer[int, str]]:
        yield Answer(by.node, answer.results[0].error_code, "done")

    await every_node(cluster, asked, lambda _: build(("all",)), told, deadline)
    assert (asked.done, list(asked.failed)) == ({0: "done"}, [1])


async def test_a_broker_waits_less_long_than_the_client() -> None:
    assert Deadline(60_000, 1_000).broker_ms < 1_000
    assert 0 < Deadline(50, 1_000).broker_ms < 50
    assert Deadline(0, 1_000).left_ms == 1


async def test_only_so_many_run_side_by_side() -> None:
    running, most = 0, 0

    async def work() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1

    await side_by_side([work] * (SIDE_BY_SIDE_MAX * 3))
    assert (running, most) == (0, SIDE_BY_SIDE_MAX)
