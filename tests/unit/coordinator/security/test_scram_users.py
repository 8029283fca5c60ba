"""SA3: nothing in the first reply tells an unknown user from the others."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from tests.unit.coordinator.api.data_world import World

from rota.coordinator.metadata import eager_tasks
from rota.coordinator.metadata.changes import ConfigKind
from rota.coordinator.metadata.topics import Topics
from rota.coordinator.security.scram_credentials import new_credential, write_credential
from rota.coordinator.security.scram_users import ScramUsers, create_secret
from rota.protocol.scram import ITERATIONS_MIN, SALT_BYTES, SHA_256, SHA_512, Mechanism

KAFKA_SALT = b"1q8zf0y2m4v6x8a0c2e4g6i8k0"  # 26 characters, as of kafka-configs


def add(topics: Topics, user: str, mechanism: Mechanism = SHA_256, iterations: int = 8192, salt: bytes = b"") -> None:
    credential = new_credential(mechanism, "planted", iterations)
    text = write_credential(replace(credential, salt=salt or credential.salt))
    configs = topics.configs
    eager_tasks.run_eagerly(configs.update(ConfigKind.USERS, user, lambda before: {**before, mechanism.name: text}))


def test_an_unknown_user_has_the_iterations_and_a_salt_like_those_of_the_users() -> None:
    topics = World().node.topics
    add(topics, "alice")
    found = ScramUsers(topics).find("unknown", SHA_256)
    assert (found.iterations, len(found.salt), found.is_made_up) == (8192, SALT_BYTES, True)
    assert not ScramUsers(topics).find("alice", SHA_256).is_made_up


def test_each_shape_of_the_users_occurs_and_stays_with_its_name() -> None:
    topics = World().node.topics
    add(topics, "alice")
    add(topics, "bob", iterations=4096, salt=KAFKA_SALT)
    users = ScramUsers(topics)
    found = {str(number): users.find(str(number), SHA_256) for number in range(50)}
    assert {(each.iterations, len(each.salt)) for each in found.values()} == {(8192, SALT_BYTES), (4096, 26)}
    assert all(each.salt.isalnum() for each in found.values() if each.iterations == 4096)
    assert len({each.salt for each in found.values()}) == 50
    assert all(users.find(name, SHA_256) == each for name, each in found.items())


def test_brokers_and_restarts_make_up_the_same_salt() -> None:
    topics = World().node.topics
    eager_tasks.run_eagerly(create_secret(topics))
    salts = {ScramUsers(topics).find("unknown", SHA_256).salt for _ in range(2)}
    eager_tasks.run_eagerly(create_secret(topics))
    assert salts == {ScramUsers(topics).find("unknown", SHA_256).salt}
    assert salts != {ScramUsers(World().node.topics).find("unknown", SHA_256).salt}


def test_a_change_of_the_users_counts_at_once() -> None:
    topics = World().node.topics
    users = ScramUsers(topics)
    find = partial(users.find, "unknown", SHA_512)
    assert find().iterations == ITERATIONS_MIN
    add(topics, "alice", SHA_512)
    assert find().iterations == 8192


def test_the_strongest_mechanism_of_an_unknown_user_is_one_that_is_used() -> None:
    topics = World().node.topics
    users = ScramUsers(topics)
    assert users.strongest("unknown")[0] is SHA_512
    add(topics, "alice")
    assert users.strongest("unknown")[0] is SHA_256
    assert users.strongest("alice")[0] is SHA_256
    add(topics, "alice", SHA_512)
    mechanism, credential = users.strongest("alice")
    assert (mechanism, credential.is_made_up) == (SHA_512, False)
