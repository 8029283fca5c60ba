"""The generator of the rows of joining groups: its ready-made frames are what the codecs write; it reads answers."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pytest
from benchmarks import groups
from benchmarks.brokers import PROPERTIES
from benchmarks.groups import Member, find_coordinator, first_join, hold, settled
from benchmarks.joining import Rejoining, broker_pids, take_spent, timed
from benchmarks.wire import Wire, frame

from rota.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from rota.testing import RunningBroker, running_broker

MEMBER, GENERATION = "bench-member", 7
MEMBER_ON_WIRE = struct.pack(">h", len(MEMBER)) + MEMBER.encode()


@pytest.fixture(scope="module")
def broker() -> Iterator[RunningBroker]:
    with running_broker(PROPERTIES) as running:
        yield running


def test_a_join_with_a_member_id_has_the_bytes_of_the_codec() -> None:
    written = frame(groups.join_request("group", MEMBER), groups.JOIN_VERSION)
    assert first_join("group").join_with(MEMBER_ON_WIRE) == written


def test_a_sync_of_a_first_member_has_the_bytes_of_the_codec() -> None:
    share = SyncGroupRequestAssignment(member_id=MEMBER, assignment=groups.ASSIGNMENT)
    request = SyncGroupRequest(group_id="group", generation_id=GENERATION, member_id=MEMBER, assignments=(share,))
    generation, assignment = struct.pack(">i", GENERATION), struct.pack(">i", len(groups.ASSIGNMENT))
    ready = first_join("group").sync_with(generation, MEMBER_ON_WIRE, assignment + groups.ASSIGNMENT)
    assert ready == frame(request, groups.SYNC_VERSION)


def test_an_answer_in_parts_is_whole_with_its_last_byte_and_its_generation_is_put_into_the_sync() -> None:
    wire = Wire.__new__(Wire)
    wire.socket = None  # type: ignore[assignment]  # nothing is sent
    rejoining = Member("group", wire, MEMBER, GENERATION).rejoining(())
    answer = struct.pack(">iiihi", 18, 1, 0, 0, GENERATION + 1) + bytes(4)
    assert not rejoining.take(answer[:3])
    assert not rejoining.take(answer[3:-1])
    assert rejoining.take(answer[-1:])
    request = SyncGroupRequest(group_id="group", generation_id=GENERATION + 1, member_id=MEMBER)
    assert bytes(rejoining.sync) == frame(request, groups.SYNC_VERSION)


def test_a_refused_member_ends_the_measurement() -> None:
    rejoining = Rejoining(None, b"", bytearray(4), 0)  # type: ignore[arg-type]  # nothing is sent
    with pytest.raises(AssertionError, match="error 25"):
        rejoining.take(struct.pack(">iiihi", 14, 1, 0, 25, -1))


def test_each_held_group_is_stable_with_one_member(broker: RunningBroker) -> None:
    address = find_coordinator(broker.bootstrap_servers, "held")
    for member in settled(address, "held", 1):
        member.wire.close()
    assert hold(address, "held-", 20, lanes=3) > 0
    for number in range(20):
        described = broker.group(f"held-{number}").describe()
        assert (described["state"], len(described["members"])) == ("Stable", 1)


def test_a_timed_section_counts_this_process_and_the_known_broker() -> None:
    with timed("nowhere:1"):
        sum(range(100_000))
    spent = take_spent("nowhere:1")
    assert spent.generator_s > 0
    assert spent.wall_s > 0
    assert spent.broker_s == 0
    assert take_spent("nowhere:1").wall_s == 0
    assert "nowhere:1" not in broker_pids
