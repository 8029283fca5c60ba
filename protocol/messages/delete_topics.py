"""DeleteTopics, key 20, versions 1-6.

v1 throttle time · v4 flexible · v5 error message · v6 topics by name or id (KIP-516)
"""

from __future__ import annotations

from rota.protocol.wire import UUID_ZERO, Array, Int16, Int32, String, Uuid, wire, wired


@wired
class DeleteTopicState:
    """A topic by name, or by id with `name` None."""

    name: str | None = wire(String, nullable_since=0, default=None)
    topic_id: bytes = wire(Uuid)


@wired
class DeleteTopicsRequest:
    """v1-5 list `topic_names`, v6 `topics`."""

    KEY, VERSIONS, FLEXIBLE = 20, range(1, 7), 4

    topics: tuple[DeleteTopicState, ...] = wire(Array(DeleteTopicState), since=6, default=())
    topic_names: tuple[str, ...] = wire(Array(String), until=5, default=())
    timeout_ms: int = wire(Int32)


@wired
class DeletableTopicResult:
    name: str | None = wire(String, nullable_since=6)
    topic_id: bytes = wire(Uuid, since=6, default=UUID_ZERO)
    error_code: int = wire(Int16, default=0)
    error_message: str | None = wire(String, since=5, nullable_since=5, default=None)


@wired
class DeleteTopicsResponse:
    """One result for each topic."""

    KEY, VERSIONS, FLEXIBLE = 20, range(1, 7), 4

    throttle_time_ms: int = wire(Int32, default=0)
    responses: tuple[DeletableTopicResult, ...] = wire(Array(DeletableTopicResult), default=())
