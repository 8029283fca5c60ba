"""RC1-RC3: the configs of brokers, groups and client metrics subscriptions, written by several brokers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping

import pytest
from tests.unit.coordinator.metadata.image_pair import ImagePair

from rota.coordinator.metadata import eager_tasks, znodes
from rota.coordinator.metadata.changes import DEFAULT_NAME, Change, ConfigKind, ResourceConfigChanged
from rota.coordinator.metadata.store import PATH_BYTES_MAX, NoNode
from rota.coordinator.metadata.topic import Refusal
from rota.coordinator.metadata.topics import Topics
from rota.protocol.errors import ErrorCode

BROKERS, GROUPS, METRICS = ConfigKind.BROKERS, ConfigKind.GROUPS, ConfigKind.CLIENT_METRICS


class Pair(ImagePair):
    """A broker that changes configs, and another one whose image follows the store."""

    async def set(self, kind: ConfigKind, name: str, configs: Mapping[str, str]) -> Refusal | None:
        return await self.writer.configs.update(kind, name, lambda _: configs)


@pytest.fixture
async def pair() -> AsyncIterator[Pair]:
    pair = Pair()
    await pair.writer.load()
    await pair.updater.follow(pair.image)
    yield pair
    await pair.updater.close()
    await pair.store.close()


async def test_a_change_is_in_the_own_image_at_once_and_in_the_others_soon(pair: Pair) -> None:
    seen: list[Change] = []
    pair.image.on_change(seen.append)
    for kind, name in ((BROKERS, DEFAULT_NAME), (BROKERS, "1"), (GROUPS, "g"), (METRICS, "m")):
        assert await pair.set(kind, name, {"a": "1"}) is None
        assert pair.writer.resource_configs(kind, name) == {"a": "1"}
        await pair.set(kind, name, {"a": "2"})
        await pair.updater.wait_until_applied()
        assert pair.image.resource_configs(kind, name) == {"a": "2"}
        assert ResourceConfigChanged(kind, name) in seen
    assert pair.image.configured(BROKERS) == ["1", DEFAULT_NAME]


async def test_a_resource_without_configs_has_no_node(pair: Pair) -> None:
    await pair.set(GROUPS, "g", {"a": "1"})
    await pair.set(GROUPS, "g", {})
    await pair.updater.wait_until_applied()
    assert (pair.writer.configured(GROUPS), pair.image.configured(GROUPS)) == ([], [])
    assert await pair.store.children("/config/groups") == []
    await pair.set(GROUPS, "g", {})
    assert await pair.store.children("/config/groups") == []


async def test_a_refusal_writes_nothing(pair: Pair) -> None:
    refusal = Refusal(ErrorCode.INVALID_CONFIG, "no")
    assert await pair.writer.configs.update(GROUPS, "g", lambda _: refusal) is refusal
    assert await pair.store.children("/config/groups") == []


@pytest.mark.parametrize("before", [{}, {"a": "0"}])
async def test_the_second_of_two_changes_at_one_time_is_made_on_top_of_the_first(
    pair: Pair, before: Mapping[str, str]
) -> None:
    await pair.set(GROUPS, "g", before)
    seen: list[Mapping[str, str]] = []

    def adding(found: Mapping[str, str]) -> Mapping[str, str]:
        seen.append(found)
        if len(seen) == 1:  # the other broker writes between the read and the write of this one
            eager_tasks.run_eagerly(pair.image.configs.update(GROUPS, "g", lambda other: {**other, "b": "2"}))
        return {**found, "c": "3"}

    assert await pair.writer.configs.update(GROUPS, "g", adding) is None
    await pair.updater.wait_until_applied()
    assert pair.image.resource_configs(GROUPS, "g") == {**before, "b": "2", "c": "3"}
    assert seen == [before, {**before, "b": "2"}]


@pytest.mark.parametrize("name", ["a/b", ".", "..", "a b", "%2F", "ä", "<default>", "..."])
async def test_any_name_is_one_node(pair: Pair, name: str) -> None:
    await pair.set(GROUPS, name, {"a": "1"})
    await pair.updater.wait_until_applied()
    assert pair.image.configured(GROUPS) == [name]
    again = Topics(pair.store, broker_id=3, fresh_uuid=lambda: bytes(16))
    await again.load()
    assert again.resource_configs(GROUPS, name) == {"a": "1"}


async def test_a_name_that_no_path_takes_is_refused(pair: Pair) -> None:
    refusal = await pair.set(GROUPS, "x" * (PATH_BYTES_MAX + 1), {"a": "1"})
    assert refusal is not None
    assert refusal.code == ErrorCode.INVALID_REQUEST


async def test_a_node_that_another_program_spoiled_counts_as_empty(pair: Pair) -> None:
    await pair.store.create("/config/brokers/1", b"not json")
    await pair.updater.wait_until_applied()
    assert pair.image.resource_configs(BROKERS, "1") == {}
    again = Topics(pair.store, broker_id=3, fresh_uuid=lambda: bytes(16))
    await again.load()
    assert again.resource_configs(BROKERS, "1") == {}


async def test_a_deletion_by_another_program_is_seen(pair: Pair) -> None:
    await pair.set(BROKERS, DEFAULT_NAME, {"a": "1"})
    await pair.updater.wait_until_applied()
    await pair.store.delete(znodes.resource_config_path(BROKERS, DEFAULT_NAME))
    await pair.updater.wait_until_applied()
    assert pair.image.configured(BROKERS) == []
    with pytest.raises(NoNode):
        await pair.store.get("/config/brokers/<default>")
