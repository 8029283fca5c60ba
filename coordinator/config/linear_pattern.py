"""Regular expressions whose matching takes a bounded time: an administrator writes them, any client is matched by them.

Laws
    LP1 Matching n characters takes at most n * POSITIONS_MAX steps, whatever the pattern and the text are.
    LP2 A pattern that is accepted matches what `re.fullmatch` matches.

What needs backtracking is refused: references to groups, lookaround, boundaries, possessive and atomic groups, and
anchors other than at both ends. A pattern becomes a position automaton (Glushkov), a set of positions one integer.
"""

from __future__ import annotations

import re
from typing import Final

from rota.protocol.dataclass import dataclass

POSITIONS_MAX: Final = 500  # characters and classes, those of a counted repetition as often as they are repeated
DEPTH_MAX: Final = 50  # of groups
PARTS_MAX: Final = 5_000  # built of one pattern, those without positions among them

_TOKEN: Final = re.compile(
    r"(?P<quantifier>(?:[*+?]|\{\d+(?:,\d*)?\}|\{,\d+\})[?+]?)"
    r"|(?P<open>\((?:\?:|(?!\?)))|(?P<close>\))|(?P<or>\|)"
    r"|(?P<leaf>\[\^?\]?(?:\\.|[^\]\\])*\]|\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|[dDsSwWafnrtv]|[^a-zA-Z0-9])"
    r"|[^\\()|*+?\[^$])",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of the pattern: whether it matches nothing at all, and its first and last positions."""

    is_nullable: bool
    first: int
    last: int


_EMPTY: Final = _Part(True, 0, 0)


class LinearPattern:
    """`LinearPattern("app-[0-9]+").fullmatch(text)`. Raises ValueError for a pattern that is invalid or not linear."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        re.compile(pattern)
        self._flags = re.IGNORECASE if pattern.startswith("(?i)") else re.NOFLAG
        body = pattern.removeprefix("(?i)").removeprefix("^")
        self._tokens = _tokens(body[:-1] if _ends_with_anchor(body) else body)
        self._leaves: list[re.Pattern[str]] = []
        self._follow: list[int] = []
        self._built = 0
        whole, end = self._branches(0, 0)
        if end != len(self._tokens):
            raise ValueError(pattern)
        self._whole = whole

    def fullmatch(self, text: str) -> bool:
        """Return whether the pattern matches all of the text."""
        if not text:
            return self._whole.is_nullable
        possible, here = self._whole.first, 0
        for character in text:
            here, following = 0, 0
            for position in _positions(possible):
                if self._leaves[position].fullmatch(character):
                    here |= 1 << position
                    following |= self._follow[position]
            possible = following
            if not here:
                return False
        return bool(here & self._whole.last)

    # ---- the automaton; each method takes the index of a token and returns that of the next one

    def _branches(self, index: int, depth: int) -> tuple[_Part, int]:
        if depth > DEPTH_MAX:
            raise ValueError(self.pattern)
        part, index = self._sequence(index, depth)
        while index < len(self._tokens) and self._tokens[index][0] == "or":
            other, index = self._sequence(index + 1, depth)
            part = _Part(part.is_nullable or other.is_nullable, part.first | other.first, part.last | other.last)
        return part, index

    def _sequence(self, index: int, depth: int) -> tuple[_Part, int]:
        part = _EMPTY
        while index < len(self._tokens) and self._tokens[index][0] in ("open", "leaf"):
            repeated, index = self._repeated(index, depth)
            part = self._joined(part, repeated)
        return part, index

    def _repeated(self, index: int, depth: int) -> tuple[_Part, int]:
        atom, end = self._atom(index, depth)
        if end == len(self._tokens) or self._tokens[end][0] != "quantifier":
            return atom, end
        least, most = _bounds(self._tokens[end][1])
        if most == 0:
            return _EMPTY, end + 1
        part = _Part(atom.is_nullable or least == 0, atom.first, atom.last)
        for number in range(1, max(least, most or 1)):
            atom = self._atom(index, depth)[0]
            part = self._joined(part, _Part(atom.is_nullable or number >= least, atom.first, atom.last))
        if most is None:
            self._connect(atom.last, atom.first)
        return part, end + 1

    def _atom(self, index: int, depth: int) -> tuple[_Part, int]:
        self._built += 1
        if self._built > PARTS_MAX:
            raise ValueError(self.pattern)
        kind, text = self._tokens[index]
        if kind == "leaf":
            return self._leaf(text), index + 1
        part, end = self._branches(index + 1, depth + 1)
        if end == len(self._tokens) or self._tokens[end][0] != "close":
            raise ValueError(self.pattern)
        return part, end + 1

    def _leaf(self, text: str) -> _Part:
        if len(self._leaves) == POSITIONS_MAX:
            raise ValueError(self.pattern)
        position = 1 << len(self._leaves)
        self._leaves.append(re.compile(text, self._flags))
        self._follow.append(0)
        return _Part(False, position, position)

    def _joined(self, left: _Part, right: _Part) -> _Part:
        self._connect(left.last, right.first)
        return _Part(
            left.is_nullable and right.is_nullable,
            left.first | right.first if left.is_nullable else left.first,
            left.last | right.last if right.is_nullable else right.last,
        )

    def _connect(self, last: int, first: int) -> None:
        for position in _positions(last):
            self._follow[position] |= first


def _tokens(pattern: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    end = 0
    while end < len(pattern):
        token = _TOKEN.match(pattern, end)
        if token is None:
            raise ValueError(pattern)
        assert token.lastgroup is not None
        found.append((token.lastgroup, token[0]))
        end = token.end()
    return found


def _ends_with_anchor(pattern: str) -> bool:
    escapes = len(pattern[:-1]) - len(pattern[:-1].rstrip("\\"))
    return pattern.endswith("$") and escapes % 2 == 0


def _bounds(quantifier: str) -> tuple[int, int | None]:
    if len(quantifier) > 1 and quantifier[-1] == "+":
        raise ValueError(quantifier)  # possessive
    text = quantifier[0] if quantifier[0] in "*+?" else quantifier.rstrip("?")[1:-1]
    if text in ("*", "+", "?"):
        return {"*": (0, None), "+": (1, None), "?": (0, 1)}[text]
    least, comma, most = text.partition(",")
    low = int(least or 0)
    return low, int(most) if most else None if comma else low


def _positions(members: int) -> list[int]:
    found = []
    while members:
        lowest = members & -members
        found.append(lowest.bit_length() - 1)
        members ^= lowest
    return found
