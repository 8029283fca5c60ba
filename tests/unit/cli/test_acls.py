"""The options of `rota acls`, and the sentences of `explain`; tests/cli/test_acls.py runs it on a broker."""

from __future__ import annotations

from typing import Any

import pytest

from rota.cli.acls import acl_document, acls_of, explanation, filter_of
from rota.cli.main import parser_of
from rota.cli.settings import UsageError
from rota.coordinator.security.acl import AclFilter, Entry, PatternType, ResourcePattern
from rota.coordinator.security.authorizer import Authorizer
from rota.coordinator.security.operations import Operation, ResourceType
from rota.coordinator.security.principal import Principal

ALICE = Principal("User", "alice")


def options(*arguments: str) -> Any:
    return parser_of("acls").parse_args(list(arguments))


def test_an_acl_for_each_operation() -> None:
    given = options(
        "add", "--principal", "User:a", "--operation", "read", "--operation", "write", "--topic", "o", "--prefixed"
    )
    assert [f"{acl.pattern} {acl.entry}" for acl in acls_of(given)] == [
        "TOPIC:PREFIXED:o ALLOW READ * User:a",
        "TOPIC:PREFIXED:o ALLOW WRITE * User:a",
    ]
    denied = options(
        "add", "--deny", "--principal", "User:a", "--operation", "alter", "--cluster", "--host", "10.0.0.1"
    )
    assert [str(acl.entry) for acl in acls_of(denied)] == ["DENY ALTER 10.0.0.1 User:a"]
    assert acl_document(acls_of(denied)[0]) == {
        "resource_type": "CLUSTER",
        "resource": "kafka-cluster",
        "pattern": "LITERAL",
        "permission": "DENY",
        "operation": "ALTER",
        "principal": "User:a",
        "host": "10.0.0.1",
    }


def test_a_principal_has_a_type() -> None:
    with pytest.raises(UsageError, match="no colon"):
        acls_of(options("add", "--principal", "a", "--operation", "read", "--topic", "t"))


def test_filters() -> None:
    assert filter_of(options("list")) == AclFilter()
    assert filter_of(options("list", "--topic", "t", "--match")) == AclFilter(
        ResourceType.TOPIC, "t", PatternType.MATCH
    )
    given = options("remove", "--group", "g", "--prefixed", "--principal", "User:a", "--host", "h")
    assert filter_of(given, "describe-configs") == AclFilter(
        ResourceType.GROUP, "g", PatternType.PREFIXED, "User:a", "h", Operation.DESCRIBE_CONFIGS
    )
    of_all_names = filter_of(options("remove", "--principal", "User:a", "--prefixed"))
    assert of_all_names == AclFilter(pattern_type=PatternType.PREFIXED, principal="User:a")
    with pytest.raises(UsageError, match="not both"):
        filter_of(options("remove", "--topic", "t", "--prefixed", "--match"))
    assert filter_of(options("list", "--cluster")) == AclFilter(
        ResourceType.CLUSTER, "kafka-cluster", PatternType.LITERAL
    )


def explained(*acls: str, operation: Operation = Operation.DESCRIBE, super_users: tuple[str, ...] = ()) -> list[str]:
    authorizer = Authorizer(super_users)
    for acl in acls:
        pattern, _, entry = acl.partition(" ")
        authorizer.replace(ResourcePattern.parse(pattern), [Entry.parse(entry)])
    decision = authorizer.decide(ALICE, "h", operation, ResourceType.TOPIC, "orders")
    document = {
        "principal": str(ALICE),
        "host": "h",
        "operation": operation.name,
        "resource_type": "TOPIC",
        "resource": "orders",
        "allowed": decision.is_allowed,
        "reason": decision.reason.value,
    }
    return list(explanation(authorizer, document, decision.acl, knows_super_users=bool(super_users)))


HIDDEN = "  This broker does not show its super users: a super user may do everything."


def test_sentences_name_the_acl_that_decides() -> None:
    assert explained("TOPIC:PREFIXED:ord ALLOW READ * User:alice") == [
        "User:alice may DESCRIBE topic orders from h:",
        "  the PREFIXED pattern ord has: ALLOW READ * User:alice",
        "  READ implies DESCRIBE.",
        HIDDEN,
    ]
    assert explained("TOPIC:LITERAL:* DENY ALL * User:*")[:2] == [
        "User:alice may not DESCRIBE topic orders from h:",
        "  the LITERAL pattern * has: DENY ALL * User:*",
    ]


def test_sentences_say_why_no_acl_decides() -> None:
    assert explained() == [
        "User:alice may not DESCRIBE topic orders from h:",
        "  no ACL allows it.",
        "  No ACL concerns this resource.",
        HIDDEN,
    ]
    other = explained("TOPIC:LITERAL:orders ALLOW READ * User:bob", "GROUP:LITERAL:orders ALLOW READ * User:bob")
    assert other[2] == "  1 ACLs concern this resource; none of them allows it."
    assert explained(super_users=("User:alice",)) == [
        "User:alice may DESCRIBE topic orders from h:",
        "  the principal is a super user.",
    ]
