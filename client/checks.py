"""How a setting is declared, read from text and checked.

Laws
    Every refusal names the setting, what was given and what would be right.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Callable, Iterable
from typing import Any, Final

from rota.client.errors import ConfigError

Check = Callable[[Any], str | None]  # what would be right, when it is not
_TRUE: Final = ("true", "false")


def some(note: str, default: Any = dataclasses.MISSING, right: Check | None = None) -> Any:
    """A setting: what it is for, its default, what it may be."""
    metadata = {"note": note, "right": right}
    if default is dataclasses.MISSING:
        return dataclasses.field(metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


def between(low: int, high: int | None = None) -> Check:
    """An integer from `low` to `high`, both included."""

    def right(value: Any) -> str | None:
        fits = isinstance(value, int) and value >= low and (high is None or value <= high)
        return None if fits else f"an integer of at least {low}" + ("" if high is None else f" and at most {high}")

    return right


def one_of(*values: str) -> Check:
    """One of these words."""
    return lambda value: None if value in values else "one of " + ", ".join(values)


def check(config: Any) -> None:
    """Each setting by itself. Raises ConfigError."""
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        wrong_type = _type_refused(field, value)
        right = field.metadata.get("right")
        told = wrong_type or (right(value) if right is not None else None)
        if told:
            raise refused(field.name, value, told)


def refused(name: str, value: Any, right: str) -> ConfigError:
    return ConfigError(f"{name} ({name.replace('_', '.')}) is {value!r}; it must be {right}")


def unknown(kind: str, name: str, known: Iterable[str]) -> ConfigError:
    near = difflib.get_close_matches(name, list(known), 1)
    hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(sorted(known))}"
    return ConfigError(f"{kind} has no setting {name}; {hint}")


def parsed(name: str, field: dataclasses.Field[Any], value: Any) -> Any:
    """A property's text as the setting's type; what is no text stays as it is. Raises ConfigError."""
    if not isinstance(value, str):
        return value
    kinds = str(field.type)
    text = value.strip()
    if kinds.startswith("bool"):
        if text.lower() not in _TRUE:
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
        return tuple(one.strip() for one in text.split(",") if one.strip())
    return text


def _type_refused(field: dataclasses.Field[Any], value: Any) -> str | None:
    kinds = [kind.strip() for kind in str(field.type).split("|")]
    if "Any" in kinds or (value is None and "None" in kinds):
        return None
    wanted = {"str": str, "int": int, "bool": bool}
    for kind in kinds:
        if kind.startswith("tuple") and isinstance(value, tuple):
            return None
        if kind in wanted and isinstance(value, wanted[kind]) and (kind == "bool") == isinstance(value, bool):
            return None
    return "of type " + " or ".join(kinds)
