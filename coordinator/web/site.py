"""The parts of the broker that HTTP reads, and whether the broker is ready."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from typing import Protocol

from rota.coordinator.api.node import Node
from rota.coordinator.metadata.image import NOT_REGISTERED
from rota.coordinator.network.connections import Connections
from rota.coordinator.observe.loop_watch import LoopWatch
from rota.protocol.dataclass import dataclass


class IsrCounts(Protocol):
    """ISR changes that were written."""

    @property
    def shrinks(self) -> int: ...
    @property
    def expansions(self) -> int: ...


@dataclass(slots=True)
class Site:
    """The parts of the broker that pages, API and metrics use. `is_started` and `is_stopping` are set by the broker."""

    node: Node
    connections: Connections
    isr_counts: IsrCounts | None = None
    loop_watch: LoopWatch = field(default_factory=LoopWatch)
    is_started: bool = False
    is_stopping: bool = False

    @property
    def is_read_only(self) -> bool:
        """Whether the actions are refused (rota.http.read.only). WB18: unset, they are where ACLs are checked."""
        config = self.node.config
        if config.rota_http_read_only is not None:
            return config.rota_http_read_only
        if config.rota_http_login:
            return False  # WB21: what a user may do is decided for each request
        return self.node.authorizer is not None or config.http is None or not is_loopback(config.http.host)

    @property
    def has_hidden_records(self) -> bool:
        """Whether records are not shown: with ACLs, which the console does not check, unless it may act as well."""
        return self.node.authorizer is not None and self.is_read_only and not self.node.config.rota_http_login


def not_ready(site: Site) -> Iterator[str]:
    """Iterate over the reasons why this broker is not ready to serve; none when it is."""
    if site.is_stopping:
        yield "stopping"
    elif not site.is_started:
        yield "starting: the broker has not joined its cluster yet"
    elif site.node.topics.broker_epoch == NOT_REGISTERED:
        yield "not registered in the cluster"
    if site.connections.is_suspended:
        yield "the process stood still, and its registration is not confirmed yet"
    if site.node.groups.is_loading:
        yield "groups are being loaded"


def is_loopback(host: str) -> bool:
    """Return whether a listener on this host is reached from this machine only."""
    return host == "localhost" or host == "::1" or host.startswith("127.")
