"""Declares, parses and checks settings and arguments.

Laws
    Every refusal names the setting or parameter, the value and the valid values.
    A parameter that takes several things never takes a str, bytes or a TopicPartition for a list of its parts.
    A number or a text that its field of a request cannot hold is refused before anything is sent: the request would end
    the connection, with the requests of others on it.
"""

from __future__ import annotations

import dataclasses
import difflib
import operator
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, SupportsIndex, TypeVar

from rota.client.errors import ConfigError, IllegalArgument, IllegalUse
from rota.client.types import OffsetAndMetadata, TopicPartition

T = TypeVar("T")
Check = Callable[[Any], str | None]  # returns None for a valid value, else a description of the valid values
STRING_BYTES_MAX: Final = 32_767
INT16: Final = range(-(1 << 15), 1 << 15)
INT32: Final = range(-(1 << 31), 1 << 31)
INT64: Final = range(-(1 << 63), 1 << 63)
HIDDEN: Final = "[hidden]"  # a secret in an error text, as in Kafka's
_PLAIN: Final[dict[str, type]] = {"str": str, "int": int, "bool": bool}
_BOOLS: Final = ("true", "false")
_NAME: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}", re.ASCII)


def setting(
    note: str, default: Any = dataclasses.MISSING, validator: Check | None = None, *, is_secret: bool = False
) -> Any:
    """Return the dataclass field of a setting. `note` describes the setting, `validator` checks its value. A secret is
    in no repr.

    The module that declares it needs `from __future__ import annotations`: types are read as text.
    """
    metadata = {"note": note, "validator": validator}
    if default is dataclasses.MISSING:
        return dataclasses.field(metadata=metadata, repr=not is_secret)
    return dataclasses.field(default=default, metadata=metadata, repr=not is_secret)


def between(low: int, high: int | None = None) -> Check:
    """Return the check for an integer from `low` to `high`, both included."""

    def validator(value: Any) -> str | None:
        fits = isinstance(value, int) and value >= low and (high is None or value <= high)
        return None if fits else f"an integer of at least {low}" + ("" if high is None else f" and at most {high}")

    return validator


def one_of(*values: str) -> Check:
    """Return the check for one of these values."""
    return lambda value: None if value in values else "one of " + ", ".join(values)


def wire_text(chars_min: int = 0) -> Check:
    """Return the check for None, or text of `chars_min` characters to STRING_BYTES_MAX bytes in UTF-8."""

    def validator(value: Any) -> str | None:
        fits = value is None or (len(value) >= chars_min and _does_not_fit(value) is None)
        return None if fits else f"of {chars_min} to {STRING_BYTES_MAX} bytes"

    return validator


def instance(value: Any) -> str | None:
    """Check a group instance id by Kafka's rules for names."""
    fits = value is None or (_NAME.fullmatch(value) and value not in (".", ".."))
    return None if fits else "1 to 249 of the characters a-z, A-Z, 0-9, '.', '_' and '-'"


def check(config: Any) -> None:
    """Check each setting of a configuration; convert a list, or names with commas, to a tuple. Raises ConfigError."""
    for field in dataclasses.fields(config):
        value = given = getattr(config, field.name)
        if isinstance(given, list) and "tuple" in str(field.type):
            value = tuple(given)
        elif isinstance(given, str) and str(field.type).startswith("tuple"):
            value = parsed(field.name, field, given)
        if value is not given:
            object.__setattr__(config, field.name, value)
        wrong_type = _type_refused(field, value)
        validator = field.metadata.get("validator")
        expected = wrong_type or (validator(value) if validator is not None else None)
        if expected:
            raise refused(field.name, value if field.repr else HIDDEN, expected)


def refused(name: str, value: Any, expected: str) -> ConfigError:
    """Return the error for an invalid value. `expected` describes the valid values."""
    return ConfigError(f"{name} ({name.replace('_', '.')}) is {value!r}; it must be {expected}")


def unknown(kind: str, name: str, known: Iterable[str], instead: str | None = None) -> ConfigError:
    """Return the error for an unknown setting. `instead` is the advice for a setting that other clients have."""
    if instead is not None:
        return ConfigError(f"{kind} has no setting {name}: {instead}")
    near = difflib.get_close_matches(name, list(known), 1)
    hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(sorted(known))}"
    return ConfigError(f"{kind} has no setting {name}; {hint}")


def nearest(value: str, valid: Iterable[str]) -> str:
    """Return `; did you mean …?` with the nearest valid value; "" when none is near."""
    near = difflib.get_close_matches(value, list(valid), 1)
    return f"; did you mean {near[0]}?" if near else ""


def several(parameter: str, given: Iterable[T], what: str) -> tuple[T, ...]:
    """As `items_of`. Raises IllegalUse for a text that no request can carry."""
    items = items_of(parameter, given, what)
    for item in items:
        if isinstance(item, str):
            wire_name(f"an item of {parameter}", item)
    return items


def names_of(parameter: str, given: Iterable[str], what: str) -> tuple[str, ...]:
    """As `several`. Raises IllegalArgument for an item that is no str."""
    return tuple(wire_name(f"an item of {parameter}", item) for item in items_of(parameter, given, what))


def instances_of(parameter: str, given: Iterable[T], kind: type[T]) -> tuple[T, ...]:
    """As `several`. Raises IllegalArgument for an item of another type."""
    items = items_of(parameter, given, kind.__name__)
    wrong = next((item for item in items if not isinstance(item, kind)), None)
    if wrong is not None:
        raise IllegalArgument(f"an item of {parameter} is {wrong!r}: give {kind.__name__}")
    return items


def items_of(parameter: str, given: Iterable[T], what: str) -> tuple[T, ...]:
    """Return the items of an argument that takes several `what` ("topic names").

    Raises IllegalArgument, which is a TypeError, for an object that is not iterable and for a single item: iterating it
    would yield its parts.
    """
    if isinstance(given, str | bytes | bytearray | memoryview | TopicPartition):
        raise IllegalArgument(f"{parameter} takes a list, tuple or set of {what}, not {given!r}: give [{given!r}]")
    if not isinstance(given, Iterable):
        raise IllegalArgument(f"{parameter} takes a list, tuple or set of {what}, not {given!r}")
    return tuple(given)


def wire_name(parameter: str, given: Any) -> str:
    """Return `given`. Raises IllegalArgument unless it is a str, IllegalUse unless a request can carry it."""
    if not isinstance(given, str):
        raise IllegalArgument(f"{parameter} takes a str, not {given!r}")
    reason = _does_not_fit(given)
    if reason is not None:
        raise IllegalUse(f"{parameter} {reason}")
    return given


def _does_not_fit(text: str) -> str | None:
    """Return why no string of a request can hold the text; None if one can."""
    if text.isascii():
        size = len(text)
    else:
        try:
            size = len(text.encode())
        except UnicodeEncodeError:
            return f"is {text[:100]!r}, which is no Unicode text: it has half of a surrogate pair"
    return None if size <= STRING_BYTES_MAX else f"has {size} bytes: {STRING_BYTES_MAX} fit"


def topic_partitions(parameter: str, given: Iterable[TopicPartition]) -> tuple[TopicPartition, ...]:
    """As `several`. Accepts a tuple (topic, number) for a TopicPartition. Raises IllegalArgument for anything else,
    IllegalUse for a number beyond INT32."""
    return tuple(_topic_partition(parameter, item) for item in several(parameter, given, "TopicPartition"))


def topics_or_partitions(parameter: str, given: Iterable[str | TopicPartition]) -> tuple[str | TopicPartition, ...]:
    """As `several`: names of topics, and partitions as `topic_partitions` takes them."""
    items = several(parameter, given, "topic names and TopicPartition")
    return tuple(item if isinstance(item, str) else _topic_partition(parameter, item) for item in items)


def _topic_partition(parameter: str, given: Any) -> TopicPartition:
    if isinstance(given, TopicPartition | tuple) and len(given) == 2:
        topic, number = given
        if isinstance(topic, str) and is_whole(number):
            wire_name("a topic", topic)
            return TopicPartition(topic, whole_number(f"the number of a partition of {topic}", number, INT32))
    raise IllegalArgument(f"{parameter} takes TopicPartition(topic, number), not {given!r}")


def times_of_partitions(parameter: str, given: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    """Return times in ms by partition.

    Raises IllegalArgument for a time that is no integer, IllegalUse for one beyond INT64 and for a time below 0, which
    has another meaning in ListOffsets.
    """
    times = dict(zip(topic_partitions(parameter, given), given.values(), strict=True))
    for partition, time in times.items():
        if not is_whole(time):
            raise IllegalArgument(
                f"time {time!r} for {partition}: times are whole milliseconds, not {type(time).__name__}"
            )
        if time < 0:
            raise IllegalUse(f"time {time} for {partition}: times are milliseconds since the epoch")
        whole_number(f"the time for {partition}", time)
    return times


def numbers_of_partitions(parameter: str, what: str, given: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    """Return a number, `what`, by partition. Raises IllegalArgument, IllegalUse for one beyond INT64."""
    partitions = topic_partitions(parameter, given)
    return {
        partition: whole_number(f"the {what} for {partition}", number)
        for partition, number in zip(partitions, given.values(), strict=True)
    }


def offsets_to_commit(
    offsets: Mapping[TopicPartition, int | OffsetAndMetadata],
) -> dict[TopicPartition, OffsetAndMetadata]:
    """Return offsets that can be committed. Raises IllegalArgument, IllegalUse."""
    given = [at if isinstance(at, OffsetAndMetadata) else OffsetAndMetadata(at) for at in offsets.values()]
    committable = dict(zip(topic_partitions("offsets", offsets), given, strict=True))
    wrong = next(
        (f"{partition} at {at.offset!r}" for partition, at in committable.items() if not is_whole(at.offset)), None
    )
    if wrong is not None:
        raise IllegalArgument(f"offsets takes integers or OffsetAndMetadata, not {wrong}")
    negative = next((f"{partition} at {at.offset}" for partition, at in committable.items() if at.offset < 0), None)
    if negative is not None:
        raise IllegalUse(f"an offset below 0 cannot be committed: {negative}")
    for partition, at in committable.items():
        whole_number(f"the offset for {partition}", at.offset)
        whole_number(f"the leader epoch for {partition}", at.leader_epoch, INT32)
        wire_name(f"the metadata for {partition}", at.metadata or "")
    return committable


def is_whole(number: object) -> bool:
    """Return whether `number` is an integer. The integers of NumPy are, too."""
    return isinstance(number, SupportsIndex)


def whole_number(parameter: str, given: Any, fits: range = INT64) -> int:
    """Return `given` as an int. Raises IllegalArgument unless it is an integer, IllegalUse unless it is in `fits`."""
    if not is_whole(given):
        raise IllegalArgument(f"{parameter} takes an integer, not {given!r}")
    number = operator.index(given)
    if number not in fits:
        raise IllegalUse(f"{parameter} is {number}: it must be from {fits[0]} to {fits[-1]}")
    return number


def milliseconds(parameter: str, given: T) -> T:
    """Return `given` when it is None or a number. Raises IllegalArgument."""
    is_number = given is None or (given == given if isinstance(given, float) else is_whole(given))  # noqa: PLR0124 NaN
    if not is_number:
        raise IllegalArgument(f"{parameter} takes milliseconds, not {given!r}")
    return given


def topic_name(given: Any) -> str:
    """Return `given`. Raises IllegalArgument unless it is a str, IllegalUse unless a request can carry it."""
    if not isinstance(given, str):
        raise IllegalArgument(f"topic takes the name of one topic, not {given!r}")
    return wire_name("topic", given)


def parsed(name: str, field: dataclasses.Field[Any], value: Any) -> Any:
    """Convert the text of a property to the setting's type; return a value that is no text unchanged.

    Raises ConfigError.
    """
    if not isinstance(value, str):
        return value
    kinds = str(field.type)
    text = value.strip()
    if kinds.startswith("bool"):
        if text.lower() not in _BOOLS:
            raise refused(field.name, value, "true or false")
        return text.lower() == "true"
    if kinds.startswith("int"):
        try:
            return int(text)
        except ValueError:
            if "str" in kinds:
                return text
            raise refused(field.name, value, "an integer") from None
    if kinds.startswith("tuple"):
        return tuple(name.strip() for name in text.split(",") if name.strip())
    return text


def _type_refused(field: dataclasses.Field[Any], value: Any) -> str | None:
    kinds = [kind.strip() for kind in str(field.type).split("|")]
    return None if any(_fits(kind, value) for kind in kinds) else "of type " + " or ".join(kinds)


def _fits(kind: str, value: Any) -> bool:
    if kind in _PLAIN:
        return isinstance(value, _PLAIN[kind]) and (kind == "bool") == isinstance(value, bool)
    if kind.startswith("tuple[str"):
        return isinstance(value, tuple) and all(isinstance(item, str) for item in value)
    return (
        kind == "Any" or (kind == "None" and value is None) or (kind.startswith("tuple") and isinstance(value, tuple))
    )
