"""The paths and contents of the metadata store's nodes: those of Kafka with ZooKeeper, so that its tools read them.

/cluster/id                             {"version": "1", "id": ...}
/controller                             {"version": 2, "brokerid": 1, "timestamp": ...}         ephemeral
/controller_epoch                       1
/brokers/ids/N                          {"version": 5, "host": ..., "port": ..., "endpoints": [...]}  ephemeral
/brokers/topics/T                       {"version": 3, "topic_id": ..., "partitions": {"0": [1]}}
/brokers/topics/T/ID                    empty; ID is the topic's id: a commit that checks it is for this topic only
/brokers/topics/T/partitions/P/state    {"version": 1, "leader": 1, "isr": [1], "leader_epoch": 0, ...}
/config/topics/T                        {"version": 1, "config": {...}}
/config/brokers/N                       the same; /config/brokers/<default> for all brokers
/config/groups/G                        the same; the name is encoded as in a URL
/config/client-metrics/S                the same
/config/acls/TYPE:PATTERN:NAME          the same: a config for each entry, without a value; the name is encoded
/config/users/U                         the same: SCRAM credentials by mechanism, quotas by key
/config/clients/C                       the same: quotas of a client id
/config/user-clients/U/clients/C        the same: quotas of a user's client id; the name is encoded, so it is one node
/config/ips/A                           the same: quotas of an address; <default> for the default of a type
/rota/brokers/N                         the last content of /brokers/ids/N, which stays while the broker is down, and
                                        {"broker_epoch": ...}, the registration that its folder knew last
/rota/swim_secret                       random bytes as hexadecimal digits: authenticates the failure detector
/latest_producer_id_block               {"version": 1, "broker": 1, "block_start": "0", "block_end": "999"}
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from urllib.parse import quote, unquote

from rota.coordinator.config.listeners import parse_endpoint
from rota.coordinator.metadata.brokers import BrokerRegistration
from rota.coordinator.metadata.changes import ConfigKind
from rota.coordinator.metadata.store import StoreFailed
from rota.coordinator.metadata.topic import PartitionState, Topic

CLUSTER_ID = "/cluster/id"
CONTROLLER = "/controller"
ROTA = "/rota"
SWIM_SECRET = "/rota/swim_secret"
LAST_REGISTRATIONS = "/rota/brokers"
CONTROLLER_EPOCH = "/controller_epoch"
ADMIN = "/admin"
BROKER_IDS = "/brokers/ids"
TOPICS = "/brokers/topics"
TOPIC_CONFIGS = "/config/topics"
CONFIGS = "/config"
RESOURCE_CONFIGS = {f"{CONFIGS}/{kind}": kind for kind in ConfigKind}
PRODUCER_IDS = "/latest_producer_id_block"
_OF_KAFKA = ("/cluster", "/brokers", BROKER_IDS, TOPICS, CONFIGS, TOPIC_CONFIGS, *RESOURCE_CONFIGS, ADMIN)
PERSISTENT = (*_OF_KAFKA, ROTA, LAST_REGISTRATIONS)


class UnreadableNode(StoreFailed):
    """A node lacks what belongs to it, or has what cannot be read: another program has changed it."""


@contextmanager
def reading(path: str) -> Iterator[None]:
    """Raise UnreadableNode for what the functions of this module raise for the data of this node."""
    try:
        yield
    except (ValueError, OverflowError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UnreadableNode(f"{path} cannot be read: {type(error).__name__}: {str(error)[:200]}") from error


def topic_path(name: str) -> str:
    return f"{TOPICS}/{name}"


def topic_id_path(name: str, topic_id: bytes) -> str:
    return f"{TOPICS}/{name}/{uuid_text(topic_id)}"


def partitions_path(name: str) -> str:
    return f"{TOPICS}/{name}/partitions"


def partition_path(name: str, index: int) -> str:
    return f"{TOPICS}/{name}/partitions/{index}"


def state_path(name: str, index: int) -> str:
    return f"{TOPICS}/{name}/partitions/{index}/state"


def broker_path(broker_id: int) -> str:
    return f"{BROKER_IDS}/{broker_id}"


def last_registration_path(broker_id: int) -> str:
    return f"{LAST_REGISTRATIONS}/{broker_id}"


def config_path(name: str) -> str:
    return f"{TOPIC_CONFIGS}/{name}"


def resource_config_path(kind: ConfigKind, name: str) -> str:
    """The node of any name: a path of the store takes no slash, no empty name and no dots alone."""
    encoded = quote(name, safe="<>") if name.strip(".") else name.replace(".", "%2E")
    return f"{CONFIGS}/{kind}/{encoded}"


def read_resource_name(encoded: str) -> str:
    return unquote(encoded)


def uuid_text(value: bytes) -> str:
    """16 bytes as Kafka writes them: URL-safe base64 without padding."""
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()


def uuid_bytes(text: str) -> bytes:
    """Raises ValueError unless it stands for 16 bytes."""
    value = base64.urlsafe_b64decode(text + "==")
    if len(value) != 16:
        raise ValueError(f"{text!r} is not a UUID")
    return value


def json_bytes(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":"), sort_keys=True).encode()


def topic_node(topic: Topic) -> bytes:
    return json_bytes(
        {
            "version": 3,
            "topic_id": uuid_text(topic.topic_id),
            "partitions": {str(state.index): state.replicas for state in topic.partitions},
            "adding_replicas": {str(state.index): state.adding for state in topic.partitions if state.adding},
            "removing_replicas": {str(state.index): state.removing for state in topic.partitions if state.removing},
        }
    )


def state_node(state: PartitionState) -> bytes:
    node = {
        "version": 1,
        "leader": state.leader,
        "leader_epoch": state.leader_epoch,
        "controller_epoch": state.controller_epoch,
        "isr": state.isr,
    }
    if state.leader_broker_epoch >= 0:  # not a field of Kafka's, whose readers ignore it
        node["leader_broker_epoch"] = state.leader_broker_epoch
    if state.elr:  # the same
        node["elr"] = state.elr
    return json_bytes(node)


def config_node(configs: Mapping[str, str]) -> bytes:
    return json_bytes({"version": 1, "config": dict(configs)})


def read_config(data: bytes) -> dict[str, str]:
    config = json.loads(data)["config"]
    return {str(name): str(value) for name, value in config.items()}


def read_topic(data: bytes) -> tuple[bytes, Iterator[PartitionState]]:
    """(topic id, its partitions without what their state nodes say: no leader, no ISR, version -1).

    The partitions are made while they are iterated, in the order of their indexes. Raises ValueError and the like.
    """
    node = json.loads(data)
    adding, removing = node.get("adding_replicas", {}), node.get("removing_replicas", {})
    partitions = sorted(((int(index), index, replicas) for index, replicas in node["partitions"].items()))
    if [index for index, _, _ in partitions] != list(range(len(partitions))) or not all(each[2] for each in partitions):
        raise ValueError("partitions are not numbered from 0 on, or one has no replicas")
    states = (
        PartitionState(
            index=index,
            leader=-1,
            replicas=tuple(map(int, replicas)),
            isr=(),
            adding=tuple(map(int, adding.get(text, ()))),
            removing=tuple(map(int, removing.get(text, ()))),
            version=-1,
        )
        for index, text, replicas in partitions
    )
    return uuid_bytes(node["topic_id"]), states


def read_state(data: bytes, version: int, state: PartitionState) -> PartitionState:
    """Return `state` with leader, ISR, ELR and epochs of its node, whose version is `version`."""
    node = json.loads(data)
    return replace(
        state,
        leader=int(node["leader"]),
        isr=tuple(map(int, node["isr"])),
        leader_epoch=int(node["leader_epoch"]),
        controller_epoch=int(node["controller_epoch"]),
        leader_broker_epoch=int(node.get("leader_broker_epoch", -1)),
        elr=tuple(map(int, node.get("elr", ()))),
        version=version,
    )


def read_broker(broker_id: int, data: bytes, epoch: int) -> BrokerRegistration:
    """Return the registration in a node that the change number `epoch` created. Raises ValueError, KeyError."""
    node = json.loads(data)
    return BrokerRegistration(
        broker_id=broker_id,
        epoch=epoch,
        endpoints=tuple(parse_endpoint(text) for text in node["endpoints"]),
        rack=None if node.get("rack") is None else _text(node["rack"]),
        directory_id=_text(node.get("directory_id", "")),
        swim=_text(node.get("swim", "")),
    )


def read_noted_epoch(data: bytes) -> int:
    """Return the epoch in the last registration of a broker; -1 without one. Raises ValueError and the like."""
    return int(json.loads(data).get("broker_epoch", -1))


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value


def controller_node(broker_id: int, wall_ms: int) -> bytes:
    return json_bytes({"version": 2, "brokerid": broker_id, "timestamp": str(wall_ms), "kraftControllerEpoch": -1})


def read_controller(data: bytes) -> int:
    """Return the id of the broker that is the controller."""
    return int(json.loads(data)["brokerid"])


def cluster_node(cluster_id: str) -> bytes:
    return json_bytes({"version": "1", "id": cluster_id})


def read_cluster(data: bytes) -> str:
    return str(json.loads(data)["id"])


def read_block_end(data: bytes) -> int:
    """Return the last producer id of the latest block."""
    return int(json.loads(data)["block_end"])
