"""Decides whether a principal may do something: Kafka's StandardAuthorizer. Pure.

Laws
    AZ1 A super user may do everything. For others a DENY that matches overrides every ALLOW; what no ACL allows is
        denied, except where no ACL at all matches the resource and `allow.everyone.if.no.acl.found` is set.
    AZ2 READ, WRITE, DELETE and ALTER allow DESCRIBE, ALTER_CONFIGS allows DESCRIBE_CONFIGS. Only an ALLOW implies
        another operation, never a DENY.
    AZ3 A change of the ACLs counts from the next decision on, also for connections that are open.
    AZ4 What is remembered is bounded, whatever names a client asks for.
    AZ5 A decision looks at the patterns that match alone, and of those at the entries of its principal and host; only
        the first about "some resource" of a principal after a change looks at all ACLs. Taking over one pattern does
        not look at the others.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from enum import Enum
from functools import lru_cache
from ipaddress import ip_address
from itertools import chain, product
from typing import Final, TypeVar

from rota.coordinator.security.acl import WILDCARD, Acl, Entry, PatternType, Permission, ResourcePattern
from rota.coordinator.security.operations import OPERATIONS, Operation, ResourceType, bits
from rota.coordinator.security.principal import Principal
from rota.protocol.dataclass import dataclass

K = TypeVar("K")
V = TypeVar("V")
DECISIONS_MAX: Final = 16_384  # that are remembered
REMEMBERED_NAME_CHARS_MAX: Final = 255  # of a resource; a client chooses the names that it asks for
WILDCARD_PRINCIPAL: Final = "User:*"
_ALL, _ALLOW, _DENY = Operation.ALL, Permission.ALLOW, Permission.DENY
_O = Operation
IMPLYING: Final[dict[Operation, frozenset[Operation]]] = {
    _O.DESCRIBE: frozenset({_O.DESCRIBE, _O.READ, _O.WRITE, _O.DELETE, _O.ALTER, _ALL}),
    _O.DESCRIBE_CONFIGS: frozenset({_O.DESCRIBE_CONFIGS, _O.ALTER_CONFIGS, _ALL}),
}  # the operations whose ALLOW allows this one (AZ2); for all others the operation itself and ALL


class Reason(Enum):
    """Why a decision is what it is."""

    SUPER_USER = "the principal is a super user"
    ACL = "an ACL decides"
    NO_ACL = "no ACL matches the resource, and allow.everyone.if.no.acl.found is set"
    DEFAULT = "no ACL allows it"


@dataclass(frozen=True, slots=True)
class Decision:
    """`acl` is the one that decides, where one does."""

    is_allowed: bool
    reason: Reason
    acl: Acl | None = None


@dataclass(frozen=True, slots=True)
class Action:
    """What a principal wants to do, from which host (an address without the slash of Java)."""

    principal: Principal
    host: str
    operation: Operation
    resource_type: ResourceType
    name: str


_Key = tuple[Principal, str, Operation, ResourceType, str]  # the fields of an Action
_AnyKey = tuple[Principal, str, Operation, ResourceType]  # the same for some resource
_PrincipalAndHost = tuple[str, str]  # the principal of entries, and the canonical text of their host
_ByPrincipal = dict[_PrincipalAndHost, list[Acl]]  # AZ5: the ACLs of one pattern, of each principal and host DENY first
_Rules = dict[str, _ByPrincipal]  # by the name of the pattern


class Authorizer:
    """The ACLs of the cluster, by resource type and name; decisions are remembered until an ACL changes."""

    def __init__(self, super_users: Collection[str] = (), *, allow_if_no_acl: bool = False) -> None:
        self.super_users, self.allow_if_no_acl = frozenset(super_users), allow_if_no_acl
        self.changes = 0  # grows with each change of the ACLs
        self._by_pattern: dict[ResourcePattern, tuple[Acl, ...]] = {}
        self._literal: dict[ResourceType, _Rules] = {}
        self._prefixed: dict[ResourceType, _Rules] = {}
        self._prefix_lengths: dict[ResourceType, dict[int, int]] = {}  # how many have each length, longest first
        self._decisions: dict[_Key, Decision] = {}
        self._any_decisions: dict[_AnyKey, bool] = {}

    # ---- the ACLs

    @property
    def acls(self) -> Iterator[Acl]:
        for pattern in sorted(self._by_pattern):
            yield from self._by_pattern[pattern]

    def replace(self, pattern: ResourcePattern, entries: Iterable[Entry]) -> None:
        """Take over the entries of one pattern; without any the pattern is forgotten. AZ3."""
        acls = tuple(Acl(pattern, entry) for entry in sorted(set(entries)))  # DENY has the smaller code
        is_prefixed = pattern.pattern_type is PatternType.PREFIXED
        rules = (self._prefixed if is_prefixed else self._literal).setdefault(pattern.resource_type, {})
        if is_prefixed:
            self._count_prefix(pattern, bool(acls) - (pattern.name in rules))
        if acls:
            self._by_pattern[pattern], rules[pattern.name] = acls, _by_principal(acls)
        else:
            self._by_pattern.pop(pattern, None)
            rules.pop(pattern.name, None)
        self._decisions.clear()
        self._any_decisions.clear()
        self.changes += 1

    # ---- decisions

    def is_allowed(
        self, principal: Principal, host: str, operation: Operation, resource_type: ResourceType, name: str
    ) -> bool:
        return self.decide(principal, host, operation, resource_type, name).is_allowed

    def decide(
        self, principal: Principal, host: str, operation: Operation, resource_type: ResourceType, name: str
    ) -> Decision:
        """Return the decision with the ACL that it follows from."""
        key = principal, host, operation, resource_type, name
        decision = self._decisions.get(key)
        if decision is None:
            decision = self._decide(Action(*key))
            if len(name) <= REMEMBERED_NAME_CHARS_MAX:
                _remember(self._decisions, key, decision)
        return decision

    def operations(self, principal: Principal, host: str, resource_type: ResourceType, name: str) -> int:
        """Return the allowed operations as a set of bits (KIP-430)."""
        return bits(
            operation
            for operation in OPERATIONS[resource_type]
            if self.is_allowed(principal, host, operation, resource_type, name)
        )

    def is_any_allowed(
        self, principal: Principal, host: str, operation: Operation, resource_type: ResourceType
    ) -> bool:
        """Whether the operation is allowed on some resource of the type, which need not exist (KIP-679).

        An ALLOW counts unless there is a DENY for at least the same names. As in Kafka the operation itself
        and ALL count, what other operations imply does not.
        """
        key = principal, host, operation, resource_type
        is_allowed = self._any_decisions.get(key)
        if is_allowed is None:
            is_allowed = self._is_any_allowed(*key)
            _remember(self._any_decisions, key, is_allowed)
        return is_allowed

    # ---- inside

    def _count_prefix(self, pattern: ResourcePattern, more: int) -> None:
        """Count one more prefix of this length, one less, or none."""
        counts, length = self._prefix_lengths.setdefault(pattern.resource_type, {}), len(pattern.name)
        is_new = length not in counts
        counts[length] = counts.get(length, 0) + more
        if not counts[length]:
            del counts[length]
        elif is_new:
            self._prefix_lengths[pattern.resource_type] = dict(sorted(counts.items(), reverse=True))

    def _is_any_allowed(
        self, principal: Principal, host: str, operation: Operation, resource_type: ResourceType
    ) -> bool:
        if (
            str(principal) in self.super_users
            or self.decide(principal, host, operation, resource_type, "hardcode").reason is Reason.NO_ACL
        ):
            return True
        acls = chain.from_iterable(self._by_pattern.values())
        rules = [acl for acl in acls if _is_for(acl, principal, host, operation, resource_type)]
        denied = [acl.pattern for acl in rules if acl.entry.permission is _DENY]
        allowed = [acl.pattern for acl in rules if acl.entry.permission is _ALLOW]
        return any(not any(_covers(deny, allow) for deny in denied) for allow in allowed)

    def _decide(self, action: Action) -> Decision:
        """AZ1."""
        if str(action.principal) in self.super_users:
            return Decision(True, Reason.SUPER_USER)
        allowed, has_acls = None, False
        principals, hosts = (str(action.principal), WILDCARD_PRINCIPAL), (canonical_host(action.host), WILDCARD)
        concerned = tuple(product(principals, hosts))
        for by_principal in self._matching(action.resource_type, action.name):
            has_acls = True
            for acl in chain.from_iterable([by_principal[key] for key in concerned if key in by_principal]):
                if not _applies(acl.entry, action):
                    continue
                if acl.entry.permission is _DENY:
                    return Decision(False, Reason.ACL, acl)
                allowed = allowed or acl
        if allowed is not None:
            return Decision(True, Reason.ACL, allowed)
        if not has_acls and self.allow_if_no_acl:
            return Decision(True, Reason.NO_ACL)
        return Decision(False, Reason.DEFAULT)

    def _matching(self, resource_type: ResourceType, name: str) -> Iterator[_ByPrincipal]:
        """The ACLs of the patterns that match: of the name, of its prefixes, the longest first, of the wildcard."""
        literal = self._literal.get(resource_type, {})
        if name in literal:
            yield literal[name]
        prefixed = self._prefixed.get(resource_type, {})
        for length in self._prefix_lengths.get(resource_type, ()):
            if length <= len(name) and name[:length] in prefixed:
                yield prefixed[name[:length]]
        if name != WILDCARD and WILDCARD in literal:
            yield literal[WILDCARD]


def _by_principal(acls: Iterable[Acl]) -> _ByPrincipal:
    found: _ByPrincipal = {}
    for acl in acls:
        found.setdefault((acl.entry.principal, canonical_host(acl.entry.host)), []).append(acl)
    return found


def _remember(decisions: dict[K, V], key: K, decision: V) -> None:
    """AZ4."""
    if len(decisions) >= DECISIONS_MAX:
        decisions.clear()
    decisions[key] = decision


def _applies(entry: Entry, action: Action) -> bool:
    """Return whether an entry of the principal and host of an action is about its operation."""
    if entry.permission is _ALLOW and action.operation in IMPLYING:
        return entry.operation in IMPLYING[action.operation]
    return entry.operation in (action.operation, _ALL)


def _is_for(acl: Acl, principal: Principal, host: str, operation: Operation, resource_type: ResourceType) -> bool:
    entry = acl.entry
    return (
        acl.pattern.resource_type is resource_type
        and entry.operation in (operation, _ALL)
        and _is_principal(entry, principal)
        and _is_host(entry, host)
    )


def _is_principal(entry: Entry, principal: Principal) -> bool:
    return entry.principal in (str(principal), WILDCARD_PRINCIPAL)


def _is_host(entry: Entry, host: str) -> bool:
    return entry.host == WILDCARD or canonical_host(entry.host) == canonical_host(host)


@lru_cache(4_096)
def canonical_host(host: str) -> str:
    """Return one text for all texts of an address: Java writes those of IPv6 without abbreviations, Python with."""
    try:
        return str(ip_address(host.partition("%")[0]))
    except ValueError:
        return host


def _covers(deny: ResourcePattern, allow: ResourcePattern) -> bool:
    """Whether `deny` stands for every name that `allow` stands for."""
    if deny.pattern_type is PatternType.PREFIXED:
        is_any = allow.pattern_type is PatternType.LITERAL and allow.name == WILDCARD
        return not is_any and allow.name.startswith(deny.name)
    if deny.name == WILDCARD:
        return True
    return allow.pattern_type is PatternType.LITERAL and allow.name == deny.name
