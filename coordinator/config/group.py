"""The configs of a group (KIP-848, KIP-932, KIP-1071): kept and shown as in Kafka.

They belong to consumer, share and streams groups. A classic group has none; those of share and streams groups have no
effect.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from rota.coordinator.config.broker import BrokerConfig
from rota.coordinator.config.broker_properties import USED
from rota.coordinator.config.definition import ConfigRefused, Definition, Type, by_name
from rota.coordinator.config.other_properties import others

INT32_MAX: Final = 2**31 - 1
_D, _T = Definition, Type
_RESET: Final = "share.auto.offset.reset"
_DURATION = re.compile(r"P(?=[\dT])(\d+D)?(T(?=\d)(\d+H)?(\d+M)?(\d+(\.\d{1,9})?S)?)?", re.ASCII | re.IGNORECASE)

GROUP: Final = by_name(
    (
        _D("consumer.assignment.interval.ms", _T.INT, "1000", "Time between two assignments, in ms."),
        _D("consumer.heartbeat.interval.ms", _T.INT, "5000", "Heartbeat interval of the members, in ms."),
        _D("consumer.session.timeout.ms", _T.INT, "45000", "Time without a heartbeat that ends a member, in ms."),
        _D("share.assignment.interval.ms", _T.INT, "1000", "Time between two assignments, in ms."),
        _D(_RESET, _T.STRING, "latest", "Where a share group starts: earliest, latest, by_duration:PnDTnHnMn.nS."),
        _D("share.delivery.count.limit", _T.INT, "5", "How often a share group delivers a record.", 2),
        _D("share.heartbeat.interval.ms", _T.INT, "5000", "Heartbeat interval of the members, in ms."),
        _D(
            "share.isolation.level",
            _T.STRING,
            "read_uncommitted",
            "Isolation level of a share group.",
            choices=("read_committed", "read_uncommitted"),
        ),
        _D("share.partition.max.record.locks", _T.INT, "2000", "Records of a partition that may be locked.", 100),
        _D("share.record.lock.duration.ms", _T.INT, "30000", "How long a member may hold a record, in ms."),
        _D("share.renew.acknowledge.enable", _T.BOOLEAN, "true", "Let members renew the lock of a record."),
        _D("share.session.timeout.ms", _T.INT, "45000", "Time without a heartbeat that ends a member, in ms."),
        _D("streams.assignment.interval.ms", _T.INT, "1000", "Time between two assignments, in ms."),
        _D("streams.heartbeat.interval.ms", _T.INT, "5000", "Heartbeat interval of the members, in ms."),
        _D("streams.initial.rebalance.delay.ms", _T.INT, "3000", "Wait for more members of a new group, in ms.", 0),
        _D("streams.num.standby.replicas", _T.INT, "0", "Standby replicas of each task.", 0),
        _D("streams.session.timeout.ms", _T.INT, "45000", "Time without a heartbeat that ends a member, in ms."),
    )
)


def broker_name_of(name: str) -> str | None:
    """Return the broker property that gives the default of a group's config; None when there is none."""
    broker_name = f"group.{name}"
    return None if _definition(broker_name) is None else broker_name


def limits_of(name: str, broker: BrokerConfig) -> tuple[int, int]:
    """Return the lowest and the highest value that the broker allows for a config of this name."""
    low, high = (_limit(bound, broker) for bound in _bounds_of(name))
    return 0 if low is None else low, INT32_MAX if high is None else high


def number_of(name: str, text: str) -> int:
    """Return the value of a config that is a whole number. Raises ConfigRefused."""
    value = GROUP[name].parse(text)
    assert isinstance(value, int)
    return value


def _definition(broker_name: str) -> Definition | None:
    return USED.get(broker_name) or others().get(broker_name)


def check_group(configs: Mapping[str, str], broker: BrokerConfig) -> None:
    """Check a group's own configs against the limits of the broker. Raises ConfigRefused, in Kafka's words."""
    for name, text in configs.items():
        if name not in GROUP:
            raise ConfigRefused(name, f"Unknown group config name: {name}")
        value = GROUP[name].parse(text)
        if name == _RESET:
            _check_reset(text)
        if isinstance(value, int):
            _check_bounds(name, value, broker)
    for kind in ("consumer", "share", "streams"):
        _check_session(configs, broker, kind)


def _bounds_of(name: str) -> tuple[str, str]:
    """Return the names of the broker's properties with the lowest and the highest value, which may not exist."""
    kind, _, rest = name.partition(".")
    short = rest.removeprefix("num.")
    return f"group.{kind}.min.{short}", f"group.{kind}.max.{short}"


def _check_bounds(name: str, value: int, broker: BrokerConfig) -> None:
    low_name, high_name = _bounds_of(name)
    low, high = _limit(low_name, broker), _limit(high_name, broker)
    if low is not None and value < low:
        raise ConfigRefused(name, f"{name} must be greater than or equal to {low_name}")
    if high is not None and value > high:
        raise ConfigRefused(name, f"{name} must be less than or equal to {high_name}")


def _check_session(configs: Mapping[str, str], broker: BrokerConfig, kind: str) -> None:
    names = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
    session, heartbeat = (int(configs.get(name) or _limit(f"group.{name}", broker) or 0) for name in names)
    if session <= heartbeat:
        raise ConfigRefused(names[0], f"{names[0]} must be greater than {names[1]}")


def _limit(broker_name: str, broker: BrokerConfig) -> int | None:
    definition = _definition(broker_name)
    if definition is None:
        return None
    value = definition.parse(broker.text(broker_name) or definition.default)
    assert isinstance(value, int)
    return value


def _check_reset(text: str) -> None:
    prefix, _, duration = text.strip().partition(":")
    if text.strip() in ("earliest", "latest") or (prefix == "by_duration" and _DURATION.fullmatch(duration)):
        return
    raise ConfigRefused(
        _RESET,
        f"Invalid value {text} for configuration {_RESET}. The value must be either 'earliest', 'latest' or of the "
        "format 'by_duration:<PnDTnHnMn.nS>'.",
    )
