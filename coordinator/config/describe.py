"""The entries of DescribeConfigs: each config with its value, the source of the value, and its synonyms.

Source: KIP-133, KIP-226 (synonyms), KIP-569 (types and documentation).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from rota.coordinator.config.broker import BrokerConfig
from rota.coordinator.config.broker_properties import USED
from rota.coordinator.config.definition import Definition, Source, Type, Update
from rota.coordinator.config.other_properties import others
from rota.coordinator.config.topic import TopicConfig
from rota.coordinator.config.topic_properties import SYNONYMS, TOPIC


class Synonym(NamedTuple):
    """One source of a config's value; an entry lists the strongest first."""

    name: str
    value: str | None
    source: Source


class ConfigEntry(NamedTuple):
    """One config as DescribeConfigs shows it. `value` is None when it is unset or sensitive."""

    name: str
    value: str | None
    source: Source
    read_only: bool
    sensitive: bool
    synonyms: tuple[Synonym, ...]
    type: Type
    doc: str


_TIME_UNITS = (
    ("log.roll.ms", "log.roll.hours"),
    ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
)
_BROKER_SYNONYMS = {name: names for names in _TIME_UNITS for name in names} | {
    "log.flush.interval.ms": ("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
    "broker.id": ("broker.id", "node.id"),
    "node.id": ("node.id", "broker.id"),
}


def describe_topic(overrides: Mapping[str, str | None], broker: BrokerConfig) -> list[ConfigEntry]:
    """Return every config of a topic, ordered by name. Raises ConfigRefused when `overrides` are invalid."""
    config = TopicConfig(overrides, broker)
    return [_topic_entry(config, definition) for definition in TOPIC.values()]


def _topic_entry(config: TopicConfig, definition: Definition) -> ConfigEntry:
    name, value = definition.name, config.text(definition.name)
    synonyms = (
        *_topic_synonym(config, name),
        *_broker_synonyms(SYNONYMS[name][0][0] if name in SYNONYMS else None, config.broker),
    )
    source = synonyms[0].source if synonyms else Source.DEFAULT
    return ConfigEntry(name, value, source, False, definition.sensitive, synonyms, definition.type, definition.doc)


def _topic_synonym(config: TopicConfig, name: str) -> Iterator[Synonym]:
    if name in config.overrides:
        yield Synonym(name, config.overrides[name], Source.TOPIC)


def describe_broker(broker: BrokerConfig) -> list[ConfigEntry]:
    """Return every property of a broker, ordered by name."""
    known = {**USED, **others()}
    return [_broker_entry(broker, known[name]) for name in sorted(known)]


def _broker_entry(broker: BrokerConfig, definition: Definition) -> ConfigEntry:
    name = definition.name
    synonyms = tuple(_broker_synonyms(name, broker))
    source = synonyms[0].source if synonyms else Source.DEFAULT
    value = None if definition.sensitive else broker.properties.get(name, definition.default)
    if name in ("node.id", "broker.id"):
        value = str(broker.node_id)
    read_only = definition.update is Update.READ_ONLY
    return ConfigEntry(name, value, source, read_only, definition.sensitive, synonyms, definition.type, definition.doc)


def _broker_synonyms(name: str | None, broker: BrokerConfig) -> Iterator[Synonym]:
    """Yield the broker's settings under each name of the config, then the default of `name`."""
    if name is None:
        return
    definition = USED.get(name) or others()[name]
    for each in _BROKER_SYNONYMS.get(name, (name,)):
        if each in broker.properties:
            shown = None if definition.sensitive else broker.properties[each]
            yield Synonym(each, shown, Source.STATIC_BROKER)
    if definition.default is not None:
        yield Synonym(name, definition.default, Source.DEFAULT)
