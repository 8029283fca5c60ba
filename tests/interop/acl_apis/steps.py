"""The requests of the conversation about ACLs: the administrator's, and those that the client may not make, or in part.

The client's requests are those of the unit tests' table: of every API, in every version.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tests.interop.acl_apis.scenario import (
    ALL,
    ALLOW,
    CLUSTER,
    CLUSTER_NAME,
    DENY,
    GROUP,
    GROUPS,
    PREFIXED,
    TOPIC,
    TOPICS,
    TRANSACTIONS,
    VISIBLE,
    creation,
    selection,
)
from tests.unit.coordinator.api.access import access_world

from rota.coordinator.api.access.table import ACCESS
from rota.coordinator.api.routes import SERVES
from rota.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from rota.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from rota.protocol.messages.describe_acls import DescribeAclsRequest
from rota.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from rota.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from rota.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from rota.protocol.registry import APIS

READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE = 3, 4, 5, 6, 7, 8
DESCRIBE_CONFIGS, ALTER_CONFIGS, IDEMPOTENT_WRITE = 10, 11, 12
MATCH = 2
OTHER = "10.9.8.7"  # where no client is

Step = tuple[str, int, Any]


def create(*creations: AclCreation) -> CreateAclsRequest:
    return CreateAclsRequest(creations=creations)


def delete(**fields: Any) -> DeleteAclsRequest:
    return DeleteAclsRequest(filters=(DeleteAclsFilter(**selection(**fields)),))


def describe(**fields: Any) -> DescribeAclsRequest:
    return DescribeAclsRequest(**selection(**fields))


def admin_steps() -> Iterator[tuple[str, Any]]:
    """(name, request). What is created belongs to the host OTHER, and is deleted in the end."""
    elsewhere = {"host": OTHER, "principal": "User:someone"}
    for name, acl in (
        ("literal", creation(TOPICS, "orders", READ, **elsewhere)),
        ("again", creation(TOPICS, "orders", READ, **elsewhere)),
        ("prefixed", creation(TOPICS, "ord", WRITE, pattern=PREFIXED, **elsewhere)),
        ("denied", creation(GROUPS, "g", READ, permission=DENY, **elsewhere)),
        ("wildcard", creation(TOPICS, "*", DESCRIBE, **elsewhere)),
        ("another cluster", creation(CLUSTER, "my-cluster", ALTER, **elsewhere)),
        ("prefixed cluster", creation(CLUSTER, "kafka", ALTER, pattern=PREFIXED, **elsewhere)),
        ("no name", creation(TOPICS, "", READ, **elsewhere)),
        ("no colon", creation(TOPICS, "orders", READ, host=OTHER, principal="someone")),
        ("pattern any", creation(TOPICS, "orders", READ, pattern=1, **elsewhere)),
        ("pattern match", creation(TOPICS, "orders", READ, pattern=2, **elsewhere)),
        ("operation any", creation(TOPICS, "orders", 1, **elsewhere)),
        ("permission any", creation(TOPICS, "orders", READ, permission=1, **elsewhere)),
        ("resource any", creation(1, "orders", READ, **elsewhere)),
        ("operation of another type", creation(TOPICS, "orders", 9, **elsewhere)),
    ):
        yield f"create {name}", create(acl)
    here = {"host_filter": OTHER}
    for name, fields in (
        ("all", {}),
        ("literal", {"resource_name_filter": "orders", "pattern_type_filter": 3}),
        ("match", {"resource_name_filter": "orders", "pattern_type_filter": MATCH, "resource_type_filter": TOPICS}),
        ("match another", {"resource_name_filter": "ordinary", "pattern_type_filter": MATCH}),
        ("any name", {"resource_name_filter": "ord", "pattern_type_filter": 1}),
        ("of an operation", {"operation": WRITE}),
        ("of a permission", {"permission_type": DENY}),
        ("of nobody", {"principal_filter": "User:nobody"}),
        ("allow", {"permission_type": ALLOW, "operation": ALL}),
    ):
        yield f"describe {name}", describe(**{**here, **fields})
    yield "delete nothing", delete(resource_name_filter="absent", **here)
    yield "delete match", delete(resource_name_filter="ordinary", pattern_type_filter=MATCH, **here)
    yield "delete the rest", delete(**here)
    yield "describe nothing", describe(**here)


def of_every_api() -> Iterator[Step]:
    """Every request of the table, in every version."""
    for key, name in SERVES.items():
        if not ACCESS[key].needs:
            continue
        for version in APIS[key].versions:
            for number, request in enumerate(getattr(access_world, name)(version)):
                yield f"{name} v{version} {number}", version, request


def of(*names: str) -> list[Step]:
    """Those of these APIs."""
    return [step for step in of_every_api() if step[0].split()[0] in names]


def _partly() -> Iterator[Step]:
    """Requests of which a part is allowed."""
    topics = tuple(MetadataRequestTopic(name=name) for name in (TOPIC, VISIBLE, "missing"))
    for version in (1, 9, 12):
        yield f"metadata of three v{version}", version, MetadataRequest(topics=topics, allow_auto_topic_creation=False)
    partitions = (ListOffsetsPartition(partition_index=0, timestamp=-1),)
    listed = tuple(ListOffsetsTopic(name=name, partitions=partitions) for name in (TOPIC, VISIBLE))
    yield "offsets of two", 7, ListOffsetsRequest(topics=listed)
    fetched = tuple(OffsetFetchRequestTopics(name=name, partition_indexes=(0,)) for name in (TOPIC, VISIBLE))
    for name, wanted in (("two", fetched), ("all", None)):
        group = OffsetFetchRequestGroup(group_id=GROUP, topics=wanted)
        yield f"committed of {name}", 8, OffsetFetchRequest(groups=(group,))


def chapters() -> Iterator[tuple[str, Sequence[AclCreation], Sequence[Step]]]:
    """(chapter, what the client is allowed, its requests)."""
    shows = (
        "metadata",
        "describe_groups",
        "list_groups",
        "find_coordinator",
        "describe_topic_partitions",
        "describe_cluster",
        "list_offsets",
        "offset_fetch",
        "delete_topics",
    )
    yield "nothing", (), list(of_every_api())
    visible, group = creation(TOPICS, VISIBLE, READ), creation(GROUPS, GROUP, DESCRIBE)
    yield "one topic", (visible, group), [*of(*shows), *_partly()]
    read_all = creation(TOPICS, TOPIC, READ)
    yield from (
        ("reading", (read_all,), of(*shows, "offset_commit", "offset_delete")),
        ("describing the cluster", (creation(CLUSTER, CLUSTER_NAME, DESCRIBE),), of(*shows)),
        (
            "denied again",
            (read_all, creation(TOPICS, TOPIC, READ, permission=DENY)),
            of("list_offsets", "metadata", "fetch", "describe_producers"),
        ),
        (
            "denied describing",
            (read_all, creation(TOPICS, "sec", DESCRIBE, permission=DENY, pattern=PREFIXED)),
            of("list_offsets", "describe_topic_partitions"),
        ),
        ("writing anything", (creation(TOPICS, "any", WRITE, pattern=PREFIXED),), of("init_producer_id")[:3]),
        ("transactions", (creation(TRANSACTIONS, "secret", DESCRIBE, pattern=PREFIXED),), of("find_coordinator")),
        ("configs", (creation(TOPICS, TOPIC, ALTER_CONFIGS),), of("alter_configs", "incremental_alter_configs")),
    )
