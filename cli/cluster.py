"""`rota cluster`: brokers, controller, features, and partitions that are not well."""

from __future__ import annotations

from argparse import ArgumentParser
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from rota.cli.arguments import add_client_options
from rota.cli.group_details import broker_document, partition_document
from rota.cli.session import Session, client_command
from rota.cli.settings import config_of
from rota.cli.text import Table
from rota.cli.topic_details import describe_existing
from rota.client.types import TopicPartition, address_text

if TYPE_CHECKING:
    from rota.client import ClientConfig, ClusterDescription, TopicDescription
    from rota.protocol.messages.api_versions import ApiVersionsResponse


def add_arguments(_: str, parser: ArgumentParser) -> None:
    """Declare the options."""
    parser.description = (
        "Print brokers with their leaders and replicas, the controller, finalized features, and the partitions that "
        "have no leader or too few replicas in sync."
    )
    parser.add_argument("--apis", action="store_true", help="also the versions of each API that a broker supports")
    add_client_options(parser)
    parser.set_defaults(run=client_command(show_cluster))


async def show_cluster(session: Session) -> None:
    from rota.client import AdminConfig

    async with session.admin() as admin:
        cluster = await admin.describe_cluster()
        topics = await describe_existing(admin, await admin.list_topics(internal=True))
    versions = await _api_versions(config_of(AdminConfig, session.settings()), cluster.nodes[0].id)
    document = cluster_document(cluster, topics) | {"features": _features(versions)}
    if session.options.apis:
        document["apis"] = _apis(versions)
    session.out.show(document, *_tables(document))


def cluster_document(cluster: ClusterDescription, topics: Iterable[TopicDescription]) -> dict[str, Any]:
    """Return the cluster as JSON."""
    partitions = [each for topic in topics for each in topic.partitions]
    leaders = Counter(each.leader for each in partitions)
    replicas = Counter(broker for each in partitions for broker in each.replicas)
    controller = None if cluster.controller is None else cluster.controller.id
    return {
        "cluster_id": cluster.cluster_id,
        "controller": controller,
        "brokers": [
            {**(broker_document(node) or {}), "leaders": leaders[node.id], "replicas": replicas[node.id]}
            for node in cluster.nodes
        ],
        "partitions": len(partitions),
        "without_leader": _named(each for each in partitions if each.leader < 0),
        "under_replicated": _named(each for each in partitions if len(each.isr) < len(each.replicas)),
    }


def _named(partitions: Iterable[Any]) -> list[dict[str, Any]]:
    return [partition_document(TopicPartition(each.topic, each.partition)) for each in partitions]


async def _api_versions(config: ClientConfig, node: int) -> ApiVersionsResponse:
    """Return the APIs and features of a broker."""
    from rota.client.network.cluster import Cluster
    from rota.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

    cluster = Cluster(config)
    await cluster.start()
    try:
        answer = await cluster.send_request(
            node, ApiVersionsRequest(client_software_name="rota-cli", client_software_version="1")
        )
    finally:
        await cluster.close()
    assert isinstance(answer, ApiVersionsResponse)
    return answer


def _features(versions: ApiVersionsResponse) -> list[dict[str, Any]]:
    return [{"name": each.name, "level": each.max_version_level} for each in versions.finalized_features]


def _apis(versions: ApiVersionsResponse) -> list[dict[str, Any]]:
    from rota.protocol.registry import APIS

    return [
        {
            "key": each.api_key,
            "name": APIS[each.api_key].name if each.api_key in APIS else None,
            "min": each.min_version,
            "max": each.max_version,
        }
        for each in versions.api_keys
    ]


def _tables(document: dict[str, Any]) -> Iterable[Table]:
    controller = document["controller"]
    brokers = [
        (each["id"], address_text(each["host"], each["port"]), each["rack"], each["leaders"], each["replicas"],
         each["id"] == controller)
        for each in document["brokers"]
    ]  # fmt: skip
    yield Table(
        ("BROKER", "ADDRESS", "RACK", "LEADERS", "REPLICAS", "CONTROLLER"), brokers, f"cluster {document['cluster_id']}"
    )
    if document["features"]:
        yield Table(("FEATURE", "LEVEL"), [tuple(each.values()) for each in document["features"]])
    if "apis" in document:
        yield Table(("KEY", "API", "MIN", "MAX"), [tuple(each.values()) for each in document["apis"]])
    for name, title in (("without_leader", "without a leader"), ("under_replicated", "under-replicated")):
        rows = [tuple(each.values()) for each in document[name]]
        yield Table(("TOPIC", "PARTITION"), rows, f"{title}:" if rows else "", empty=f"no partition is {title}")
