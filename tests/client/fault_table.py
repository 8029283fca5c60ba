"""The leaders and coordinators of the cluster that the fault proxy simulates, and each node's view of it. Pure.

One broker serves all nodes. Its answers about the cluster are rewritten into what N brokers would answer; a node
refuses requests for partitions and groups that another node leads or coordinates.

Laws
    A node serves what it leads now; leader epochs grow with every move and are the same in all answers of the proxy.
    Requests to the broker never carry an epoch or a leader of the proxy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from tests.client.refusals import SHAPES, identity, partitions, refusal

from rota.client.types import TopicPartition
from rota.protocol.messages.describe_cluster import DescribeClusterBroker
from rota.protocol.messages.fetch import LeaderIdAndEpoch as FetchLeader
from rota.protocol.messages.fetch import NodeEndpoint as FetchEndpoint
from rota.protocol.messages.metadata import MetadataResponseBroker
from rota.protocol.messages.produce import LeaderIdAndEpoch as ProduceLeader
from rota.protocol.messages.produce import NodeEndpoint as ProduceEndpoint
from rota.protocol.registry import APIS

NOT_LEADER, NOT_COORDINATOR, FENCED_EPOCH, UNKNOWN_EPOCH = 6, 16, 74, 75
PRODUCE, FETCH, LIST_OFFSETS, METADATA, OFFSET_FETCH = 0, 1, 2, 3, 9
FIND_COORDINATOR, DESCRIBE_GROUPS, LIST_GROUPS, API_VERSIONS, DELETE_GROUPS = 10, 15, 16, 18, 42
OF_LEADERS = {0, 2, 21, 23}  # Fetch has sessions and is apart
OF_ONE_GROUP = {8, 11, 12, 13, 14, 47, 68}
OF_GROUPS = {15: ("groups", "groups"), 42: ("groups_names", "results")}
LEADER_SINCE = {PRODUCE: 10, FETCH: 16}

Named = dict[TopicPartition, int]  # partitions of a fetch, with the leader epoch that the client has


@dataclass(slots=True)
class View:
    """Who does what; `moves` counts how often a partition went elsewhere."""

    nodes: tuple[int, ...]
    leaders: dict[TopicPartition, int] = field(default_factory=dict)
    moves: dict[TopicPartition, int] = field(default_factory=dict)
    coordinators: dict[str, int] = field(default_factory=dict)

    def leader(self, partition: TopicPartition) -> int:
        return self.leaders.get(partition, self.nodes[partition.partition % len(self.nodes)])

    def coordinator(self, group: str) -> int:
        return self.coordinators.get(group, self.nodes[-1])

    def copy(self) -> View:
        return View(self.nodes, dict(self.leaders), dict(self.moves), dict(self.coordinators))


@dataclass(slots=True)
class ProxiedRequest:
    """The request that goes to the broker, and how the broker's answer becomes the node's answer."""

    request: Any  # None: the node answers without the broker
    rewrite_answer: Callable[[Any], Any]


class Table:
    """The state that all nodes share. `address(node)` gives the host and port of a node."""

    def __init__(self, nodes: tuple[int, ...], address: Callable[[int], tuple[str, int]]) -> None:
        self.now = View(nodes)
        self.old_views: dict[int, View] = {}  # the outdated view that a node still answers with
        self.controller = nodes[0]
        self.hidden: set[int] = set()  # nodes that no metadata names
        self.sends_leaders = True  # KIP-951
        self._address = address
        self._epochs: dict[TopicPartition, int] = {}  # the broker's
        self._names: dict[bytes, str] = {}
        self._sessions: dict[int, Named] = {}

    # ---- changes

    def lead(self, partition: TopicPartition, node: int) -> None:
        """`node` leads from now on, in a new epoch."""
        self.now.leaders[partition] = node
        self.now.moves[partition] = self.now.moves.get(partition, 0) + 1

    def coordinate(self, group: str, node: int) -> None:
        self.now.coordinators[group] = node

    def view(self, node: int) -> View:
        """The view of the cluster that this node answers with."""
        return self.old_views.get(node, self.now)

    # ---- requests

    def proxied_request(self, node: int, request: Any, version: int) -> ProxiedRequest:
        """How this node serves a request."""
        key = request.KEY
        if key == FETCH:
            return self._fetch(node, request, version)
        if key in OF_LEADERS:
            return self._of_leaders(node, request, version)
        if key in OF_ONE_GROUP:
            return self._of_one_group(node, request, version)
        if key == OFFSET_FETCH:
            return self._offset_fetch(node, request, version)
        if key in OF_GROUPS:
            return self._of_groups(node, request, version)
        rewrite = getattr(self, f"_rewrite_{APIS[key].name}", None)
        if rewrite is None:
            return ProxiedRequest(request, lambda answer: answer)
        return ProxiedRequest(request, lambda answer: rewrite(node, request, answer))

    def epoch(self, partition: TopicPartition) -> int:
        return self._epochs.get(partition, 0) + self.now.moves.get(partition, 0)

    def name(self, topic: Any) -> str | None:
        """The name of a topic in a message, also when it goes by its id."""
        named = getattr(topic, "name", None) or getattr(topic, "topic", None)
        return named or self._names.get(getattr(topic, "topic_id", b""))

    def _wrong(self, node: int, partition: TopicPartition | None, epoch: int) -> int:
        """The error code for a partition that this node does not serve; 0 when it does. The epoch is checked first, as
        in Kafka."""
        if partition is None:
            return 0
        if 0 <= epoch < self.epoch(partition):
            return FENCED_EPOCH
        if epoch > self.epoch(partition):
            return UNKNOWN_EPOCH
        return 0 if self.now.leader(partition) == node else NOT_LEADER

    # ---- what leaders are asked

    def _of_leaders(self, node: int, request: Any, version: int) -> ProxiedRequest:
        shape = SHAPES[request.KEY]
        refused: dict[int, list[Any]] = {}
        mine = []
        for topic in getattr(request, shape.topics):
            named, kept = self.name(topic), []
            for item in getattr(topic, shape.partitions):
                partition = None if named is None else TopicPartition(named, getattr(item, shape.index))
                code = self._wrong(node, partition, getattr(item, "current_leader_epoch", -1))
                if code:
                    refused.setdefault(code, []).append(replace(topic, **{shape.partitions: (item,)}))
                else:
                    kept.append(
                        replace(item, current_leader_epoch=-1) if hasattr(item, "current_leader_epoch") else item
                    )
            if kept:
                mine.append(replace(topic, **{shape.partitions: tuple(kept)}))
        refusals = [
            refusal(replace(request, **{shape.topics: tuple(topics)}), version, code)
            for code, topics in refused.items()
        ]
        forwarded = replace(request, **{shape.topics: tuple(mine)}) if mine or not refused else None

        def rewrite_answer(answer: Any) -> Any:
            whole = [*([] if answer is None else [answer]), *refusals]
            topics = [topic for part in whole for topic in getattr(part, shape.answer_topics)]
            merged = replace(whole[0], **{shape.answer_topics: _gathered(topics, shape.answer_partitions)})
            return self._with_leaders(merged, version)

        return ProxiedRequest(forwarded, rewrite_answer)

    def _fetch(self, node: int, request: Any, version: int) -> ProxiedRequest:
        named = self._session_of(request)
        wrong = any(self._wrong(node, *item) for item in named.items())
        topics = tuple(
            replace(topic, partitions=tuple(replace(item, current_leader_epoch=-1) for item in topic.partitions))
            for topic in request.topics
        )
        forwarded = replace(request, topics=topics, max_wait_ms=0 if wrong else request.max_wait_ms)

        def rewrite_answer(answer: Any) -> Any:
            if answer.error_code == 0 and request.session_epoch == 0 and answer.session_id:
                self._sessions[answer.session_id] = named
            codes = {item: code for item, epoch in named.items() if (code := self._wrong(node, item, epoch))}
            return self._with_leaders(self.spoiled(answer, codes, version), version)

        return ProxiedRequest(forwarded, rewrite_answer)

    def session(self, request: Any) -> tuple[TopicPartition, ...]:
        """The partitions that a fetch is about, also those that only its session knows."""
        return tuple(self._session_of(request))

    def _session_of(self, request: Any) -> Named:
        named = {item: at.current_leader_epoch for item, at in partitions(request, self.name) if item is not None}
        if request.session_epoch <= 0:
            return named
        session = self._sessions.setdefault(request.session_id, {})
        for topic in request.forgotten_topics_data:
            for index in topic.partitions:
                session.pop(TopicPartition(self.name(topic) or "", index), None)
        session.update(named)
        return session

    def spoiled(self, answer: Any, codes: dict[TopicPartition, int], version: int) -> Any:
        """A fetch's answer that says these codes of these partitions, and no records."""
        if not codes:
            return answer
        shape, ids = SHAPES[FETCH], {name: item for item, name in self._names.items()}
        topics = [
            replace(topic, partitions=kept)
            for topic in answer.responses
            if (kept := tuple(o for o in topic.partitions if (self.name(topic), o.partition_index) not in codes))
        ]
        for item, code in codes.items():
            named = {"topic_id": ids[item.topic]} if version >= 13 else {"topic": item.topic}
            topics.append(shape.topic(**named, partitions=(shape.partition(item.partition, code),)))
        return replace(answer, responses=_gathered(topics, "partitions"))

    def _with_leaders(self, answer: Any, version: int) -> Any:
        """KIP-951: beside NOT_LEADER_OR_FOLLOWER stands who leads."""
        key = answer.KEY
        if not self.sends_leaders or version < LEADER_SINCE.get(key, version + 1):
            return answer
        kind, endpoint = (ProduceLeader, ProduceEndpoint) if key == PRODUCE else (FetchLeader, FetchEndpoint)
        shape, leaders, topics = SHAPES[key], set[int](), []
        for topic in answer.responses:
            partitions = []
            for item in getattr(topic, shape.answer_partitions):
                index = item.index if key == PRODUCE else item.partition_index
                at = TopicPartition(self.name(topic) or "", index)
                if item.error_code in (NOT_LEADER, FENCED_EPOCH):
                    leaders.add(self.now.leader(at))
                    leader = kind(leader_id=self.now.leader(at), leader_epoch=self.epoch(at))
                    partitions.append(replace(item, current_leader=leader))
                else:
                    partitions.append(item)
            topics.append(replace(topic, **{shape.answer_partitions: tuple(partitions)}))
        endpoints = tuple(endpoint(node_id=node, **self._at(node)) for node in sorted(leaders))
        return replace(answer, responses=tuple(topics), node_endpoints=endpoints)

    # ---- what coordinators are asked

    def _of_one_group(self, node: int, request: Any, version: int) -> ProxiedRequest:
        if self.now.coordinator(request.group_id) == node:
            return ProxiedRequest(request, lambda answer: answer)
        return ProxiedRequest(None, lambda _: refusal(request, version, NOT_COORDINATOR))

    def _offset_fetch(self, node: int, request: Any, version: int) -> ProxiedRequest:
        groups = [request.group_id] if version < 8 else [item.group_id for item in request.groups]
        others = [item for item in groups if self.now.coordinator(item) != node]
        if not others:
            return ProxiedRequest(request, lambda answer: answer)
        if version < 8 or len(others) == len(groups):
            return ProxiedRequest(None, lambda _: refusal(request, version, NOT_COORDINATOR))
        refused = refusal(
            replace(request, groups=tuple(item for item in request.groups if item.group_id in others)),
            version,
            NOT_COORDINATOR,
        )
        mine = replace(request, groups=tuple(item for item in request.groups if item.group_id not in others))
        return ProxiedRequest(mine, lambda answer: replace(answer, groups=answer.groups + refused.groups))

    def _of_groups(self, node: int, request: Any, version: int) -> ProxiedRequest:
        field_name, answer_field = OF_GROUPS[request.KEY]
        groups = getattr(request, field_name)
        mine = tuple(item for item in groups if self.now.coordinator(item) == node)
        others = tuple(item for item in groups if item not in mine)
        if not others:
            return ProxiedRequest(request, lambda answer: answer)
        refused = refusal(replace(request, **{field_name: others}), version, NOT_COORDINATOR)
        if not mine:
            return ProxiedRequest(None, lambda _: refused)
        return ProxiedRequest(
            replace(request, **{field_name: mine}),
            lambda answer: replace(
                answer, **{answer_field: getattr(answer, answer_field) + getattr(refused, answer_field)}
            ),
        )

    # ---- answers about the cluster

    def _at(self, node: int) -> dict[str, Any]:
        host, port = self._address(node)
        return {"host": host, "port": port}

    def _listed(self) -> list[int]:
        return [node for node in self.now.nodes if node not in self.hidden]

    def _rewrite_Metadata(self, node: int, request: Any, answer: Any) -> Any:
        self.learn(answer)
        view = self.view(node)
        topics = tuple(
            replace(
                topic,
                partitions=tuple(
                    self._partition(view, TopicPartition(topic.name, p.partition_index), p) for p in parts
                ),
            )
            for topic in answer.topics
            for parts in [topic.partitions]
        )
        brokers = tuple(MetadataResponseBroker(node_id=item, **self._at(item)) for item in self._listed())
        return replace(answer, brokers=brokers, controller_id=self.controller, topics=topics)

    def learn(self, answer: Any) -> None:
        """Ids and leader epochs as the broker has them."""
        for topic in answer.topics:
            if topic.name is not None and any(topic.topic_id):
                self._names[topic.topic_id] = topic.name
            for item in topic.partitions:
                self._epochs[TopicPartition(topic.name, item.partition_index)] = max(item.leader_epoch, 0)

    def _partition(self, view: View, at: TopicPartition, item: Any) -> Any:
        if item.leader_id < 0:
            return item
        nodes = view.nodes
        epoch = -1 if item.leader_epoch < 0 else item.leader_epoch + view.moves.get(at, 0)
        return replace(item, leader_id=view.leader(at), leader_epoch=epoch, replica_nodes=nodes, isr_nodes=nodes)

    def _rewrite_DescribeTopicPartitions(self, node: int, request: Any, answer: Any) -> Any:
        view = self.view(node)
        return replace(
            answer,
            topics=tuple(
                replace(
                    topic,
                    partitions=tuple(
                        self._partition(view, TopicPartition(topic.name, p.partition_index), p)
                        for p in topic.partitions
                    ),
                )
                for topic in answer.topics
            ),
        )

    def _rewrite_DescribeCluster(self, node: int, request: Any, answer: Any) -> Any:
        brokers = tuple(DescribeClusterBroker(broker_id=item, **self._at(item)) for item in self._listed())
        return replace(answer, brokers=brokers, controller_id=self.controller)

    def _rewrite_FindCoordinator(self, node: int, request: Any, answer: Any) -> Any:
        if request.key_type not in (0, 1):  # of groups, of transactional ids
            return answer
        view = self.view(node)
        if request.key and not answer.error_code:
            there = view.coordinator(request.key)
            return replace(answer, node_id=there, **self._at(there))
        coordinators = tuple(
            item
            if item.error_code
            else replace(item, node_id=view.coordinator(item.key), **self._at(view.coordinator(item.key)))
            for item in answer.coordinators
        )
        return replace(answer, coordinators=coordinators)

    def _rewrite_ListGroups(self, node: int, request: Any, answer: Any) -> Any:
        mine = tuple(item for item in answer.groups if self.now.coordinator(item.group_id) == node)
        return replace(answer, groups=mine)

    def _rewrite_ApiVersions(self, node: int, request: Any, answer: Any) -> Any:
        """Only the APIs and versions that the proxy can decode."""
        known = tuple(
            replace(item, max_version=min(item.max_version, APIS[item.api_key].versions[-1]))
            for item in answer.api_keys
            if item.api_key in APIS
        )
        return replace(answer, api_keys=known)


def _gathered(topics: list[Any], inner: str) -> tuple[Any, ...]:
    """One entry for each topic, with all its partitions."""
    found: dict[Any, Any] = {}
    for topic in topics:
        key = tuple(sorted(identity(topic).items()))
        before = found.get(key)
        found[key] = (
            topic if before is None else replace(before, **{inner: getattr(before, inner) + getattr(topic, inner)})
        )
    return tuple(found.values())
