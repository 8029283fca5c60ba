from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.coordinator.config.listeners import Endpoint
from rota.coordinator.metadata import znodes
from rota.coordinator.metadata.brokers import BrokerRegistration
from rota.coordinator.metadata.topic import PartitionState, Topic

IDS = st.lists(st.integers(0, 99), min_size=1, max_size=3, unique=True).map(tuple)


@given(st.binary(min_size=16, max_size=16))
def test_a_uuid_survives_text_and_has_22_characters(value: bytes) -> None:
    text = znodes.uuid_text(value)
    assert len(text) == 22
    assert znodes.uuid_bytes(text) == value


@pytest.mark.parametrize("text", ["", "AAAA", "A" * 23])
def test_invalid_uuids_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"UUID|base64|padding"):
        znodes.uuid_bytes(text)


@given(IDS, st.integers(-1, 99), st.integers(0, 1000), st.integers(-1, 99), st.binary(min_size=16, max_size=16))
def test_a_topic_survives_write_and_read(
    replicas: tuple[int, ...], leader: int, epoch: int, broker_epoch: int, topic_id: bytes
) -> None:
    state = PartitionState(
        index=0,
        leader=leader,
        replicas=replicas,
        isr=replicas[:1],
        leader_epoch=epoch,
        leader_broker_epoch=broker_epoch,
        adding=replicas[1:],
        removing=replicas[:1],
        elr=replicas[1:],
    )
    topic = Topic(name="t", topic_id=topic_id, partitions=(state,))
    read_id, (of_topic_node,) = znodes.read_topic(znodes.topic_node(topic))
    assert read_id == topic_id
    assert (of_topic_node.leader, of_topic_node.isr, of_topic_node.version) == (-1, (), -1)
    read = znodes.read_state(znodes.state_node(state), 7, of_topic_node)
    assert (read, read.version) == (state, 7)


def test_a_registration_is_read_with_or_without_rota_fields() -> None:
    node = {"version": 5, "host": "h", "port": 9, "endpoints": ["A://h:9", "B://[::1]:8"], "rack": None}
    endpoints = (Endpoint("A", "h", 9), Endpoint("B", "::1", 8))
    assert znodes.read_broker(3, znodes.json_bytes(node), 17) == BrokerRegistration(
        broker_id=3, epoch=17, endpoints=endpoints
    )
    own = {**node, "rack": "r", "directory_id": "d", "swim": "h:5"}
    assert znodes.read_broker(3, znodes.json_bytes(own), 17) == BrokerRegistration(
        broker_id=3, epoch=17, endpoints=endpoints, rack="r", directory_id="d", swim="h:5"
    )
    assert znodes.read_controller(znodes.json_bytes({"version": 2, "brokerid": 4})) == 4


@pytest.mark.parametrize("field", ["rack", "directory_id", "swim"])
def test_rg2_a_registration_with_a_field_that_is_no_text_is_damaged(field: str) -> None:
    """No response could be encoded with such a rack."""
    node = znodes.json_bytes({"endpoints": ["A://h:9"], field: 5})
    with pytest.raises(znodes.UnreadableNode), znodes.reading("/brokers/ids/3"):
        znodes.read_broker(3, node, 17)


def test_nodes_have_kafkas_fields() -> None:
    state = PartitionState(index=0, leader=2, replicas=(2, 1), isr=(2,), leader_epoch=4, controller_epoch=3)
    topic = Topic(name="t", topic_id=bytes(15) + b"\1", partitions=(state,))
    assert json.loads(znodes.topic_node(topic)) == {
        "version": 3,
        "topic_id": "AAAAAAAAAAAAAAAAAAAAAQ",
        "partitions": {"0": [2, 1]},
        "adding_replicas": {},
        "removing_replicas": {},
    }
    assert json.loads(znodes.state_node(state)) == {
        "version": 1,
        "leader": 2,
        "leader_epoch": 4,
        "controller_epoch": 3,
        "isr": [2],
    }
    assert json.loads(znodes.config_node({"a": "b"})) == {"version": 1, "config": {"a": "b"}}
    assert json.loads(znodes.cluster_node("x")) == {"version": "1", "id": "x"}


def test_paths() -> None:
    assert znodes.state_path("t", 3) == "/brokers/topics/t/partitions/3/state"
    assert znodes.partition_path("t", 3) == "/brokers/topics/t/partitions/3"
    assert znodes.partitions_path("t") == "/brokers/topics/t/partitions"
    assert znodes.config_path("t") == "/config/topics/t"
