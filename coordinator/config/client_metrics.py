"""The configs of a client metrics subscription (KIP-714): which clients push which metrics, and how often."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from rota.coordinator.config.definition import ConfigRefused, Definition, Type, by_name
from rota.coordinator.config.linear_pattern import LinearPattern

INTERVAL_MS_MIN, INTERVAL_MS_MAX = 100, 3_600_000
MATCH_CHARS_MAX: Final = 1000  # of one pattern
PARSED_MAX: Final = 256  # values of `match` that are kept parsed
MATCHED: Final = (
    "client_id",
    "client_instance_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
)
SUBSCRIPTIONS_MAX: Final = 200  # each request of a client is matched against all of them
_D, _T = Definition, Type

CLIENT_METRICS: Final = by_name(
    (
        _D("interval.ms", _T.INT, "300000", "Time between two pushes of a client, in ms."),
        _D("match", _T.LIST, "", "Clients that push: ATTRIBUTE=REGULAR_EXPRESSION,...; empty: all."),
        _D("metrics", _T.LIST, "", "Prefixes of the names of metrics that clients push; * for all."),
    )
)


class InvalidSubscription(ConfigRefused):
    """The error code is INVALID_REQUEST where Kafka's is not INVALID_CONFIG."""


def check_client_metrics(configs: Mapping[str, str]) -> None:
    """Check the configs of a subscription. Raises ConfigRefused, in Kafka's words."""
    for name, text in configs.items():
        if name not in CLIENT_METRICS:
            raise InvalidSubscription(name, f"Unknown client metrics configuration: {name}")
        value = CLIENT_METRICS[name].parse(text)
        if isinstance(value, int) and not INTERVAL_MS_MIN <= value <= INTERVAL_MS_MAX:
            bounds = f"between {INTERVAL_MS_MIN} and {INTERVAL_MS_MAX} (1 hour)"
            raise InvalidSubscription(name, f"Invalid value {value} for interval.ms, interval must be {bounds}")
    parse_match(configs.get("match", ""))


@lru_cache(maxsize=PARSED_MAX)
def parse_match(text: str) -> Mapping[str, LinearPattern]:
    """Return the pattern of each attribute. Raises ConfigRefused, also for a pattern that may backtrack."""
    patterns: dict[str, LinearPattern] = {}
    for item in filter(None, (each.strip() for each in text.split(","))):
        parts = [part.strip() for part in item.split("=")]
        try:
            if len(parts) != 2 or parts[0] not in MATCHED or len(parts[1]) > MATCH_CHARS_MAX:
                raise ValueError(item)
            patterns[parts[0]] = LinearPattern(parts[1])
        except (ValueError, re.error, RecursionError, OverflowError):
            raise ConfigRefused("match", f"Illegal client matching pattern: {item}") from None
    return patterns
