"""The permissions of the principal of one request, for the guards. Denials are in the audit log.

A guard is a function `guard(access, request, serve)` around an API. `serve(request)` runs the API; the guard gives it
the part of the request that is allowed, and adds the errors of the rest to the response.

Law
    AT6 A guard compares what a request names with what is known, never with the rest of the request: its work grows as
        the request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from rota.coordinator.api.node import Call, Node
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.coordinator.security.acl import CLUSTER_NAME
from rota.coordinator.security.authorizer import Action, Authorizer
from rota.coordinator.security.denials import Denials
from rota.coordinator.security.operations import Operation, ResourceType

T = TypeVar("T")
Serve = Callable[..., Any]  # of the request; an API may take what its guard knows besides
Guard = Callable[["RequestAccess", Any, Serve], Any]

TOPIC, GROUP, CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER


class RequestAccess:
    """The decisions for one request."""

    __slots__ = ("_authorizer", "api", "call", "host", "node")

    def __init__(self, node: Node, authorizer: Authorizer, call: Call, api: str) -> None:
        self.node, self._authorizer, self.call, self.api = node, authorizer, call, api
        self.host = call.client_host.lstrip("/")

    def authorize(self, operation: Operation, resource_type: ResourceType, name: str = CLUSTER_NAME) -> bool:
        """Return whether the principal may do that; a denial is written to the audit log."""
        decision = self._authorizer.decide(self.call.principal, self.host, operation, resource_type, name)
        if not decision.is_allowed:
            action = Action(self.call.principal, self.host, operation, resource_type, name)
            self._denials().add(self.api, action, decision, self.node.now_ms())
        return decision.is_allowed

    def _denials(self) -> Denials:
        """Return the audit log of the broker, which begins with the first denial."""
        if self.node.denials is None:
            self.node.denials = Denials(self.node.timers.at)
        return self.node.denials

    def is_allowed(self, operation: Operation, resource_type: ResourceType, name: str = CLUSTER_NAME) -> bool:
        """Return the same without a line in the audit log: for what is hidden, not refused."""
        return self._authorizer.is_allowed(self.call.principal, self.host, operation, resource_type, name)

    def is_any_allowed(self, operation: Operation, resource_type: ResourceType) -> bool:
        """Return whether the principal may do that with any resource of the type."""
        return self._authorizer.is_any_allowed(self.call.principal, self.host, operation, resource_type)

    def operations(self, resource_type: ResourceType, name: str = CLUSTER_NAME) -> int:
        """Return the allowed operations as a set of bits (KIP-430)."""
        return self._authorizer.operations(self.call.principal, self.host, resource_type, name)

    def topic_name(self, topic_id: bytes) -> str | None:
        """Return the name of a topic; None when there is none with this id."""
        topic = self.node.topics.by_id(topic_id)
        return None if topic is None else topic.name

    def split(
        self, operation: Operation, resource_type: ResourceType, items: Iterable[T], name_of: Callable[[T], str | None]
    ) -> tuple[list[T], list[T]]:
        """Return the allowed and the denied items. One without a name (an unknown id) is allowed: it shows nothing."""
        allowed: list[T] = []
        denied: list[T] = []
        for item in items:
            name = name_of(item)
            is_allowed = name is None or self.authorize(operation, resource_type, name)
            (allowed if is_allowed else denied).append(item)
        return allowed, denied


def after(reply: Any, finish: Callable[[Any], Any]) -> Any:
    """Apply `finish` to a response, now or when it is given."""
    return reply.map(finish) if isinstance(reply, DelayedReply) else finish(reply)
