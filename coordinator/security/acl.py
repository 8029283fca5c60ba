"""Access control lists: resource patterns, entries, filters, with Kafka's codes, names and checks. Pure.

Laws
    AC1 A filter selects the ACLs that Kafka's selects: MATCH the literal name, the wildcard and the prefixes of a name.
    AC2 The text of an ACL in the metadata store is read back as the same ACL.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final
from urllib.parse import quote, unquote

from rota.coordinator.security.operations import Operation, ResourceType
from rota.coordinator.security.principal import Principal
from rota.protocol.dataclass import dataclass

WILDCARD: Final = "*"  # any resource name, any host, and as the name of a principal any user
CLUSTER_NAME: Final = "kafka-cluster"  # the only name of a resource of type CLUSTER


class PatternType(IntEnum):
    """How the name of a resource pattern is compared. ANY and MATCH are for filters."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class Permission(IntEnum):
    """Kafka's AclPermissionType. ANY is for filters."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


@dataclass(frozen=True, slots=True, order=True)
class ResourcePattern:
    """Resources of one type: the one of a name, all with a prefix or, with the literal name `*`, all."""

    resource_type: ResourceType
    pattern_type: PatternType
    name: str

    def matches(self, resource_type: ResourceType, name: str) -> bool:
        if self.resource_type is not resource_type:
            return False
        if self.pattern_type is PatternType.PREFIXED:
            return name.startswith(self.name)
        return self.name in (name, WILDCARD)

    def __str__(self) -> str:
        return f"{self.resource_type.name}:{self.pattern_type.name}:{self.name}"

    @classmethod
    def parse(cls, text: str) -> ResourcePattern:
        """Return the pattern of a text of `str`. Raises ValueError."""
        resource_type, separator, rest = text.partition(":")
        pattern_type, second, name = rest.partition(":")
        if not separator or not second or not name:
            raise ValueError(f"{text!r} is no resource pattern")
        try:
            return cls(ResourceType[resource_type], PatternType[pattern_type], name)
        except KeyError as error:
            raise ValueError(f"{text!r} is no resource pattern") from error


@dataclass(frozen=True, slots=True, order=True)
class Entry:
    """What a principal may or may not do.

    `principal` is `User:NAME`, or `User:*` for all; `host` is an address or `*`.
    """

    permission: Permission
    operation: Operation
    principal: str
    host: str

    def __str__(self) -> str:
        return f"{self.permission.name} {self.operation.name} {quote(self.host, safe='*:')} {self.principal}"

    @classmethod
    def parse(cls, text: str) -> Entry:
        """Return the entry of a text of `str`. Raises ValueError."""
        parts = text.split(" ", 3)
        try:
            permission, operation, host, principal = parts
            return cls(Permission[permission], Operation[operation], principal, unquote(host))
        except (KeyError, ValueError) as error:
            raise ValueError(f"{text!r} is no entry of an ACL") from error


@dataclass(frozen=True, slots=True, order=True)
class Acl:
    """Kafka's AclBinding."""

    pattern: ResourcePattern
    entry: Entry


@dataclass(frozen=True, slots=True)
class AclFilter:
    """Kafka's AclBindingFilter. None matches any name, principal or host."""

    resource_type: ResourceType = ResourceType.ANY
    name: str | None = None
    pattern_type: PatternType = PatternType.ANY
    principal: str | None = None
    host: str | None = None
    operation: Operation = Operation.ANY
    permission: Permission = Permission.ANY

    def matches(self, acl: Acl) -> bool:
        return self.matches_pattern(acl.pattern) and self.matches_entry(acl.entry)

    def matches_pattern(self, pattern: ResourcePattern) -> bool:
        """AC1."""
        if self.resource_type not in (ResourceType.ANY, pattern.resource_type):
            return False
        if self.pattern_type not in (PatternType.ANY, PatternType.MATCH, pattern.pattern_type):
            return False
        if self.name is None:
            return True
        if self.pattern_type is PatternType.MATCH:
            return pattern.matches(pattern.resource_type, self.name)
        return pattern.name == self.name

    def matches_entry(self, entry: Entry) -> bool:
        return (
            self.principal in (None, entry.principal)
            and self.host in (None, entry.host)
            and self.operation in (Operation.ANY, entry.operation)
            and self.permission in (Permission.ANY, entry.permission)
        )


class InvalidAcl(ValueError):
    """An ACL or a filter that Kafka refuses with INVALID_REQUEST."""


def check_acl(acl: Acl) -> None:
    """Raises InvalidAcl for an ACL that cannot be created."""
    pattern, entry = acl.pattern, acl.entry
    if pattern.resource_type is ResourceType.CLUSTER and pattern.name != CLUSTER_NAME:
        raise InvalidAcl(f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}")
    if not pattern.name:
        raise InvalidAcl("Invalid empty resource name")
    if pattern.resource_type in (ResourceType.UNKNOWN, ResourceType.ANY):
        raise InvalidAcl(f"Invalid resourceType {pattern.resource_type.name}")
    if pattern.pattern_type not in (PatternType.LITERAL, PatternType.PREFIXED):
        raise InvalidAcl(f"Invalid patternType {pattern.pattern_type.name}")
    if entry.operation in (Operation.UNKNOWN, Operation.ANY):
        raise InvalidAcl(f"Invalid operation {entry.operation.name}")
    if entry.permission not in (Permission.ALLOW, Permission.DENY):
        raise InvalidAcl(f"Invalid permissionType {entry.permission.name}")
    if not entry.host:
        raise InvalidAcl("Host name should not be empty")
    try:
        Principal.parse(entry.principal)
    except ValueError:
        why = "no colon is present separating the principal type from the principal name"
        raise InvalidAcl(f"Could not parse principal from `{entry.principal}` ({why})") from None


def check_filter(selection: AclFilter) -> None:
    """Raises InvalidAcl for a filter with a code that this release does not know."""
    for code in (selection.resource_type, selection.pattern_type, selection.operation, selection.permission):
        if code.name == "UNKNOWN":
            raise InvalidAcl(f"The filter has an unknown {type(code).__name__}")
