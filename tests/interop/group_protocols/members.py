"""The members of a run of mixed protocols, and the names that all runs share."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.interop.differential.canonical import Labels
from tests.interop.differential.wire import Wire

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$|^[A-Za-z0-9_-]{22}$")


class Names(Labels):
    """As `Labels`, with lists in one order, and the ids that a broker drew by the slot that got them."""

    def __init__(self, run: str) -> None:
        super().__init__(run)
        self.drawn: dict[str, str] = {}

    def __getitem__(self, name: str) -> str:
        if name in self.drawn:
            return self.drawn[name]
        return "drawn" if UUID.search(name) else name.replace(self._run, "")

    def canonical(self, thing: Any) -> Any:
        if isinstance(thing, bytes):
            return thing.hex().replace(self._run.encode().hex(), "")
        listed = super().canonical(thing)
        return sorted(listed, key=json.dumps) if isinstance(listed, list) else listed


@dataclass(eq=False)
class Slot:
    """One client, as it sees itself. `mode` is out, consumer or classic."""

    number: int
    client_id: str
    wire: Wire
    instance: str | None
    mode: str = "out"
    member_id: str = ""
    epoch: int = 0
    owned: dict[str, tuple[int, ...]] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    joins: int = 0

    def leave(self) -> None:
        self.mode, self.owned, self.epoch = "out", {}, 0

    def new_id(self) -> str:
        """An id that it chooses; ids of one client are in the order of its joins."""
        self.joins += 1
        self.wire.client_id = f"{self.client_id}.{self.joins:03}"
        return f"{self.wire.client_id}.own"


@dataclass(eq=False)
class Group:
    """One group after the other, each with a life of a limited number of requests."""

    run: str
    open_wire: Callable[[str], Wire]
    slots: list[Slot] = field(default_factory=list)
    number: int = 0
    requests: int = 0
    regex: str = ""

    @property
    def group_id(self) -> str:
        return f"{self.run}g{self.number:03}"

    def begin(self) -> None:
        """Go on with a new group, and clients that know nothing."""
        for slot in self.slots:
            slot.wire.close()
        self.number, self.requests = self.number + 1, 0
        self.slots = []
        for number in range(5):
            client_id = f"{self.run}s{number}"
            instance = f"i{number}" if number in (1, 3) else None
            self.slots.append(Slot(number, client_id, self.open_wire(client_id), instance))
