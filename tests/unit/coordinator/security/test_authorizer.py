"""Decisions: equal to those of a naive model of Kafka's StandardAuthorizer, and each names the ACL that decides."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.soak import examples

from rota.coordinator.security import authorizer as authorizer_module
from rota.coordinator.security.acl import Acl, Entry, PatternType, Permission, ResourcePattern
from rota.coordinator.security.authorizer import DECISIONS_MAX, REMEMBERED_NAME_CHARS_MAX, Authorizer, Decision, Reason
from rota.coordinator.security.operations import Operation, ResourceType
from rota.coordinator.security.principal import Principal

ALICE, BOB = Principal("User", "alice"), Principal("User", "bob")
TOPIC, GROUP, CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER
NAMES = ("a", "ab", "abc", "b", "*")
HOSTS = ("10.0.0.1", "10.0.0.2")
OPERATIONS = [each for each in Operation if each not in (Operation.UNKNOWN, Operation.ANY)]

patterns = st.builds(
    ResourcePattern,
    st.sampled_from((TOPIC, GROUP)),
    st.sampled_from((PatternType.LITERAL, PatternType.PREFIXED)),
    st.sampled_from(NAMES),
)
entries = st.builds(
    Entry,
    st.sampled_from((Permission.ALLOW, Permission.DENY)),
    st.sampled_from((Operation.READ, Operation.ALL)) | st.sampled_from(OPERATIONS),  # often about the same
    st.sampled_from(("User:alice", "User:bob", "User:*")),
    st.sampled_from((*HOSTS, "*")),
)
acls = st.lists(st.builds(Acl, patterns, entries), max_size=8)


def authorizer_of(bindings: Sequence[Acl], *super_users: str, allow_if_no_acl: bool = False) -> Authorizer:
    authorizer = Authorizer(super_users, allow_if_no_acl=allow_if_no_acl)
    for pattern in {acl.pattern for acl in bindings}:
        authorizer.replace(pattern, [acl.entry for acl in bindings if acl.pattern == pattern])
    return authorizer


def model(
    bindings: Sequence[Acl],
    principal: Principal,
    host: str,
    operation: Operation,
    kind: ResourceType,
    name: str,
    *,
    allow_if_no_acl: bool,
) -> bool:
    """StandardAuthorizerData, written down from its rules: every ACL is looked at."""
    of_resource = [
        acl
        for acl in bindings
        if acl.pattern.resource_type is kind
        and (
            name.startswith(acl.pattern.name)
            if acl.pattern.pattern_type is PatternType.PREFIXED
            else acl.pattern.name in (name, "*")
        )
    ]
    entries_of = [
        acl.entry
        for acl in of_resource
        if acl.entry.principal in (str(principal), "User:*") and acl.entry.host in (host, "*")
    ]
    if any(e.permission is Permission.DENY and e.operation in (operation, Operation.ALL) for e in entries_of):
        return False
    allowing = {operation, Operation.ALL}
    if operation is Operation.DESCRIBE:
        allowing |= {Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER}
    if operation is Operation.DESCRIBE_CONFIGS:
        allowing |= {Operation.ALTER_CONFIGS}
    if any(e.permission is Permission.ALLOW and e.operation in allowing for e in entries_of):
        return True
    return not of_resource and allow_if_no_acl


@settings(max_examples=examples(100))
@given(acls, st.sampled_from((ALICE, BOB)), st.sampled_from(HOSTS), st.sampled_from((TOPIC, GROUP)), st.booleans())
def test_decisions_are_those_of_the_model(
    bindings: list[Acl], principal: Principal, host: str, kind: ResourceType, allow_if_no_acl: bool
) -> None:
    authorizer = authorizer_of(bindings, allow_if_no_acl=allow_if_no_acl)
    for name in NAMES:
        for operation in OPERATIONS:
            decision = authorizer.decide(principal, host, operation, kind, name)
            expected = model(bindings, principal, host, operation, kind, name, allow_if_no_acl=allow_if_no_acl)
            assert decision.is_allowed is expected
            assert (decision.acl is not None) is (decision.reason is Reason.ACL)
            if decision.acl is not None:
                assert decision.acl in bindings
                assert decision.acl.entry.permission is (Permission.ALLOW if expected else Permission.DENY)
                assert model([decision.acl], principal, host, operation, kind, name, allow_if_no_acl=False) is expected


def test_each_operation_implies_those_of_the_model() -> None:
    """AZ2: an ACL for one operation, and a request for another one; what is denied would be allowed."""
    pattern = ResourcePattern(TOPIC, PatternType.LITERAL, "t")
    allows_all = Acl(pattern, Entry(Permission.ALLOW, Operation.ALL, "User:*", "*"))
    for permission, of_acl, requested in product((Permission.ALLOW, Permission.DENY), OPERATIONS, OPERATIONS):
        bindings = [Acl(pattern, Entry(permission, of_acl, str(ALICE), "*"))]
        bindings += [allows_all] if permission is Permission.DENY else []
        found = authorizer_of(bindings).is_allowed(ALICE, HOSTS[0], requested, TOPIC, "t")
        expected = model(bindings, ALICE, HOSTS[0], requested, TOPIC, "t", allow_if_no_acl=False)
        assert found is expected, (of_acl, requested)


@settings(max_examples=examples(80))
@given(acls, acls)
def test_a_change_counts_from_the_next_decision_on(before: list[Acl], after: list[Acl]) -> None:
    authorizer = authorizer_of(before)
    for name in NAMES:
        authorizer.decide(ALICE, HOSTS[0], Operation.READ, TOPIC, name)
    for pattern in {acl.pattern for acl in (*before, *after)}:
        authorizer.replace(pattern, [acl.entry for acl in after if acl.pattern == pattern])
    assert set(authorizer.acls) == set(after)
    for name in NAMES:
        expected = model(after, ALICE, HOSTS[0], Operation.READ, TOPIC, name, allow_if_no_acl=False)
        assert authorizer.is_allowed(ALICE, HOSTS[0], Operation.READ, TOPIC, name) is expected


@settings(max_examples=examples(80))
@given(acls)
def test_an_operation_on_any_resource_is_allowed_where_some_name_is(bindings: list[Acl]) -> None:
    """As Kafka: READ on any topic, with names that no ACL mentions and the mentioned ones."""
    authorizer = authorizer_of(bindings)
    names = [*NAMES, *(f"{name}~" for name in NAMES), "~", "hardcode"]
    some = any(authorizer.is_allowed(ALICE, HOSTS[0], Operation.READ, TOPIC, name) for name in names)
    found = authorizer.is_any_allowed(ALICE, HOSTS[0], Operation.READ, TOPIC)
    assert not some or found or _is_hidden_by_denials(bindings)
    assert not found or some or _is_hidden_by_denials(bindings)


def _is_hidden_by_denials(bindings: list[Acl]) -> bool:
    """Kafka compares patterns, not names: several denials that cover an allowed pattern together do not count."""
    return any(acl.entry.permission is Permission.DENY for acl in bindings)


def test_allows_any_is_false_if_a_wider_pattern_is_denied() -> None:
    allow, deny = Entry.parse("ALLOW WRITE * User:alice"), Entry.parse("DENY WRITE * User:alice")
    literal, prefix, wildcard = (
        ResourcePattern.parse(f"TOPIC:{each}") for each in ("LITERAL:ab", "PREFIXED:a", "LITERAL:*")
    )

    def is_allowed(*bindings: Acl) -> bool:
        return authorizer_of(bindings).is_any_allowed(ALICE, HOSTS[0], Operation.WRITE, TOPIC)

    assert is_allowed(Acl(literal, allow))
    assert not is_allowed(Acl(literal, allow), Acl(literal, deny))
    assert not is_allowed(Acl(literal, allow), Acl(prefix, deny))
    assert not is_allowed(Acl(prefix, allow), Acl(wildcard, deny))
    assert is_allowed(Acl(prefix, allow), Acl(literal, deny))
    assert is_allowed(Acl(wildcard, allow), Acl(prefix, deny))
    assert not is_allowed(Acl(literal, Entry.parse("ALLOW WRITE * User:bob")))
    assert authorizer_of([], str(ALICE)).is_any_allowed(ALICE, HOSTS[0], Operation.WRITE, TOPIC)


def test_super_users_stand_above_denials() -> None:
    deny = Acl(ResourcePattern(TOPIC, PatternType.LITERAL, "*"), Entry.parse("DENY ALL * User:*"))
    authorizer = authorizer_of([deny], "User:alice")
    assert authorizer.decide(ALICE, HOSTS[0], Operation.READ, TOPIC, "x") == Decision(True, Reason.SUPER_USER)
    assert authorizer.decide(BOB, HOSTS[0], Operation.READ, TOPIC, "x") == Decision(False, Reason.ACL, deny)


@pytest.mark.parametrize(
    ("entry", "host", "is_allowed"),
    [
        ("::1", "0:0:0:0:0:0:0:1", True),
        ("0:0:0:0:0:0:0:1", "::1", True),
        ("fe80::1", "fe80::1%eth0", True),
        ("10.0.0.1", "10.0.0.10", False),
        ("example.org", "example.org", True),
    ],
)
def test_an_address_is_compared_by_its_value(entry: str, host: str, *, is_allowed: bool) -> None:
    binding = Acl(
        ResourcePattern(TOPIC, PatternType.LITERAL, "x"), Entry(Permission.ALLOW, Operation.READ, str(ALICE), entry)
    )
    assert authorizer_of([binding]).is_allowed(ALICE, host, Operation.READ, TOPIC, "x") is is_allowed


def test_authorized_operations_are_a_set_of_bits() -> None:
    read = Acl(ResourcePattern(TOPIC, PatternType.LITERAL, "x"), Entry.parse("ALLOW READ * User:alice"))
    authorizer = authorizer_of([read])
    assert authorizer.operations(ALICE, HOSTS[0], TOPIC, "x") == 1 << Operation.READ | 1 << Operation.DESCRIBE
    assert authorizer.operations(BOB, HOSTS[0], TOPIC, "x") == 0
    assert authorizer_of([], str(ALICE)).operations(ALICE, HOSTS[0], TOPIC, "x") == 3576


def test_the_number_of_remembered_decisions_is_bounded() -> None:
    authorizer = Authorizer()
    for number in range(DECISIONS_MAX + 10):
        authorizer.decide(ALICE, HOSTS[0], Operation.READ, TOPIC, str(number))
    assert len(authorizer._decisions) <= DECISIONS_MAX


def test_a_decision_about_a_long_name_is_not_remembered() -> None:
    """A client chooses the names that it asks for: a group's may have 32,767 bytes."""
    authorizer = Authorizer()
    authorizer.decide(ALICE, HOSTS[0], Operation.READ, GROUP, "g" * (REMEMBERED_NAME_CHARS_MAX + 1))
    assert not authorizer._decisions
    authorizer.decide(ALICE, HOSTS[0], Operation.READ, GROUP, "g" * REMEMBERED_NAME_CHARS_MAX)
    assert len(authorizer._decisions) == 1


def test_the_acls_are_looked_through_once_for_a_decision_about_some_resource(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each producer asks it for its producer id."""
    looks, is_for = [], authorizer_module._is_for
    monkeypatch.setattr(authorizer_module, "_is_for", lambda *acl_and: (looks.append(acl_and), is_for(*acl_and))[1])
    write = Entry.parse("ALLOW WRITE * User:alice")
    authorizer = authorizer_of([Acl(ResourcePattern.parse("TOPIC:LITERAL:a"), write)])
    for expected in (True, False):
        looks.clear()
        for _ in range(3):
            assert authorizer.is_any_allowed(ALICE, HOSTS[0], Operation.WRITE, TOPIC) is expected
            assert not authorizer.is_any_allowed(BOB, HOSTS[0], Operation.WRITE, TOPIC)
        assert len(looks) <= 2
        authorizer.replace(ResourcePattern.parse("TOPIC:LITERAL:a"), ())
    for number in range(DECISIONS_MAX + 10):
        authorizer.is_any_allowed(ALICE, str(number), Operation.WRITE, TOPIC)
    assert len(authorizer._any_decisions) <= DECISIONS_MAX


@pytest.mark.parametrize("allow", ["ALLOW READ 10.0.0.1 User:alice", "ALLOW READ * User:*", "ALLOW READ * User:alice"])
def test_a_decision_looks_at_the_entries_of_its_principal_and_host_alone(
    monkeypatch: pytest.MonkeyPatch, allow: str
) -> None:
    """The bound of one Metadata of thousands of topics, of which a pattern has an entry for each user or host."""
    looks, applies = [], authorizer_module._applies
    monkeypatch.setattr(
        authorizer_module, "_applies", lambda entry, action: (looks.append(entry), applies(entry, action))[1]
    )
    others = [f"DENY READ * User:u{number}" for number in range(300)]
    others += [f"DENY READ 10.1.{number}.1 User:alice" for number in range(250)]
    others += [f"DENY READ 10.2.{number}.1 User:*" for number in range(250)]
    entries_of = [Entry.parse(each) for each in (*others, allow)]
    authorizer = Authorizer()
    for pattern in ("TOPIC:LITERAL:*", "TOPIC:PREFIXED:t"):
        authorizer.replace(ResourcePattern.parse(pattern), entries_of)
    for number in range(100):
        assert authorizer.is_allowed(ALICE, HOSTS[0], Operation.READ, TOPIC, f"t{number}")
        assert not authorizer.is_allowed(ALICE, "10.1.7.1", Operation.READ, TOPIC, f"t{number}")
    assert len(looks) <= 2 * 100 * 2 * 2


def test_taking_over_a_prefix_does_not_look_at_the_others() -> None:
    class Name(str):
        lengths = 0
        __slots__ = ()

        def __len__(self) -> int:
            Name.lengths += 1
            return super().__len__()

    authorizer, read = Authorizer(), Entry.parse("ALLOW READ * User:alice")
    names = [Name(f"{number:04}") for number in range(200)]
    for name in names:
        authorizer.replace(ResourcePattern(TOPIC, PatternType.PREFIXED, name), [read])
    assert Name.lengths <= 2 * len(names)
    assert authorizer.is_allowed(ALICE, HOSTS[0], Operation.READ, TOPIC, "0199-x")


def test_prefixes_that_come_and_go_are_found_longest_first() -> None:
    authorizer, read = Authorizer(), Entry.parse("ALLOW READ * User:alice")
    prefixes = {name: ResourcePattern(TOPIC, PatternType.PREFIXED, name) for name in ("a", "abc", "ab", "xy")}

    def decides() -> str | None:
        acl = authorizer.decide(ALICE, HOSTS[0], Operation.READ, TOPIC, "abcd").acl
        return None if acl is None else acl.pattern.name

    for pattern in (*prefixes.values(), *prefixes.values()):
        authorizer.replace(pattern, [read])
    assert decides() == "abc"
    for removed, left in (("abc", "ab"), ("xy", "ab"), ("xy", "ab"), ("ab", "a"), ("a", None)):
        authorizer.replace(prefixes[removed], ())
        assert decides() == left
    assert not authorizer._prefix_lengths[TOPIC]
