"""Who takes part: groups, and in each some slots, every one a client with a connection of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.interop.differential.wire import Wire

GROUPS = ((3, {2}), (4, {2, 3}), (5, {4}), (3, set()))  # members, and which of them are static


@dataclass(slots=True, eq=False)
class Slot:
    """One client. `member_id` is what it believes to be; `old_ids` what it was before."""

    number: int
    client_id: str
    instance: str | None
    wire: Wire
    member_id: str = ""
    generation: int = -1
    protocol: str | None = None
    roster: tuple[str, ...] = ()  # ids of all members, when it leads
    old_ids: list[str] = field(default_factory=list)
    phase: str = "out"  # out: must join · joined: must sync · in
    sent: Any = None  # the request under way
    bound: bool = True  # whether its answer tells this slot who it is

    @property
    def parked(self) -> bool:
        return self.wire.waits

    def forget(self) -> None:
        """As a process that has restarted."""
        if self.member_id:
            self.old_ids.append(self.member_id)
        self.member_id, self.generation, self.protocol, self.roster, self.phase = "", -1, None, (), "out"


@dataclass(slots=True, eq=False)
class Circle:
    """One group and its slots. A group whose leader was anybody's guess is given up for the next `incarnation`."""

    number: int
    run: str
    slots: list[Slot]
    visitor: Wire
    incarnation: int = 0
    issued: list[str] = field(default_factory=list)  # every member id that the broker gave
    leader: str | None = None  # label of the last leader
    left: set[str] = field(default_factory=set)  # labels, and instances, that were sent away

    @property
    def group_id(self) -> str:
        return f"{self.run}g{self.number}.{self.incarnation}"


def circles(run: str, connect: Callable[[str], Wire]) -> list[Circle]:
    """The clients of one run: the same on every broker."""
    made, number = [], 0
    for index, (members, static) in enumerate(GROUPS):
        slots = []
        for member in range(members):
            instance = f"{run}i{number}" if member in static else None
            slots.append(Slot(number, f"c{number}", instance, connect(f"c{number}")))
            number += 1
        made.append(Circle(index, run, slots, connect(f"visitor{index}")))
    return made
