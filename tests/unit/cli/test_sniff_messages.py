"""Requests and responses that pass through the proxy."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rota.cli.sniff_messages import (
    Filter,
    addresses,
    document,
    has_response,
    limited,
    line,
    read_request,
    read_response,
    rewritten,
)
from rota.protocol.compiler import codec
from rota.protocol.consumer_protocol import Subscription, encode_subscription
from rota.protocol.header import request_header, response_header
from rota.protocol.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from rota.protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from rota.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from rota.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from rota.protocol.messages.metadata import MetadataRequest, MetadataResponse, MetadataResponseBroker
from rota.protocol.messages.produce import ProduceRequest
from rota.protocol.registry import APIS
from rota.protocol.wire import DecodeError

HEARTBEAT = HeartbeatRequest(group_id="g", generation_id=3, member_id="m")


def request_frame(message: Any, version: int, client: str = "c", correlation: int = 7) -> bytes:
    head = request_header(message.KEY, version, correlation, client)
    return head + codec(type(message), version).encode(message)


def response_frame(key: int, message: Any, version: int, correlation: int = 7) -> bytes:
    return response_header(correlation, key, version) + codec(type(message), version).encode(message)


def exchange(request: Any, response: Any, version: int) -> tuple[Any, Any, bytes]:
    sent = read_request(request_frame(request, version))
    frame = response_frame(request.KEY, response, version)
    return sent, read_response(sent, frame, 1.5), frame


def moved(host: str, port: int) -> tuple[str, int]:
    return f"local-{host}", port + 1


def test_a_request_and_its_response_are_decoded_and_printed() -> None:
    sent, answered, _ = exchange(HEARTBEAT, HeartbeatResponse(error_code=27), 4)
    assert (sent.api, sent.header.client_id, sent.groups) == ("Heartbeat", "c", {"g"})
    assert answered.error_names == ("REBALANCE_IN_PROGRESS",)
    found = document(answered, 2, "2026-01-01T00:00:00.123Z", with_body=True)
    assert found["errors"] == ["REBALANCE_IN_PROGRESS"]
    assert found["groups"] == ["g"]
    json.dumps(found)
    text = line(found, full=False)
    assert text.startswith("00:00:00.123 #2 < Heartbeat v4 (7) 1.5 ms ")
    assert "error_code=REBALANCE_IN_PROGRESS" in text
    requests = line(document(sent, 2, "2026-01-01T00:00:00.123Z", with_body=True), full=False)
    assert requests.startswith("00:00:00.123 #2 > Heartbeat v4 (7) c ")
    assert "group_id=g" in requests


def test_a_long_body_is_truncated_unless_full() -> None:
    sent = read_request(request_frame(HeartbeatRequest(group_id="g" * 500, generation_id=3, member_id="m"), 4))
    found = document(sent, 1, "2026-01-01T00:00:00.123Z", with_body=True)
    assert len(line(found, full=False)) < 400
    assert "g" * 500 in line(found, full=True)
    assert "body" not in document(sent, 1, "", with_body=False)


def test_the_subscription_inside_a_join_is_decoded() -> None:
    metadata = encode_subscription(Subscription(topics=("orders",)))
    protocols = (JoinGroupRequestProtocol(name="range", metadata=metadata),)
    join = JoinGroupRequest(
        group_id="g", session_timeout_ms=1, member_id="", protocol_type="consumer", protocols=protocols
    )
    found = document(read_request(request_frame(join, 9)), 1, "", with_body=True)
    assert found["body"]["protocols"][0]["metadata"]["topics"] == ["orders"]


@pytest.mark.parametrize("version", [0, 4, 12])
def test_the_addresses_of_metadata_are_replaced_and_nothing_else(version: int) -> None:
    brokers = (
        MetadataResponseBroker(node_id=1, host="a", port=9092),
        MetadataResponseBroker(node_id=2, host="b", port=1),
    )
    before = MetadataResponse(brokers=brokers)
    _, answered, frame = exchange(MetadataRequest(topics=()), before, version)
    assert addresses(answered.body) == {("a", 9092), ("b", 1)}
    _, changed, _ = answered, read_response(read_request(request_frame(MetadataRequest(topics=()), version)),
                                            rewritten(answered, frame, moved), 0), 0  # fmt: skip
    assert [(each.host, each.port) for each in changed.body.brokers] == [("local-a", 9093), ("local-b", 2)]
    assert [each.node_id for each in changed.body.brokers] == [1, 2]


@pytest.mark.parametrize("version", [3, 4])
def test_the_address_of_a_coordinator_is_replaced_unless_there_is_none(version: int) -> None:
    found = Coordinator(key="g", node_id=1, host="a", port=9092)
    absent = Coordinator(key="h", node_id=-1, host="", port=-1, error_code=15)
    old = FindCoordinatorResponse(node_id=1, host="a", port=9092)
    new = FindCoordinatorResponse(coordinators=(found, absent))
    request = FindCoordinatorRequest(key="g", coordinator_keys=("g",))
    sent, answered, frame = exchange(request, old if version < 4 else new, version)
    changed = read_response(sent, rewritten(answered, frame, moved), 0).body
    expected = changed if version < 4 else changed.coordinators[0]
    assert (expected.host, expected.port) == ("local-a", 9093)
    if version == 4:
        assert changed.coordinators[1] == absent
    assert sent.groups == {"g"}


def test_versions_of_apis_with_addresses_are_limited_to_those_that_can_be_decoded() -> None:
    known = APIS[3].versions[-1]
    newest = {3: known + 5, 8: 99, 999: 1}
    keys = tuple(ApiVersion(api_key=key, min_version=0, max_version=last) for key, last in newest.items())
    sent, answered, frame = exchange(ApiVersionsRequest(), ApiVersionsResponse(api_keys=keys), 3)
    changed = read_response(sent, rewritten(answered, frame, moved), 0).body
    assert [each.max_version for each in changed.api_keys] == [known, 99, 1]
    assert limited(changed) is changed


def test_other_responses_are_passed_on_as_they_are() -> None:
    _, answered, frame = exchange(HEARTBEAT, HeartbeatResponse(), 4)
    assert rewritten(answered, frame, moved) is frame


def test_an_undecodable_message_is_shown_by_its_header() -> None:
    sent = read_request(request_header(999, 1, 7, "c") + b"xyz")
    assert (sent.api, sent.body) == ("api 999", None)
    assert "not known" in sent.problem
    answered = read_response(sent, (7).to_bytes(4, "big") + b"xyz", 0)
    assert "undecoded" in document(answered, 1, "", with_body=True)
    cut = read_request(request_frame(HEARTBEAT, 4)[:-3])
    assert cut.body is None
    frame = response_frame(3, MetadataResponse(), 12)[:-2]
    metadata = read_response(read_request(request_frame(MetadataRequest(topics=()), 12)), frame, 0)
    assert metadata.body is None
    assert rewritten(metadata, frame, moved) is frame


def test_a_response_out_of_order_and_a_frame_without_a_header_are_refused() -> None:
    sent = read_request(request_frame(HEARTBEAT, 4))
    with pytest.raises(DecodeError, match="request 8, where 7"):
        read_response(sent, response_frame(12, HeartbeatResponse(), 4, correlation=8), 0)
    with pytest.raises(DecodeError):
        read_request(b"\x00")


def test_a_produce_without_acks_has_no_response() -> None:
    assert not has_response(read_request(request_frame(ProduceRequest(acks=0, timeout_ms=1), 9)))
    assert has_response(read_request(request_frame(ProduceRequest(acks=1, timeout_ms=1), 9)))


@pytest.mark.parametrize(
    ("given", "matches"),
    [
        (Filter(), True),
        (Filter(apis=frozenset({"heartbeat"})), True),
        (Filter(apis=frozenset({"joingroup"})), False),
        (Filter(clients=frozenset({"c"}), groups=frozenset({"g"})), True),
        (Filter(clients=frozenset({"other"}), groups=frozenset({"g"})), False),
        (Filter(groups=frozenset({"other"})), False),
    ],
)
def test_filters(given: Filter, matches: bool) -> None:
    sent, answered, _ = exchange(HEARTBEAT, HeartbeatResponse(), 4)
    assert given.matches(sent) is matches
    assert given.matches(answered) is matches
