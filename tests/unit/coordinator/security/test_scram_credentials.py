"""SCRAM credentials in the store and their text; the users that a start creates."""

from __future__ import annotations

import pytest
from tests.unit.coordinator.api.data_world import World

from rota.coordinator.config.definition import ConfigRefused
from rota.coordinator.metadata import eager_tasks
from rota.coordinator.metadata.changes import ConfigKind
from rota.coordinator.metadata.client_quotas import entity_at, node_of
from rota.coordinator.security.scram_credentials import (
    create_bootstrap_users,
    credentials_of,
    find_credential,
    new_credential,
    parse_bootstrap_users,
    read_credential,
    users_with_credentials,
    write_credential,
)
from rota.protocol import scram


def test_a_credential_comes_back_from_its_text() -> None:
    credential = new_credential(scram.SHA_256, "planted", 8192)
    text = write_credential(credential)
    assert read_credential(text) == credential
    assert "planted" not in text
    assert text.startswith("salt=")
    assert text.endswith(",iterations=8192")


@pytest.mark.parametrize("text", ["", "x", "salt=,stored_key=,server_key=", "salt=x,iterations=a"])
def test_a_garbled_text_is_no_credential(text: str) -> None:
    assert read_credential(text) is None


def test_a_start_creates_the_users_that_do_not_exist() -> None:
    world = World()
    topics = world.node.topics
    eager_tasks.run_eagerly(create_bootstrap_users(topics, "alice=planted-a, bob=planted=b"))
    assert users_with_credentials(topics) == ["alice", "bob"]
    assert [each.name for each, _ in credentials_of(topics, "bob")] == ["SCRAM-SHA-256", "SCRAM-SHA-512"]
    before = find_credential(topics, "alice", scram.SHA_256)
    eager_tasks.run_eagerly(create_bootstrap_users(topics, "alice=another"))
    assert find_credential(topics, "alice", scram.SHA_256) == before
    salted = scram.salted_password(scram.SHA_256, "planted-a", before.salt, before.iterations) if before else b""
    assert before is not None
    assert scram.stored_key(scram.SHA_256, scram.client_key(scram.SHA_256, salted)) == before.stored_key


def test_a_user_with_other_configs_alone_has_no_credential() -> None:
    topics = World().node.topics
    eager_tasks.run_eagerly(topics.configs.update(ConfigKind.USERS, "quota", lambda _: {"producer_byte_rate": "1"}))
    assert users_with_credentials(topics) == []


def test_an_invalid_list_of_users_is_refused_without_its_passwords() -> None:
    with pytest.raises(ConfigRefused, match=r"rota\.scram\.bootstrap\.users") as refused:
        parse_bootstrap_users("alice,planted")
    assert "planted" not in str(refused.value)


@pytest.mark.parametrize("name", ["%41lice", "Alice", "<default>", "%3Cdefault%3E", "a/b", "ü", "%\ud800"])
def test_a_user_has_the_node_of_its_quotas_alone(name: str) -> None:
    """CQ1. Two users, or a user and the default of all users, share no node."""
    topics = World().node.topics
    eager_tasks.run_eagerly(create_bootstrap_users(topics, f"{name}=planted"))
    (node,) = topics.configured(ConfigKind.USERS)
    assert node_of((("user", name),)) == (ConfigKind.USERS, node)
    assert entity_at(ConfigKind.USERS, node) == (("user", name),)
    assert users_with_credentials(topics) == [name]
    assert find_credential(topics, name, scram.SHA_256) is not None
    for other in {"%41lice", "Alice", "<default>", "%3Cdefault%3E"} - {name}:
        assert find_credential(topics, other, scram.SHA_256) is None
