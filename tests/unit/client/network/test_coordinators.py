import asyncio
from typing import Any

import pytest

from rota.client.errors import BrokerError, TimedOut
from rota.client.network.coordinators import GROUP, TRANSACTION, Coordinators, codes
from rota.protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse


class Town:
    """Whoever knows where coordinators are."""

    def __init__(self, *answers: FindCoordinatorResponse, key_type: int = GROUP) -> None:
        self.answers = list(answers)
        self.requests: list[FindCoordinatorRequest] = []
        self.addresses: list[tuple[int, str, int]] = []
        self.coordinators = Coordinators(self.find, lambda *item: self.addresses.append(item), key_type)

    async def find(self, group: str, request: FindCoordinatorRequest) -> Any:
        self.requests.append(request)
        await asyncio.sleep(0)
        return self.answers.pop(0)


def at(node: int, error: int = 0) -> FindCoordinatorResponse:
    item = Coordinator(key="g", node_id=node, host=f"b{node}", port=9092, error_code=error)
    return FindCoordinatorResponse(coordinators=(item,))


async def test_concurrent_lookups_share_one_request() -> None:
    town = Town(at(3))
    assert town.coordinators.cached("g") is None
    assert await asyncio.gather(*(town.coordinators.of("g") for _ in range(4))) == [3, 3, 3, 3]
    assert town.requests == [FindCoordinatorRequest(key="g", key_type=0, coordinator_keys=("g",))]
    assert town.addresses == [(3, "b3", 9092)]
    assert town.coordinators.cached("g") == 3


async def test_a_moved_coordinator_is_looked_up_again() -> None:
    town = Town(at(3), at(4))
    assert await town.coordinators.of("g") == 3
    town.coordinators.moved("g", 9)
    assert await town.coordinators.of("g") == 3, "somebody spoke of an older one"
    town.coordinators.moved("g", 3)
    assert await town.coordinators.of("g") == 4


async def test_an_old_broker_answers_in_the_outer_fields() -> None:
    old = FindCoordinatorResponse(node_id=5, host="b5", port=1)
    assert await Town(old).coordinators.of("g") == 5
    assert codes(old) == [0]
    assert codes(at(1, 15)) == [15]


async def test_a_fatal_lookup_error_is_raised() -> None:
    town = Town(at(-1, 30), at(3))
    with pytest.raises(BrokerError, match=r"looking for the coordinator \(group g\): GROUP_AUTHORIZATION_FAILED"):
        await town.coordinators.of("g")
    assert await town.coordinators.of("g") == 3
    assert town.addresses == [(3, "b3", 9092)]


async def test_a_lookup_timeout_names_the_last_error() -> None:
    with pytest.raises(TimedOut, match=r"no coordinator for group g .* COORDINATOR_NOT_AVAILABLE"):
        await Town(at(-1, 15)).coordinators.of("g")


async def test_cancelling_one_lookup_does_not_affect_the_others() -> None:
    town = Town(at(3), at(4))
    first = asyncio.create_task(town.coordinators.of("g"))
    second = asyncio.create_task(town.coordinators.of("g"))
    await asyncio.sleep(0)
    first.cancel()
    async with asyncio.timeout(10):
        assert await second == 3


async def test_ever_new_groups_take_no_more_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rota.client.network.coordinators.KEYS_MAX", 2)
    town = Town(*[at(3)] * 5, *[at(-1, 15)] * 5, at(4))
    for number in range(5):
        assert await town.coordinators.of(f"g{number}") == 3
    for number in range(5, 10):
        town.coordinators.codes(f"g{number}", at(-1, 15))
        with pytest.raises(TimedOut):
            await town.coordinators.of(f"g{number}")
    sizes = [len(kept) for kept in vars(town.coordinators).values() if isinstance(kept, dict)]
    assert max(sizes) <= 2
    assert not town.coordinators._lookups
    assert town.coordinators.cached("g4") == 3
    assert await town.coordinators.of("g0") == 4


async def test_the_coordinator_of_a_transactional_id_is_looked_up_by_its_key_type() -> None:
    town = Town(at(3), at(0, error=15), key_type=TRANSACTION)
    assert await town.coordinators.of("id") == 3
    assert town.requests == [FindCoordinatorRequest(key="id", key_type=1, coordinator_keys=("id",))]
    town.coordinators.moved("id", 3)
    with pytest.raises(TimedOut, match="transactional id id"):
        await town.coordinators.of("id")
