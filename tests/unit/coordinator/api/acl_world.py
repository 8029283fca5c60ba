"""A broker without sockets that has an authorizer, and requests about ACLs."""

from __future__ import annotations

from typing import Any

from tests.unit.coordinator.api.data_world import World

from rota.coordinator.api.create_acls import create_acls
from rota.coordinator.metadata.store import Store
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.coordinator.security.acl_nodes import open_authorizer
from rota.protocol.messages.create_acls import AclCreation, CreateAclsRequest

ANY, LITERAL, PREFIXED, MATCH = 1, 3, 4, 2
TOPIC, GROUP, CLUSTER = 2, 3, 4
READ, WRITE = 3, 4
DENY, ALLOW = 2, 3
ON = {"authorizer.class.name": "Any"}


class AclWorld(World):
    """`properties` as of a broker; without them access control is on."""

    def __init__(self, properties: dict[str, str] | None = None, store: Store | None = None) -> None:
        super().__init__(ON if properties is None else properties, store=store)
        self.node.authorizer = open_authorizer(self.node.config, self.node.topics)

    def send_request(self, api: Any, request: Any) -> Any:
        reply = self.serve(api, request, 3)
        return reply.result() if isinstance(reply, DelayedReply) else reply

    def create(self, *creations: AclCreation) -> list[tuple[int, str | None]]:
        """The (error code, message) of each."""
        response = self.send_request(create_acls, CreateAclsRequest(creations=creations))
        return [(result.error_code, result.error_message) for result in response.results]


def creation(name: str = "orders", **fields: Any) -> AclCreation:
    defaults: dict[str, Any] = {
        "resource_type": TOPIC,
        "resource_pattern_type": LITERAL,
        "principal": "User:alice",
        "host": "*",
        "operation": READ,
        "permission_type": ALLOW,
    }
    return AclCreation(resource_name=name, **{**defaults, **fields})
