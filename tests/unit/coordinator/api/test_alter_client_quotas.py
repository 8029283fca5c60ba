"""AlterClientQuotas as Kafka 4.3.1 answers it."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from tests.unit.coordinator.api.data_world import World

from rota.coordinator.api.alter_client_quotas import alter_client_quotas
from rota.coordinator.metadata import eager_tasks
from rota.coordinator.metadata.changes import ConfigKind
from rota.coordinator.metadata.client_quotas import all_quotas
from rota.protocol.messages.alter_client_quotas import AlterClientQuotasRequest, EntityData, EntryData, OpData

Names = Mapping[str, str | None]
RATE = "producer_byte_rate"
TWICE = "Ignoring duplicate entity ClientQuotaEntity(entries={user=u})"


def entry(names: Names, *ops: tuple[str, float | None]) -> EntryData:
    return EntryData(
        entity=tuple(EntityData(entity_type=each, entity_name=name) for each, name in names.items()),
        ops=tuple(OpData(key=key, value=value or 0.0, remove=value is None) for key, value in ops),
    )


def alter(world: World, *entries: EntryData, validate_only: bool = False) -> list[tuple[int, str | None]]:
    request = AlterClientQuotasRequest(entries=entries, validate_only=validate_only)
    reply = world.serve(alter_client_quotas, request, 1).result()
    return [(result.error_code, result.error_message) for result in reply.entries]


def quotas(world: World) -> dict[object, Mapping[str, float]]:
    return dict(all_quotas(world.node.topics))


def test_quotas_are_set_changed_and_removed() -> None:
    world, user = World(), (("user", "u"),)
    assert alter(world, entry({"user": "u"}, (RATE, 100), ("request_percentage", 1.5))) == [(0, None)]
    assert quotas(world) == {user: {RATE: 100, "request_percentage": 1.5}}
    assert alter(world, entry({"user": "u"}, (RATE, 7), ("request_percentage", None))) == [(0, None)]
    assert quotas(world) == {user: {RATE: 7}}
    assert alter(world, entry({"user": "u"}, (RATE, None), ("nonsense", None)), entry({"user": "e"})) == [(0, None)] * 2
    assert quotas(world) == {}


@pytest.mark.parametrize(
    "names", [{"user": None}, {"client-id": "c"}, {"client-id": None, "user": "u"}, {"client-id": "c", "user": None}]
)
def test_every_entity_has_its_own_quotas(names: Names) -> None:
    world = World()
    assert alter(world, entry({"user": "u"}, (RATE, 1)), entry(names, (RATE, 2))) == [(0, None)] * 2
    assert quotas(world) == {(("user", "u"),): {RATE: 1}, tuple(names.items()): {RATE: 2}}


def test_an_address_has_a_rate_of_connections() -> None:
    world = World()
    assert alter(world, entry({"ip": None}, ("connection_creation_rate", 10))) == [(0, None)]
    assert quotas(world) == {(("ip", None),): {"connection_creation_rate": 10}}


def test_a_check_changes_nothing() -> None:
    world = World()
    assert alter(world, entry({"user": "u"}, (RATE, 5)), validate_only=True) == [(0, None)]
    assert alter(world, entry({"user": "u"}, ("bad", 5)), validate_only=True) == [(42, "Invalid configuration key bad")]
    assert quotas(world) == {}


def test_an_error_concerns_one_entity() -> None:
    world = World()
    results = alter(
        world,
        entry({"user": "u"}, (RATE, 7), ("nonsense", 1)),
        entry({"user": ""}, (RATE, 1)),
        entry({"user": "v"}, (RATE, 1)),
    )
    assert results == [(42, "Invalid configuration key nonsense"), (42, "Empty user not supported"), (0, None)]
    assert quotas(world) == {(("user", "v"),): {RATE: 1}}


def test_of_an_entity_that_is_named_twice_the_first_change_counts() -> None:
    world = World()
    assert alter(world, entry({"user": "u"}, (RATE, 1)), entry({"user": "u"}, (RATE, 2))) == [(42, TWICE)]
    assert quotas(world) == {(("user", "u"),): {RATE: 1}}
    assert alter(world, entry({"user": "u"}, (RATE, 3), (RATE, 4))) == [(42, TWICE)]
    assert quotas(world) == {(("user", "u"),): {RATE: 1}}


def test_the_credentials_of_a_user_stay() -> None:
    world = World()
    configs = world.node.topics.configs
    eager_tasks.run_eagerly(configs.update(ConfigKind.USERS, "u", lambda _: {"SCRAM-SHA-256": "x"}))
    alter(world, entry({"user": "u"}, (RATE, 1)))
    alter(world, entry({"user": "u"}, (RATE, None), ("SCRAM-SHA-256", None)))
    assert world.node.topics.resource_configs(ConfigKind.USERS, "u") == {"SCRAM-SHA-256": "x"}
