"""The settings of a broker's groups that bound each other, checked at the start and before a dynamic change.

Law
    BC8 A broker starts only with the intervals and timeouts of the consumer protocol within their limits, and with
        protocols and assignors that exist, as in Kafka; a dynamic change beyond a limit is refused.
"""

from __future__ import annotations

from typing import Final, Protocol

from rota.coordinator.config.definition import ConfigRefused

PROTOCOLS_NAME: Final = "group.coordinator.rebalance.protocols"
PROTOCOLS: Final = ("consumer", "classic", "share", "streams")
ASSIGNORS_NAME: Final = "group.consumer.assignors"
ASSIGNORS: Final = ("uniform", "range")
_BOUNDED: Final = ("heartbeat.interval.ms", "session.timeout.ms", "assignment.interval.ms")
_SESSION, _HEARTBEAT = "group.consumer.session.timeout.ms", "group.consumer.heartbeat.interval.ms"


class BrokerValues(Protocol):
    """The values of a broker's properties, by attributes with the properties' names."""

    group_coordinator_rebalance_protocols: tuple[str, ...]
    group_consumer_assignors: tuple[str, ...]


def check_groups(broker: BrokerValues) -> None:
    """Check the settings of a start. Raises ConfigRefused, in Kafka's words."""
    check_group_bounds(broker)
    _check_protocols(broker.group_coordinator_rebalance_protocols)
    _check_assignors(broker.group_consumer_assignors)


def check_group_bounds(broker: BrokerValues) -> None:
    """Check the intervals and timeouts of the consumer protocol. Raises ConfigRefused, in Kafka's words."""
    for rest in _BOUNDED:
        name, low, high = f"group.consumer.{rest}", f"group.consumer.min.{rest}", f"group.consumer.max.{rest}"
        _check_order(broker, low, high)
        _check_order(broker, low, name)
        if _number(broker, name) > _number(broker, high):
            raise ConfigRefused(name, f"{name} must be less than or equal to {high}" + _values(broker, name, high))
    if _number(broker, _HEARTBEAT) >= _number(broker, _SESSION):
        values = _values(broker, _HEARTBEAT, _SESSION)
        raise ConfigRefused(_HEARTBEAT, f"{_HEARTBEAT} must be less than {_SESSION}{values}")


def assignor_of(name: str) -> str:
    """Return the name of an assignor by its name or by that of Kafka's class."""
    simple = name.rpartition(".")[2]
    return simple.removesuffix("Assignor").lower() if simple != name else name


def _check_order(broker: BrokerValues, low: str, high: str) -> None:
    if _number(broker, high) < _number(broker, low):
        raise ConfigRefused(high, f"{high} must be greater than or equal to {low}{_values(broker, high, low)}")


def _number(broker: BrokerValues, name: str) -> int:
    value = getattr(broker, name.replace(".", "_"))
    assert isinstance(value, int)
    return value


def _values(broker: BrokerValues, *names: str) -> str:
    return f" ({', '.join(f'{name}={_number(broker, name)}' for name in names)})"


def _check_protocols(names: tuple[str, ...]) -> None:
    unknown = [name for name in names if name not in PROTOCOLS]
    if unknown or not names:
        why = f"Invalid value {unknown[0]}" if unknown else "No value"
        expected = ", ".join(PROTOCOLS)
        raise ConfigRefused(PROTOCOLS_NAME, f"{why} for configuration {PROTOCOLS_NAME}: expected {expected}")
    if "classic" not in names:
        raise ConfigRefused(PROTOCOLS_NAME, f"{PROTOCOLS_NAME}: Disabling the 'classic' protocol is not supported.")


def _check_assignors(names: tuple[str, ...]) -> None:
    unknown = [name for name in names if assignor_of(name) not in ASSIGNORS]
    if unknown or not names:
        why = f"Rota has no assignor {unknown[0]}, and loads no Java classes" if unknown else "it names no assignor"
        raise ConfigRefused(
            ASSIGNORS_NAME, f"Configuration {ASSIGNORS_NAME}: {why}; expected some of {', '.join(ASSIGNORS)}"
        )
