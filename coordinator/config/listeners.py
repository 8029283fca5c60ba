"""Addresses in Kafka's form: `NAME://HOST:PORT`, an IPv6 host in brackets, an empty host for every interface.

A file written for a broker of Kafka's metadata quorum names a controller's listener too: it is left out here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from rota.coordinator.config.definition import ConfigRefused

LISTENERS_MAX = 64
_FORM = re.compile(r"([A-Za-z0-9_-]+)://(?:\[([0-9A-Fa-f:.%a-z]+)\]|([^:\[\]/\s]*)):(\d{1,5})")
PROTECTED = ("SSL", "SASL_PLAINTEXT", "SASL_SSL")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One address. An empty `host` means every interface; port 0 means any free one."""

    listener: str
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.listener}://{host}:{self.port}"


def endpoint(text: str, name: str = "listeners") -> Endpoint:
    """The address in `text`. Raises ConfigRefused under the property's `name`."""
    found = _FORM.fullmatch(text.strip())
    if found is None or int(found[4]) > 0xFFFF:
        raise ConfigRefused(name, f"Invalid value {text!r} for configuration {name}: right is PLAINTEXT://HOST:PORT")
    return Endpoint(found[1].upper(), found[2] or found[3] or "", int(found[4]))


def endpoints(name: str, texts: tuple[str, ...], properties: Mapping[str, str]) -> tuple[Endpoint, ...]:
    """The addresses of a list, without those of controllers. Raises ConfigRefused."""
    if len(texts) > LISTENERS_MAX:
        raise ConfigRefused(name, f"Configuration {name} has more than {LISTENERS_MAX} addresses")
    controllers = {each.strip().upper() for each in properties.get("controller.listener.names", "").split(",")}
    found = tuple(one for one in (endpoint(text, name) for text in texts) if one.listener not in controllers)
    if not found:
        raise ConfigRefused(name, f"Configuration {name} names no address for clients")
    _check_plain(name, found, properties)
    return found


def advertised(texts: tuple[str, ...] | None, properties: Mapping[str, str]) -> tuple[Endpoint, ...]:
    """The addresses that clients are told; empty when they are told the one they used. Raises ConfigRefused."""
    if not texts:
        return ()
    found = endpoints("advertised.listeners", texts, properties)
    for one in found:
        if one.host in ("", "0.0.0.0", "::"):
            raise ConfigRefused("advertised.listeners", f"No client can reach {one}: name the host")
    return found


def _check_plain(name: str, found: tuple[Endpoint, ...], properties: Mapping[str, str]) -> None:
    names = [one.listener for one in found]
    if len(set(names)) < len(names):
        raise ConfigRefused(name, f"Configuration {name} has two addresses of one listener name")
    pairs = [pair.partition(":") for pair in properties.get("listener.security.protocol.map", "").split(",")]
    protocols = {left.strip().upper(): right.strip().upper() for left, _, right in pairs}
    for listener in names:
        if protocols.get(listener, listener) in PROTECTED:
            raise ConfigRefused(name, f"Configuration {name}: {listener} is protected, and Rota has no TLS or SASL yet")


def host_limits(text: str) -> dict[str, int]:
    """The connections that single hosts may have, of `host:count,...`. Raises ConfigRefused."""
    limits: dict[str, int] = {}
    for pair in filter(None, (each.strip() for each in text.split(","))):
        host, _, count = pair.rpartition(":")
        if not host or not count.isdecimal():
            name = "max.connections.per.ip.overrides"
            raise ConfigRefused(name, f"Invalid value {text!r} for configuration {name}: right is host:count,...")
        limits[host] = int(count)
    return limits
