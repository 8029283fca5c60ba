"""The admin client: topics, configurations, groups and their offsets, the cluster.

Laws
    A call about several things returns a dict from name to result when all succeed, and raises AdminFailed with `done`
    and `failed` otherwise. A call without results returns None.
    A failure of the whole call (no broker responds, a version is not supported) is raised unchanged.
    `timeout_ms` bounds the whole call with all its requests; the default is default_api_timeout_ms.
    A single name where a collection is expected raises IllegalUse before a request is sent.
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
    offset_reset,
    partition_offsets,
    records,
    topics,
)
from rota.client.admin.cluster_info import ClusterDescription
from rota.client.admin.configs import Changes, ConfigEntry, ConfigResource
from rota.client.admin.descriptions import GroupDescription
from rota.client.admin.groups import GroupListing
from rota.client.admin.lag import PartitionLag
from rota.client.admin.requests import Deadline
from rota.client.admin.topics import CreatedTopic, NewPartitions, NewTopic, TopicDescription, TopicListing
from rota.client.checks import (
    instances_of,
    milliseconds,
    names_of,
    numbers_of_partitions,
    offsets_to_commit,
    several,
    topic_partitions,
    topics_or_partitions,
    wire_name,
)
from rota.client.config import AdminConfig
from rota.client.errors import IllegalUse
from rota.client.network.cluster import Cluster
from rota.client.offsets.list_offsets import ISOLATION
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
        """Create an Admin from properties with Kafka's dotted names. Raises ConfigError."""
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
        """Create topics; returns them by name. With `wait` the call ends when the metadata of a broker shows a leader
        for every partition, so that the topics can be used at once. Codes in AdminFailed: TOPIC_ALREADY_EXISTS,
        INVALID_TOPIC_EXCEPTION, INVALID_PARTITIONS, INVALID_REPLICATION_FACTOR, INVALID_CONFIG, POLICY_VIOLATION."""
        new = several("new", new, "NewTopic")
        deadline = self._deadline(timeout_ms)
        return await topics.create_topics(self._open_cluster, new, deadline, validate_only=validate_only, wait=wait)

    async def delete_topics(
        self, names: Iterable[str | bytes], *, wait: bool = True, timeout_ms: int | None = None
    ) -> None:
        """Delete topics by name or by id (the 16 bytes of a description). With `wait` the call ends when the metadata
        of a broker does not contain them any more."""
        names = several("names", names, "topic names or ids")
        topics.check_names_or_ids(names)
        await topics.delete_topics(self._open_cluster, names, self._deadline(timeout_ms), wait=wait)

    async def create_partitions(
        self,
        totals: Mapping[str, int | NewPartitions],
        *,
        validate_only: bool = False,
        wait: bool = True,
        timeout_ms: int | None = None,
    ) -> None:
        """Add partitions: `totals` has the new number of partitions of each topic. Keys may map to other partitions
        then."""
        deadline = self._deadline(timeout_ms)
        await topics.create_partitions(self._open_cluster, totals, deadline, validate_only=validate_only, wait=wait)

    async def describe_topics(
        self, names: Iterable[str], *, timeout_ms: int | None = None
    ) -> dict[str, TopicDescription]:
        """Return the partitions of topics with leaders and replicas. Raises AdminFailed, with UnknownTopic for a topic
        that does not exist. Creates no topic."""
        names = names_of("names", names, "topic names")
        return await topics.describe_topics(self._open_cluster, names, self._deadline(timeout_ms))

    async def list_topics(self, *, internal: bool = False, timeout_ms: int | None = None) -> dict[str, TopicListing]:
        """Return all topics; with `internal` the internal topics too."""
        return await topics.list_topics(self._open_cluster, self._deadline(timeout_ms), internal=internal)

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
        """Return the settings of each resource by name: those in `keys`, or all."""
        resources = instances_of("resources", resources, ConfigResource)
        keys = None if keys is None else names_of("keys", keys, "names of settings")
        return await configs.describe_configs(
            self._open_cluster,
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
        "segment.bytes": None}}`: a value is set, None resets to the default, other settings keep their values."""
        await configs.alter_configs(
            self._open_cluster, changes, self._deadline(timeout_ms), validate_only=validate_only
        )

    # records and offsets of partitions

    async def delete_records(
        self, before: Mapping[TopicPartition, int], *, timeout_ms: int | None = None
    ) -> dict[TopicPartition, int]:
        """Delete the records before an offset (-1: all records). Returns the new log start offset of each partition."""
        before = numbers_of_partitions("before", "offset", before)
        return await records.delete_records(self._open_cluster, before, self._deadline(timeout_ms))

    async def list_offsets(
        self,
        times: Mapping[TopicPartition, int],
        *,
        isolation_level: str = "read_uncommitted",
        timeout_ms: int | None = None,
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Return the offset of EARLIEST, LATEST, MAX_TIMESTAMP or of the first record at or after a time in ms since
        the epoch; None when there is no such record."""
        times = numbers_of_partitions("times", "time", times)
        if isolation_level not in ISOLATION:
            raise IllegalUse(f"isolation_level is {isolation_level!r}: it must be one of {', '.join(ISOLATION)}")
        deadline = self._deadline(timeout_ms)
        return await partition_offsets.list_offsets(
            self._open_cluster, times, deadline, isolation_level=isolation_level
        )

    async def elect_leaders(
        self, partitions: Iterable[TopicPartition], *, unclean: bool = False, timeout_ms: int | None = None
    ) -> dict[TopicPartition, bool]:
        """Elect the preferred leader; with `unclean` any replica, which may lose records (KIP-460). Returns False for a
        partition that needed no election."""
        partitions = topic_partitions("partitions", partitions)
        return await cluster_info.elect_leaders(
            self._open_cluster, partitions, self._deadline(timeout_ms), unclean=unclean
        )

    # groups

    async def list_groups(
        self,
        *,
        states: Iterable[str] = (),
        types: Iterable[str] = (),
        timeout_ms: int | None = None,
    ) -> dict[str, GroupListing]:
        """Return the groups of all brokers, filtered by `states` ("Stable", "Empty") and `types` ("classic",
        "consumer"). Raises Unsupported when a broker cannot filter, AdminFailed (by broker id) when a broker did not
        respond."""
        states = names_of("states", states, "states of groups")
        types = names_of("types", types, "types of groups")
        return await groups.list_groups(self._open_cluster, self._deadline(timeout_ms), states=states, types=types)

    async def describe_groups(
        self, names: Iterable[str], *, timeout_ms: int | None = None
    ) -> dict[str, GroupDescription]:
        """Return state, assignor, coordinator and members (with subscription and assignment) of groups of the classic
        and the consumer protocol (KIP-848). A group that does not exist fails with GROUP_ID_NOT_FOUND."""
        names = names_of("names", names, "group ids")
        return await groups.describe_groups(self._open_cluster, names, self._deadline(timeout_ms))

    async def delete_groups(self, names: Iterable[str], *, timeout_ms: int | None = None) -> None:
        """Delete groups with their offsets. A group that has members fails with NON_EMPTY_GROUP."""
        names = names_of("names", names, "group ids")
        await groups.delete_groups(self._open_cluster, names, self._deadline(timeout_ms))

    async def remove_members(
        self,
        group: str,
        *,
        members: Iterable[str] = (),
        instances: Iterable[str] = (),
        remove_all: bool = False,
        reason: str = "removed by an administrator",
        timeout_ms: int | None = None,
    ) -> None:
        """Remove members by member id, static members by group instance id, or all members (KIP-345). The broker logs
        the reason (KIP-800). A member that is still running joins again."""
        deadline = self._deadline(timeout_ms)
        wire_name("group", group)
        wire_name("reason", reason)
        given = names_of("members", members, "member ids"), names_of("instances", instances, "group instance ids")
        if remove_all == any(given):
            raise IllegalUse("remove_members takes members and instances, or remove_all=True; not both, not neither")
        if remove_all:
            await groups.remove_all_members(self._open_cluster, group, deadline, reason=reason)
        else:
            await groups.remove_members(
                self._open_cluster, group, deadline, members=given[0], instances=given[1], reason=reason
            )

    # offsets of groups

    async def list_group_offsets(
        self,
        names: Iterable[str] | Mapping[str, Iterable[TopicPartition] | None],
        *,
        timeout_ms: int | None = None,
    ) -> dict[str, dict[TopicPartition, OffsetAndMetadata | None]]:
        """Return the committed offsets of each group: all of them, or of the partitions in a mapping (None where
        nothing is committed). A group that does not exist has no offsets."""
        groups = names if isinstance(names, Mapping) else dict.fromkeys(names_of("names", names, "group ids"))
        partitions = {
            wire_name("a group id", group): None if of is None else topic_partitions(f"names[{group!r}]", of)
            for group, of in groups.items()
        }
        return await group_offsets.list_group_offsets(self._open_cluster, partitions, self._deadline(timeout_ms))

    async def alter_group_offsets(
        self,
        group: str,
        offsets: Mapping[TopicPartition, int | OffsetAndMetadata],
        *,
        timeout_ms: int | None = None,
    ) -> None:
        """Set committed offsets. Fails with UNKNOWN_MEMBER_ID while the group has members."""
        offsets = offsets_to_commit(offsets)
        wire_name("group", group)
        await group_offsets.alter_group_offsets(self._open_cluster, group, offsets, self._deadline(timeout_ms))

    async def delete_group_offsets(
        self, group: str, partitions: Iterable[TopicPartition], *, timeout_ms: int | None = None
    ) -> None:
        """Delete committed offsets (KIP-496). Fails with GROUP_SUBSCRIBED_TO_TOPIC while members subscribe to the
        topic."""
        partitions = topic_partitions("partitions", partitions)
        wire_name("group", group)
        await group_offsets.delete_group_offsets(self._open_cluster, group, partitions, self._deadline(timeout_ms))

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
        """Reset the offsets of a group without members: `to="earliest"` or `"latest"`, to the first record at or after
        `time_ms`, to an `offset`, or by so many records on or back (`shift_by`). `what`: topics and partitions; None:
        all that the group has committed. What lies outside the log becomes its start or end. `dry_run` sets nothing.

        Returns the new offsets. Raises BrokerError (NON_EMPTY_GROUP), which names the members, and AdminFailed."""
        what = None if what is None else topics_or_partitions("what", what)
        wire_name("group", group)
        goal = offset_reset.ResetTarget(to, time_ms, offset, shift_by)
        deadline = self._deadline(timeout_ms)
        return await offset_reset.reset_group_offsets(self._open_cluster, group, what, goal, deadline, dry_run=dry_run)

    async def group_lag(
        self,
        group: str,
        partitions: Iterable[TopicPartition] | None = None,
        *,
        with_age: bool = False,
        timeout_ms: int | None = None,
    ) -> dict[TopicPartition, PartitionLag]:
        """Return the lag of each partition that the group has committed or is assigned (or of `partitions`).
        `with_age`: in time, too. It fetches the oldest unread record of the 256 partitions with the largest lag, for
        which the client needs READ on their topics; the age of others is None."""
        partitions = None if partitions is None else topic_partitions("partitions", partitions)
        wire_name("group", group)
        deadline = self._deadline(timeout_ms)
        return await lag.group_lag(self._open_cluster, group, partitions, deadline, with_age=with_age)

    # the cluster

    async def describe_cluster(self, *, timeout_ms: int | None = None) -> ClusterDescription:
        """Return cluster id, controller and brokers with their racks."""
        return await cluster_info.describe_cluster(self._open_cluster, self._deadline(timeout_ms))

    def _deadline(self, timeout_ms: int | None) -> Deadline:
        milliseconds("timeout_ms", timeout_ms)
        given = self._config.default_api_timeout_ms if timeout_ms is None else timeout_ms
        return Deadline(given, self._config.request_timeout_ms)

    def __repr__(self) -> str:
        state = "closed" if self._is_closed else "new" if self._cluster is None else "open"
        return f"<Admin client_id={self._config.client_id!r} {state}>"

    @property
    def _open_cluster(self) -> Cluster:
        if self._is_closed:
            raise IllegalUse("this Admin is closed; make a new one")
        if self._cluster is None:
            raise IllegalUse("this Admin was not started: use `async with Admin(…)`, or `await admin.start()`")
        return self._cluster
