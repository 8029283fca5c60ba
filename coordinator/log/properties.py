"""Java's `.properties` form, as far as `meta.properties` needs it. Pure."""

from __future__ import annotations

from collections.abc import Mapping


def write_properties(properties: Mapping[str, str]) -> str:
    return "".join(f"{name}={value}\n" for name, value in properties.items())


def read_properties(text: str) -> dict[str, str]:
    """Lines that are empty, comments, or without "=" are passed over."""
    pairs = (line.split("=", 1) for line in text.splitlines() if "=" in line and line.lstrip()[:1] not in "#!")
    return {name.strip(): value.strip() for name, value in pairs}
