"""`kafka-acls` of Apache Kafka, unmodified: what it adds is in force at once, on open connections as well."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.interop.acl_apis.scenario import CLIENT
from tests.interop.acl_apis.test_acl_apis import SECURED
from tests.interop.broker import started
from tests.interop.differential.wire import Wire
from tests.interop.java_kit import needs_java, run_java, run_java_failing

from rota.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic

pytestmark = needs_java
ACLS = "org.apache.kafka.tools.AclCommand"
TOPICS = "org.apache.kafka.tools.TopicCommand"
DENIED = 29


@pytest.fixture
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with started(tmp_path_factory.mktemp("kafka-acls"), SECURED) as bootstrap:
        yield bootstrap


def test_acls_are_added_listed_and_removed(secured: str) -> None:
    def acls(*arguments: str) -> str:
        return run_java(ACLS, "--bootstrap-server", secured, *arguments)

    run_java(TOPICS, "--bootstrap-server", secured, "--create", "--topic", "orders", "--partitions", "1")
    client = Wire(secured, "open-connection", CLIENT)

    def code() -> int:
        request = MetadataRequest(topics=(MetadataRequestTopic(name="orders"),), allow_auto_topic_creation=False)
        error: int = client.send_request(request, 9).topics[0].error_code
        return error

    assert code() == 0  # no ACL is found: everybody may
    admin = ("--allow-principal", "User:ANONYMOUS", "--allow-host", "127.0.0.1")
    added = acls("--add", *admin, "--operation", "All", "--topic", "ord", "--resource-pattern-type", "prefixed")
    assert "Adding ACLs for resource `ResourcePattern(resourceType=TOPIC, name=ord, patternType=PREFIXED)`" in added
    assert code() == DENIED
    acls(
        "--add",
        "--allow-principal",
        "User:ANONYMOUS",
        "--allow-host",
        CLIENT,
        "--consumer",
        "--group",
        "g",
        "--topic",
        "orders",
    )
    assert code() == 0
    listed = acls("--list", "--topic", "orders", "--resource-pattern-type", "match")
    assert "name=ord, patternType=PREFIXED" in listed
    assert f"(principal=User:ANONYMOUS, host={CLIENT}, operation=READ, permissionType=ALLOW)" in listed
    acls(
        "--add", "--deny-principal", "User:ANONYMOUS", "--deny-host", CLIENT, "--operation", "Describe", "--topic", "*"
    )
    assert code() == DENIED
    acls("--remove", "--topic", "*", "--force")
    assert code() == 0
    acls("--remove", "--topic", "orders", "--force")
    assert code() == DENIED
    client.close()


def test_a_change_is_refused_without_alter_on_the_cluster(secured: str) -> None:
    # this address may not change ACLs any more, once there is an ACL for the cluster
    run_java(
        ACLS, "--bootstrap-server", secured, "--add", "--allow-principal", "User:ANONYMOUS",
        "--operation", "Describe", "--cluster",
    )  # fmt: skip
    refused = run_java_failing(
        ACLS,
        "--bootstrap-server",
        secured,
        "--add",
        "--allow-principal",
        "User:a",
        "--operation",
        "Read",
        "--topic",
        "t",
    )
    assert "ClusterAuthorizationException" in refused
