"""What DescribeConfigs says: every config with its value, where that comes from and what it would be without.

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
    """One place that can give a config its value, the strongest first."""

    name: str
    value: str | None
    source: Source


class Described(NamedTuple):
    """One config as DescribeConfigs shows it. `value` is None for what is unset and for what is secret."""

    name: str
    value: str | None
    source: Source
    read_only: bool
    sensitive: bool
    synonyms: tuple[Synonym, ...]
    type: Type
    doc: str


_SAME_TIME = (
    ("log.roll.ms", "log.roll.hours"),
    ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
)
_BROKER_SYNONYMS = {name: names for names in _SAME_TIME for name in names} | {
    "log.flush.interval.ms": ("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
    "broker.id": ("broker.id", "node.id"),
    "node.id": ("node.id", "broker.id"),
}


def describe_topic(overrides: Mapping[str, str | None], broker: BrokerConfig) -> list[Described]:
    """Every config of a topic, in the order of their names. Raises ConfigRefused when `overrides` are wrong."""
    config = TopicConfig(overrides, broker)
    return [_topic_one(config, definition) for definition in TOPIC.values()]


def _topic_one(config: TopicConfig, definition: Definition) -> Described:
    name, value = definition.name, config.text(definition.name)
    synonyms = (*_own(config, name), *_given(SYNONYMS[name][0][0] if name in SYNONYMS else None, config.broker))
    source = synonyms[0].source if synonyms else Source.DEFAULT
    return Described(name, value, source, False, definition.sensitive, synonyms, definition.type, definition.doc)


def _own(config: TopicConfig, name: str) -> Iterator[Synonym]:
    if name in config.overrides:
        yield Synonym(name, config.overrides[name], Source.TOPIC)


def describe_broker(broker: BrokerConfig) -> list[Described]:
    """Every property of a broker, in the order of their names."""
    known = {**USED, **others()}
    return [_broker_one(broker, known[name]) for name in sorted(known)]


def _broker_one(broker: BrokerConfig, definition: Definition) -> Described:
    name = definition.name
    synonyms = tuple(_given(name, broker))
    source = synonyms[0].source if synonyms else Source.DEFAULT
    value = None if definition.sensitive else broker.properties.get(name, definition.default)
    if name in ("node.id", "broker.id"):
        value = str(broker.node_id)
    read_only = definition.update is Update.READ_ONLY
    return Described(name, value, source, read_only, definition.sensitive, synonyms, definition.type, definition.doc)


def _given(name: str | None, broker: BrokerConfig) -> Iterator[Synonym]:
    """What the broker's file says under any name of the thing, then the default of the name itself."""
    if name is None:
        return
    definition = USED.get(name) or others()[name]
    for each in _BROKER_SYNONYMS.get(name, (name,)):
        if each in broker.properties:
            shown = None if definition.sensitive else broker.properties[each]
            yield Synonym(each, shown, Source.STATIC_BROKER)
    if definition.default is not None:
        yield Synonym(name, definition.default, Source.DEFAULT)
