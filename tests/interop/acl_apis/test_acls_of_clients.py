"""ACLs by the admin clients of confluent-kafka and kafka-python."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)
from kafka import KafkaAdminClient
from kafka.admin import (
    ACL,
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ResourcePattern,
    ResourcePatternFilter,
)
from kafka.admin import ResourceType as PythonResourceType
from tests.interop.acl_apis.test_acl_apis import SECURED
from tests.interop.broker import started


@pytest.fixture
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with started(tmp_path_factory.mktemp("acls"), SECURED) as bootstrap:
        yield bootstrap


def test_confluent_kafka_creates_describes_and_deletes_acls(secured: str) -> None:
    admin = AdminClient({"bootstrap.servers": secured})
    pattern = (ResourceType.TOPIC, "orders", ResourcePatternType.PREFIXED)
    acl = AclBinding(*pattern, "User:alice", "*", AclOperation.READ, AclPermissionType.ALLOW)
    assert admin.create_acls([acl])[acl].result(20) is None
    everything = AclBindingFilter(
        ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY
    )
    assert admin.describe_acls(everything).result(20) == [acl]
    assert admin.delete_acls([everything])[everything].result(20) == [acl]
    assert admin.describe_acls(everything).result(20) == []


def test_kafka_python_creates_describes_and_deletes_acls(secured: str) -> None:
    admin = KafkaAdminClient(bootstrap_servers=secured)
    try:
        acl = ACL(
            principal="User:alice",
            host="*",
            operation=ACLOperation.READ,
            permission_type=ACLPermissionType.ALLOW,
            resource_pattern=ResourcePattern(PythonResourceType.TOPIC, "orders"),
        )
        assert admin.create_acls([acl])["succeeded"] == [acl]
        everything = ACLFilter(
            principal=None,
            host="*",
            operation=ACLOperation.ANY,
            permission_type=ACLPermissionType.ANY,
            resource_pattern=ResourcePatternFilter(
                PythonResourceType.TOPIC, "orders", pattern_type=ACLResourcePatternType.LITERAL
            ),
        )
        found, _ = admin.describe_acls(everything)
        assert found == [acl]
        (_, deleted, _), *_ = admin.delete_acls([everything])
        assert deleted == [acl]
    finally:
        admin.close()
