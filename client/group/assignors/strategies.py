"""Resolves the setting `partition_assignment_strategy` to assignors and a rebalance protocol. Pure.

Laws
    A consumer uses the highest rebalance protocol that all its assignors support, as Java's does: cooperative only when
    each of them can; without one in common it is refused.
    Each name makes an assignor of its own: they remember, so two consumers never share one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from rota.client.checks import refused
from rota.client.errors import ConfigError
from rota.client.group.assignors.base import Assignor, RebalanceProtocol
from rota.client.group.assignors.cooperative_sticky import CooperativeStickyAssignor
from rota.client.group.assignors.range import RangeAssignor
from rota.client.group.assignors.roundrobin import RoundRobinAssignor
from rota.client.group.assignors.sticky import StickyAssignor

SETTING: Final = "partition_assignment_strategy"
STRATEGIES: Final[dict[str, type[Assignor]]] = {
    "range": RangeAssignor,
    "roundrobin": RoundRobinAssignor,
    "sticky": StickyAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
}
_JAVA: Final = {f"org.apache.kafka.clients.consumer.{made.__name__}": made for made in STRATEGIES.values()}


def for_name(name: str) -> Assignor:
    """A new assignor by its name, or by the name of Java's class. Raises ConfigError."""
    made = STRATEGIES.get(name) or _JAVA.get(name)
    if made is None:
        raise refused(SETTING, name, f"one of {', '.join(STRATEGIES)}, or an Assignor of your own")
    return made()


def resolve(strategies: str | Iterable[Any]) -> list[Assignor]:
    """Names (also several in one text, with commas), assignors or their classes; the best first. Raises ConfigError."""
    given = [strategy.strip() for strategy in strategies.split(",")] if isinstance(strategies, str) else strategies
    assignors = [_assignor(strategy) for strategy in given]
    names = [assignor.name for assignor in assignors]
    if not names:
        raise refused(SETTING, (), "at least one assignor")
    if len(set(names)) < len(names):
        raise refused(SETTING, ", ".join(names), "assignors with different names")
    return assignors


def rebalance_protocol(assignors: Sequence[Assignor]) -> RebalanceProtocol:
    """The highest that all of them support. Raises ConfigError."""
    common = frozenset(RebalanceProtocol).intersection(*(assignor.supports for assignor in assignors))
    if not common:
        names = ", ".join(assignor.name for assignor in assignors)
        raise ConfigError(f"{SETTING}: {names} have no rebalance protocol in common; choose assignors that do")
    return max(common, key=lambda protocol: protocol.value)


def _assignor(given: Any) -> Assignor:
    if isinstance(given, str):
        return for_name(given)
    made = given() if isinstance(given, type) else given
    if not isinstance(getattr(made, "name", None), str) or not callable(getattr(made, "assign", None)):
        raise refused(SETTING, given, f"one of {', '.join(STRATEGIES)}, or an Assignor of your own")
    assignor: Assignor = made
    return assignor
