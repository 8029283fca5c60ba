"""Guards of the APIs that name topics: Produce, Metadata, ListOffsets, and those that create, change and delete topics.

Law
    AT1 A topic that the principal may not describe looks the same whether it exists or not; listings leave it out.
    AT9 What is wrong with a request whatever topics there are is said before a permission is asked for: a topic that is
        named twice, or by name and id; and that its time is over, if it has any other topic that may be changed.

The file is longer than 400 lines because it is one guard beside the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Final, TypeVar

from rota.coordinator.api.access.request import CLUSTER, TOPIC, Guard, RequestAccess, Serve, after
from rota.coordinator.api.node import CloseConnection
from rota.coordinator.api.throttling import throttle_produce
from rota.coordinator.api.timeout import is_over
from rota.coordinator.metadata.topic import CLUSTER_METADATA
from rota.coordinator.replica.produce_validation import is_transactional
from rota.coordinator.security.operations import NOT_REQUESTED, Operation, ResourceType
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from rota.protocol.messages.create_topics import (
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from rota.protocol.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from rota.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from rota.protocol.messages.describe_producers import DescribeProducersResponse
from rota.protocol.messages.describe_producers import PartitionResponse as ProducersOfPartition
from rota.protocol.messages.describe_producers import TopicResponse as ProducersOfTopic
from rota.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponseTopic,
)
from rota.protocol.messages.describe_topic_partitions import TopicRequest as DescribedTopic
from rota.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from rota.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from rota.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from rota.protocol.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from rota.protocol.wire import UUID_ZERO

T = TypeVar("T", MetadataResponseTopic, DescribeTopicPartitionsResponseTopic)
P = TypeVar("P")
DENIED: Final = ErrorCode.TOPIC_AUTHORIZATION_FAILED
CREATE_DENIED_MESSAGE: Final = "Authorization failed."
DENIED_MESSAGE: Final = "Topic authorization failed."
PRODUCE_IDS_SINCE: Final = 13
DELETE_IDS_SINCE: Final = 6
METADATA_IDS_SINCE: Final = 12
_O = Operation

# ---- records


def produce(access: RequestAccess, request: ProduceRequest, serve: Serve) -> Any:
    """WRITE on each topic, and on the transactional id of records that belong to a transaction.

    Raises CloseConnection for acks=0, which has no response.
    """
    transactional_id, by_id = request.transactional_id, access.call.version >= PRODUCE_IDS_SINCE
    is_of_transaction = transactional_id is not None and _has_transactional_records(request)
    if is_of_transaction and not access.authorize(_O.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id or ""):
        error = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        reply = _counted(access, request, request.topic_data, ProduceResponse())
        return _produced(access, request, reply, request.topic_data, error)
    allowed, denied = access.split(
        _O.WRITE, TOPIC, request.topic_data, lambda topic: access.topic_name(topic.topic_id) if by_id else topic.name
    )
    if not denied:
        return serve(request)
    reply = serve(replace(request, topic_data=tuple(allowed))) if allowed else ProduceResponse()
    reply = _counted(access, request, denied, reply)
    if request.acks == 0:
        raise CloseConnection(f"produce with acks 0 failed: {DENIED.name}")
    return after(reply, lambda response: _produced(access, request, response, denied, DENIED))


def _counted(access: RequestAccess, request: ProduceRequest, denied: Sequence[TopicProduceData], reply: Any) -> Any:
    """CQ15. Count the refused records for the quota of the client; return the reply with the throttle time."""
    throttle = access.node.client_throttle
    if throttle is None:
        return reply
    return throttle_produce(throttle, access.call, replace(request, topic_data=tuple(denied)), reply)


def _has_transactional_records(request: ProduceRequest) -> bool:
    return any(is_transactional(data.records) for topic in request.topic_data for data in topic.partition_data)


def _produced(
    access: RequestAccess,
    request: ProduceRequest,
    response: ProduceResponse,
    denied: Sequence[TopicProduceData],
    error: ErrorCode,
) -> ProduceResponse:
    if request.acks == 0:
        raise CloseConnection(f"produce with acks 0 failed: {error.name}")
    access.call.counters.add_error(error)
    refused = tuple(
        TopicProduceResponse(
            name=topic.name,
            topic_id=topic.topic_id,
            partition_responses=tuple(
                PartitionProduceResponse(index=data.index, error_code=error, base_offset=-1)
                for data in topic.partition_data
            ),
        )
        for topic in denied
    )
    return replace(response, responses=(*response.responses, *refused))


def on_topics(operation: Operation, response_type: type[Any], refused: Callable[[Any], Any]) -> Guard:
    """Return the guard of an API whose request and response have `topics` with partitions."""

    def guard(access: RequestAccess, request: Any, serve: Serve) -> Any:
        allowed, denied = access.split(operation, TOPIC, request.topics, _name)
        if not denied:
            return serve(request)
        access.call.counters.add_error(DENIED)
        refusals = tuple(map(refused, denied))
        if not allowed:
            return response_type(topics=refusals)
        return after(
            serve(replace(request, topics=tuple(allowed))),
            lambda response: replace(response, topics=(*response.topics, *refusals)),
        )

    return guard


def _name(topic: Any) -> str:
    name: str = topic.topic if hasattr(topic, "topic") else topic.name
    return name


def _partitions(result: Callable[..., P], topic: Any) -> tuple[P, ...]:
    """Return a refusal of each partition of a topic in a request."""
    return tuple(result(partition_index=each.partition_index, error_code=DENIED) for each in topic.partitions)


list_offsets: Final = on_topics(
    _O.DESCRIBE,
    ListOffsetsResponse,
    lambda topic: ListOffsetsTopicResponse(
        name=topic.name,
        partitions=_partitions(ListOffsetsPartitionResponse, topic),
    ),
)
delete_records: Final = on_topics(
    _O.DELETE,
    DeleteRecordsResponse,
    lambda topic: DeleteRecordsTopicResult(
        name=topic.name,
        partitions=_partitions(DeleteRecordsPartitionResult, topic),
    ),
)
describe_producers: Final = on_topics(
    _O.READ,
    DescribeProducersResponse,
    lambda topic: ProducersOfTopic(
        name=topic.name,
        partitions=tuple(
            ProducersOfPartition(partition_index=index, error_code=DENIED, error_message=DENIED_MESSAGE)
            for index in topic.partition_indexes
        ),
    ),
)
_epochs_of_consumer: Final = on_topics(
    _O.DESCRIBE,
    OffsetForLeaderEpochResponse,
    lambda topic: OffsetForLeaderTopicResult(
        topic=topic.topic,
        partitions=tuple(EpochEndOffset(partition=each.partition, error_code=DENIED) for each in topic.partitions),
    ),
)


def offset_for_leader_epoch(access: RequestAccess, request: OffsetForLeaderEpochRequest, serve: Serve) -> Any:
    """CLUSTER_ACTION of a broker, else DESCRIBE on each topic."""
    if access.is_allowed(_O.CLUSTER_ACTION, CLUSTER):
        return serve(request)
    return _epochs_of_consumer(access, request, serve)


# ---- what there is


def metadata(access: RequestAccess, request: MetadataRequest, serve: Serve) -> Any:
    """DESCRIBE on each topic; CREATE on the cluster or on a missing topic that the request would create."""
    version = access.call.version
    if request.topics is None or (version == 0 and not request.topics):
        return after(serve(request), lambda response: _listed(access, request, response))
    allowed, refused = _described(access, request)
    if not refused:
        return after(serve(request), lambda response: _with_operations(access, request, response))
    access.call.counters.add_error(DENIED)

    def finish(response: MetadataResponse) -> MetadataResponse:
        topics = response.topics if allowed else ()  # in version 0 a request for no topics is one for all
        return _with_operations(access, request, replace(response, topics=(*topics, *refused)))

    return after(serve(replace(request, topics=tuple(allowed))), finish)


def _described(
    access: RequestAccess, request: MetadataRequest
) -> tuple[list[MetadataRequestTopic], list[MetadataResponseTopic]]:
    """Return the topics that the API may answer, and the errors of the others."""
    requested = request.topics or ()
    by_id = [topic for topic in requested if topic.topic_id != UUID_ZERO]
    if by_id and access.call.version < METADATA_IDS_SINCE:
        return list(requested), []  # the API refuses them all, whatever they name
    if by_id:
        allowed, denied = access.split(_O.DESCRIBE, TOPIC, by_id, lambda topic: access.topic_name(topic.topic_id))
        return allowed, [MetadataResponseTopic(error_code=DENIED, name=None, topic_id=t.topic_id) for t in denied]
    allowed, denied = access.split(_O.DESCRIBE, TOPIC, requested, _name)
    node = access.node
    creates = request.allow_auto_topic_creation and node.config.auto_create_topics_enable
    if creates and not access.is_allowed(_O.CREATE, CLUSTER):
        allowed, not_created = access.split(
            _O.CREATE, TOPIC, allowed, lambda topic: None if topic.name in node.topics else topic.name
        )
        denied += not_created
    return allowed, [MetadataResponseTopic(error_code=DENIED, name=topic.name) for topic in denied]


def _listed(access: RequestAccess, request: MetadataRequest, response: MetadataResponse) -> MetadataResponse:
    visible = tuple(topic for topic in response.topics if access.is_allowed(_O.DESCRIBE, TOPIC, topic.name or ""))
    return _with_operations(access, request, replace(response, topics=visible))


def _with_operations(access: RequestAccess, request: MetadataRequest, response: MetadataResponse) -> MetadataResponse:
    topics = response.topics
    if request.include_topic_authorized_operations:
        topics = tuple(_with_topic_operations(access, topic) for topic in topics)
    cluster = response.cluster_authorized_operations
    if request.include_cluster_authorized_operations:
        cluster = access.operations(CLUSTER) if access.is_allowed(_O.DESCRIBE, CLUSTER) else 0
    return replace(response, topics=topics, cluster_authorized_operations=cluster)


def _with_topic_operations(access: RequestAccess, topic: T) -> T:
    """A refused topic, and an unknown id, have none."""
    name = topic.name
    is_hidden = name is None or topic.error_code == DENIED
    operations = NOT_REQUESTED if is_hidden else access.operations(TOPIC, name or "")
    return replace(topic, topic_authorized_operations=operations)


def describe_topic_partitions(access: RequestAccess, request: DescribeTopicPartitionsRequest, serve: Serve) -> Any:
    """DESCRIBE on each topic. Of a request for all topics only those that may be seen are paged through."""
    if not request.topics:
        names = [name for name in access.node.topics.names() if access.is_allowed(_O.DESCRIBE, TOPIC, name)]
        reduced = _from_cursor(request, names)
        if reduced is None:
            return DescribeTopicPartitionsResponse()
        return _with_partition_operations(access, serve(reduced), ())
    allowed, denied = access.split(_O.DESCRIBE, TOPIC, request.topics, _name)
    refused = tuple(
        DescribeTopicPartitionsResponseTopic(error_code=DENIED, name=topic.name, topic_id=UUID_ZERO) for topic in denied
    )
    if not allowed:
        return DescribeTopicPartitionsResponse(topics=refused)
    return _with_partition_operations(access, serve(replace(request, topics=tuple(allowed))), refused)


def _from_cursor(
    request: DescribeTopicPartitionsRequest, names: Sequence[str]
) -> DescribeTopicPartitionsRequest | None:
    """Return the request for these sorted names, from the cursor on; None when nothing is left."""
    cursor = request.cursor
    if cursor is not None and cursor.topic_name not in names:
        following = next((name for name in names if name > cursor.topic_name), None)
        cursor = None if following is None else Cursor(topic_name=following, partition_index=0)
        if cursor is None:
            return None
    if not names:
        return None
    return replace(request, topics=tuple(DescribedTopic(name=name) for name in names), cursor=cursor)


def _with_partition_operations(
    access: RequestAccess,
    response: DescribeTopicPartitionsResponse,
    refused: tuple[DescribeTopicPartitionsResponseTopic, ...],
) -> DescribeTopicPartitionsResponse:
    topics = tuple(_with_topic_operations(access, topic) for topic in response.topics)
    return replace(response, topics=(*refused, *topics))


# ---- creating, changing and deleting topics


def create_topics(access: RequestAccess, request: CreateTopicsRequest, serve: Serve) -> Any:
    """CREATE on the cluster or on each topic; the configs of a new topic are shown with DESCRIBE_CONFIGS only."""
    if access.is_allowed(_O.CREATE, CLUSTER):
        return after(serve(request), lambda response: _all_created(access, response, ()))
    wrong = _named_twice(map(_name, request.topics)) | {CLUSTER_METADATA}
    allowed, denied = access.split(_O.CREATE, TOPIC, request.topics, _unless(wrong))
    if is_over(request.timeout_ms) and any(topic.name not in wrong for topic in allowed):
        return serve(request)
    refused = tuple(
        CreatableTopicResult(name=topic.name, error_code=DENIED, error_message=CREATE_DENIED_MESSAGE)
        for topic in denied
    )
    if not allowed:
        return CreateTopicsResponse(topics=refused)
    return after(
        serve(replace(request, topics=tuple(allowed))), lambda response: _all_created(access, response, refused)
    )


def _named_twice(keys: Iterable[Hashable]) -> set[Hashable]:
    return {key for key, count in Counter(keys).items() if count > 1}


def _unless(wrong: set[Hashable]) -> Callable[[Any], str | None]:
    """Return what names a topic whose permission is asked for (AT9)."""
    return lambda topic: None if topic.name in wrong else topic.name


def _all_created(
    access: RequestAccess, response: CreateTopicsResponse, refused: tuple[CreatableTopicResult, ...]
) -> CreateTopicsResponse:
    return replace(response, topics=(*(_created(access, topic) for topic in response.topics), *refused))


def _created(access: RequestAccess, topic: CreatableTopicResult) -> CreatableTopicResult:
    if topic.error_code or access.is_allowed(_O.DESCRIBE_CONFIGS, TOPIC, topic.name):
        return topic
    return replace(topic, topic_config_error_code=DENIED, num_partitions=-1, replication_factor=-1, configs=())


def create_partitions(access: RequestAccess, request: CreatePartitionsRequest, serve: Serve) -> Any:
    """ALTER on each topic."""
    wrong = _named_twice(map(_name, request.topics))
    allowed, denied = access.split(_O.ALTER, TOPIC, request.topics, _unless(wrong))
    if is_over(request.timeout_ms) and any(topic.name not in wrong for topic in allowed):
        return serve(request)
    refused = tuple(CreatePartitionsTopicResult(name=topic.name, error_code=DENIED) for topic in denied)
    if not allowed:
        return CreatePartitionsResponse(results=refused)
    return after(
        serve(replace(request, topics=tuple(allowed))),
        lambda response: replace(response, results=(*response.results, *refused)),
    )


def delete_topics(access: RequestAccess, request: DeleteTopicsRequest, serve: Serve) -> Any:
    """DELETE on each topic, or on the cluster.

    AT1: only a client that may describe a topic learns that it does not exist, and gets its name in a refusal by id.
    """
    if access.is_allowed(_O.DELETE, CLUSTER) or is_over(request.timeout_ms):
        return serve(request)
    if access.call.version < DELETE_IDS_SINCE:
        requested: list[Any] = list(request.topic_names)
        twice = _named_twice(requested)
        allowed, denied = access.split(
            _O.DELETE, TOPIC, requested, lambda name: None if name in twice else _to_delete(access, name)
        )
        reduced = replace(request, topic_names=tuple(allowed))
        refused = tuple(
            DeletableTopicResult(name=name, error_code=DENIED, error_message=DENIED_MESSAGE) for name in denied
        )
    else:
        requested = list(request.topics)
        twice = _named_twice((topic.name, topic.topic_id) for topic in requested)
        allowed, denied = access.split(
            _O.DELETE,
            TOPIC,
            requested,
            lambda topic: None if (topic.name, topic.topic_id) in twice else _named_to_delete(access, topic),
        )
        reduced = replace(request, topics=tuple(allowed))
        refused = tuple(_not_deleted(access, topic) for topic in denied)
    if not allowed:
        return DeleteTopicsResponse(responses=refused)
    return after(serve(reduced), lambda response: replace(response, responses=(*response.responses, *refused)))


def _named_to_delete(access: RequestAccess, topic: DeleteTopicState) -> str | None:
    if not topic.name:
        return access.topic_name(topic.topic_id)
    return _to_delete(access, topic.name) if topic.topic_id == UUID_ZERO else None  # both are invalid


def _to_delete(access: RequestAccess, name: str) -> str | None:
    """Return the name, or None for a topic that does not exist and may be described: deleting it shows nothing."""
    is_shown = name not in access.node.topics and access.is_allowed(_O.DESCRIBE, TOPIC, name)
    return None if is_shown else name


def _not_deleted(access: RequestAccess, requested: DeleteTopicState) -> DeletableTopicResult:
    name = requested.name
    if name is None:
        found = access.topic_name(requested.topic_id)
        name = found if found is not None and access.is_allowed(_O.DESCRIBE, TOPIC, found) else None
    return DeletableTopicResult(name=name, topic_id=requested.topic_id, error_code=DENIED, error_message=DENIED_MESSAGE)
