"""Assertions about a consumer group that wait with a deadline, and faults of its members."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from rota.testing.errors import NotInTime

WITHIN_S: Final = 10.0
POLL_S: Final = 0.005

TopicPartition = tuple[str, int]
Assignment = dict[str, list[TopicPartition]]  # by client id; by member id where two members have the same


class GroupUnderTest:
    """A group as the broker has it, not as a client believes."""

    def __init__(self, group_id: str, call: Callable[..., Any], within_s: float = WITHIN_S) -> None:
        self.group_id, self._call, self._within_s = group_id, call, within_s

    def describe(self) -> dict[str, Any]:
        """State, generation, members with their assignments, and committed offsets, as plain values."""
        described: dict[str, Any] = self._call("group", group=self.group_id)
        return described

    def settled(self, members: int | None = None, *, after: int = -1) -> Assignment:
        """Wait until the group is Stable and every SyncGroup is answered; return who owns what.

        `members` is how many there have to be, None any number but none. `after` is a generation: wait for a later one.
        Raises NotInTime.
        """

        def is_settled(group: dict[str, Any]) -> bool:
            count = len(group["members"])
            enough = count > 0 if members is None else count == members
            return group["state"] == "Stable" and enough and group["generation"] > after

        return _assignment(self._wait(is_settled, f"a stable group of {'any' if members is None else members} members"))

    def empty(self) -> None:
        """Wait until the group has no members. Raises NotInTime."""
        self._wait(lambda group: not group["members"] and group["state"] in ("Empty", "Dead"), "an empty group")

    @property
    def generation(self) -> int:
        """The generation now; -1 for a group that is not there."""
        generation: int = self.describe()["generation"]
        return generation

    def committed(self, expected: Mapping[TopicPartition, int] | None = None) -> dict[TopicPartition, int]:
        """Return the committed offsets; with `expected`, wait until exactly these are committed. Raises NotInTime."""
        if expected is None:
            return _offsets(self.describe())
        return _offsets(self._wait(lambda group: _offsets(group) == dict(expected), f"the offsets {dict(expected)}"))

    def timeline(self) -> list[dict[str, Any]]:
        """Return the events of the group as in docs/TIMELINE.md, oldest first, each with `name` and `sentence`."""
        lines: list[dict[str, Any]] = self._call("timeline", group=self.group_id)
        return lines

    def why(self) -> list[str]:
        """Return what the last rebalance was about, in sentences; none when there was none."""
        lines: list[str] = self._call("why", group=self.group_id)
        return lines

    def rebalance(self) -> None:
        """Begin a rebalance now. Raises CommandRefused for a group without members."""
        self._call("rebalance", group=self.group_id)

    def expire(self, member: str) -> None:
        """Remove a member as if its session had timed out: a client id, a member id or an instance id."""
        self._call("expire_member", group=self.group_id, member=member)

    def _wait(self, condition: Callable[[dict[str, Any]], bool], what: str) -> dict[str, Any]:
        deadline_s = time.monotonic() + self._within_s
        while not condition(group := self.describe()):
            _refuse_on_a_loop()
            if time.monotonic() > deadline_s:
                events = [event["name"] for event in self.timeline()[-5:]]
                shown = json.dumps(group, indent=2)
                raise NotInTime(f"{self.group_id}: no {what} within {self._within_s} s, but {shown}\nlast: {events}")
            time.sleep(POLL_S)
        return group


def _refuse_on_a_loop() -> None:
    """Raise RuntimeError where waiting would block an event loop, and with it the clients that are waited for."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise RuntimeError("this would block the event loop: await asyncio.to_thread(group.settled, 2)")


def _assignment(group: dict[str, Any]) -> Assignment:
    clients = [member["client_id"] for member in group["members"]]
    return {
        member["client_id"] if clients.count(member["client_id"]) == 1 else member["member_id"]: [
            (topic, partition) for topic, partitions in member["assignment"].items() for partition in partitions
        ]
        for member in group["members"]
    }


def _offsets(group: dict[str, Any]) -> dict[TopicPartition, int]:
    return {
        (topic, int(partition)): offset
        for topic, partitions in group["offsets"].items()
        for partition, offset in partitions.items()
    }
