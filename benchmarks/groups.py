"""Groups from the outside: members that join, sync and stay, as raw requests."""

from __future__ import annotations

import select
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from benchmarks.wire import Wire
from rota.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from rota.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from rota.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse

JOIN_VERSION, SYNC_VERSION = 5, 3
SUBSCRIPTION = b"\0\0\0\0\0\1\0\1t\0\0\0\0"  # consumer protocol v0, topic "t"
ASSIGNMENT = bytes(10)
RETRY_S, RETRIES = 0.02, 500
RETRIABLE = {14, 15, 16, 27}
MEMBER_ID_REQUIRED = 79


def find_coordinator(address: str, group: str) -> str:
    """Asks until the broker has one (the first question creates the offsets topic)."""
    wire = Wire(address)
    try:
        for _ in range(RETRIES):
            found = wire.ask(FindCoordinatorRequest(key=group, key_type=0), 3, FindCoordinatorResponse)
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

    def ask_to_join(self) -> None:
        request = JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=45_000,
            rebalance_timeout_ms=60_000,
            member_id=self.member_id,
            protocol_type="consumer",
            protocols=(JoinGroupRequestProtocol(name="range", metadata=SUBSCRIPTION),),
        )
        self.wire.send(request, JOIN_VERSION)

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

    def ask_to_sync(self) -> None:
        shares = tuple(SyncGroupRequestAssignment(member_id=one, assignment=ASSIGNMENT) for one in self.others)
        request = SyncGroupRequest(
            group_id=self.group,
            generation_id=self.generation,
            member_id=self.member_id,
            assignments=shares if self.leads else (),
        )
        self.wire.send(request, SYNC_VERSION)

    def synced(self) -> bool:
        return not self.wire.receive(SyncGroupResponse, 14, SYNC_VERSION).error_code

    def settle(self) -> None:
        """Join and sync until both worked."""
        while True:
            self.ask_to_join()
            if self.joined():
                self.ask_to_sync()
                if self.synced():
                    return


def settled(address: str, group: str, count: int) -> list[Member]:
    """A group of that many members in one generation."""
    members = [Member(group, Wire(address)) for _ in range(count)]
    for member in members:  # each gets its id first
        member.ask_to_join()
    for member in members:
        member.joined()
    gather(members)
    for member in members:
        member.ask_to_sync()
    for member in members:
        assert member.synced()
    return members


def gather(members: Sequence[Member]) -> None:
    """Everybody joins, again and again, until the leader is told of all of them; all are in that generation then."""
    waiting: set[int] = set()
    final = -1
    while final < 0 or waiting:
        for number, member in sorted(enumerate(members), key=lambda one: not one[1].leads):
            if final < 0 and number not in waiting:
                member.ask_to_join()
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


def rebalance(members: Sequence[Member]) -> float:
    """The leader calls for a new generation; seconds until all are back, from the first of the others on."""
    (leader,) = [member for member in members if member.leads]
    old = leader.generation
    leader.ask_to_join()
    time.sleep(0.02)  # the broker has it before the others are timed
    began = time.perf_counter()
    followers = [member for member in members if member is not leader]
    for member in followers:
        member.ask_to_join()
    for member in (leader, *followers):
        assert member.joined()
        member.ask_to_sync()
    for member in members:
        assert member.synced()
    took = time.perf_counter() - began
    assert {member.generation for member in members} == {old + 1}
    return took


def hold(address: str, prefix: str, groups: int, lanes: int = 8) -> float:
    """That many one-member groups, joined and left standing; seconds."""
    began = time.perf_counter()

    def lane(first: int) -> None:
        wire = Wire(address)
        for number in range(first, groups, lanes):
            Member(f"{prefix}{number}", wire).settle()

    threads = [threading.Thread(target=lane, args=(first,)) for first in range(lanes)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.perf_counter() - began
