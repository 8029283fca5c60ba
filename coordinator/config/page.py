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

Rota uses Kafka's names, in a file (`rota serve --config FILE`, Java's `.properties` format) and one by one
(`--set NAME=VALUE`). In ascending order of precedence: `--preset`, the file, variables of the environment (with
`--environment`: `KAFKA_NODE_ID` is `node.id`), `--data` and `--listen`, `--set`. The error for an unknown name has the
nearest known name, that for an invalid value the valid ones. This page is rendered from `coordinator/config/` by
`python -m rota.coordinator.config.page`.

Rota listens on 127.0.0.1 by default; Kafka listens on every interface. Other hosts reach a listener in plain text only
with `rota.allow.plaintext.beyond.loopback=true` ([Security](SECURITY.md)). Without `advertised.listeners` each client
of a listener on every interface gets the address that it used.

## Properties of the broker that have an effect

The column *changes* says when a property changes: `at the start`, or while the broker runs (`cluster-wide`), by
`kafka-configs --alter --entity-type brokers` or any admin client: for one broker (`--entity-name ID`) or for all
(`--entity-default`). The metadata store keeps these values. A value is that of the broker, else that for all brokers,
else that of its start, else the default.

| name | default | valid values | changes | description |
|---|---|---|---|---|"""
_TOPICS = """
## Configs of a topic

| name | default | valid values | the broker's name | description |
|---|---|---|---|---|"""
_OTHERS = """
## Accepted without effect

These names of Apache Kafka 4.3 are accepted, listed by DescribeConfigs, and named in a warning at the start."""
_REFUSED = """
## Refused

A value other than the default is refused: to ignore such a setting would be dangerous."""


def page() -> Iterator[str]:
    """The lines of docs/SETTINGS.md."""
    yield from _HEAD.split("\n")
    for definition in (each for each in USED.values() if each.support is Support.USED):
        changes = "at the start" if definition.update is Update.READ_ONLY else definition.update.value
        yield f"| `{definition.name}` | {_default(definition)} | {definition.valid()} | {changes} | {definition.doc} |"
    yield from _TOPICS.split("\n")
    for definition in TOPIC.values():
        synonyms = ", ".join(f"`{name}`" for name, _ in SYNONYMS.get(definition.name, ()))
        valid = definition.valid()
        note = "" if definition.support is Support.USED else f" ({definition.support.value})"
        yield f"| `{definition.name}` | {_default(definition)} | {valid} | {synonyms} | {definition.doc}{note} |"
    known = (*USED.values(), *others().values())
    yield from _listed(_OTHERS, (definition for definition in known if definition.support is Support.NO_EFFECT))
    yield from _listed(_REFUSED, (definition for definition in known if definition.support is Support.REFUSED))
    yield from ("", "## Presets", "")
    for name, properties in PRESETS.items():
        yield f"- `{name}`: " + ", ".join(f"`{each}={value}`" for each, value in properties.items())


def _listed(head: str, definitions: Iterable[Definition]) -> Iterator[str]:
    yield from head.split("\n")
    reasons: dict[str, list[str]] = {}
    for definition in definitions:
        reasons.setdefault(definition.doc, []).append(f"`{definition.name}`")
    for reason, names in reasons.items():
        yield from ("", f"- **{reason}** " + ", ".join(names))


def _default(definition: Definition) -> str:
    if definition.default is None:
        return "none"
    return f"`{definition.default}`" if definition.default else "empty"


if __name__ == "__main__":
    print("\n".join(page()))
