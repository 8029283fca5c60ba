"""docs/CLIENT_SETTINGS.md, rendered from config.py; `python -m rota.client.config_page` prints it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import MISSING, Field, fields
from typing import Any, Final

from rota.client.config import ClientConfig, ConsumerConfig, ProducerConfig
from rota.client.security_config import SecurityConfig

_HEAD: Final = (
    "# Settings of the clients",
    "",
    "Names and defaults are those of Apache Kafka's clients; what Rota adds says so. Each is a keyword of its",
    "configuration (`ConsumerConfig(max_poll_records=100)`), or is given by Kafka's dotted name",
    '(`Consumer.from_properties({"max.poll.records": "100"})`). Times are in milliseconds, sizes in bytes. A name that',
    "is unknown and a wrong value are refused with `ConfigError`, which says what would be right. Rendered from",
    "`client/config.py` and `client/security_config.py` by `python -m rota.client.config_page`.",
)
_PARTS: Final = (
    ("Every client (`ClientConfig`, `AdminConfig`)", ClientConfig, SecurityConfig),
    ("Security of every client", SecurityConfig, None),
    ("Consumer (`ConsumerConfig`)", ConsumerConfig, ClientConfig),
    ("Producer (`ProducerConfig`)", ProducerConfig, ClientConfig),
)


def page() -> Iterator[str]:
    """The lines of the page."""
    yield from _HEAD
    for title, config, base in _PARTS:
        known = {field.name for field in fields(base)} if base is not None else set()
        yield from ("", f"## {title}", "", "| keyword | Kafka's name | default | what it is |", "|---|---|---|---|")
        yield from (_row(field) for field in fields(config) if field.name not in known)


def _row(field: Field[Any]) -> str:
    dotted = field.name.replace("_", ".")
    return f"| `{field.name}` | `{dotted}` | {_default(field)} | {field.metadata['note']} |"


def _default(field: Field[Any]) -> str:
    if field.default is MISSING:
        return "must be given"
    if isinstance(field.default, tuple) and field.default:
        return "`" + ",".join(field.default) + "`"
    return "empty" if field.default in ("", ()) else f"`{field.default}`"


if __name__ == "__main__":
    print("\n".join(page()))
