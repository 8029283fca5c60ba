"""DescribeConfigs, key 32, versions 1-4.

v1 sources and synonyms (KIP-226) · v3 types and documentation (KIP-569) · v4 flexible

Topics, this broker and its loggers, groups, and client metrics subscriptions: every config with its value, source and
default. The empty broker name stands for the defaults of all brokers that were set while they run. A broker without
`advertised.listeners` shows here the address that it tells this client in Metadata (law EP1), from STATIC_BROKER.
"""

from __future__ import annotations

from rota.coordinator.api.node import Call, Node
from rota.coordinator.api.repeats import Repeats
from rota.coordinator.config.definition import INT_MAX, Source, Type
from rota.coordinator.config.describe import (
    ConfigEntry,
    Synonym,
    describe_broker,
    describe_client_metrics,
    describe_defaults,
    describe_group,
    describe_topic,
)
from rota.coordinator.config.listeners import Endpoint
from rota.coordinator.metadata.changes import ConfigKind
from rota.coordinator.metadata.topic import Refusal
from rota.coordinator.metadata.topic_names import refuse_name
from rota.coordinator.observe.logger_levels import LOGGER_LEVELS
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = TYPES = 2, 4, 8, 16, 32  # of resources (KIP-133)
ADVERTISED = "advertised.listeners"
_UNKNOWN_TOPIC = Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "")  # Kafka has no text for it here
ID_CHARS_MAX = len(str(-INT_MAX))


def describe_configs(node: Node, call: Call, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
    """Return one result for each resource. As in Kafka, one of an unknown type refuses them all (BC10)."""
    unknown, repeats = unknown_type(request), Repeats()
    return DescribeConfigsResponse(
        results=tuple(
            _result(request, resource, unknown or _repeated(repeats, resource) or _describe(node, call, resource))
            for resource in request.resources
        )
    )


def unknown_type(request: DescribeConfigsRequest) -> Refusal | None:
    """Return why the whole request is refused, if it names a resource of an unknown type."""
    for resource in request.resources:
        if resource.resource_type not in TYPES:
            why = f"Unexpected resource type {resource.resource_type} for resource {resource.resource_name}"
            return Refusal(ErrorCode.INVALID_REQUEST, why)
    return None


def _repeated(repeats: Repeats, resource: DescribeConfigsResource) -> Refusal | None:
    if repeats.is_refused((resource.resource_type, resource.resource_name)):
        return Refusal(ErrorCode.INVALID_REQUEST, "The resource is in the request too often")
    return None


def _result(
    request: DescribeConfigsRequest, resource: DescribeConfigsResource, found: list[ConfigEntry] | Refusal
) -> DescribeConfigsResult:
    if isinstance(found, Refusal):
        return DescribeConfigsResult(
            error_code=found.code,
            error_message=found.message,
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
        )
    names = set(resource.configuration_keys or ())  # empty: all
    return DescribeConfigsResult(
        error_message="",
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=tuple(_config(request, described) for described in found if not names or described.name in names),
    )


def _describe(node: Node, call: Call, resource: DescribeConfigsResource) -> list[ConfigEntry] | Refusal:
    name, image = resource.resource_name, node.topics
    match resource.resource_type:
        case kind if kind == TOPIC:
            return _describe_topic(node, name)
        case kind if kind == BROKER:
            return _describe_broker(node, call, name)
        case kind if kind == BROKER_LOGGER:
            return _describe_loggers(node, name)
        case kind if kind == GROUP and name:
            return describe_group(image.resource_configs(ConfigKind.GROUPS, name), node.config)
        case kind if kind == GROUP:
            return Refusal(ErrorCode.INVALID_REQUEST, "Group name must not be empty")
        case kind if kind == CLIENT_METRICS and name:
            return describe_client_metrics(image.resource_configs(ConfigKind.CLIENT_METRICS, name))
        case _:
            return Refusal(ErrorCode.INVALID_REQUEST, "Client metrics subscription name must not be empty")


def _describe_loggers(node: Node, name: str) -> list[ConfigEntry] | Refusal:
    if not name:
        return Refusal(ErrorCode.INVALID_REQUEST, "Broker id must not be empty")
    refusal = refuse_broker(node, name, "Unexpected broker id, expected {} but received {}")
    if refusal is not None:
        return refusal
    doc, source, kind = "Level of this logger.", Source.BROKER_LOGGER, Type.UNKNOWN
    levels = sorted(LOGGER_LEVELS.all().items())
    return [ConfigEntry(logger, level, source, False, False, (), kind, doc) for logger, level in levels]


def _describe_topic(node: Node, name: str) -> list[ConfigEntry] | Refusal:
    refusal = refuse_name(name)
    if refusal is not None:
        return refusal
    topic = node.topics.get(name)
    return _UNKNOWN_TOPIC if topic is None else describe_topic(topic.configs, node.config)


def _describe_broker(node: Node, call: Call, name: str) -> list[ConfigEntry] | Refusal:
    if not name:
        return describe_defaults(node.config)
    refusal = refuse_broker(node, name, "Unexpected broker id, expected {} or empty string, but received {}")
    if refusal is not None:
        return refusal
    return [
        _advertised(node, call, described) if described.name == ADVERTISED else described
        for described in describe_broker(node.config)
    ]


def _advertised(node: Node, call: Call, described: ConfigEntry) -> ConfigEntry:
    if node.config.advertises:
        return described
    value = str(Endpoint(call.listener, call.reached_host, call.reached_port))
    synonym = Synonym(ADVERTISED, value, Source.STATIC_BROKER)
    return described._replace(value=value, source=Source.STATIC_BROKER, synonyms=(synonym, *described.synonyms))


def refuse_broker(
    node: Node, name: str, text: str = "Unexpected broker id, expected {}, but received {}", *, noun: str = "Broker"
) -> Refusal | None:
    """Return an error unless the resource's name is the id of this broker. `text` has places for both ids."""
    if not _is_id(name):
        return Refusal(ErrorCode.INVALID_REQUEST, f"{noun} id must be an integer, but it is: {name}")
    if int(name) == node.config.node_id:
        return None
    return Refusal(ErrorCode.INVALID_REQUEST, text.format(node.config.node_id, name))


def _is_id(name: str) -> bool:
    is_number = name.isascii() and name.removeprefix("-").isdecimal() and len(name) <= ID_CHARS_MAX
    return is_number and abs(int(name)) <= INT_MAX


def _config(request: DescribeConfigsRequest, described: ConfigEntry) -> DescribeConfigsResourceResult:
    synonyms = tuple(DescribeConfigsSynonym(name=s.name, value=s.value, source=s.source) for s in described.synonyms)
    return DescribeConfigsResourceResult(
        name=described.name,
        value=described.value,
        read_only=described.read_only,
        config_source=described.source,
        is_sensitive=described.sensitive,
        synonyms=synonyms if request.include_synonyms else (),
        config_type=described.type,
        documentation=described.doc if request.include_documentation else None,
    )
