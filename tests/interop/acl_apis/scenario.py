"""One conversation about ACLs with any broker: an administrator from 127.0.0.1, a client from 127.0.0.2, no login.

The broker has an authorizer, `allow.everyone.if.no.acl.found=true`, and no super users. While the conversation lasts,
ACLs allow the administrator's address everything, and the client's what a chapter says.

Law
    Nothing here sleeps to wait: after a change of the ACLs the broker is asked until it shows them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, Final

from tests.interop.differential.wire import Wire
from tests.interop.kit import until

from rota.protocol.errors import ErrorCode
from rota.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from rota.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from rota.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from rota.protocol.messages.delete_groups import DeleteGroupsRequest
from rota.protocol.messages.delete_topics import DeleteTopicsRequest
from rota.protocol.messages.describe_acls import DescribeAclsRequest
from rota.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from rota.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from rota.protocol.wire import UUID_ZERO

Line = dict[str, Any]

ADMIN, CLIENT = "127.0.0.1", "127.0.0.2"
TOPIC, VISIBLE, GROUP = "secret", "visible", "secret-group"
ANY, LITERAL, PREFIXED = 1, 3, 4
TOPICS, GROUPS, CLUSTER, TRANSACTIONS = 2, 3, 4, 5
ALL, DENY, ALLOW = 2, 2, 3
CREATE = 5
CLUSTER_NAME: Final = "kafka-cluster"
EVERYTHING: Final = ((TOPICS, "*"), (GROUPS, "*"), (CLUSTER, CLUSTER_NAME), (TRANSACTIONS, "*"))
# differ from run to run and from broker to broker, and say nothing about permissions
LEFT_OUT: Final = frozenset(
    {
        "throttle_time_ms",
        "producer_id",
        "brokers",
        "cluster_id",
        "controller_id",
        "leader_epoch",
        "eligible_leader_replicas",
    }
    | {"last_known_elr", "node_id", "port", "log_append_time_ms", "is_internal"}
)


def creation(kind: int, name: str, operation: int, *, host: str = CLIENT, **more: Any) -> AclCreation:
    """The ACL that allows the anonymous principal at `host` an operation."""
    principal = more.pop("principal", "User:ANONYMOUS")
    pattern, permission = more.pop("pattern", LITERAL), more.pop("permission", ALLOW)
    return AclCreation(
        resource_type=kind,
        resource_name=name,
        resource_pattern_type=pattern,
        principal=principal,
        host=host,
        operation=operation,
        permission_type=permission,
    )


def selection(**fields: Any) -> dict[str, Any]:
    """The fields of a filter; each that is not given matches all."""
    return {
        "resource_type_filter": ANY,
        "resource_name_filter": None,
        "pattern_type_filter": ANY,
        "principal_filter": None,
        "host_filter": None,
        "operation": ANY,
        "permission_type": ANY,
        **fields,
    }


class Session:
    """The administrator's and the client's connections."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self.admin, self.client = Wire(bootstrap, "acl-admin"), Wire(bootstrap, "acl-client", CLIENT)
        self._grants = 0

    def close(self) -> None:
        self.admin.close()
        self.client.close()

    def send_request_as_client(self, request: Any, version: int) -> Any:
        """The answer as JSON values, or `hangs up`."""
        try:
            return plain(self.client.send_request(request, version))
        except ConnectionError:
            self.client = Wire(self._bootstrap, "acl-client", CLIENT)
            return "hangs up"

    def send_request(self, request: Any) -> Any:
        """The administrator's answer as JSON values. What DescribeAcls shows has all changes before it."""
        if request.KEY == DescribeAclsRequest.KEY:
            self.grant(())
        return plain(self.admin.send_request(request, 3))

    def grant(self, creations: Sequence[AclCreation]) -> None:
        """Replace the client's permissions. Kafka's brokers and its controller take over changes later, in order."""
        self._grants += 1
        self.admin.send_request(DeleteAclsRequest(filters=(DeleteAclsFilter(**selection(host_filter=CLIENT)),)), 3)
        marker = creation(TOPICS, f"marker-{self._grants}", CREATE)
        self.admin.send_request(CreateAclsRequest(creations=(*creations, marker)), 3)
        until(lambda: self._shows(marker.resource_name) and self._is_create_allowed(marker.resource_name), "the ACLs")

    def _shows(self, name: str) -> bool:
        """Whether the broker has the ACL of a name."""
        return bool(self.admin.send_request(DescribeAclsRequest(**selection(resource_name_filter=name)), 3).resources)

    def _is_create_allowed(self, name: str) -> bool:
        """Whether the controller, which decides about new topics, lets the client create this one."""
        topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
        request = CreateTopicsRequest(topics=(topic,), timeout_ms=10_000, validate_only=True)
        (result,) = self.client.send_request(request, 7).topics
        return result.error_code == ErrorCode.NONE

    def begin(self) -> None:
        """Only the administrator's address is allowed anything. There are the topics and the group."""
        self.admin.send_request(DeleteAclsRequest(filters=(DeleteAclsFilter(**selection()),)), 3)
        allowed = tuple(creation(kind, name, ALL, host=ADMIN) for kind, name in EVERYTHING)
        self.admin.send_request(CreateAclsRequest(creations=allowed), 3)
        topics = tuple(CreatableTopic(name=n, num_partitions=1, replication_factor=1) for n in (TOPIC, VISIBLE))
        self.admin.send_request(CreateTopicsRequest(topics=topics, timeout_ms=10_000), 7)
        until(self._commits, "a committed offset")

    def topic_ids(self) -> dict[str, bytes]:
        """The ids of the topics by name."""
        topics = tuple(MetadataRequestTopic(name=name) for name in (TOPIC, VISIBLE))
        return {
            topic.name: topic.topic_id for topic in self.admin.send_request(MetadataRequest(topics=topics), 12).topics
        }

    def _commits(self) -> bool:
        partitions = (OffsetCommitRequestPartition(partition_index=0, committed_offset=1),)
        topics = tuple(OffsetCommitRequestTopic(name=name, partitions=partitions) for name in (TOPIC, VISIBLE))
        self.admin.send_request(_coordinator(), 4)
        answer = self.admin.send_request(OffsetCommitRequest(group_id=GROUP, topics=topics), 8)
        return not any(each.error_code for topic in answer.topics for each in topic.partitions)

    def end(self) -> None:
        """Delete every ACL: everybody may do everything again. The topics and the group go, too."""
        self.admin.send_request(DeleteAclsRequest(filters=(DeleteAclsFilter(**selection()),)), 3)
        self.admin.send_request(DeleteGroupsRequest(groups_names=(GROUP,)), 2)
        self.admin.send_request(DeleteTopicsRequest(topic_names=(TOPIC, VISIBLE), timeout_ms=10_000), 5)


# Quotas and SCRAM credentials: for all users Kafka never answers DescribeUserScramCredentials without permission
NOT_RECORDED = {48, 49, 50, 51}


def _coordinator() -> Any:
    from rota.protocol.messages.find_coordinator import FindCoordinatorRequest

    return FindCoordinatorRequest(key_type=0, coordinator_keys=(GROUP,))


def run_scenario(bootstrap: str) -> Iterator[Line]:
    """Play the conversation; yield each step's answer."""
    from tests.interop.acl_apis.steps import admin_steps, chapters

    session = Session(bootstrap)
    try:
        session.begin()
        for name, request in admin_steps():
            yield {"chapter": "administration", "step": name, "answer": session.send_request(request)}
        for chapter, granted, requests in chapters():
            session.grant(granted)
            for name, version, request in requests:
                if request.KEY in NOT_RECORDED:
                    continue
                yield {"chapter": chapter, "step": name, "answer": session.send_request_as_client(request, version)}
    finally:
        session.end()
        session.close()


def _is_of_others(listed: Any) -> bool:
    """Whether a listed group is not of this conversation: other tests use the same Kafka."""
    return hasattr(listed, "protocol_type") and not hasattr(listed, "members") and listed.group_id != GROUP


def plain(value: Any) -> Any:
    """A message as JSON values; lists in the order of their texts, ids by whether they are there."""
    if is_dataclass(value):
        names = [each.name for each in fields(value) if each.name not in LEFT_OUT]
        if hasattr(value, "port"):  # the host of a broker; that of an ACL stays
            names.remove("host")
        return {name: plain(getattr(value, name)) for name in names}
    if isinstance(value, list | tuple):
        items = [item for item in value if not (hasattr(item, "group_state") and _is_of_others(item))]
        return sorted((plain(item) for item in items), key=json.dumps)
    if isinstance(value, bytes | memoryview):
        return "zero" if bytes(value) == UUID_ZERO else len(value)
    if isinstance(value, str) and value.startswith("Request Request("):
        return "Cluster authorization failed."  # Kafka describes its objects instead
    return int(value) if isinstance(value, int) and not isinstance(value, bool) else value
