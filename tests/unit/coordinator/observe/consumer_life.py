"""A conversation with a group of the consumer protocol whose notes go into a timeline, with times of the conversation.

A member has the client id that its id begins with: `b-1` and `b-2` are two lives of the client `b`.
"""

from __future__ import annotations

from typing import Any

from tests.unit.coordinator.consumer_group.mixed_script import MixedScript
from tests.unit.coordinator.consumer_group.script import TopicsInMemory, named

from rota.coordinator.consumer_group.events import HeartbeatReply
from rota.coordinator.group.timeline_event import event_of
from rota.coordinator.observe.finding import Finding
from rota.coordinator.observe.health import findings
from rota.coordinator.observe.rebalances import Rebalance, rebalances
from rota.coordinator.observe.timeline import Timelines
from rota.protocol.errors import ErrorCode
from rota.protocol.group_timeline import GroupEvent, decode_value, encode_value

START_MS = 1_700_000_000_000
HEARTBEAT_MS = 5_000


class ConsumerLife:
    """One group with members that revoke at once, unless a test lets them not."""

    def __init__(self, partitions: int = 4, **script: Any) -> None:
        self.script = MixedScript(TopicsInMemory(t=partitions), **script)
        self.timelines = Timelines()
        self.epochs: dict[str, int] = {}
        self.owned: dict[str, set[int]] = {}  # what a member works on
        self.given: dict[str, set[int]] = {}  # its assignment in the last answer that had one

    @property
    def events(self) -> tuple[GroupEvent, ...]:
        """The events so far, read back from their bytes."""
        for note in self.script.written:
            event = event_of(note, START_MS + self.script.now_ms, 1)
            if event is not None:
                self.timelines.add("g", event)
        self.script.written.clear()
        return tuple(decode_value(encode_value(event)) for event in self.timelines.of("g"))

    @property
    def rebalances(self) -> tuple[Rebalance, ...]:
        return rebalances(self.events)

    def found(self) -> dict[str, Finding]:
        return {each.code: each for each in findings(self.events, None, START_MS + self.script.now_ms + 1)}

    def after(self, ms: int) -> ConsumerLife:
        assert self.events is not None  # those until now have the time of now
        self.script.advance(ms)
        return self

    def joins(self, member: str, **more: Any) -> ErrorCode:
        """Join; the member knows its epoch and its partitions when it was not refused."""
        reply = self.script.join(member, "t", **_client(member), **more)
        self._learn(member, reply)
        self.owned[member] = self.given.get(member, set())
        return reply.error

    def heartbeats(self, *members: str, revokes: bool = True) -> ConsumerLife:
        """Send a heartbeat of each member; a member that revokes says so at once."""
        for member in members:
            if revokes:
                self.owned[member] &= self.given[member]
            owned = {"t": sorted(self.owned[member])} if self.owned[member] else {}
            reply = self.script.heartbeat(member, self.epochs[member], **_client(member), owned=owned)
            self._learn(member, reply)
            if not self.owned[member] <= self.given[member]:
                self.heartbeats(*([member] if revokes else []))
            else:
                self.owned[member] = self.given[member]
        return self

    def live(self, ms: int, *members: str) -> ConsumerLife:
        """Let time pass in which these members send their heartbeats."""
        for _ in range(ms // HEARTBEAT_MS):
            self.after(HEARTBEAT_MS).heartbeats(*members)
        return self

    def leaves(self, member: str, epoch: int = -1, **more: Any) -> ConsumerLife:
        self.script.leave(member, epoch, **_client(member), **more)
        return self

    def restarts(self) -> ConsumerLife:
        """Another coordinator loads the group."""
        assert self.events is not None  # those of the one before
        self.script = self.script.restarted()
        return self

    def _learn(self, member: str, reply: HeartbeatReply) -> None:
        if reply.error is ErrorCode.NONE:
            self.epochs[member] = reply.member_epoch
            if reply.assignment is not None:
                self.given[member] = (named(reply) or {}).get("t", set())


def _client(member: str) -> dict[str, str]:
    client = member.split("-")[0]
    return {"client": client, "host": f"/10.0.0.{ord(client[0]) - ord('a') + 1}"}


def of_one(**more: Any) -> ConsumerLife:
    """A member with all partitions."""
    life = ConsumerLife(**more)
    assert life.joins("a-1") is ErrorCode.NONE
    return life
