"""Fetch: READ on each topic of a consumer, CLUSTER_ACTION of a follower, checked where the partitions are looked up.

A fetch session remembers partitions that a request does not name, and a delayed fetch outlives the ACLs with which it
began; so the check is not around the API but in the lookup of its partitions.

Law
    AT2 A delayed fetch returns no records of a topic whose READ was taken away while it waited, be it for records or
        for the disk.
"""

from __future__ import annotations

from typing import Final

from rota.coordinator.api.access.request import CLUSTER, TOPIC, RequestAccess
from rota.coordinator.api.node import Call, Node
from rota.coordinator.replica.partition import Partition
from rota.coordinator.replica.partition_lookup import Key, PartitionLookup
from rota.coordinator.security.authorizer import Authorizer
from rota.coordinator.security.operations import Operation
from rota.protocol.errors import ErrorCode

API: Final = "Fetch"


class AuthorizedLookup(PartitionLookup):
    """Finds the partitions that the principal of a fetch may read."""

    __slots__ = ("_access", "_authorizer", "_changes", "_is_follower")

    def __init__(self, node: Node, authorizer: Authorizer, call: Call, *, is_follower: bool) -> None:
        super().__init__(node.topics, node.partitions)
        self._access = RequestAccess(node, authorizer, call, API)
        self._authorizer, self._changes = authorizer, authorizer.changes
        self._is_follower = is_follower

    @property
    def is_outdated(self) -> bool:
        """Whether the ACLs have changed since the partitions were looked up."""
        return self._changes != self._authorizer.changes

    def find(self, key: Key) -> Partition | None:
        partition = super().find(key)
        return partition if partition is not None and self._is_readable(partition.topic) else None

    def missing(self, key: Key) -> ErrorCode:
        """As for consumers; TOPIC_AUTHORIZATION_FAILED for a topic that the principal may not read, there or not."""
        topic = key[0]
        if self._is_follower and not self._is_allowed(""):
            return ErrorCode.TOPIC_AUTHORIZATION_FAILED
        name = topic if isinstance(topic, str) else self._access.topic_name(topic)
        if name is not None and not self._is_allowed(name):
            return ErrorCode.TOPIC_AUTHORIZATION_FAILED
        return super().missing(key)

    def _is_readable(self, name: str) -> bool:
        if self._is_follower:
            return self._access.is_allowed(Operation.CLUSTER_ACTION, CLUSTER)
        return self._access.is_allowed(Operation.READ, TOPIC, name)

    def _is_allowed(self, name: str) -> bool:
        """The same with a denial in the audit log."""
        if self._is_follower:
            return self._access.authorize(Operation.CLUSTER_ACTION, CLUSTER)
        return self._access.authorize(Operation.READ, TOPIC, name)
