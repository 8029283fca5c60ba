"""The characters of regular expressions: sets of those that a topic name can have, or tests of any character.

A class is whatever has `in`. `RegexCharacters` makes the classes of an expression: `NameCharacters` for names of
topics, `TextCharacters` for any text.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import Any, Final, Protocol

from rota.protocol.dataclass import dataclass

NAME_CHARACTERS: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")
WORD: Final = frozenset(NAME_CHARACTERS - set(".-"))
DIGITS: Final = frozenset("0123456789")
_UPPER: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
_LOWER: Final = frozenset("abcdefghijklmnopqrstuvwxyz")
_PUNCTUATION: Final = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
_ASCII: Final = frozenset(map(chr, range(128)))
PERL: Final = {"d": DIGITS, "w": WORD, "s": frozenset("\t\n\f\r ")}
POSIX: Final = {
    "alnum": _UPPER | _LOWER | DIGITS,
    "alpha": _UPPER | _LOWER,
    "ascii": _ASCII,
    "blank": frozenset("\t "),
    "cntrl": frozenset(map(chr, (*range(32), 127))),
    "digit": DIGITS,
    "graph": _UPPER | _LOWER | DIGITS | _PUNCTUATION,
    "lower": _LOWER,
    "print": _UPPER | _LOWER | DIGITS | _PUNCTUATION | {" "},
    "punct": _PUNCTUATION,
    "space": frozenset("\t\n\v\f\r "),
    "upper": _UPPER,
    "word": WORD,
    "xdigit": frozenset("0123456789abcdefABCDEF"),
}
UNICODE: Final = {  # the classes of names
    "L": _UPPER | _LOWER,
    "Lu": _UPPER,
    "Ll": _LOWER,
    "Latin": _UPPER | _LOWER,
    "N": DIGITS,
    "Nd": DIGITS,
    "P": frozenset("._-"),
    "Pd": frozenset("-"),
    "Pc": frozenset("_"),
    "Po": frozenset("."),
    "Any": NAME_CHARACTERS,
}
CATEGORIES: Final = frozenset(  # Unicode's general categories, with one letter those that begin with it
    {
        *("C", "Cc", "Cf", "Co", "Cs", "L", "Ll", "Lm", "Lo", "Lt", "Lu", "M", "Mc", "Me", "Mn", "N", "Nd", "Nl", "No"),
        *("P", "Pc", "Pd", "Pe", "Pf", "Pi", "Po", "Ps", "S", "Sc", "Sk", "Sm", "So", "Z", "Zl", "Zp", "Zs"),
    }
)

Chars = Container[str]


class RegexCharacters(Protocol):
    """Makes the classes of one expression."""

    def dot(self, *, takes_newline: bool) -> Chars:
        """Return the class of `.`."""

    def one(self, char: str) -> Chars:
        """Return the class of one character."""

    def span(self, low: str, high: str) -> Chars:
        """Return the class of the characters between these, and both."""

    def ascii(self, chars: frozenset[str]) -> Chars:
        """Return the class of these characters of ASCII."""

    def unicode(self, name: str) -> Chars | None:
        """Return a class of Unicode; None for a name that is not supported."""

    def union(self, items: Sequence[Any]) -> Chars:
        """Return the class of the characters of any of these classes."""

    def complement(self, chars: Any) -> Chars:
        """Return the class of all other characters."""

    def fold(self, chars: Any) -> Chars:
        """Return the class of these characters in lower and upper case."""

    def known(self, chars: Any) -> Chars:
        """Return the class without characters that no text has."""

    def weight(self, chars: Any) -> int:
        """Return the work of one look whether a character is in the class, beyond that of an instruction."""


class NameCharacters:
    """Classes are sets of NAME_CHARACTERS: an expression is matched with many names."""

    def dot(self, *, takes_newline: bool) -> frozenset[str]:
        return NAME_CHARACTERS

    def one(self, char: str) -> frozenset[str]:
        return frozenset(char)

    def span(self, low: str, high: str) -> frozenset[str]:
        return frozenset(char for char in NAME_CHARACTERS if low <= char <= high)

    def ascii(self, chars: frozenset[str]) -> frozenset[str]:
        return chars & NAME_CHARACTERS

    def unicode(self, name: str) -> frozenset[str] | None:
        return UNICODE.get(name)

    def union(self, items: Sequence[frozenset[str]]) -> frozenset[str]:
        return frozenset().union(*items)

    def complement(self, chars: frozenset[str]) -> frozenset[str]:
        return NAME_CHARACTERS - chars

    def fold(self, chars: frozenset[str]) -> frozenset[str]:
        return frozenset(each for char in chars for each in cases(char))

    def known(self, chars: frozenset[str]) -> frozenset[str]:
        return chars if chars <= NAME_CHARACTERS else chars & NAME_CHARACTERS

    def weight(self, chars: frozenset[str]) -> int:
        return 0


@dataclass(frozen=True, slots=True)
class CharacterTest:
    """A class of any characters. `weight` counts the comparisons of one look."""

    holds: Callable[[str], bool]
    weight: int = 1

    def __contains__(self, char: object) -> bool:
        return isinstance(char, str) and self.holds(char)


class TextCharacters:
    """Classes are tests: a text may have any character."""

    def dot(self, *, takes_newline: bool) -> CharacterTest:
        return CharacterTest(lambda char: takes_newline or char != "\n")

    def one(self, char: str) -> CharacterTest:
        return CharacterTest(lambda other: other == char)

    def span(self, low: str, high: str) -> CharacterTest:
        return CharacterTest(lambda char: low <= char <= high)

    def ascii(self, chars: frozenset[str]) -> CharacterTest:
        return CharacterTest(lambda char: char in chars)

    def unicode(self, name: str) -> CharacterTest | None:
        if name == "Any":
            return CharacterTest(lambda char: True)
        if name not in CATEGORIES:
            return None
        from unicodedata import category  # tables that few brokers need

        return CharacterTest(lambda char: category(char).startswith(name))

    def union(self, items: Sequence[CharacterTest]) -> CharacterTest:
        if len(items) == 1:
            return items[0]
        return CharacterTest(lambda char: any(char in item for item in items), sum(item.weight for item in items))

    def complement(self, chars: CharacterTest) -> CharacterTest:
        return CharacterTest(lambda char: char not in chars, chars.weight)

    def fold(self, chars: CharacterTest) -> CharacterTest:
        return CharacterTest(lambda char: any(each in chars for each in cases(char)), 4 * chars.weight)

    def known(self, chars: CharacterTest) -> CharacterTest:
        return chars

    def weight(self, chars: CharacterTest) -> int:
        return chars.weight


def cases(char: str) -> set[str]:
    """Return a character and all that it is equal to without regard to case, as RE2 does: a k is three characters."""
    base = _base(char)
    if char in _OWN_CASE:
        return {char}
    return {char, base, _one(base.upper(), base), *_FURTHER.get(base, ())}


def _one(text: str, char: str) -> str:
    """Return `text`, or `char` where the other case is not one character."""
    return text if len(text) == 1 else char


def _base(char: str) -> str:
    upper = _one(char.upper(), char)
    return _one(upper.lower(), upper)


_OWN_CASE: Final = "\u0130\u0131"  # an I with a dot, an i without one
_FURTHER: Final[dict[str, list[str]]] = {}  # by the base: what is neither its lower nor its upper case
_THIRD_CASES: Final = (
    "\u00b5\u017f\u01c5\u01c8\u01cb\u01f2\u0345\u03c2\u03d0\u03d1\u03d5\u03d6"
    "\u03f0\u03f1\u03f4\u03f5\u1e9e\u1fbe\u2126\u212a\u212b"
)
for _char in _THIRD_CASES:
    _FURTHER.setdefault(_base(_char), []).append(_char)


NAMES: Final = NameCharacters()
TEXT: Final = TextCharacters()
