"""The definition of one property: its name, the type of its value, its valid values, its default.

Laws
    The error for an unknown name contains the nearest known name; that for an invalid value contains the valid ones.
    An accepted value is stored as its text; parsing that text again gives the same value.
    BC7 What is in force is the parsed value, whatever spaces, letter case or zeros its text has. It is shown as the
        value, as in Kafka.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import Enum, IntEnum

from rota.protocol.dataclass import dataclass

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
    BROKER_LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


class Update(Enum):
    """When a broker property may change."""

    READ_ONLY = "read-only"
    PER_BROKER = "per-broker"
    CLUSTER_WIDE = "cluster-wide"


class Support(Enum):
    """How far Rota supports a property of Kafka."""

    USED = "used"
    NO_EFFECT = "accepted, without effect"
    REFUSED = "refused unless it has its default"  # leaving it out silently would be unsafe


class ConfigRefused(ValueError):
    """An unknown property or an invalid value. The message names the valid ones. The error code is INVALID_CONFIG."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.name = name


class UnknownConfig(ConfigRefused):
    """There is no property of this name."""


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
    also: int | None = None  # a valid value outside low..high, such as -1 for "no limit"
    update: Update = Update.READ_ONLY
    support: Support = Support.USED

    @property
    def is_sensitive(self) -> bool:
        """Whether its value is never shown."""
        return self.type is Type.PASSWORD

    def parse(self, text: str | None) -> Value:
        """Return the typed value of `text`. Raises ConfigRefused."""
        if text is None:
            return None
        value = self._typed(text.strip())
        self._check(value, text)
        return value

    def shown(self, text: str | None) -> str | None:
        """BC7. Return the parsed value as text. Raises ConfigRefused."""
        value = self.parse(text)
        if isinstance(value, bool):
            return str(value).lower()
        if isinstance(value, tuple):
            return ",".join(dict.fromkeys(value))
        return None if value is None else str(value)

    def _typed(self, text: str) -> Value:
        try:
            return _PARSERS[self.type](text)
        except ValueError:
            raise self._invalid(text, f"it is not {_TYPE_NAMES[self.type]}") from None

    def _check(self, value: Value, text: str) -> None:
        for item in value if isinstance(value, tuple) else (value,):
            if self.choices and item not in self.choices:
                raise self._invalid(text, f"valid values are: {', '.join(self.choices)}")
        if isinstance(value, int | float) and not isinstance(value, bool) and value != self.also:
            low, high = self._bounds()
            if not ((low is None or low <= value) and (high is None or value <= high)):  # nan is in no range
                raise self._invalid(text, f"the valid value is {self.valid()}")

    def _bounds(self) -> tuple[float | None, float | None]:
        wide = {Type.INT: INT_MAX, Type.SHORT: (1 << 15) - 1, Type.LONG: LONG_MAX}.get(self.type)
        low = self.low if self.low is not None or wide is None else -wide - 1
        return low, (self.high if self.high is not None else wide)

    def valid(self) -> str:
        """Return the valid values in words."""
        if self.choices:
            return "one of " + ", ".join(self.choices)
        low, high = self._bounds()
        if low is None and high is None:
            return _TYPE_NAMES[self.type]
        words = f"{_TYPE_NAMES[self.type]} from {_bound_text(low)} to {_bound_text(high)}"
        return words if self.also is None else f"{words}, or {self.also}"

    def _invalid(self, text: str, why: str) -> ConfigRefused:
        shown = "the value" if self.is_sensitive else f"{text!r}"
        return ConfigRefused(self.name, f"Invalid value {shown} for configuration {self.name}: {why}")


def _bound_text(bound: float | None) -> str:
    return "any" if bound is None else str(int(bound) if float(bound).is_integer() else bound)


def _boolean(text: str) -> bool:
    lower = text.lower()
    if lower not in ("true", "false"):
        raise ValueError(text)
    return lower == "true"


def _integer(text: str) -> int:
    if not text.isascii() or "_" in text:  # int() takes both, Java does not
        raise ValueError(text)
    return int(text)


def _items(text: str) -> tuple[str, ...]:
    return tuple(item.strip() for item in text.split(",")) if text else ()


_PARSERS: dict[Type, Callable[[str], Value]] = {
    Type.UNKNOWN: str,
    Type.BOOLEAN: _boolean,
    Type.STRING: str,
    Type.INT: _integer,
    Type.SHORT: _integer,
    Type.LONG: _integer,
    Type.DOUBLE: float,
    Type.LIST: _items,
    Type.CLASS: str,
    Type.PASSWORD: str,
}
_TYPE_NAMES = {
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


def unknown_config(name: str, known: Iterable[str], kind: str) -> UnknownConfig:
    """Return the exception for an unknown name. Its message has the nearest known name."""
    from difflib import get_close_matches  # imported only after an error: it takes 5 ms

    near = get_close_matches(name, list(known), n=1, cutoff=0.6) if len(name) <= NAME_CHARS_MAX else []
    hint = f"; the nearest known name is {near[0]}" if near else ""
    return UnknownConfig(name, f"Unknown {kind} config name: {name}{hint}")


def by_name(definitions: Iterable[Definition]) -> Mapping[str, Definition]:
    """Return the definitions by name."""
    return {definition.name: definition for definition in definitions}
