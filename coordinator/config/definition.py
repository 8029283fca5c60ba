"""What one property is: its name, the type of its value, which values are right, what it is when nobody sets it.

Laws
    An unknown name is refused with the nearest known one; a wrong value is refused with the right ones.
    A value that was accepted is the text that is kept and shown; parsing it again gives the same value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum, IntEnum

Value = bool | int | float | str | tuple[str, ...] | None

INT_MAX = (1 << 31) - 1
LONG_MAX = (1 << 63) - 1
NAME_CHARS_MAX = 200  # a longer name is not compared with the known ones


class Type(IntEnum):
    """Type of a value, with the numbers of DescribeConfigs v3+."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class Source(IntEnum):
    """Where a value comes from, with the numbers of DescribeConfigs v1+."""

    UNKNOWN = 0
    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5


class Update(Enum):
    """When a broker property may change."""

    READ_ONLY = "read-only"
    PER_BROKER = "per-broker"
    CLUSTER_WIDE = "cluster-wide"


class Support(Enum):
    """What Rota does with a property that Kafka knows."""

    USED = "used"
    NO_EFFECT = "accepted, without effect"
    REFUSED = "refused unless it has its default"  # leaving it out silently would be unsafe


class ConfigRefused(ValueError):
    """A property that cannot be: `name` says which, the message what to write instead. On the wire INVALID_CONFIG."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.name = name


@dataclass(frozen=True, slots=True)
class Definition:
    """One property. `default` is text as in a file; None where Kafka has none."""

    name: str
    type: Type
    default: str | None
    doc: str
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    also: int | None = None  # a value outside low..high that is right too, such as -1 for "no limit"
    update: Update = Update.READ_ONLY
    support: Support = Support.USED

    @property
    def sensitive(self) -> bool:
        """Its value is never shown."""
        return self.type is Type.PASSWORD

    def parse(self, text: str | None) -> Value:
        """The value of `text`. Raises ConfigRefused."""
        if text is None:
            return None
        value = self._typed(text.strip())
        self._check(value, text)
        return value

    def _typed(self, text: str) -> Value:
        try:
            return _READ[self.type](text)
        except ValueError:
            raise self._wrong(text, f"it is not {_NOUN[self.type]}") from None

    def _check(self, value: Value, text: str) -> None:
        for item in value if isinstance(value, tuple) else (value,):
            if self.choices and item not in self.choices:
                raise self._wrong(text, f"right are: {', '.join(self.choices)}")
        if isinstance(value, int | float) and not isinstance(value, bool) and value != self.also:
            low, high = self._bounds()
            if not ((low is None or low <= value) and (high is None or value <= high)):  # nan is in no range
                raise self._wrong(text, f"right is {self.valid()}")

    def _bounds(self) -> tuple[float | None, float | None]:
        wide = {Type.INT: INT_MAX, Type.SHORT: (1 << 15) - 1, Type.LONG: LONG_MAX}.get(self.type)
        low = self.low if self.low is not None or wide is None else -wide - 1
        return low, (self.high if self.high is not None else wide)

    def valid(self) -> str:
        """The right values in words."""
        if self.choices:
            return "one of " + ", ".join(self.choices)
        low, high = self._bounds()
        if low is None and high is None:
            return _NOUN[self.type]
        words = f"{_NOUN[self.type]} from {_plain(low)} to {_plain(high)}"
        return words if self.also is None else f"{words}, or {self.also}"

    def _wrong(self, text: str, why: str) -> ConfigRefused:
        shown = "the value" if self.sensitive else f"{text!r}"
        return ConfigRefused(self.name, f"Invalid value {shown} for configuration {self.name}: {why}")


def _plain(bound: float | None) -> str:
    return "any" if bound is None else str(int(bound) if float(bound).is_integer() else bound)


def _boolean(text: str) -> bool:
    lower = text.lower()
    if lower not in ("true", "false"):
        raise ValueError(text)
    return lower == "true"


def _whole(text: str) -> int:
    if not text.isascii() or "_" in text:  # int() takes both, Java does not
        raise ValueError(text)
    return int(text)


def _items(text: str) -> tuple[str, ...]:
    return tuple(item.strip() for item in text.split(",")) if text else ()


_READ: dict[Type, Callable[[str], Value]] = {
    Type.UNKNOWN: str,
    Type.BOOLEAN: _boolean,
    Type.STRING: str,
    Type.INT: _whole,
    Type.SHORT: _whole,
    Type.LONG: _whole,
    Type.DOUBLE: float,
    Type.LIST: _items,
    Type.CLASS: str,
    Type.PASSWORD: str,
}
_NOUN = {
    Type.UNKNOWN: "text",
    Type.BOOLEAN: "true or false",
    Type.STRING: "text",
    Type.INT: "a whole number",
    Type.SHORT: "a whole number",
    Type.LONG: "a whole number",
    Type.DOUBLE: "a number",
    Type.LIST: "a list",
    Type.CLASS: "a class name",
    Type.PASSWORD: "text",
}


def unknown(name: str, known: Iterable[str], what: str) -> ConfigRefused:
    """The refusal of a name that nobody knows, with the nearest that somebody does."""
    from difflib import get_close_matches  # only for people who mistype: it costs 5 ms to import

    near = get_close_matches(name, list(known), n=1, cutoff=0.6) if len(name) <= NAME_CHARS_MAX else []
    hint = f"; the nearest known name is {near[0]}" if near else ""
    return ConfigRefused(name, f"Unknown {what} configuration {name}{hint}")


def by_name(definitions: Iterable[Definition]) -> Mapping[str, Definition]:
    """Definitions to look up."""
    return {definition.name: definition for definition in definitions}
