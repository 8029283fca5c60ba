"""Names that a request repeats: each costs a few bytes there, and may be much work or a large part of the response.

Law
    W5  What a request repeats is answered REPEATS_MAX times more; the other repetitions get INVALID_REQUEST. So a
        response is bounded by what there is to describe, and a Produce by the partitions that there are.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

REPEATS_MAX: Final = 100  # in one request, of all names together; no client repeats any


class Repeats:
    """The names of one request."""

    __slots__ = ("_left", "_seen")

    def __init__(self) -> None:
        self._seen: set[Hashable] = set()
        self._left = REPEATS_MAX

    def is_refused(self, name: Hashable) -> bool:
        """Return whether this is one repetition too many. Call it once for each name, in their order."""
        if name not in self._seen:
            self._seen.add(name)
            return False
        self._left -= 1
        return self._left < 0
