"""Resource patterns, entries and filters of ACLs; what cannot be created."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rota.coordinator.security.acl import (
    Acl,
    AclFilter,
    Entry,
    InvalidAcl,
    PatternType,
    Permission,
    ResourcePattern,
    check_acl,
    check_filter,
)
from rota.coordinator.security.operations import Operation, ResourceType

TOPIC, LITERAL, PREFIXED = ResourceType.TOPIC, PatternType.LITERAL, PatternType.PREFIXED
ENTRY = Entry(Permission.ALLOW, Operation.READ, "User:alice", "*")
ORDERS = ResourcePattern(TOPIC, LITERAL, "orders")
PATTERNS = (ORDERS, ResourcePattern(TOPIC, PREFIXED, "ord"), ResourcePattern(TOPIC, LITERAL, "*"))


@pytest.mark.parametrize(
    ("pattern_type", "name", "selected"),
    [
        (PatternType.LITERAL, "orders", [0]),
        (PatternType.PREFIXED, "ord", [1]),
        (PatternType.PREFIXED, "orders", []),
        (PatternType.ANY, "ord", [1]),
        (PatternType.ANY, None, [0, 1, 2]),
        (PatternType.LITERAL, None, [0, 2]),
        (PatternType.MATCH, "orders", [0, 1, 2]),
        (PatternType.MATCH, "ordinary", [1, 2]),
        (PatternType.MATCH, "other", [2]),
        (PatternType.MATCH, "*", [2]),
    ],
)
def test_a_filter_selects_patterns_as_kafka_does(
    pattern_type: PatternType, name: str | None, selected: list[int]
) -> None:
    found = AclFilter(resource_type=TOPIC, name=name, pattern_type=pattern_type)
    assert [number for number, pattern in enumerate(PATTERNS) if found.matches_pattern(pattern)] == selected
    assert not any(replace(found, resource_type=ResourceType.GROUP).matches_pattern(pattern) for pattern in PATTERNS)


@pytest.mark.parametrize(
    ("selection", "is_selected"),
    [
        (AclFilter(), True),
        (AclFilter(principal="User:alice", host="*", operation=Operation.READ, permission=Permission.ALLOW), True),
        (AclFilter(principal="User:bob"), False),
        (AclFilter(host="10.0.0.1"), False),
        (AclFilter(operation=Operation.ALL), False),
        (AclFilter(permission=Permission.DENY), False),
    ],
)
def test_a_filter_selects_entries_by_equality(selection: AclFilter, *, is_selected: bool) -> None:
    assert selection.matches(Acl(ORDERS, ENTRY)) is is_selected


@pytest.mark.parametrize(
    ("acl", "message"),
    [
        (Acl(replace(ORDERS, resource_type=ResourceType.CLUSTER), ENTRY), "The only valid name for the CLUSTER"),
        (Acl(replace(ORDERS, name=""), ENTRY), "empty resource name"),
        (Acl(replace(ORDERS, resource_type=ResourceType.ANY), ENTRY), "resourceType ANY"),
        (Acl(replace(ORDERS, pattern_type=PatternType.MATCH), ENTRY), "patternType MATCH"),
        (Acl(ORDERS, replace(ENTRY, operation=Operation.ANY)), "operation ANY"),
        (Acl(ORDERS, replace(ENTRY, permission=Permission.UNKNOWN)), "permissionType UNKNOWN"),
        (Acl(ORDERS, replace(ENTRY, host="")), "Host name"),
        (Acl(ORDERS, replace(ENTRY, principal="alice")), "Could not parse principal from `alice`"),
    ],
)
def test_an_acl_with_invalid_fields_is_refused(acl: Acl, message: str) -> None:
    with pytest.raises(InvalidAcl, match=message):
        check_acl(acl)


def test_a_definite_acl_is_accepted() -> None:
    check_acl(Acl(ORDERS, ENTRY))
    check_acl(Acl(ResourcePattern(ResourceType.CLUSTER, LITERAL, "kafka-cluster"), ENTRY))


def test_a_filter_with_an_unknown_code_is_refused() -> None:
    check_filter(AclFilter())
    with pytest.raises(InvalidAcl, match="unknown Operation"):
        check_filter(AclFilter(operation=Operation.UNKNOWN))


texts = st.text(st.characters(blacklist_categories=("Cs",)), min_size=1, max_size=12)


@given(st.sampled_from(ResourceType), st.sampled_from(PatternType), texts)
def test_the_text_of_a_pattern_is_read_back_as_the_same(kind: ResourceType, how: PatternType, name: str) -> None:
    pattern = ResourcePattern(kind, how, name)
    assert ResourcePattern.parse(str(pattern)) == pattern


@example(Permission.ALLOW, Operation.READ, "alice", "a host")
@given(st.sampled_from(Permission), st.sampled_from(Operation), texts, texts)
def test_the_text_of_an_entry_is_read_back_as_the_same(
    permission: Permission, operation: Operation, principal: str, host: str
) -> None:
    entry = Entry(permission, operation, f"User:{principal}", host)
    assert Entry.parse(str(entry)) == entry


@pytest.mark.parametrize("text", ["", "TOPIC", "TOPIC:LITERAL", "TOPIC:LITERAL:", "SHOE:LITERAL:x", "TOPIC:WIDE:x"])
def test_a_text_that_is_no_pattern_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no resource pattern"):
        ResourcePattern.parse(text)


@pytest.mark.parametrize("text", ["", "ALLOW READ *", "MAYBE READ * User:a", "ALLOW EAT * User:a"])
def test_a_text_that_is_no_entry_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no entry of an ACL"):
        Entry.parse(text)
