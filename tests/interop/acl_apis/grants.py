"""Every API in every version, asked by a client that is allowed one operation on all types of resources, or everything
on one type: what it is refused, and what not. Only errors are recorded.

What is allowed is done, so the requests are changed to such as fail after they were authorized, or change nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, Final

from tests.interop.acl_apis.scenario import (
    ALL,
    CLUSTER,
    CLUSTER_NAME,
    CREATE,
    GROUP,
    GROUPS,
    PREFIXED,
    TOPIC,
    TOPICS,
    TRANSACTIONS,
    VISIBLE,
    Line,
    Session,
    creation,
    selection,
)
from tests.unit.coordinator.api.access import access_world
from tests.unit.coordinator.api.access.access_world import TRANSACTION
from tests.unit.coordinator.api.data_world import batch, fetch_request, produces

from rota.coordinator.api.access.table import ACCESS
from rota.coordinator.api.routes import SERVES
from rota.protocol.messages.alter_user_scram_credentials import ScramCredentialDeletion
from rota.protocol.messages.create_acls import AclCreation
from rota.protocol.messages.delete_acls import DeleteAclsFilter
from rota.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from rota.protocol.messages.describe_user_scram_credentials import UserName
from rota.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from rota.protocol.messages.offset_commit import OffsetCommitRequest
from rota.protocol.messages.offset_fetch import OffsetFetchRequest
from rota.protocol.registry import APIS
from rota.protocol.wire import UUID_ZERO

Ids = Mapping[str, bytes]  # by the name of a topic
Request = Callable[[Ids], Any]
Step = tuple[str, int, Request]

PREFIX: Final = "secret"
TYPES: Final = {"topics": TOPICS, "groups": GROUPS, "cluster": CLUSTER, "transactions": TRANSACTIONS}
OPERATIONS: Final = {
    "read": 3,
    "write": 4,
    "create": CREATE,
    "delete": 6,
    "alter": 7,
    "describe": 8,
    "cluster action": 9,
    "describe configs": 10,
    "alter configs": 11,
    "idempotent write": 12,
}
FOREIGN_ID, UNKNOWN_PRODUCER = bytes(range(16)), 999_999
OTHERS: Final = {
    TOPIC: VISIBLE,
    GROUP: "other-group",
    access_world.CONSUMERS: "others",
    TRANSACTION: "other-transaction",
}
ELSEWHERE: Final = {"host": "10.9.8.7", "principal": "User:nobody"}
HARMLESS: Final[dict[str, dict[str, Any]]] = {
    "join_group": {"session_timeout_ms": 1},
    "consumer_group_heartbeat": {"member_epoch": -3},
    "add_partitions_to_txn": {"v3_and_below_producer_id": UNKNOWN_PRODUCER},
    "add_offsets_to_txn": {"producer_id": UNKNOWN_PRODUCER},
    "end_txn": {"producer_id": UNKNOWN_PRODUCER},
    "txn_offset_commit": {"producer_id": UNKNOWN_PRODUCER},
    "create_acls": {"creations": (creation(TOPICS, TOPIC, ALL, **ELSEWHERE),)},
    "delete_acls": {"filters": (DeleteAclsFilter(**selection(host_filter="10.9.8.7")),)},
    "alter_user_scram_credentials": {
        "upsertions": (),
        "deletions": (ScramCredentialDeletion(name="mallory", mechanism=1),),
    },
    "describe_user_scram_credentials": {"users": (UserName(name="mallory"),)},
}
IDENTITIES: Final = frozenset(
    {"name", "topic", "topic_name", "group_id", "key", "transactional_id", "resource_name", "resource_type"}
    | {"topic_id", "partition_index", "index", "partition", "user", "error_code", "error_message"}
)


def harmless(name: str, request: Any) -> Any:
    """The request changed so that it changes nothing when it is allowed."""
    changes = dict(HARMLESS.get(name, {}))
    if any(field.name == "validate_only" for field in fields(request)):
        changes["validate_only"] = True
    if name == "init_producer_id" and request.transactional_id is not None:
        changes["transaction_timeout_ms"] = 0
    if name == "delete_topics":
        absent = DeleteTopicState(name=f"{PREFIX}-absent", topic_id=UUID_ZERO)
        changes.update(topics=(*request.topics[1:], absent), topic_names=(f"{PREFIX}-absent",))
    if name == "write_txn_markers":
        (marker,) = request.markers
        topics = tuple(replace(topic, name=f"{PREFIX}-absent") for topic in marker.topics)
        changes["markers"] = (replace(marker, topics=topics),)
    return replace(request, **changes)


def of_every_api() -> Iterator[Step]:
    """Every request of the unit tests' table, harmless, in every version; and those that name topics by id."""
    for key, name in SERVES.items():
        if not ACCESS[key].needs:
            continue
        for version in APIS[key].versions:
            for number, request in enumerate(getattr(access_world, name)(version)):
                if not _has_id(name, version):
                    valid = harmless(name, request)
                    yield f"{name} {number}", version, _of(valid)
                    if (more := with_another(valid)) != valid:
                        yield f"{name} {number} and another", version, _of(more)
    yield from by_id()


def _of(request: Any) -> Request:
    return lambda _: request


def with_another(value: Any) -> Any:
    """The value where behind each topic, group or transactional id that a chapter may allow is one that none allows."""
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{each.name: with_another(getattr(value, each.name)) for each in fields(value)})
    if not isinstance(value, tuple):
        return value
    items = []
    for item in map(with_another, value):
        items += [item] if (other := _other(item)) is None else [item, other]
    return tuple(items)


def _other(item: Any) -> Any | None:
    if isinstance(item, str):
        return OTHERS.get(item)
    for field in ("name", "topic", "topic_name", "group_id"):
        if (other := OTHERS.get(getattr(item, field, None) or "")) is not None:
            return replace(item, **{field: other})
    return None


def created() -> Iterator[Step]:
    """Requests that would create a topic, for chapters that do not allow it."""
    for version in APIS[3].versions:
        yield "metadata absent", version, _of(MetadataRequest(topics=(MetadataRequestTopic(name=f"{PREFIX}-absent"),)))


def _has_id(name: str, version: int) -> bool:
    """Whether topics of the request have ids, which a broker draws."""
    return (name, version) in {("produce", 13), ("fetch", 15), ("offset_commit", 10), ("offset_fetch", 10)}


def by_id() -> Iterator[Step]:
    """Requests that name topics by their ids: one that there is, one that there is not."""

    def request(make: Callable[[bytes], Any]) -> Iterator[tuple[str, Request]]:
        yield "by id", lambda ids: make(ids[TOPIC])
        yield "by unknown id", lambda _: make(FOREIGN_ID)

    makers: list[tuple[str, range, Callable[[bytes], Any]]] = [
        ("produce", range(13, 14), lambda topic_id: produces([(topic_id, 0, batch(b"x"))])),
        ("fetch", range(13, 19), lambda topic_id: fetch_request((topic_id, 0, 0))),
        ("metadata", range(12, 14), lambda i: MetadataRequest(topics=(MetadataRequestTopic(name=None, topic_id=i),))),
        ("offset_commit", range(10, 11), _commit),
        ("offset_fetch", range(10, 11), _committed),
    ]
    for name, versions, make in makers:
        for version in versions:
            for how, lazily in request(make):
                yield f"{name} {how}", version, lazily


def _commit(topic_id: bytes) -> OffsetCommitRequest:
    request = next(access_world.commit(9))
    return replace(request, topics=(replace(request.topics[0], name="", topic_id=topic_id),))


def _committed(topic_id: bytes) -> OffsetFetchRequest:
    request, _ = access_world.offset_fetch(9)
    group = request.groups[0]
    topics = (replace(group.topics[0], name="", topic_id=topic_id),)
    return replace(request, groups=(replace(group, topics=topics),))


def deleted_by_id() -> Iterator[Step]:
    """Without permission alone."""
    for which in (TOPIC, ""):
        topic = lambda ids, which=which: DeleteTopicState(name=None, topic_id=ids.get(which, FOREIGN_ID))  # noqa: E731
        yield (
            f"delete_topics by id {which}",
            6,
            lambda ids, topic=topic: DeleteTopicsRequest(topics=(topic(ids),), timeout_ms=1_000),
        )


def on(kind: int, operation: int) -> AclCreation:
    """The ACL for an operation on the cluster, or on all that begins with PREFIX."""
    if kind == CLUSTER:
        return creation(CLUSTER, CLUSTER_NAME, operation)
    return creation(kind, PREFIX, operation, pattern=PREFIXED)


def chapters() -> Iterator[tuple[str, tuple[AclCreation, ...], list[Step]]]:
    """(chapter, what the client is allowed, its requests)."""
    steps = list(of_every_api())
    yield "nothing", (), [*steps, *deleted_by_id()]
    for name, operation in OPERATIONS.items():
        yield name, tuple(on(kind, operation) for kind in TYPES.values()), [*steps, *created()]
    for name, kind in TYPES.items():
        yield f"all on {name}", (on(kind, ALL),), steps


def run_grants_scenario(bootstrap: str, is_played: Callable[[str, str, int], bool] = lambda *_: True) -> Iterator[Line]:
    """Play the conversation, or of its steps (chapter, step, version) some; yield each step's errors."""
    session = Session(bootstrap)
    try:
        session.begin()
        ids = session.topic_ids()
        for chapter, granted, steps in chapters():
            session.grant(granted)
            for step, version, request in steps:
                if is_played(chapter, step, version):
                    errors = errors_of(session.send_request_as_client(request(ids), version))
                    yield {"chapter": chapter, "step": step, "version": version, "answer": errors}
    finally:
        session.end()
        session.close()


def errors_of(answer: Any) -> Any:
    """Of an answer as JSON values the error codes, with their texts and what they are about."""
    if isinstance(answer, list):
        return sorted((each for each in map(errors_of, answer) if each), key=repr)
    if not isinstance(answer, dict):
        return answer
    has_error = "error_code" in answer
    kept = {}
    for name, value in answer.items():
        if isinstance(value, list | dict):
            kept[name] = errors_of(value)
        elif has_error and name in IDENTITIES:
            kept[name] = value
    return {name: value for name, value in kept.items() if value not in ([], {}, None, "")}
