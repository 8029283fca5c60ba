"""The values of a broker's properties that depend on each other, checked at the start and before a dynamic change.

Law
    BC8 A broker starts only with values that fit each other, as Kafka does: intervals and timeouts within their limits,
        protocols and assignors that exist. A dynamic change that does not fit is refused; one that is stored already
        is ignored (BC4), and does not block others.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Protocol

from rota.coordinator.config.definition import ConfigRefused

PROTOCOLS_NAME: Final = "group.coordinator.rebalance.protocols"
PROTOCOLS: Final = ("consumer", "classic", "share", "streams")
ASSIGNORS_NAME: Final = "group.consumer.assignors"
ASSIGNORS: Final = ("uniform", "range")
_BOUNDED: Final = ("heartbeat.interval.ms", "session.timeout.ms", "assignment.interval.ms")
_DELAY, _IDLE = "connection.failed.authentication.delay.ms", "connections.max.idle.ms"
_PER_ADDRESS: Final = "max.connections.per.ip"
_ORDERED: Final = (
    ("replica.fetch.wait.max.ms", "replica.lag.time.max.ms", "to prevent frequent changes in ISR"),
    ("replica.fetch.wait.max.ms", "replica.socket.timeout.ms", "to prevent unnecessary socket timeouts"),
)
_SESSION, _HEARTBEAT = "group.consumer.session.timeout.ms", "group.consumer.heartbeat.interval.ms"


class Misfit(ConfigRefused):
    """Values of these properties do not fit each other."""

    def __init__(self, message: str, *names: str) -> None:
        super().__init__(names[0], message)
        self.names = frozenset(names)


class BrokerValues(Protocol):
    """The values of a broker's properties, by attributes with the properties' names."""

    group_coordinator_rebalance_protocols: tuple[str, ...]
    group_consumer_assignors: tuple[str, ...]
    max_connections_per_ip_overrides: str

    def text(self, name: str) -> str | None:
        """Return the value in force as text; None for one that is not set."""


def check_values(broker: BrokerValues) -> None:
    """Check the values of a start. Raises ConfigRefused, mostly in Kafka's words."""
    check_dependent_values(broker)
    _check_protocols(broker.group_coordinator_rebalance_protocols)
    _check_assignors(broker.group_consumer_assignors)


def check_logs(broker: BrokerValues) -> None:
    """Check folders and the retention in force. Raises ConfigRefused."""
    for name in ("log.dirs", "log.dir"):
        text = broker.text(name)
        if text is not None and not all(folder.strip() for folder in text.split(",")):
            raise ConfigRefused(name, f"Configuration {name}={text!r} names no folder, or has an empty name")
    for name in ("log.retention.ms", "log.retention.minutes", "log.retention.hours"):
        value = getattr(broker, name.replace(".", "_"))
        if value == 0:
            raise ConfigRefused(name, f"{name} must be unlimited (-1) or, greater than or equal to 1")
        if value is not None:
            return  # the others have no effect, and Kafka starts with any


def check_dependent_values(broker: BrokerValues, current: BrokerValues | None = None) -> None:
    """Check what a dynamic change, too, can bring out of order. Raises ConfigRefused, mostly in Kafka's words.

    What does not fit in the `current` values either is passed over: no other change would be possible (BC5).
    """
    known = set() if current is None else {str(misfit) for misfit in misfits(current)}
    for misfit in misfits(broker):
        if str(misfit) not in known:
            raise misfit


def assignor_of(name: str) -> str:
    """Return the name of an assignor by its name or by that of Kafka's class."""
    simple = name.rpartition(".")[2]
    return simple.removesuffix("Assignor").lower() if simple != name else name


def misfits(broker: BrokerValues) -> Iterator[Misfit]:
    """Yield what does not fit."""
    yield from _group_misfits(broker)
    for low, high, why in _ORDERED:
        if _number(broker, low) > _number(broker, high):
            values = _values(broker, low, high)
            yield Misfit(f"{low} should always be less than or equal to {high} {why}{values}", low, high)
    delay, idle = _number(broker, _DELAY), _number(broker, _IDLE)
    if 0 <= idle <= delay:
        why = f"should always be less than {_IDLE}={idle}, so that the response of a failed authentication is sent"
        yield Misfit(f"{_DELAY}={delay} {why}", _DELAY, _IDLE)
    if _number(broker, _PER_ADDRESS) == 0 and not broker.max_connections_per_ip_overrides:
        overrides = f"{_PER_ADDRESS}.overrides"
        yield Misfit(f"{_PER_ADDRESS} can be set to zero only if {overrides} property is set.", _PER_ADDRESS, overrides)


def _group_misfits(broker: BrokerValues) -> Iterator[Misfit]:
    for rest in _BOUNDED:
        name, low, high = f"group.consumer.{rest}", f"group.consumer.min.{rest}", f"group.consumer.max.{rest}"
        for above in (high, name):
            if _number(broker, above) < _number(broker, low):
                values = _values(broker, above, low)
                yield Misfit(f"{above} must be greater than or equal to {low}{values}", above, low)
        if _number(broker, name) > _number(broker, high):
            yield Misfit(f"{name} must be less than or equal to {high}{_values(broker, name, high)}", name, high)
    if _number(broker, _HEARTBEAT) >= _number(broker, _SESSION):
        values = _values(broker, _HEARTBEAT, _SESSION)
        yield Misfit(f"{_HEARTBEAT} must be less than {_SESSION}{values}", _HEARTBEAT, _SESSION)


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
