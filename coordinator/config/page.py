"""docs/SETTINGS.md, rendered from the tables; `python -m rota.coordinator.config.page` prints it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rota.coordinator.config.broker_properties import USED
from rota.coordinator.config.definition import Definition, Support, Update
from rota.coordinator.config.other_properties import others
from rota.coordinator.config.presets import PRESETS
from rota.coordinator.config.topic_properties import SYNONYMS, TOPIC

_HEAD = """\
# Settings

Rota takes Kafka's names: in a file (`rota serve --config FILE`, Java's `.properties` format) and one by one
(`--set NAME=VALUE`). The strongest last: `--preset`, the file, `--data` and `--listen`, `--set`. A name that nobody
knows is refused with the nearest known one, a wrong value with the right ones. This page is rendered from
`coordinator/config/` by `python -m rota.coordinator.config.page`.

Rota listens on 127.0.0.1 until told otherwise, where Kafka listens everywhere: it has no authentication yet. Without
`advertised.listeners` a client is told the address that it used itself.

## Properties of the broker that have an effect

| name | default | right values | changes | what it is |
|---|---|---|---|---|"""
_TOPICS = """
## Configs of a topic

| name | default | right values | the broker's name | what it is |
|---|---|---|---|---|"""
_OTHERS = """
## Taken without effect

These names of Apache Kafka 4.3 are accepted, listed by DescribeConfigs, and named in a warning at the start."""
_REFUSED = """
## Refused

Setting one of these to anything but its default is refused: to go on without what it asks for would be dangerous."""


def page() -> Iterator[str]:
    """The lines of docs/SETTINGS.md."""
    yield from _HEAD.split("\n")
    for one in (each for each in USED.values() if each.support is Support.USED):
        changes = "at the start" if one.update is Update.READ_ONLY else one.update.value
        yield f"| `{one.name}` | {_default(one)} | {one.valid()} | {changes} | {one.doc} |"
    yield from _TOPICS.split("\n")
    for one in TOPIC.values():
        synonyms = ", ".join(f"`{name}`" for name, _ in SYNONYMS.get(one.name, ()))
        note = "" if one.support is Support.USED else f" ({one.support.value})"
        yield f"| `{one.name}` | {_default(one)} | {one.valid()} | {synonyms} | {one.doc}{note} |"
    known = (*USED.values(), *others().values())
    yield from _listed(_OTHERS, (one for one in known if one.support is Support.NO_EFFECT))
    yield from _listed(_REFUSED, (one for one in known if one.support is Support.REFUSED))
    yield from ("", "## Presets", "")
    for name, properties in PRESETS.items():
        yield f"- `{name}`: " + ", ".join(f"`{each}={value}`" for each, value in properties.items())


def _listed(head: str, definitions: Iterable[Definition]) -> Iterator[str]:
    yield from head.split("\n")
    reasons: dict[str, list[str]] = {}
    for one in definitions:
        reasons.setdefault(one.doc, []).append(f"`{one.name}`")
    for reason, names in reasons.items():
        yield from ("", f"- **{reason}** " + ", ".join(names))


def _default(one: Definition) -> str:
    if one.default is None:
        return "none"
    return f"`{one.default}`" if one.default else "empty"


if __name__ == "__main__":
    print("\n".join(page()))
