"""The entries of DescribeConfigs: each config with its value, the source of the value, and its synonyms.

Source: KIP-133, KIP-226 (synonyms), KIP-569 (types and documentation).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import dropwhile
from typing import NamedTuple

from rota.coordinator.config.broker import BrokerConfig, definition_of
from rota.coordinator.config.broker_properties import USED
from rota.coordinator.config.client_metrics import CLIENT_METRICS
from rota.coordinator.config.definition import Definition, Source, Type, Update
from rota.coordinator.config.group import GROUP, broker_name_of
from rota.coordinator.config.listener_security import PREFIX, split_override
from rota.coordinator.config.other_properties import others
from rota.coordinator.config.topic import TopicConfig, usable_topic
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
}

_LISTED_WHEN_SET = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")  # as in Kafka
_IDS = ("node.id", "broker.id")


def describe_topic(stored: Mapping[str, str], broker: BrokerConfig) -> list[ConfigEntry]:
    """Return every config of a topic, as it is in force on this broker, ordered by name."""
    config, _ = usable_topic(stored, broker)
    return [_topic_entry(config, definition) for definition in TOPIC.values()]


def _topic_entry(config: TopicConfig, definition: Definition) -> ConfigEntry:
    name, value = definition.name, definition.shown(config.text(definition.name))
    synonyms = (
        *_topic_synonym(config, definition),
        *_broker_synonyms(SYNONYMS[name][0][0] if name in SYNONYMS else None, config.broker),
    )
    source = synonyms[0].source if synonyms else Source.DEFAULT
    return ConfigEntry(name, value, source, False, definition.is_sensitive, synonyms, definition.type, definition.doc)


def _topic_synonym(config: TopicConfig, definition: Definition) -> Iterator[Synonym]:
    name = definition.name
    if name in config.overrides:
        yield Synonym(name, definition.shown(config.overrides[name]), Source.TOPIC)


def describe_defaults(broker: BrokerConfig) -> list[ConfigEntry]:
    """Return the dynamic configs of all brokers, ordered by name; also those that this broker ignores, as Kafka."""
    stored = {**broker.cluster_defaults, **broker.ignored_defaults}
    return [_default_entry(definition_of(name), value) for name, value in sorted(stored.items())]


def _default_entry(definition: Definition, text: str) -> ConfigEntry:
    value, source = None if definition.is_sensitive else text, Source.DYNAMIC_DEFAULT_BROKER
    synonyms = (Synonym(definition.name, value, source),)
    return ConfigEntry(
        definition.name, value, source, False, definition.is_sensitive, synonyms, definition.type, definition.doc
    )


def describe_group(configs: Mapping[str, str], broker: BrokerConfig) -> list[ConfigEntry]:
    """Return every config of a group, ordered by name."""
    return [_group_entry(configs, broker, definition) for definition in GROUP.values()]


def _group_entry(configs: Mapping[str, str], broker: BrokerConfig, definition: Definition) -> ConfigEntry:
    name = definition.name
    own = (Synonym(name, definition.shown(configs[name]), Source.GROUP),) if name in configs else ()
    broker_name = broker_name_of(name)
    defaults = (
        tuple(_broker_synonyms(broker_name, broker))
        if broker_name is not None
        else (Synonym(name, definition.default, Source.DEFAULT),)
    )
    strongest, *_ = synonyms = (*own, *defaults)
    value, source = definition.shown(strongest.value), strongest.source
    return ConfigEntry(name, value, source, False, False, synonyms, definition.type, definition.doc)


def describe_client_metrics(configs: Mapping[str, str]) -> list[ConfigEntry]:
    """Return every config of a client metrics subscription, ordered by name."""
    return [_client_metrics_entry(configs, definition) for definition in CLIENT_METRICS.values()]


def _client_metrics_entry(configs: Mapping[str, str], definition: Definition) -> ConfigEntry:
    name, source = definition.name, Source.CLIENT_METRICS
    synonyms = (Synonym(name, configs[name], source),) if name in configs else ()
    if not synonyms:
        source = Source.DEFAULT
    value = configs.get(name, definition.default)
    return ConfigEntry(name, value, source, False, False, synonyms, definition.type, definition.doc)


def describe_broker(broker: BrokerConfig) -> list[ConfigEntry]:
    """Return every property of a broker, and those of single listeners that are set (BC11), ordered by name."""
    known = {**USED, **others()}
    known.update((name, definition_of(name)) for name in _of_listeners(broker))
    return [
        _broker_entry(broker, known[name])
        for name in sorted(known)
        if name not in _LISTED_WHEN_SET or broker.text(name) is not None
    ]


def _of_listeners(broker: BrokerConfig) -> Iterator[str]:
    return (name for name in {**broker.properties, **broker.dynamic, **broker.ignored} if name.startswith(PREFIX))


def _broker_entry(broker: BrokerConfig, definition: Definition) -> ConfigEntry:
    name = definition.name
    synonyms = tuple(_broker_synonyms(name, broker))
    source = synonyms[0].source if synonyms else Source.DEFAULT
    given = broker.text(name)
    value = None if definition.is_sensitive else definition.shown(given if given is not None else definition.default)
    if name in _IDS:
        value = str(broker.node_id)
    read_only = definition.update is Update.READ_ONLY or name.startswith(PREFIX)  # as in Kafka, which may change them
    return ConfigEntry(
        name, value, source, read_only, definition.is_sensitive, synonyms, definition.type, definition.doc
    )


def _broker_synonyms(name: str | None, broker: BrokerConfig) -> Iterator[Synonym]:
    """Yield the configs under each name of the property, by source; as in Kafka none before the first of `name`."""
    if name is None:
        return
    override = split_override(name)
    names = (name,) if override is None or override[1] is not None else (name, override[2])
    synonyms = _all_synonyms(_BROKER_SYNONYMS.get(name, names), broker)
    yield from dropwhile(lambda synonym: synonym.name != name, synonyms)


def _all_synonyms(names: Sequence[str], broker: BrokerConfig) -> Iterator[Synonym]:
    sources = (
        ({**broker.dynamic, **broker.ignored}, Source.DYNAMIC_BROKER),
        ({**broker.cluster_defaults, **broker.ignored_defaults}, Source.DYNAMIC_DEFAULT_BROKER),
        (_static(broker), Source.STATIC_BROKER),
    )
    for configs, source in sources:
        for name in names:
            if name in configs:
                yield Synonym(name, None if definition_of(name).is_sensitive else configs[name], source)
    for name in names:
        default = definition_of(name).default
        if default is not None and not name.startswith(PREFIX):
            yield Synonym(name, default, Source.DEFAULT)


def _static(broker: BrokerConfig) -> Mapping[str, str]:
    """Return the properties of the start; either name of the broker's id sets the other one, too."""
    if not broker.properties.keys() & _IDS:
        return broker.properties
    return {**broker.properties, **dict.fromkeys(_IDS, str(broker.node_id))}
