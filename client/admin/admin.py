"""The admin client: topics, configurations, groups and their offsets, the cluster.

Laws
    A call about several things returns a dict from name to result when all succeed, and raises AdminFailed with `done`
    and `failed` otherwise. A call without results returns None.
    A failure of the whole call (no broker answers, a version is missing) is raised as itself.
    `timeout_ms` bounds the whole call with all its requests; the default is default_api_timeout_ms.
    A single name where several are expected is refused before anything is sent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any, Self

from rota.client.admin import (
    cluster_info,
    configs,
    group_offsets,
    groups,
    lag,
    partition_offsets,
    records,
    reset,
    topics,
)
from rota.client.admin.asking import Deadline
from rota.client.admin.cluster_info import ClusterDescription
from rota.client.admin.configs import Changes, ConfigEntry, ConfigResource
from rota.client.admin.descriptions import GroupDescription
from rota.client.admin.groups import GroupListing
from rota.client.admin.lag import PartitionLag
from rota.client.admin.topics import CreatedTopic, NewPartitions, NewTopic, TopicDescription, TopicListing
from rota.client.checks import several, topic_partitions
from rota.client.config import AdminConfig
from rota.client.errors import IllegalUse
from rota.client.network.cluster import Cluster
from rota.client.types import OffsetAndMetadata, OffsetAndTimestamp, TopicPartition


class Admin:
    """`async with Admin(AdminConfig(bootstrap_servers="127.0.0.1:9092")) as admin: …`

    Without `async with`: `await admin.start()` first, `await admin.close()` in the end. Calls may run side by side.
    """

    def __init__(self, config: AdminConfig) -> None:
        self._config = config
        self._cluster: Cluster | None = None
        self._is_closed = False

    @classmethod
    def from_properties(cls, properties: Mapping[str, Any]) -> Self:
        """From Kafka's dotted names. Raises ConfigError."""
        return cls(AdminConfig.from_properties(properties))

    async def start(self) -> Self:
        """Connect to the cluster; returns this Admin. Raises Unreachable, which names each address."""
        if self._cluster is not None or self._is_closed:
            raise IllegalUse("this Admin was started before; make a new one")
        self._cluster = Cluster(self._config)
        await self._cluster.start()
        return self

    async def close(self) -> None:
        """Close the connections; calls under way end with Unreachable. May be called again."""
        self._is_closed = True
        if self._cluster is not None:
            await self._cluster.close()

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # topics

    async def create_topics(
        self,
        new: Iterable[NewTopic],
        *,
        validate_only: bool = False,
        wait: bool = True,
        timeout_ms: int | None = None,
    ) -> dict[str, CreatedTopic]:
        """Topics by name. With `wait` until all partitions have leaders that a broker knows of, so that they can be
        used at once. Codes in AdminFailed: TOPIC_ALREADY_EXISTS, INVALID_TOPIC_EXCEPTION, INVALID_PARTITIONS,
        INVALID_REPLICATION_FACTOR, INVALID_CONFIG, POLICY_VIOLATION."""
        new = several("new", new, "NewTopic")
        deadline = self._deadline(timeout_ms)
        return await topics.create_topics(self._on, new, deadline, validate_only=validate_only, wait=wait)

    async def delete_topics(
        self, names: Iterable[str | bytes], *, wait: bool = True, timeout_ms: int | None = None
    ) -> None:
        """By name or by id (16 bytes, as descriptions give it). With `wait` until the broker that is asked does not
        show them any more."""
        names = several("names", names, "topic names or ids")
        await topics.delete_topics(self._on, names, self._deadline(timeout_ms), wait=wait)

    async def create_partitions(
        self,
        totals: Mapping[str, int | NewPartitions],
        *,
        validate_only: bool = False,
        wait: bool = True,
        timeout_ms: int | None = None,
    ) -> None:
        """The new number of partitions for each topic. Keys may go to other partitions then."""
        deadline = self._deadline(timeout_ms)
        await topics.create_partitions(self._on, totals, deadline, validate_only=validate_only, wait=wait)

    async def describe_topics(
        self, names: Iterable[str], *, timeout_ms: int | None = None
    ) -> dict[str, TopicDescription]:
        """Partitions with leaders and replicas; UnknownTopic in AdminFailed for what is not there. Creates nothing."""
        names = several("names", names, "topic names")
        return await topics.describe_topics(self._on, names, self._deadline(timeout_ms))

    async def list_topics(self, *, internal: bool = False, timeout_ms: int | None = None) -> dict[str, TopicListing]:
        """All topics; with `internal` also the brokers' own."""
        return await topics.list_topics(self._on, self._deadline(timeout_ms), internal=internal)

    # configurations

    async def describe_configs(
        self,
        resources: Iterable[ConfigResource],
        *,
        keys: Iterable[str] | None = None,
        synonyms: bool = False,
        documentation: bool = False,
        timeout_ms: int | None = None,
    ) -> dict[ConfigResource, dict[str, ConfigEntry]]:
        """For each resource its settings by name: those in `keys`, or all."""
        resources = several("resources", resources, "ConfigResource")
        keys = None if keys is None else several("keys", keys, "names of settings")
        return await configs.describe_configs(
            self._on,
            resources,
            self._deadline(timeout_ms),
            keys=keys,
            synonyms=synonyms,
            documentation=documentation,
        )

    async def alter_configs(
        self,
        changes: Mapping[ConfigResource, Changes],
        *,
        validate_only: bool = False,
        timeout_ms: int | None = None,
    ) -> None:
        """`{ConfigResource.topic("orders"): {"retention.ms": "60000", "cleanup.policy": ConfigChange.append("compact"),
        "segment.bytes": None}}`: a value is set, None goes back to the default, what is not named stays."""
        await configs.alter_configs(self._on, changes, self._deadline(timeout_ms), validate_only=validate_only)

    # records and offsets of partitions

    async def delete_records(
        self, before: Mapping[TopicPartition, int], *, timeout_ms: int | None = None
    ) -> dict[TopicPartition, int]:
        """Delete what lies before an offset (-1: all that is there); the start of each log afterwards."""
        topic_partitions("before", before)
        return await records.delete_records(self._on, before, self._deadline(timeout_ms))

    async def list_offsets(
        self,
        times: Mapping[TopicPartition, int],
        *,
        isolation_level: str = "read_uncommitted",
        timeout_ms: int | None = None,
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """EARLIEST, LATEST, MAX_TIMESTAMP or a time in ms since the epoch; None where no record is that young."""
        topic_partitions("times", times)
        deadline = self._deadline(timeout_ms)
        return await partition_offsets.list_offsets(self._on, times, deadline, isolation_level=isolation_level)

    async def elect_leaders(
        self, partitions: Iterable[TopicPartition], *, unclean: bool = False, timeout_ms: int | None = None
    ) -> dict[TopicPartition, bool]:
        """Let the first replica lead; with `unclean` any, though records may be lost (KIP-460). False: nothing had to
        be done."""
        partitions = topic_partitions("partitions", partitions)
        return await cluster_info.elect_leaders(self._on, partitions, self._deadline(timeout_ms), unclean=unclean)

    # groups

    async def list_groups(
        self,
        *,
        states: Iterable[str] = (),
        types: Iterable[str] = (),
        timeout_ms: int | None = None,
    ) -> dict[str, GroupListing]:
        """The groups of every broker; `states` as "Stable", "Empty", `types` as "classic", "consumer". Raises
        Unsupported where a broker cannot filter; AdminFailed (by broker id) where one did not answer."""
        states = several("states", states, "states of groups")
        types = several("types", types, "types of groups")
        return await groups.list_groups(self._on, self._deadline(timeout_ms), states=states, types=types)

    async def describe_groups(
        self, names: Iterable[str], *, timeout_ms: int | None = None
    ) -> dict[str, GroupDescription]:
        """State, assignor, members with subscription and assignment, coordinator; groups of the classic and of the
        consumer protocol (KIP-848). GROUP_ID_NOT_FOUND for what is not there."""
        names = several("names", names, "group ids")
        return await groups.describe_groups(self._on, names, self._deadline(timeout_ms))

    async def delete_groups(self, names: Iterable[str], *, timeout_ms: int | None = None) -> None:
        """With their offsets. NON_EMPTY_GROUP while there are members."""
        names = several("names", names, "group ids")
        await groups.delete_groups(self._on, names, self._deadline(timeout_ms))

    async def remove_members(
        self,
        group: str,
        *,
        members: Iterable[str] = (),
        instances: Iterable[str] = (),
        everybody: bool = False,
        reason: str = "removed by an administrator",
        timeout_ms: int | None = None,
    ) -> None:
        """Members by member id, static ones by group instance id, or whoever is there (KIP-345). The broker logs the
        reason (KIP-800). A member that still runs joins again."""
        deadline = self._deadline(timeout_ms)
        given = several("members", members, "member ids"), several("instances", instances, "group instance ids")
        if everybody == any(given):
            raise IllegalUse("remove_members takes members and instances, or everybody=True; not both, not neither")
        if everybody:
            await groups.remove_all_members(self._on, group, deadline, reason=reason)
        else:
            await groups.remove_members(self._on, group, deadline, members=given[0], instances=given[1], reason=reason)

    # offsets of groups

    async def list_group_offsets(
        self,
        names: Iterable[str] | Mapping[str, Iterable[TopicPartition] | None],
        *,
        timeout_ms: int | None = None,
    ) -> dict[str, dict[TopicPartition, OffsetAndMetadata | None]]:
        """For each group what it has committed: everything, or of the partitions in a mapping, None where nothing is.
        A group that does not exist has nothing."""
        groups = names if isinstance(names, Mapping) else dict.fromkeys(several("names", names, "group ids"))
        partitions = {
            group: None if of is None else topic_partitions(f"names[{group!r}]", of) for group, of in groups.items()
        }
        return await group_offsets.list_group_offsets(self._on, partitions, self._deadline(timeout_ms))

    async def alter_group_offsets(
        self,
        group: str,
        offsets: Mapping[TopicPartition, int | OffsetAndMetadata],
        *,
        timeout_ms: int | None = None,
    ) -> None:
        """Set committed offsets. UNKNOWN_MEMBER_ID while there are members."""
        topic_partitions("offsets", offsets)
        await group_offsets.alter_group_offsets(self._on, group, offsets, self._deadline(timeout_ms))

    async def delete_group_offsets(
        self, group: str, partitions: Iterable[TopicPartition], *, timeout_ms: int | None = None
    ) -> None:
        """Forget committed offsets (KIP-496). GROUP_SUBSCRIBED_TO_TOPIC while members read the topic."""
        partitions = topic_partitions("partitions", partitions)
        await group_offsets.delete_group_offsets(self._on, group, partitions, self._deadline(timeout_ms))

    async def reset_group_offsets(
        self,
        group: str,
        what: Iterable[str | TopicPartition] | None = None,
        *,
        to: str | None = None,
        time_ms: int | None = None,
        offset: int | None = None,
        shift_by: int | None = None,
        dry_run: bool = False,
        timeout_ms: int | None = None,
    ) -> dict[TopicPartition, int]:
        """Move a group that has no members: `to="earliest"` or `"latest"`, to the first record at or after `time_ms`,
        to an `offset`, or by so many records on or back (`shift_by`). `what`: topics and partitions; None: all that the
        group has committed. What lies outside the log becomes its start or end. `dry_run` sets nothing.

        Returns what was set. Raises BrokerError (NON_EMPTY_GROUP) that names the members, AdminFailed."""
        what = None if what is None else several("what", what, "topic names and TopicPartition")
        goal = reset.Goal(to, time_ms, offset, shift_by)
        deadline = self._deadline(timeout_ms)
        return await reset.reset_group_offsets(self._on, group, what, goal, deadline, dry_run=dry_run)

    async def group_lag(
        self, group: str, partitions: Iterable[TopicPartition] | None = None, *, timeout_ms: int | None = None
    ) -> dict[TopicPartition, PartitionLag]:
        """For each partition that the group has committed or reads now: committed, start, end, lag, member."""
        partitions = None if partitions is None else topic_partitions("partitions", partitions)
        return await lag.group_lag(self._on, group, partitions, self._deadline(timeout_ms))

    # the cluster

    async def describe_cluster(self, *, timeout_ms: int | None = None) -> ClusterDescription:
        """Cluster id, controller, brokers with their racks."""
        return await cluster_info.describe_cluster(self._on, self._deadline(timeout_ms))

    def _deadline(self, timeout_ms: int | None) -> Deadline:
        given = self._config.default_api_timeout_ms if timeout_ms is None else timeout_ms
        return Deadline(given, self._config.request_timeout_ms)

    def __repr__(self) -> str:
        state = "closed" if self._is_closed else "new" if self._cluster is None else "open"
        return f"<Admin client_id={self._config.client_id!r} {state}>"

    @property
    def _on(self) -> Cluster:
        if self._is_closed:
            raise IllegalUse("this Admin is closed; make a new one")
        if self._cluster is None:
            raise IllegalUse("this Admin was not started: use `async with Admin(…)`, or `await admin.start()`")
        return self._cluster
