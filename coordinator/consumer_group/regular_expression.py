"""Regular expressions of RE2's syntax, matched with whole names. ADR 10 says why they are our own.

Laws
    RX1 The time to match is at most a constant of the expression times the length of the name: states are simulated, as
        in RE2, and nothing is tried twice. Compiling is bounded by INSTRUCTIONS_MAX and NESTING_MAX: every node of the
        parser adds an instruction for each copy of it. A match is bounded by NAME_WORK_MAX.
    RX2 What RE2 refuses is refused: back references, lookaround, `**`, repetitions above 1,000. Unicode classes beyond
        those of ASCII letters, digits and punctuation are refused although RE2 has them.
    RX4 What RE2/J takes otherwise than RE2 is taken as it does, and what is wrong has its text.
    A topic name has only characters of NAME_CHARACTERS, so that a class is a set of these; for other texts it is a test
    of one character (`characters`), whose comparisons are counted as work.

The file is longer than 400 lines because parser, program and matcher are read together.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import field
from typing import Final, NamedTuple

from rota.coordinator.consumer_group.characters import (
    NAMES,
    PERL,
    POSIX,
    WORD,
    Chars,
    RegexCharacters,
)
from rota.protocol.dataclass import dataclass

INSTRUCTIONS_MAX: Final = 20_000
NESTING_MAX: Final = 100
REPEAT_MAX: Final = 1_000
REPEAT_DIGITS_MAX: Final = len(str(REPEAT_MAX))
NAME_WORK_MAX: Final = 100_000  # instructions that may be visited to match one name
CACHED_INSTRUCTIONS_MAX: Final = 50_000  # in the remembered steps of an expression
_COUNTS: Final = re.compile(r"\{(0|[1-9][0-9]*)(?:(,)(0|[1-9][0-9]*)?)?\}")

CONTROLS: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "v": "\v", "a": "\a"}
BEGIN, END, BOUNDARY, NO_BOUNDARY = "^", "$", "b", "B"  # assertions
LINE: Final = "line"  # before BEGIN and END: also after and before a newline


MISSING_PAREN: Final = "missing closing )"
UNEXPECTED_PAREN: Final = "regexp/syntax: internal error"  # so says RE2/J
MISSING_ARGUMENT: Final = "missing argument to repetition operator"
NESTED_OPERATORS: Final = "invalid nested repetition operator"
INVALID_ESCAPE: Final = "invalid escape sequence"
TRAILING_BACKSLASH: Final = "trailing backslash at end of expression"
INVALID_RANGE: Final = "invalid character class range"
INVALID_SYNTAX: Final = "invalid or unsupported Perl syntax"


class InvalidExpression(Exception):
    """The expression is not valid; the text is RE2/J's."""


class TooExpensive(Exception):
    """A match takes more work than is allowed."""


# ---- the program: instruction 0 is the end; others lead to one or two instructions


@dataclass(slots=True)
class _Instruction:
    chars: Chars | None = None  # None: it takes no character
    assertion: str = ""
    targets: list[int] = field(default_factory=list)
    weight: int = 0  # work of a look into `chars`


@dataclass(slots=True)
class Expression:
    """A compiled expression. `work` counts the instructions that its matches have visited."""

    _program: list[_Instruction]
    _start: int
    work: int = 0
    _steps: dict[tuple[frozenset[int], str, str], frozenset[int]] = field(default_factory=dict)
    _known: dict[frozenset[int], frozenset[int]] = field(default_factory=dict)  # equal states as one object: RX1
    _cached: int = 0  # instructions in `_steps`

    @property
    def size(self) -> int:
        """Return the number of instructions."""
        return len(self._program)

    def matches(self, name: str) -> bool:
        """Return whether the whole name matches. Raises TooExpensive beyond NAME_WORK_MAX."""
        states, before, work_max = frozenset((self._start,)), "", self.work + NAME_WORK_MAX
        for char in name:
            states = self._step(states, before, char)
            if not states:
                return False
            if self.work > work_max:
                raise TooExpensive
            before = char
        return 0 in self._closure(states, before, "")

    def _step(self, states: frozenset[int], before: str, char: str) -> frozenset[int]:
        kind = "" if not before else "w" if before in WORD else before if before == "\n" else "."
        found = self._steps.get((states, kind, char))
        self.work += 1
        if found is None:
            reached = self._closure(states, before, char)
            program = self._program
            self.work += sum(program[at].weight for at in reached)
            found = frozenset(
                target
                for at in reached
                for chars in (program[at].chars,)
                if chars is not None and char in chars
                for target in program[at].targets
            )
            return self._remember(states, kind, char, found)
        return found

    def _remember(self, states: frozenset[int], kind: str, char: str, found: frozenset[int]) -> frozenset[int]:
        """Return the states that are remembered: a look-up compares equal sets of many states element by element."""
        if self._cached > CACHED_INSTRUCTIONS_MAX:
            self._steps.clear()
            self._known.clear()
            self._cached = 0
        self._cached += len(states) + len(found) + 1
        states, found = self._known.setdefault(states, states), self._known.setdefault(found, found)
        self._steps[states, kind, char] = found
        return found

    def _closure(self, states: Iterable[int], before: str, after: str) -> set[int]:
        """Return the instructions that are reached without a character, between these two."""
        reached, waiting = set[int](), list(states)
        while waiting:
            at = waiting.pop()
            if at in reached:
                continue
            reached.add(at)
            instruction = self._program[at]
            if instruction.chars is None and _holds(instruction.assertion, before, after):
                waiting += instruction.targets
        self.work += len(reached)
        return reached


def _holds(assertion: str, before: str, after: str) -> bool:
    match assertion:
        case "^":
            return not before
        case "$":
            return not after
        case "line^":
            return before in ("", "\n")
        case "line$":
            return after in ("", "\n")
        case "b" | "B":
            return ((before in WORD) != (after in WORD)) == (assertion == BOUNDARY)
        case _:
            return True


def compile_expression(text: str, characters: RegexCharacters = NAMES) -> Expression:
    """Compile an expression for names of topics, or for texts of other characters. Raises InvalidExpression."""
    return _Parser(text, characters).parse()


# ---- the parser builds backwards: a node is a function from the next instruction to the first of its own

Node = Callable[[int], int]


class _Flags(NamedTuple):
    ignores_case: bool = False
    dot_takes_newline: bool = False
    is_multiline: bool = False


def _empty(after: int) -> int:
    """The node of nothing. It is not built, so that nothing a thousand times costs nothing."""
    return after


class _Parser:
    def __init__(self, text: str, characters: RegexCharacters) -> None:
        self._text, self._at, self._depth = text, 0, 0
        self._characters, self._flags, self._weight = characters, _Flags(), 0
        self._names = set[str]()  # of captures
        self._program = [_Instruction()]

    def parse(self) -> Expression:
        node = self._alternation()
        if self._at < len(self._text):
            raise self._invalid(UNEXPECTED_PAREN)
        return Expression(self._program, node(0))

    def _invalid(self, what: str) -> InvalidExpression:
        return InvalidExpression(what)

    def _add(self, chars: Chars | None, targets: list[int], assertion: str = "") -> int:
        if len(self._program) >= INSTRUCTIONS_MAX:
            raise self._invalid("expression too large")
        weight = 0 if chars is None else self._characters.weight(chars)
        self._weight += weight
        if self._weight > NAME_WORK_MAX:  # all may be looked into for one character
            raise self._invalid("expression too large")
        self._program.append(_Instruction(chars, assertion, targets, weight))
        return len(self._program) - 1

    def _peek(self, text: str) -> bool:
        return self._text.startswith(text, self._at)

    def _take(self, text: str) -> bool:
        if self._peek(text):
            self._at += len(text)
            return True
        return False

    def _next(self, at_end: str = TRAILING_BACKSLASH) -> str:
        """Return the next character. Raises InvalidExpression with the text `at_end`."""
        if self._at >= len(self._text):
            raise self._invalid(at_end)
        self._at += 1
        return self._text[self._at - 1]

    # ---- structure

    def _alternation(self) -> Node:
        flags = self._flags
        branches = [self._sequence()]
        while self._take("|"):
            branches.append(self._sequence())
        self._flags = flags
        if len(branches) == 1:
            return branches[0]
        return lambda after: self._add(None, [branch(after) for branch in branches])

    def _sequence(self) -> Node:
        """RX4. An operator repeats what stands before it, also across flags; a `{` as such counts for an operator."""
        nodes: list[Node] = []
        is_after_operator = False
        while self._at < len(self._text) and not self._peek("|") and not self._peek(")"):
            low_high = self._repetition()
            if low_high is not None:
                self._take("?")  # which of several matches is found makes no difference to whether there is one
                if is_after_operator or not nodes:
                    raise self._invalid(NESTED_OPERATORS if is_after_operator else MISSING_ARGUMENT)
                nodes[-1] = self._repeat(nodes[-1], *low_high)
            is_after_operator = low_high is not None or self._peek("{")
            if low_high is None:
                nodes += self._quoted() if self._take("\\Q") else self._atom()
        return _all_of([node for node in nodes if node is not _empty])

    def _atom(self) -> list[Node]:
        """Return one node, none for flags."""
        char = self._next()
        match char:
            case "(":
                return self._group()
            case "[":
                return [self._chars(self._class())]
            case ".":
                return [self._chars(self._characters.dot(takes_newline=self._flags.dot_takes_newline))]
            case "^" | "$":
                return [self._asserted(LINE + char if self._flags.is_multiline else char)]
            case "\\":
                return [self._escape()]
            case _:
                return [self._chars(self._characters.one(char))]

    def _chars(self, chars: Chars) -> Node:
        known = self._characters.known(self._characters.fold(chars) if self._flags.ignores_case else chars)
        return lambda after: self._add(known, [after])

    def _asserted(self, assertion: str) -> Node:
        return lambda after: self._add(None, [after], assertion)

    def _quoted(self) -> list[Node]:
        end = self._text.find("\\E", self._at)
        text = self._text[self._at :] if end < 0 else self._text[self._at : end]
        self._at += len(text) if end < 0 else len(text) + 2
        return [self._chars(self._characters.one(char)) for char in text]

    # ---- groups

    def _group(self) -> list[Node]:
        self._depth += 1
        if self._depth > NESTING_MAX:
            raise self._invalid("expression nests too deeply")
        flags = self._flags
        if self._take("?") and not self._named() and not self._set_flags():
            self._depth -= 1
            return []  # flags for the rest of the group around
        node = self._alternation()
        if not self._take(")"):
            raise self._invalid(MISSING_PAREN)
        self._flags = flags
        self._depth -= 1
        return [node]

    def _named(self) -> bool:
        if not self._take("P<") and not self._take("<"):
            return False
        end = self._text.find(">", self._at)
        name = self._text[self._at : max(end, self._at)]
        if not name or not all(char == "_" or (char.isascii() and char.isalnum()) for char in name):
            raise self._invalid("invalid named capture")
        if name in self._names:
            raise self._invalid("duplicate capture group name")
        self._names.add(name)
        self._at = end + 1
        return True

    def _set_flags(self) -> bool:
        """Read flags; return False where they end with `)` and not with `:`."""
        is_set, has_flag = True, False
        while True:
            char = self._next(INVALID_SYNTAX)
            if char in "imsU":
                has_flag = True
                self._set_flag(char, is_set=is_set)
            elif char == "-" and is_set:
                is_set, has_flag = False, False
            elif char in ":)" and (is_set or has_flag):
                return char == ":"
            else:
                raise self._invalid(INVALID_SYNTAX)

    def _set_flag(self, char: str, *, is_set: bool) -> None:
        """Set a flag; `U`, which of several matches is found, makes no difference to whether there is one."""
        match char:
            case "i":
                self._flags = self._flags._replace(ignores_case=is_set)
            case "s":
                self._flags = self._flags._replace(dot_takes_newline=is_set)
            case "m":
                self._flags = self._flags._replace(is_multiline=is_set)

    # ---- repetition

    def _repetition(self) -> tuple[int, int | None] | None:
        for operator, bounds in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self._take(operator):
                return bounds
        return self._counts() if self._peek("{") else None

    def _counts(self) -> tuple[int, int | None] | None:
        """Read `{n}`, `{n,}` or `{n,m}`; anything else begins with a `{` that stands for itself."""
        found = _COUNTS.match(self._text, self._at)
        if found is None:
            return None
        low, comma, high = found.groups()
        if max(len(low), len(high or "")) > REPEAT_DIGITS_MAX:
            raise self._invalid("invalid repeat count")
        first, last = int(low), int(high) if high else None if comma else int(low)
        if max(first, last or 0) > REPEAT_MAX or (last is not None and last < first):
            raise self._invalid("invalid repeat count")
        self._at = found.end()
        return first, last

    def _repeat(self, node: Node, low: int, high: int | None) -> Node:
        if node is _empty or high == 0:
            return _empty
        if (low, high) == (1, 1):
            return node

        def build(after: int) -> int:
            if high is None:
                loop = self._add(None, [after])
                self._program[loop].targets.insert(0, node(loop))
                after = loop
            else:
                end = after
                for _ in range(high - low):
                    after = self._add(None, [node(after), end])
            for _ in range(low):
                after = node(after)
            return after

        return build

    # ---- characters

    def _escape(self) -> Node:
        if self._peek("b") or self._peek("B"):
            return self._asserted(self._next())
        if self._take("A"):
            return self._asserted(BEGIN)
        if self._take("z"):
            return self._asserted(END)
        return self._chars(self._escaped_chars())

    def _escaped_chars(self) -> Chars:
        """Read what stands after a backslash, in a class or outside."""
        char = self._next()
        if char.lower() in PERL:
            chars = self._characters.ascii(PERL[char.lower()])
            return chars if char in PERL else self._complement(chars)
        if char in "pP":
            return self._unicode(negated=char == "P")
        return self._characters.one(self._escaped_char(char))

    def _escaped_char(self, char: str) -> str:
        if char in CONTROLS:
            return CONTROLS[char]
        if char == "x":
            return self._hexadecimal()
        if char == "0" or (char in "1234567" and self._text[self._at : self._at + 1] in tuple("01234567")):
            return self._octal(char)
        if not (char.isascii() and char.isalnum()):
            return char
        raise self._invalid(INVALID_ESCAPE)

    def _hexadecimal(self) -> str:
        if self._take("{"):
            end = self._text.find("}", self._at)
            digits = self._text[self._at : max(end, self._at)]
            self._at = end + 1
        else:
            digits = self._text[self._at : self._at + 2]
            self._at += len(digits)
            if len(digits) < 2:
                raise self._invalid(INVALID_ESCAPE)
        if not digits or set(digits) - POSIX["xdigit"] or int(digits, 16) > 0x10FFFF:
            raise self._invalid(INVALID_ESCAPE)
        return chr(int(digits, 16))

    def _octal(self, digits: str) -> str:
        while len(digits) < 3 and self._text[self._at : self._at + 1] in tuple("01234567"):
            digits += self._next()
        return chr(int(digits, 8))

    def _complement(self, chars: Chars) -> Chars:
        """Return all other characters, also without regard to case."""
        return self._characters.complement(self._characters.fold(chars) if self._flags.ignores_case else chars)

    def _unicode(self, *, negated: bool) -> Chars:
        name = self._next(INVALID_RANGE)
        if name == "{":
            end = self._text.find("}", self._at)
            name = self._text[self._at : max(end, self._at)]
            self._at = end + 1
        if name.startswith("^"):
            name, negated = name[1:], not negated
        chars = self._characters.unicode(name)
        if chars is None:
            raise self._invalid(INVALID_RANGE)
        return self._complement(chars) if negated else chars

    def _class(self) -> Chars:
        negated = self._take("^")
        items = [self._class_item()]
        while not self._take("]"):
            items.append(self._class_item())
        chars = self._characters.union(items)
        if self._flags.ignores_case:
            chars = self._characters.fold(chars)
        return self._characters.complement(chars) if negated else chars

    def _class_item(self) -> Chars:
        if self._at >= len(self._text):
            raise self._invalid("missing closing ]")
        if self._peek("[:") and self._text.find(":]", self._at) >= 0:
            return self._posix()
        if self._peek("\\") and self._text[self._at + 1 : self._at + 2] in ("d", "D", "w", "W", "s", "S", "p", "P"):
            self._next()
            return self._escaped_chars()
        low = self._class_char()
        is_range = self._peek("-") and self._text[self._at + 1 : self._at + 2] not in ("", "]")
        if not is_range:
            return self._characters.one(low)
        self._next()
        high = self._class_char()
        if high < low:
            raise self._invalid(INVALID_RANGE)
        return self._characters.span(low, high)

    def _class_char(self) -> str:
        char = self._next()
        return self._escaped_char(self._next()) if char == "\\" else char

    def _posix(self) -> Chars:
        end = self._text.find(":]", self._at)
        name = self._text[self._at + 2 : max(end, self._at + 2)]
        if name.removeprefix("^") not in POSIX:
            raise self._invalid(INVALID_RANGE)
        self._at = end + 2
        chars = self._characters.ascii(POSIX[name.removeprefix("^")])
        return self._complement(chars) if name.startswith("^") else chars


def _all_of(nodes: list[Node]) -> Node:
    """Return the node of these nodes one after the other."""
    if len(nodes) < 2:
        return nodes[0] if nodes else _empty

    def build(after: int) -> int:
        for node in reversed(nodes):
            after = node(after)
        return after

    return build
