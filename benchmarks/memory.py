"""Memory of idle connections and of groups: `python -m benchmarks.memory [--connections 5000] [--groups 100000]`.

A broker of its own takes so many connections, each of which has asked for ApiVersions once, and then so many groups
with one member each, joined and left standing, by pipelined requests. Printed is how much its resident memory grows.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence

from benchmarks.brokers import Running, rota
from benchmarks.check import cpu_s
from benchmarks.groups import ASSIGNMENT, SUBSCRIPTION, SYNC_VERSION, find_coordinator
from benchmarks.joining import RETRIABLE
from benchmarks.wire import Wire
from rota.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from rota.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from rota.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse

JOIN_VERSION = 3  # the last in which a member without an id is not sent back for one
SESSION_MS = 1_800_000  # no member is removed meanwhile
AT_ONCE = 64
FIRST_CONNECTIONS = 50  # do not count
CONNECTION_KB, GROUPS_GB = 5.0, 1.0  # the goals


def connection_kb(broker: Running, count: int) -> float:
    """KB of one of so many idle connections, without what the first ones load and allocate."""
    wires = idle_wires(broker.address, FIRST_CONNECTIONS)
    before = broker.memory_mb()
    wires += idle_wires(broker.address, count)
    grown = broker.memory_mb() - before
    for wire in wires:
        wire.close()
    return grown * 1024 / count


def idle_wires(address: str, count: int) -> list[Wire]:
    wires = [Wire(address) for _ in range(count)]
    for wire in wires:
        wire.send_request(ApiVersionsRequest(), 0, ApiVersionsResponse)
    return wires


def join_groups(address: str, count: int) -> None:
    """Join one member to each of so many groups."""
    wire = Wire(find_coordinator(address, "joined"))
    for first in range(0, count, AT_ONCE):
        left: Sequence[str] = [f"joined-{number}" for number in range(first, min(first + AT_ONCE, count))]
        while left:
            left = _join(wire, left)
    wire.close()


def _join(wire: Wire, groups: Sequence[str]) -> list[str]:
    """Return the groups whose coordinator is still loading."""
    protocol = JoinGroupRequestProtocol(name="range", metadata=SUBSCRIPTION)
    for group in groups:
        request = JoinGroupRequest(
            group_id=group,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=60_000,
            member_id="",
            protocol_type="consumer",
            protocols=(protocol,),
        )
        wire.send(request, JOIN_VERSION)
    answers = [wire.receive(JoinGroupResponse, JoinGroupRequest.KEY, JOIN_VERSION) for _ in groups]
    assert {answer.error_code for answer in answers} <= {0, *RETRIABLE}
    joined = [(group, answer) for group, answer in zip(groups, answers, strict=True) if not answer.error_code]
    for group, answer in joined:
        share = SyncGroupRequestAssignment(member_id=answer.member_id, assignment=ASSIGNMENT)
        sync = SyncGroupRequest(
            group_id=group, generation_id=answer.generation_id, member_id=answer.member_id, assignments=(share,)
        )
        wire.send(sync, SYNC_VERSION)
    for _ in joined:
        assert not wire.receive(SyncGroupResponse, SyncGroupRequest.KEY, SYNC_VERSION).error_code
    return [group for group, answer in zip(groups, answers, strict=True) if answer.error_code]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--connections", type=int, default=5_000)
    parser.add_argument("--groups", type=int, default=100_000)
    options = parser.parse_args()
    with rota() as broker:
        idle_mb = broker.memory_mb()
        each = connection_kb(broker, options.connections)
        print(f"idle: {idle_mb:.1f} MB; one of {options.connections:,} idle connections: {each:.1f} KB", end=" ")
        print(f"(goal: under {CONNECTION_KB:.0f})", flush=True)
    with rota() as broker:
        idle_mb, idle_s, began = broker.memory_mb(), cpu_s(broker.pid), time.perf_counter()
        join_groups(broker.address, options.groups)
        took_s, grown_mb = time.perf_counter() - began, broker.memory_mb() - idle_mb
        used_us = (cpu_s(broker.pid) - idle_s) / options.groups * 1e6
        print(f"{options.groups:,} groups with a member: {broker.memory_mb():.0f} MB", end=" ")
        print(f"(goal: under {GROUPS_GB:.0f} GB for 100,000), {grown_mb * 1024 / options.groups:.1f} KB each,", end=" ")
        print(f"joined in {took_s:.0f} s, {used_us:.0f} us of processor time a group")


if __name__ == "__main__":
    main()
