"""AlterUserScramCredentials as Kafka 4.3.1 answers it: codes 91, 92, 93 and 33, one result for each user."""

from __future__ import annotations

import pytest
from tests.unit.coordinator.api.data_world import World

from rota.coordinator.api.alter_user_scram_credentials import alter_user_scram_credentials
from rota.coordinator.metadata.changes import DEFAULT_NAME, ConfigKind
from rota.coordinator.security.scram_credentials import find_credential, users_with_credentials
from rota.protocol import scram
from rota.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)

SALTED = scram.salted_password(scram.SHA_256, "planted", b"salt", 4096)


def upsertion(name: str = "alice", **changed: object) -> ScramCredentialUpsertion:
    fields = {"mechanism": 1, "iterations": 4096, "salt": b"salt", "salted_password": SALTED, **changed}
    return ScramCredentialUpsertion(name=name, **fields)  # type: ignore[arg-type]


def deletion(name: str = "alice", mechanism: int = 1) -> ScramCredentialDeletion:
    return ScramCredentialDeletion(name=name, mechanism=mechanism)


def alter(world: World, *changes: ScramCredentialUpsertion | ScramCredentialDeletion) -> list[tuple[str, int]]:
    deletions = tuple(each for each in changes if isinstance(each, ScramCredentialDeletion))
    upsertions = tuple(each for each in changes if isinstance(each, ScramCredentialUpsertion))
    request = AlterUserScramCredentialsRequest(deletions=deletions, upsertions=upsertions)
    reply = world.serve(alter_user_scram_credentials, request, 0).result()
    return [(result.user, result.error_code) for result in reply.results]


def test_a_credential_is_set_and_deleted() -> None:
    world = World()
    assert alter(world, upsertion()) == [("alice", 0)]
    stored = find_credential(world.node.topics, "alice", scram.SHA_256)
    assert stored is not None
    assert (stored.salt, stored.iterations) == (b"salt", 4096)
    assert stored.stored_key == scram.stored_key(scram.SHA_256, scram.client_key(scram.SHA_256, SALTED))
    assert alter(world, deletion(mechanism=2)) == [("alice", 91)]
    assert alter(world, deletion()) == [("alice", 0)]
    assert find_credential(world.node.topics, "alice", scram.SHA_256) is None


@pytest.mark.parametrize(("salt", "salted"), [(b"my-salt", b"my-salted-password"), (b"", b"x"), (b"s", bytes(1024))])
def test_salts_and_salted_passwords_of_other_lengths_are_accepted_as_by_kafka(salt: bytes, salted: bytes) -> None:
    world = World()
    assert alter(world, upsertion(mechanism=2, salt=salt, salted_password=salted)) == [("alice", 0)]
    stored = find_credential(world.node.topics, "alice", scram.SHA_512)
    assert stored is not None
    assert (stored.salt, stored.server_key) == (salt, scram.server_key(scram.SHA_512, salted))


def test_a_user_with_the_name_of_the_default_is_a_user_as_any_other() -> None:
    world = World()
    assert alter(world, upsertion("<default>"), upsertion("%41lice")) == [("<default>", 0), ("%41lice", 0)]
    assert world.node.topics.resource_configs(ConfigKind.USERS, DEFAULT_NAME) == {}
    assert users_with_credentials(world.node.topics) == ["%41lice", "<default>"]
    assert alter(world, deletion("Alice"), deletion("<default>")) == [("Alice", 91), ("<default>", 0)]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (upsertion(""), 93),
        (upsertion("x" * 513), 93),
        (upsertion(iterations=4095), 93),
        (upsertion(iterations=16385), 93),
        (upsertion(salt=bytes(1025)), 93),
        (upsertion(salted_password=b""), 93),
        (upsertion(salted_password=bytes(1025)), 93),
        (upsertion(mechanism=0), 33),
        (deletion(mechanism=3), 33),
        (deletion(), 91),
    ],
)
def test_an_unacceptable_change_is_refused_and_the_other_user_changed(
    change: ScramCredentialUpsertion | ScramCredentialDeletion, code: int
) -> None:
    world = World()
    assert sorted(alter(world, change, upsertion("bob"))) == sorted([(change.name, code), ("bob", 0)])
    assert find_credential(world.node.topics, change.name, scram.SHA_256) is None


def test_a_user_is_named_once_also_for_two_mechanisms() -> None:
    world = World()
    sha_512 = upsertion(mechanism=2, salted_password=bytes(64))
    assert alter(world, upsertion(), sha_512) == [("alice", 92)]
    assert find_credential(world.node.topics, "alice", scram.SHA_256) is None


@pytest.mark.parametrize(
    ("first", "code"),
    [(upsertion(name=""), 93), (deletion(mechanism=9), 33), (upsertion(iterations=1), 93), (upsertion(), 92)],
)
def test_of_several_changes_of_a_user_the_first_that_is_wrong_is_named(
    first: ScramCredentialUpsertion | ScramCredentialDeletion, code: int
) -> None:
    second = upsertion(name=first.name, mechanism=2)
    assert alter(World(), first, second) == [(first.name, code)]
