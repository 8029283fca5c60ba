"""Addresses in Kafka's form: `NAME://HOST:PORT`, an IPv6 host in brackets, an empty host for every interface.

A file for a KRaft broker has a listener for the controller, too; it is ignored here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from ipaddress import IPv4Address, IPv6Address, ip_address

from rota.coordinator.config.definition import ConfigRefused
from rota.protocol.dataclass import dataclass

LISTENERS_MAX = 64
_FORM = re.compile(r"([A-Za-z0-9_-]+)://(?:\[([0-9A-Fa-f:.%a-z]+)\]|([^:\[\]/\s]*)):(\d{1,5})")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One address. An empty `host` means every interface; port 0 means any free one."""

    listener: str
    host: str
    port: int

    @property
    def is_every_interface(self) -> bool:
        """Whether it is no address that a client can use, however it is written, as in `[::0]`."""
        address = _ip_address(self.host)
        return self.host in ("", "0") if address is None else address.is_unspecified

    @property
    def is_loopback(self) -> bool:
        """Whether only programs of this machine reach the address. Any host name but localhost may be reached."""
        address = _ip_address(self.host.partition("%")[0])
        return self.host == "localhost" if address is None else address.is_loopback

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.listener}://{host}:{self.port}"


def _ip_address(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None


def parse_endpoint(text: str, name: str = "listeners") -> Endpoint:
    """Return the address in `text`. Raises ConfigRefused; `name` is the property in the message."""
    match = _FORM.fullmatch(text.strip())
    if match is None or int(match[4]) > 0xFFFF:
        raise ConfigRefused(name, f"Invalid value {text!r} for configuration {name}: expected PLAINTEXT://HOST:PORT")
    return Endpoint(match[1].upper(), match[2] or match[3] or "", int(match[4]))


def parse_endpoints(name: str, texts: tuple[str, ...], properties: Mapping[str, str]) -> tuple[Endpoint, ...]:
    """Return the addresses of a list, without those of controllers. Raises ConfigRefused."""
    if len(texts) > LISTENERS_MAX:
        raise ConfigRefused(name, f"Configuration {name} has more than {LISTENERS_MAX} addresses")
    controllers = {each.strip().upper() for each in properties.get("controller.listener.names", "").split(",")}
    addresses = tuple(
        address for address in (parse_endpoint(text, name) for text in texts) if address.listener not in controllers
    )
    if not addresses:
        raise ConfigRefused(name, f"Configuration {name} names no address for clients")
    _check_names(name, addresses)
    return addresses


def parse_advertised(texts: tuple[str, ...] | None, properties: Mapping[str, str]) -> tuple[Endpoint, ...]:
    """Return the addresses for clients; empty when the listeners' own are these. Raises ConfigRefused."""
    if not texts:
        return ()
    addresses = parse_endpoints("advertised.listeners", texts, properties)
    for address in addresses:
        if address.is_every_interface:
            raise ConfigRefused("advertised.listeners", f"No client can reach {address}: name the host")
    return addresses


def _check_names(name: str, addresses: tuple[Endpoint, ...]) -> None:
    names = [address.listener for address in addresses]
    if len(set(names)) < len(names):
        raise ConfigRefused(name, f"Configuration {name} has two addresses with the same listener name")


def parse_http_listener(text: str) -> Endpoint | None:
    """Return the address in HOST:PORT; None for an empty text. Raises ConfigRefused."""
    name = "rota.http.listener"
    if not text:
        return None
    match = _FORM.fullmatch(f"HTTP://{text.strip()}")
    if match is None or int(match[4]) > 0xFFFF:
        raise ConfigRefused(name, f"Invalid value {text!r} for configuration {name}: expected HOST:PORT")
    return Endpoint("HTTP", match[2] or match[3] or "", int(match[4]))


def parse_host_limits(text: str) -> dict[str, int]:
    """Return the most connections of each host from `host:count,...`. Raises ConfigRefused."""
    limits: dict[str, int] = {}
    for pair in filter(None, (each.strip() for each in text.split(","))):
        host, _, count = pair.rpartition(":")
        if not host or not count.isdecimal():
            name = "max.connections.per.ip.overrides"
            raise ConfigRefused(name, f"Invalid value {text!r} for configuration {name}: expected host:count,...")
        limits[host] = int(count)
    return limits
