"""Groups from the outside: members that join, sync and stay, as raw requests."""

from __future__ import annotations

import select
import struct
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from benchmarks.joining import (
    LENGTH,
    MEMBER_ID_REQUIRED,
    RETRIABLE,
    FirstJoin,
    LoadConnection,
    Rejoining,
    join_all,
    rejoin,
)
from benchmarks.wire import CLIENT, Wire, frame
from rota.protocol.header import request_header
from rota.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from rota.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from rota.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse

JOIN_VERSION, SYNC_VERSION = 5, 3
SUBSCRIPTION = b"\0\0\0\0\0\1\0\1t\0\0\0\0"  # consumer protocol v0, topic "t"
ASSIGNMENT = bytes(10)
RETRY_S, RETRIES = 0.02, 500
MARK = "of a member whose id is not known yet"


def join_request(group: str, member_id: str) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=group,
        session_timeout_ms=45_000,
        rebalance_timeout_ms=60_000,
        member_id=member_id,
        protocol_type="consumer",
        protocols=(JoinGroupRequestProtocol(name="range", metadata=SUBSCRIPTION),),
    )


def generation_position(group: str) -> int:
    """Return where the generation is in the frame of a SyncGroup."""
    header = request_header(SyncGroupRequest.KEY, SYNC_VERSION, 1, CLIENT)
    return LENGTH.size + len(header) + len(_text(group))


def find_coordinator(address: str, group: str) -> str:
    """Asks until the broker has one (the first question creates the offsets topic)."""
    wire = Wire(address)
    try:
        for _ in range(RETRIES):
            found = wire.send_request(FindCoordinatorRequest(key=group, key_type=0), 3, FindCoordinatorResponse)
            if not found.error_code:
                return f"{found.host}:{found.port}"
            time.sleep(RETRY_S)
    finally:
        wire.close()
    raise TimeoutError(f"{address} has no coordinator for {group}")


@dataclass(slots=True)
class Member:
    """One member on its own connection."""

    group: str
    wire: Wire
    member_id: str = ""
    generation: int = -1
    leads: bool = False
    others: tuple[str, ...] = field(default=())

    def send_join(self) -> None:
        self.wire.send(join_request(self.group, self.member_id), JOIN_VERSION)

    def joined(self) -> bool:
        """Read the answer to a join; False when it has to be arguments again."""
        answer = self.wire.receive(JoinGroupResponse, 11, JOIN_VERSION)
        if answer.error_code == MEMBER_ID_REQUIRED:
            self.member_id = answer.member_id
            return False
        if answer.error_code in RETRIABLE:
            time.sleep(RETRY_S)
            return False
        assert not answer.error_code, f"JoinGroup: error {answer.error_code}"
        self.member_id, self.generation = answer.member_id, answer.generation_id
        self.leads = answer.leader == answer.member_id
        self.others = tuple(one.member_id for one in answer.members)
        return True

    def send_sync(self) -> None:
        self.wire.send(self.sync_request(self.others if self.leads else ()), SYNC_VERSION)

    def sync_request(self, others: Iterable[str]) -> SyncGroupRequest:
        """Return a SyncGroup that gives a share to each of `others`."""
        shares = tuple(SyncGroupRequestAssignment(member_id=one, assignment=ASSIGNMENT) for one in others)
        return SyncGroupRequest(
            group_id=self.group, generation_id=self.generation, member_id=self.member_id, assignments=shares
        )

    def rejoining(self, members: Sequence[Member]) -> Rejoining:
        """Return the frames of its next rejoin, as one of these members."""
        request = self.sync_request([member.member_id for member in members] if self.leads else ())
        sync, generation_at = bytearray(frame(request, SYNC_VERSION)), generation_position(self.group)
        assert struct.unpack_from(">i", sync, generation_at) == (self.generation,)
        join = frame(join_request(self.group, self.member_id), JOIN_VERSION)
        return Rejoining(self.wire.socket, join, sync, generation_at)

    def synced(self) -> bool:
        return not self.wire.receive(SyncGroupResponse, 14, SYNC_VERSION).error_code

    def settle(self) -> None:
        """Join and sync until both worked."""
        while True:
            self.send_join()
            if self.joined():
                self.send_sync()
                if self.synced():
                    return


def settled(address: str, group: str, count: int) -> list[Member]:
    """A group of that many members in one generation."""
    members = [Member(group, Wire(address)) for _ in range(count)]
    for member in members:  # each gets its id first
        member.send_join()
    for member in members:
        member.joined()
    gather(members)
    for member in members:
        member.send_sync()
    for member in members:
        assert member.synced()
    return members


def gather(members: Sequence[Member]) -> None:
    """All members join again until the leader gets all of them; all are in that generation then."""
    waiting: set[int] = set()
    final = -1
    while final < 0 or waiting:
        for number, member in sorted(enumerate(members), key=lambda one: not one[1].leads):
            if final < 0 and number not in waiting:
                member.send_join()
                waiting.add(number)
        for number in answered(members, waiting):
            waiting.discard(number)
            member = members[number]
            if member.joined() and member.leads and len(member.others) == len(members):
                final = member.generation
    assert {member.generation for member in members} == {final}


def answered(members: Sequence[Member], waiting: Iterable[int]) -> list[int]:
    """Which of the waiting ones have an answer; `select` would end at 1,024 sockets."""
    poller, numbers = select.poll(), {}
    for number in waiting:
        numbers[members[number].wire.socket.fileno()] = number
        poller.register(members[number].wire.socket, select.POLLIN)
    return [numbers[descriptor] for descriptor, _ in poller.poll(RETRY_S * 1000)]


def rebalance(members: Sequence[Member], address: str = "") -> float:
    """The leader calls for a new generation; seconds until all are back, from the first of the others on."""
    (leader,) = [member for member in members if member.leads]
    old = leader.generation
    others = [member for member in members if member is not leader]
    first, *rest = [member.rejoining(members) for member in (leader, *others)]
    took = rejoin(first, rest, address)
    for member, back in zip((leader, *others), (first, *rest), strict=True):
        member.generation = back.generation
    assert {member.generation for member in members} == {old + 1}
    return took


def hold(address: str, prefix: str, groups: int, lanes: int = 8) -> float:
    """That many one-member groups, joined and left standing; seconds."""
    firsts = [first_join(f"{prefix}{number}") for number in range(groups)]
    wires = [Wire(address) for _ in range(lanes)]
    assignment = struct.pack(">i", len(ASSIGNMENT)) + ASSIGNMENT
    took = join_all(
        [LoadConnection(wire.socket, iter(firsts[at::lanes]), assignment) for at, wire in enumerate(wires)], address
    )
    for wire in wires:
        wire.close()
    return took


def first_join(group: str) -> FirstJoin:
    """Return the frames of the first member of a group, cut at what is not known yet."""
    join = frame(join_request(group, ""), JOIN_VERSION)
    # a member id with a mark, of which the place is found again
    before, after = frame(join_request(group, MARK), JOIN_VERSION)[LENGTH.size :].split(_text(MARK))
    share = SyncGroupRequestAssignment(member_id="", assignment=b"")
    request = SyncGroupRequest(group_id=group, generation_id=0, member_id=MARK, assignments=(share,))
    until_id, rest = frame(request, SYNC_VERSION)[LENGTH.size :].split(_text(MARK))
    share_bytes = len(_text("")) + LENGTH.size  # an empty member id and an empty assignment
    return FirstJoin(join, before, after, until_id[: -LENGTH.size], rest[:-share_bytes])


def _text(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode()
