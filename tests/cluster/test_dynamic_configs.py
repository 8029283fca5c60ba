"""BC1-BC4 on a cluster: configs that change while it runs are in force on every broker, with real clients."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from confluent_kafka.admin import AdminClient as ConfluentAdmin
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType
from kafka import KafkaAdminClient
from kafka.admin import ConfigResource as PythonResource
from kafka.admin import ConfigResourceType
from tests.cluster.brokers import Brokers, until
from tests.interop.config_apis import scenario
from tests.interop.config_apis.scenario import BROKER, DELETE, SET
from tests.interop.differential.wire import Wire

from rota.coordinator.metadata.changes import DEFAULT_NAME, ConfigKind


@pytest.fixture
async def brokers() -> AsyncIterator[Brokers]:
    async with Brokers(3) as three:
        yield three


def in_force(brokers: Brokers, name: str) -> list[str | None]:
    return [brokers.by_id[broker_id].config.text(name) for broker_id in sorted(brokers.by_id)]


async def alter(brokers: Brokers, name: str, key: str, value: str | None) -> None:
    """Set or delete a config of a broker, or of all brokers: confluent-kafka takes no empty name."""
    change = (key, DELETE if value is None else SET, value)

    def run() -> None:
        wire = Wire(brokers.bootstrap(int(name or 1)), "admin")
        (result,) = wire.send_request(scenario.alter(BROKER, name, change), 1).responses
        wire.close()
        assert result.error_code == 0, result.error_message

    await asyncio.to_thread(run)


async def test_confluent_kafka_sets_and_shows_the_configs_of_a_broker(brokers: Brokers) -> None:
    def run() -> str:
        admin = ConfluentAdmin({"bootstrap.servers": brokers.bootstrap()})
        entry = ConfigEntry("log.segment.bytes", "2000000", incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.BROKER, "3", incremental_configs=[entry])
        admin.incremental_alter_configs([resource])[resource].result(20)
        shown = admin.describe_configs([ConfigResource(ResourceType.BROKER, "3")])
        ((_, answer),) = shown.items()
        described = answer.result(20)["log.segment.bytes"]
        return f"{described.value} {described.source} {described.is_read_only}"

    assert await asyncio.to_thread(run) == "2000000 2 False"
    await until(lambda: in_force(brokers, "log.segment.bytes") == ["1073741824", "1073741824", "2000000"])


async def test_a_change_is_in_force_on_every_broker_and_outlives_a_restart(brokers: Brokers) -> None:
    item = brokers.by_id[1]
    await item.topics.create("t", 3, 3)
    await until(lambda: all(len(b.partitions.all()) == 3 for b in brokers.by_id.values()), "partitions")
    await alter(brokers, "", "log.retention.ms", "50")
    await until(lambda: in_force(brokers, "log.retention.ms") == ["50"] * 3, "the default of all brokers")
    await alter(brokers, "2", "log.retention.ms", "60")
    await until(lambda: in_force(brokers, "log.retention.ms") == ["50", "60", "50"], "the own config of a broker")
    logs = {b.config.node_id: {p.log.config.retention_ms for p in b.partitions.all()} for b in brokers.by_id.values()}
    assert logs == {1: {50}, 2: {60}, 3: {50}}
    await brokers.stop(2)
    await brokers.start(2)
    assert in_force(brokers, "log.retention.ms") == ["50", "60", "50"]
    await alter(brokers, "2", "log.retention.ms", None)
    await alter(brokers, "", "log.retention.ms", None)
    await until(lambda: in_force(brokers, "log.retention.ms") == [None] * 3, "the default again")


async def test_kafka_python_sets_and_shows_the_configs_of_a_broker(brokers: Brokers) -> None:
    def run() -> str:
        admin = KafkaAdminClient(bootstrap_servers=brokers.bootstrap())
        try:
            admin.alter_configs([PythonResource(ConfigResourceType.BROKER, "2", configs={"message.max.bytes": "999"})])
            return str(admin.describe_configs([PythonResource(ConfigResourceType.BROKER, "2")]))
        finally:
            admin.close()

    shown = await asyncio.to_thread(run)
    assert "999" in shown
    await until(lambda: in_force(brokers, "message.max.bytes") == ["1048588", "999", "1048588"])


async def test_a_groups_records_obey_the_limit_that_its_coordinator_has_now(brokers: Brokers) -> None:
    await brokers.by_id[1].groups.ensure_topic()
    await alter(brokers, "", "message.max.bytes", "2000000")
    await until(lambda: all(b.groups.config.record_bytes_max == 2_000_000 for b in brokers.by_id.values()), "groups")


async def test_more_connections_fetch_from_a_leader_and_fewer_again(brokers: Brokers) -> None:
    await brokers.by_id[1].topics.create("t", 12, 3)

    def fetchers() -> int:
        replication = brokers.by_id[1].metadata._replication  # type: ignore[union-attr]
        assert replication is not None
        return sum(len(fetcher) > 0 for fetcher in replication._fetchers.values())

    await until(lambda: fetchers() == 2, "a fetcher for each of two leaders")
    await alter(brokers, "1", "num.replica.fetchers", "2")
    await until(lambda: fetchers() == 4, "more fetchers")
    await alter(brokers, "1", "num.replica.fetchers", None)
    await until(lambda: fetchers() == 2, "one fetcher for each of two leaders again")


async def test_an_unclean_election_happens_when_it_is_allowed(brokers: Brokers) -> None:
    topics = brokers.by_id[1].topics
    await topics.create("t", assignment=[(0, (2, 3))])
    await until(lambda: brokers.leader("t", 0) == 2, "a leader")
    for broker_id in (3, 2):  # 3 leaves the ISR, then the leader stops
        await brokers.stop(broker_id)
        await until(lambda removed=broker_id: removed not in topics.brokers, "the registration is gone")  # type: ignore[misc]
    await brokers.start(3)
    state = topics.partition("t", 0)
    assert state is not None
    assert (state.leader, state.isr) == (-1, (2,))
    controller = brokers.by_id[topics.controller_id or 1].config.node_id
    await alter(brokers, "", "unclean.leader.election.enable", "true")
    await until(lambda: brokers.leader("t", 0) == 3, f"an unclean election by the controller {controller}")


async def test_configs_of_groups_and_subscriptions_are_in_every_image(brokers: Brokers) -> None:
    await brokers.by_id[2].topics.configs.update(
        ConfigKind.GROUPS, "g", lambda _: {"consumer.session.timeout.ms": "50000"}
    )
    await until(lambda: all(b.topics.configured(ConfigKind.GROUPS) == ["g"] for b in brokers.by_id.values()), "groups")
    assert brokers.by_id[1].topics.resource_configs(ConfigKind.BROKERS, DEFAULT_NAME) == {}


async def test_quotas_throttle_clients_of_every_broker(brokers: Brokers) -> None:
    configs = brokers.by_id[2].topics.configs
    await configs.update(ConfigKind.USER_CLIENTS, "<default>/clients/a%2Fb", lambda _: {"producer_byte_rate": "5"})
    await until(lambda: all(b.node.client_throttle is not None for b in brokers.by_id.values()), "throttles")
    bursts = [b.node.client_throttle.producers.burst_bytes("u", "a/b") for b in brokers.by_id.values()]  # type: ignore[union-attr]
    assert bursts == [50] * 3
    await configs.update(ConfigKind.USER_CLIENTS, "<default>/clients/a%2Fb", lambda _: {})
    await until(lambda: all(b.node.client_throttle is None for b in brokers.by_id.values()), "no throttles")
