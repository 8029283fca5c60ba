"""ACLs in the store and in the authorizer; a second broker that follows the same store."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from rota.coordinator.config.broker import BrokerConfig
from rota.coordinator.metadata import eager_tasks, znodes
from rota.coordinator.metadata.changes import ConfigKind
from rota.coordinator.metadata.embedded import EmbeddedStore
from rota.coordinator.metadata.topics import Topics
from rota.coordinator.security.acl import Entry, ResourcePattern
from rota.coordinator.security.acl_nodes import add, follow, open_authorizer, remove
from rota.coordinator.security.authorizer import Authorizer
from rota.coordinator.security.operations import ResourceType
from rota.coordinator.security.principal import Principal

ALICE = Principal("User", "alice")
READ, WRITE = Entry.parse("ALLOW READ * User:alice"), Entry.parse("ALLOW WRITE * User:alice")
ON = {"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"}


def opened(store: EmbeddedStore | None = None) -> tuple[Topics, Authorizer]:
    topics = Topics(store or EmbeddedStore(), broker_id=0, fresh_uuid=lambda: bytes(16))
    authorizer = open_authorizer(BrokerConfig(ON), topics)
    assert authorizer is not None
    eager_tasks.run_eagerly(topics.load())
    return topics, authorizer


@pytest.mark.parametrize("name", ["orders", "*", "a/b", "..", "ünlü", "x" * 200])
def test_an_added_acl_is_in_force_at_once_and_after_a_restart(name: str) -> None:
    topics, authorizer = opened()
    pattern = ResourcePattern.parse(f"GROUP:LITERAL:{name}")
    assert eager_tasks.run_eagerly(add(topics, pattern, {READ})) is None
    assert eager_tasks.run_eagerly(add(topics, pattern, {WRITE, READ})) is None
    assert {acl.entry for acl in authorizer.acls} == {READ, WRITE}
    _, restarted = opened(topics.store)  # type: ignore[arg-type]
    assert list(restarted.acls) == list(authorizer.acls)
    assert {acl.pattern for acl in restarted.acls} == {pattern}
    assert eager_tasks.run_eagerly(remove(topics, pattern, {READ, WRITE})) is None
    assert not list(authorizer.acls)
    assert not topics.configured(ConfigKind.ACLS)


def test_an_authorizer_that_follows_later_has_the_acls_of_the_image() -> None:
    topics, authorizer = opened()
    eager_tasks.run_eagerly(add(topics, ResourcePattern.parse("TOPIC:PREFIXED:a"), {READ}))
    late = Authorizer()
    follow(late, topics)
    assert list(late.acls) == list(authorizer.acls)


def test_a_text_that_cannot_be_read_is_ignored_with_a_warning() -> None:
    topics, authorizer = opened()
    with capture_logs() as logs:
        eager_tasks.run_eagerly(topics.configs.update(ConfigKind.ACLS, "SHOE:x", lambda _: {str(READ): ""}))
        eager_tasks.run_eagerly(
            topics.configs.update(
                ConfigKind.ACLS, "TOPIC:LITERAL:x", lambda _: {"ALLOW EAT * User:a": "", str(READ): ""}
            )
        )
    assert [acl.entry for acl in authorizer.acls] == [READ]
    assert [line["log_level"] for line in logs] == ["warning", "warning"]


@pytest.mark.parametrize(
    ("text", "denied"),
    [
        ("DENY EAT * User:alice", ["alice"]),
        ("DENY EAT 10.0.0.1 User:alice", ["alice"]),
        ("DENY EAT 10.0.0.2 User:alice", []),
        ("DENY READ", ["alice", "bob"]),
        ("FORBID READ * User:alice", ["alice", "bob"]),
        ("", ["alice", "bob"]),
        ("ALLOW EAT * User:alice", []),
    ],
)
def test_an_entry_that_cannot_be_read_denies_all_that_it_may_be_about(text: str, denied: list[str]) -> None:
    """A later release may have written a DENY of an operation that this one does not know."""
    topics, authorizer = opened()
    all_users = Entry.parse("ALLOW READ * User:*")
    eager_tasks.run_eagerly(add(topics, ResourcePattern.parse("TOPIC:LITERAL:*"), {all_users}))
    eager_tasks.run_eagerly(topics.configs.update(ConfigKind.ACLS, "TOPIC:LITERAL:x", lambda _: {text: ""}))
    for user in ("alice", "bob"):
        is_allowed = authorizer.is_allowed(Principal("User", user), "10.0.0.1", READ.operation, ResourceType.TOPIC, "x")
        assert is_allowed is (user not in denied)
    assert authorizer.is_allowed(ALICE, "10.0.0.1", READ.operation, ResourceType.TOPIC, "y")
    shown = [acl.entry for acl in authorizer.acls if acl.pattern.name == "x"]
    eager_tasks.run_eagerly(remove(topics, ResourcePattern.parse("TOPIC:LITERAL:x"), shown))
    assert authorizer.is_allowed(ALICE, "10.0.0.1", READ.operation, ResourceType.TOPIC, "x")


def test_without_authorizer_class_name_there_is_no_authorizer() -> None:
    topics = Topics(EmbeddedStore(), broker_id=0, fresh_uuid=lambda: bytes(16))
    assert open_authorizer(BrokerConfig(), topics) is None
    properties = {**ON, "super.users": "User:a;User:CN=b,O=c", "allow.everyone.if.no.acl.found": "true"}
    authorizer = open_authorizer(BrokerConfig(properties), topics)
    assert authorizer is not None
    assert (authorizer.super_users, authorizer.allow_if_no_acl) == ({"User:a", "User:CN=b,O=c"}, True)


def test_a_node_that_cannot_be_read_denies_its_resources_until_it_is_replaced() -> None:
    """It may have held a DENY, which must not be forgotten with it."""
    topics, authorizer = opened()
    secret, everything = ResourcePattern.parse("TOPIC:LITERAL:secret"), ResourcePattern.parse("TOPIC:LITERAL:*")
    eager_tasks.run_eagerly(add(topics, everything, {READ}))
    eager_tasks.run_eagerly(add(topics, secret, {Entry.parse("DENY READ * User:alice")}))
    eager_tasks.run_eagerly(topics.store.set(znodes.resource_config_path(ConfigKind.ACLS, str(secret)), b"?", 0))
    eager_tasks.run_eagerly(topics.configs.refresh(ConfigKind.ACLS, str(secret)))
    _, restarted = opened(topics.store)  # type: ignore[arg-type]
    for each in (authorizer, restarted):
        assert not each.is_allowed(ALICE, "10.0.0.1", READ.operation, ResourceType.TOPIC, "secret")
        assert each.is_allowed(ALICE, "10.0.0.1", READ.operation, ResourceType.TOPIC, "open")
    assert eager_tasks.run_eagerly(add(topics, secret, {READ})) is None
    assert not authorizer.is_allowed(ALICE, "10.0.0.1", READ.operation, ResourceType.TOPIC, "secret")
    assert eager_tasks.run_eagerly(remove(topics, secret, {Entry.parse("DENY ALL * User:*")})) is None
    assert authorizer.is_allowed(ALICE, "10.0.0.1", READ.operation, ResourceType.TOPIC, "secret")
