"""`rota acls` on a Rota broker with access control."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.cli.kit import Rota
from tests.interop.acl_apis.test_acl_apis import SECURED
from tests.interop.broker import PROPERTIES, started

ALICE = {"principal": "User:alice", "host": "*"}
ORDERS = {"resource_type": "TOPIC", "resource": "orders", "pattern": "LITERAL", "permission": "ALLOW"}


@pytest.fixture
def secured(tmp_path_factory: pytest.TempPathFactory, capsys: pytest.CaptureFixture[str]) -> Iterator[Rota]:
    with started(tmp_path_factory.mktemp("acls"), {**SECURED, "super.users": "User:root"}) as bootstrap:
        yield Rota(bootstrap, capsys)


def test_acls_are_added_listed_explained_and_removed(secured: Rota) -> None:
    added = secured.json("acls", "add", "--principal", "User:alice", "--operation", "read", "--topic", "orders")
    assert added == {"added": [{**ORDERS, "operation": "READ", **ALICE}]}
    secured.json(
        "acls", "add", "--deny", "--principal", "User:*", "--operation", "write", "--topic", "ord", "--prefixed"
    )
    shown = secured.json("acls", "list", "--topic", "orders", "--match")["acls"]
    assert [each["resource"] for each in shown] == ["orders", "ord"]
    assert secured.json("acls", "list", "--operation", "read")["acls"] == added["added"]

    def explained(user: str, operation: str, topic: str = "orders") -> tuple[bool, str]:
        document = secured.json("acls", "explain", "--user", user, "--operation", operation, "--topic", topic)
        return document["allowed"], document["reason"]

    assert explained("alice", "describe") == (True, "an ACL decides")
    assert explained("alice", "write") == (False, "an ACL decides")
    assert explained("bob", "read") == (False, "no ACL allows it")
    assert explained("root", "write") == (True, "the principal is a super user")
    assert explained("bob", "read", "else")[0] is True  # allow.everyone.if.no.acl.found
    lines = secured("acls", "explain", "--user", "alice", "--operation", "describe", "--topic", "orders").lines
    assert "  READ implies DESCRIBE." in lines
    assert secured.fails("acls", "remove").code == 2
    assert secured.json("acls", "remove", "--topic", "orders") == {"removed": added["added"]}
    assert len(secured.json("acls", "remove", "--all")["removed"]) == 1
    assert secured("acls", "list").lines == ["no ACLs"]


def test_a_broker_without_access_control_says_so(
    tmp_path_factory: pytest.TempPathFactory, capsys: pytest.CaptureFixture[str]
) -> None:
    with started(tmp_path_factory.mktemp("open"), PROPERTIES) as bootstrap:
        refused = Rota(bootstrap, capsys).fails("acls", "list")
    assert refused.code == 1
    assert "SECURITY_DISABLED" in refused.err
