"""The dynamic configs of a broker and of all brokers, and their valid values (KIP-226).

Law
    BC2 What is accepted has an effect, or is known to have none and is reported in a warning. A property that only a
        start reads, that Rota does not know, or that it cannot obey, is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from rota.coordinator.config.broker import BrokerConfig, definition_of
from rota.coordinator.config.definition import ConfigRefused, Definition, Support, Update
from rota.coordinator.config.dependent_values import misfits
from rota.coordinator.config.topic import TopicConfig


def check_dynamic(names: Iterable[str], *, of_all_brokers: bool) -> None:
    """Check that these properties may be set while a broker runs. Raises ConfigRefused, in Kafka's words."""
    definitions = [definition_of(name) for name in names]
    read_only = [each.name for each in definitions if each.update is Update.READ_ONLY]
    if read_only:
        raise ConfigRefused(read_only[0], f"Cannot update these configs dynamically: [{', '.join(read_only)}]")
    per_broker = [each.name for each in definitions if each.update is Update.PER_BROKER]
    if of_all_brokers and per_broker:
        raise ConfigRefused(
            per_broker[0],
            "Cannot update these configs at default cluster level, broker id must be specified: "
            f"[{', '.join(per_broker)}]",
        )


def check_value(name: str, text: str) -> None:
    """Raises ConfigRefused for a value that is invalid, or that Rota cannot obey."""
    definition = definition_of(name)
    value = definition.parse(text)
    if definition.support is Support.REFUSED and not _is_default(definition, value):
        raise ConfigRefused(name, f"Configuration {name} is not supported: {definition.doc}")


def check_topics(
    config: BrokerConfig, topics: Iterable[tuple[str, Mapping[str, str]]], current: BrokerConfig | None = None
) -> None:
    """Check that these topics, by name and own configs, are valid on such a broker. Raises ConfigRefused.

    A topic that is invalid on a broker with the `current` configuration, too, is passed over: no change would be
    possible until somebody has corrected that topic.
    """
    TopicConfig({}, config)
    distinct = {frozenset(overrides.items()): topic for topic, overrides in topics}  # most topics have the same configs
    for overrides, topic in distinct.items():
        refused = _refusal(overrides, config)
        if refused is not None and (current is None or _refusal(overrides, current) is None):
            raise ConfigRefused(refused.name, f"Configuration of topic {topic} would be invalid: {refused}")


def _refusal(overrides: Iterable[tuple[str, str]], config: BrokerConfig) -> ConfigRefused | None:
    try:
        TopicConfig(dict(overrides), config)
    except ConfigRefused as refused:
        return refused
    return None


def usable(configs: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """Return those of the stored configs that this release can use, and why it ignores the others."""
    used, ignored = dict[str, str](), []
    for name, text in configs.items():
        try:
            check_dynamic([name], of_all_brokers=False)
            check_value(name, text)
            BrokerConfig().with_dynamic({}, {name: text})
        except ConfigRefused as refused:
            ignored.append(str(refused))
        else:
            used[name] = text
    return used, ignored


def fitting(
    broker: BrokerConfig, defaults: Mapping[str, str], own: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, str], list[str]]:
    """Return the dynamic configs without those that do not fit on this broker, and why it ignores these (BC8).

    Those of all brokers may fit on the broker alone that has accepted them. Raises ConfigRefused.
    """
    defaults, own, ignored = dict(defaults), dict(own), list[str]()
    while (misfit := next(misfits(broker.with_dynamic(defaults, own)), None)) is not None:
        # those of this broker first: the value below is that of all brokers
        above = own if misfit.names & own.keys() else defaults
        names = misfit.names & above.keys()
        assert names, "the properties of a start fit each other"
        ignored += [f"{name}={above.pop(name)}: {misfit}" for name in sorted(names)]
    return defaults, own, ignored


def is_known(name: str) -> bool:
    """Return whether there is a property of that name."""
    try:
        definition_of(name)
    except ConfigRefused:
        return False
    return True


def without_effect(names: Iterable[str]) -> Iterator[str]:
    """Yield a warning for each property that is accepted and has no effect."""
    for name in names:
        definition = definition_of(name)
        if definition.support is not Support.USED:
            yield f"{name} has no effect ({definition.doc})"


def _is_default(definition: Definition, value: object) -> bool:
    return value in (definition.parse(definition.default), "", ())
