"""Counts the refused requests of a group, so that a client that repeats one does not fill the timeline.

Laws
    A refusal has an event at counts 1, 10, 100 and so on, and one with the last count at the end of the generation.
    Of one generation REFUSALS_MAX members and codes are counted apart; the others together, without a member.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rota.protocol.dataclass import dataclass
from rota.protocol.errors import ErrorCode
from rota.protocol.group_timeline import EventMember

REFUSALS_MAX: Final = 32
NO_MEMBER: Final = EventMember(member_id="")


@dataclass(slots=True)
class Refusal:
    """Requests that were refused in one generation for one reason. `event` is the note's."""

    event: str
    member: EventMember
    operation: str
    error: ErrorCode
    count: int = 0
    noted: int = 0  # the count in the last note
    reason: str = ""


class Refusals:
    """The refusals of the current generation."""

    __slots__ = ("_by_key",)

    def __init__(self) -> None:
        self._by_key: dict[tuple[str, str, ErrorCode], Refusal] = {}

    def add(self, event: str, member: EventMember, operation: str, error: ErrorCode) -> Refusal | None:
        """Count a refused request; return its refusal when it is to be noted."""
        key = (member.member_id or member.instance_id or member.client_id, operation, error)
        if key not in self._by_key and len(self._by_key) >= REFUSALS_MAX:
            member, key = NO_MEMBER, ("", operation, error)
        refusal = self._by_key.setdefault(key, Refusal(event, member, operation, error))
        refusal.count += 1
        if not _is_power_of_ten(refusal.count):
            return None
        refusal.noted = refusal.count
        return refusal

    def finish(self) -> Iterator[Refusal]:
        """Forget all; iterate over those whose last count was not noted."""
        finished, self._by_key = self._by_key, {}
        return (refusal for refusal in finished.values() if refusal.noted != refusal.count)


def _is_power_of_ten(count: int) -> bool:
    return str(count).strip("0") == "1"
