"""The clients' configurations: dataclasses with Kafka's names in snake_case; `from_properties` takes dotted names.

Laws
    Names and defaults are those of Kafka's clients; a setting that only Rota has says so.
    An invalid configuration is refused as a whole with ConfigError, which names the setting, the value and the valid
    values; a configuration does not change after it is built.
    A name of another client (librdkafka, aiokafka, Java) is refused with the name of Rota's setting, or with the reason
    why there is none (other_clients.py).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any, Final, Self

from rota.client.checks import between, check, instance, nearest, one_of, parsed, refused, setting, unknown, wire_text
from rota.client.errors import ConfigError
from rota.client.other_clients import ALIASES, counterpart
from rota.client.security_config import SecurityConfig
from rota.protocol.dataclass import dataclass

RESETS: Final = ("earliest", "latest", "none")
PARTITIONERS: Final = ("murmur2_random", "random")
CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
LEVELS: Final = {"gzip": range(1, 10), "lz4": range(1, 18), "zstd": range(-131_072, 23)}  # Kafka's (KIP-390)
INT32_MAX: Final = (1 << 31) - 1
CLASSIC_SETTINGS: Final = ("partition_assignment_strategy", "heartbeat_interval_ms", "session_timeout_ms")
ACKS: Final[dict[int | str, int]] = {0: 0, 1: 1, -1: -1, "0": 0, "1": 1, "-1": -1, "all": -1}
IN_FLIGHT_IDEMPOTENT_MAX: Final = 5  # batches of which a broker remembers the sequence
_DURATION: Final = re.compile(r"by_duration:P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientConfig(SecurityConfig):
    """The settings that all clients have. Times are in milliseconds, sizes in bytes."""

    bootstrap_servers: str | tuple[str, ...] = setting("HOST:PORT,… of some brokers; the others are learned from them")
    client_id: str = setting("names this client in the broker's log, metrics and member ids", "rota", wire_text())
    client_rack: str = setting("where this client is, so that it may read from a replica near by", "")
    request_timeout_ms: int = setting(
        "a broker that has not answered by then has failed", 30_000, between(1, INT32_MAX)
    )
    default_api_timeout_ms: int = setting("ms that a call may take, with all its requests", 60_000, between(1))
    retry_backoff_ms: int = setting("ms before the first retry of a request; doubled each time", 100, between(0))
    retry_backoff_max_ms: int = setting("the most ms before a retry of a request", 1_000, between(0))
    reconnect_backoff_ms: int = setting("ms before the first reconnect to a broker; doubled each time", 50, between(0))
    reconnect_backoff_max_ms: int = setting("the most ms before a reconnect", 1_000, between(0))
    socket_connection_setup_timeout_ms: int = setting("ms to set up a connection", 10_000, between(1))
    connections_max_idle_ms: int = setting(
        "ms after which an idle connection is closed; -1: never", 540_000, between(-1)
    )
    metadata_max_age_ms: int = setting("ms after which metadata is refreshed at the latest", 300_000, between(0))
    metadata_recovery_strategy: str = setting(
        "when no known broker is available: rebootstrap connects to bootstrap_servers again (KIP-899)",
        "rebootstrap",
        one_of("rebootstrap", "none"),
    )

    def __post_init__(self) -> None:
        check(self)
        self.check_security()
        if not self.bootstrap:
            raise refused("bootstrap_servers", self.bootstrap_servers, "at least one HOST:PORT")

    @classmethod
    def from_properties(cls, properties: Mapping[str, Any]) -> Self:
        """Return a configuration from Kafka's dotted names. Values are text or of the setting's type.

        Raises ConfigError.
        """
        known = {field.name.replace("_", "."): field for field in fields(cls)}
        given = {}
        for name, value in _without_aliases(properties).items():
            if name not in known:
                raise unknown(cls.__name__, name, known, _suggestion(cls, name, known))
            given[known[name].name] = parsed(name, known[name], value)
        return cls(**given)

    @property
    def bootstrap(self) -> tuple[tuple[str, int], ...]:
        """The bootstrap servers as (host, port)."""
        return tuple(address(server) for server in self._servers())

    def _servers(self) -> tuple[str, ...]:
        given = self.bootstrap_servers
        listed = given.split(",") if isinstance(given, str) else given
        return tuple(server.strip() for server in listed if server.strip())


@dataclass(frozen=True, slots=True, kw_only=True)
class AdminConfig(ClientConfig):
    """The settings of an Admin: those of all clients."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerConfig(ClientConfig):
    """The settings of a Consumer: its group, its fetches, its start offsets."""

    group_id: str | None = setting("the consumer group; None: no group, no committed offsets", None, wire_text(1))
    group_instance_id: str | None = setting(
        "a name that survives restarts: static membership (KIP-345)", None, instance
    )
    group_protocol: str = setting(
        "classic: the members assign; consumer: the coordinator assigns, without stopping the group (KIP-848); "
        "auto: consumer where the coordinator takes it, else classic (Rota's value)",
        "classic",
        one_of("classic", "consumer", "auto"),
    )
    group_remote_assignor: str | None = setting(
        "the coordinator's assignor in the consumer protocol: uniform or range; None: the coordinator's choice",
        None,
        wire_text(1),
    )
    session_timeout_ms: int = setting(
        "ms without a heartbeat after which a member is removed", 45_000, between(1, INT32_MAX)
    )
    heartbeat_interval_ms: int = setting("ms between two heartbeats of a member", 3_000, between(1))
    max_poll_interval_ms: int = setting(
        "ms without a poll after which a member leaves the group", 300_000, between(1, INT32_MAX)
    )
    max_poll_records: int = setting("the most records that one poll returns", 500, between(1))
    partition_assignment_strategy: tuple[Any, ...] = setting(
        "assignors in order of preference: range, roundrobin, sticky, cooperative-sticky, or an Assignor object",
        ("range", "cooperative-sticky"),
    )
    enable_auto_commit: bool = setting(
        "commit the offsets of records that earlier polls returned, in poll and close", True
    )
    auto_commit_interval_ms: int = setting("ms between two automatic commits", 5_000, between(0))
    auto_offset_reset: str = setting(
        "where to start without a committed offset: earliest, latest, none (NoOffset is raised), "
        "by_duration:PnDTnHnMnS",
        "latest",
    )
    isolation_level: str = setting(
        "read_committed hides records of aborted and open transactions",
        "read_uncommitted",
        one_of("read_uncommitted", "read_committed"),
    )
    fetch_min_bytes: int = setting("bytes that a broker collects before it answers a fetch", 1, between(0, INT32_MAX))
    fetch_max_bytes: int = setting(
        "the most bytes of a fetch response; a larger first batch is returned", 52_428_800, between(1, INT32_MAX)
    )
    fetch_max_wait_ms: int = setting("the most ms that a broker waits for fetch_min_bytes", 500, between(0, INT32_MAX))
    max_partition_fetch_bytes: int = setting(
        "the most bytes of one partition in a fetch response", 1_048_576, between(1, INT32_MAX)
    )
    check_crcs: bool = setting("check the checksum of every batch", True)
    allow_auto_create_topics: bool = setting("subscribing may create a topic, if the broker does that", True)
    exclude_internal_topics: bool = setting("a pattern never matches internal topics", True)

    def __post_init__(self) -> None:
        ClientConfig.__post_init__(self)
        if self.heartbeat_interval_ms >= self.session_timeout_ms:
            raise refused("heartbeat_interval_ms", self.heartbeat_interval_ms, "less than session_timeout_ms")
        if self.group_id is None and self.group_instance_id is not None:
            raise refused("group_instance_id", self.group_instance_id, "None without a group_id")
        self._check_protocol()
        if not self.partition_assignment_strategy:
            raise refused("partition_assignment_strategy", (), "at least one assignor")
        reset_after_ms(self.auto_offset_reset)

    def _check_protocol(self) -> None:
        """Raises ConfigError for a setting that the group protocol does not have."""
        if self.group_protocol == "classic" and self.group_remote_assignor is not None:
            raise refused("group_remote_assignor", self.group_remote_assignor, "None with group_protocol=classic")
        if self.group_protocol == "consumer":
            for name in self.classic_settings:
                raise refused(name, getattr(self, name), "unset with group_protocol=consumer: the brokers decide it")

    @property
    def classic_settings(self) -> tuple[str, ...]:
        """The names of the settings that differ from their defaults and that only the classic protocol has."""
        defaults = {field.name: field.default for field in fields(type(self))}
        return tuple(name for name in CLASSIC_SETTINGS if getattr(self, name) != defaults[name])

    @property
    def has_automatic_commits(self) -> bool:
        """Automatic commits need a group."""
        return self.enable_auto_commit and self.group_id is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerConfig(ClientConfig):
    """The settings of a Producer: guarantees of delivery, batches."""

    acks: int | str = setting(
        "replicas that acknowledge a record: 0 none, 1 the leader, all the in-sync replicas", "all"
    )
    enable_idempotence: bool | None = setting(
        "a retry never duplicates nor reorders; None: when acks, retries and in-flight requests allow it", None
    )
    batch_size: int = setting("the most bytes of a batch of several records", 16_384, between(0))
    linger_ms: int = setting("ms that a batch waits for more records", 5, between(0))
    buffer_memory: int = setting("bytes of unsent records above which send() waits", 33_554_432, between(0))
    max_block_ms: int = setting("the most ms that send() waits for metadata and memory", 60_000, between(0))
    max_request_size: int = setting("the most bytes of a record and of a request", 1_048_576, between(0, INT32_MAX))
    max_in_flight_requests_per_connection: int = setting("the most unanswered requests to a broker", 5, between(1))
    compression_type: str = setting("the codec of the batches", "none", one_of(*CODECS))
    compression_level: int | None = setting("the level of the codec; None: Kafka's default (Rota's name)", None)
    delivery_timeout_ms: int = setting("ms after which an undelivered record has failed", 120_000, between(1))
    retries: int = setting("the most retries of a batch, within delivery_timeout_ms", INT32_MAX, between(0))
    metadata_max_idle_ms: int = setting(
        "ms without sends after which a topic's metadata is dropped", 300_000, between(1)
    )
    transactional_id: str | None = setting(
        "the name of this producer in transactions, which survives restarts; None: no transactions", None, wire_text(1)
    )
    transaction_timeout_ms: int = setting(
        "ms after which the coordinator aborts an open transaction and fences its producer",
        60_000,
        between(1, INT32_MAX),
    )
    partitioner_ignore_keys: bool = setting("keys do not choose the partition", False)
    partitioner: Any = setting(  # it makes a field
        "murmur2_random, as None: murmur2 of the key, sticky without a key; random: sticky for all records; "
        "or a callable (topic, key, value, partitions) -> partition",
        None,
    )

    def __post_init__(self) -> None:
        ClientConfig.__post_init__(self)
        if self.acks not in ACKS:
            raise refused("acks", self.acks, "0, 1 or all")
        if self.enable_idempotence and not self._is_idempotence_possible:
            given = (
                f"acks={self.acks}, retries={self.retries}, max_in_flight={self.max_in_flight_requests_per_connection}"
            )
            raise refused("enable_idempotence", given, "False, or acks=all, retries above 0 and at most 5 in flight")
        if self.transactional_id is not None and not self.is_idempotent:
            right = "None, or acks=all, retries above 0, at most 5 in flight and no enable_idempotence=False"
            raise refused("transactional_id", self.transactional_id, right)
        if isinstance(self.partitioner, str) and self.partitioner not in PARTITIONERS:
            right = f"{', '.join(PARTITIONERS)} or a callable{nearest(self.partitioner, PARTITIONERS)}"
            raise refused("partitioner", self.partitioner, right)
        if self.partitioner is not None and not isinstance(self.partitioner, str) and not callable(self.partitioner):
            raise refused("partitioner", self.partitioner, f"None, {', '.join(PARTITIONERS)} or a callable")
        level = LEVELS.get(self.compression_type, range(0))
        if self.compression_level is not None and self.compression_level not in level:
            right = f"None, or {level[0]} to {level[-1]}" if level else "None: it has no levels"
            raise refused("compression_level", self.compression_level, f"for {self.compression_type} {right}")
        if self.delivery_timeout_ms < self.linger_ms + self.request_timeout_ms:
            raise refused("delivery_timeout_ms", self.delivery_timeout_ms, "at least linger_ms + request_timeout_ms")

    @property
    def required_acks(self) -> int:
        """`acks` as in the Produce request: 0, 1 or -1."""
        return ACKS[self.acks]

    @property
    def own_partitioner(self) -> Callable[[str, bytes | None, bytes | None, Sequence[int]], int] | None:
        """The partitioner function of the caller; None when it is one of PARTITIONERS."""
        return self.partitioner if callable(self.partitioner) else None

    @property
    def is_partitioned_by_key(self) -> bool:
        """Whether the key of a record chooses its partition. False with a partitioner function of the caller."""
        return not self.partitioner_ignore_keys and self.partitioner != "random"

    @property
    def is_idempotent(self) -> bool:
        return self._is_idempotence_possible if self.enable_idempotence is None else self.enable_idempotence

    @property
    def _is_idempotence_possible(self) -> bool:
        few = self.max_in_flight_requests_per_connection <= IN_FLIGHT_IDEMPOTENT_MAX
        return self.required_acks == -1 and self.retries > 0 and few


def _without_aliases(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return the properties by Rota's names. Raises ConfigError for a setting that is given by two names."""
    renamed = {}
    for name, value in properties.items():
        ours = ALIASES.get(name.replace("_", "."), name)
        if ours in renamed or (ours != name and ours in properties):
            raise ConfigError(f"{name} and {ours} are one setting: give it once")
        renamed[ours] = value
    return renamed


def address(text: str) -> tuple[str, int]:
    """Parse HOST:PORT, [IPv6]:PORT or PLAINTEXT://HOST:PORT. Raises ConfigError."""
    found = _ADDRESS.fullmatch(text)
    if found is None or not 0 < int(found["port"]) < 65_536:
        raise refused("bootstrap_servers", text, "HOST:PORT, as in 127.0.0.1:9092 or [::1]:9092")
    return found["host"], int(found["port"])


def _suggestion(config: type[ClientConfig], name: str, known: Iterable[str]) -> str | None:
    """Return the advice for a setting of another configuration or client: the setting to use, or why there is none."""
    if name in _owners():
        return f"it is a setting of {_owners()[name].__name__}"
    found = counterpart(name)
    if found is None or found.setting is None:
        return None if found is None else found.note
    owner = "" if found.setting in known else f" of {_owners()[found.setting].__name__}"
    return f"use {found.setting}{owner}" + (f" ({found.note})" if found.note else "")


def _owners() -> dict[str, type[ClientConfig]]:
    """Return the configuration of each setting."""
    configs = (ProducerConfig, ConsumerConfig, ClientConfig)
    return {field.name.replace("_", "."): config for config in configs for field in fields(config)}


_ADDRESS: Final = re.compile(r"(?:PLAINTEXT://)?\[?(?P<host>[0-9A-Za-z._%:-]+)\]?:(?P<port>[0-9]{1,5})", re.ASCII)


def reset_after_ms(reset: str) -> int | None:
    """Return the duration of `auto_offset_reset=by_duration:PT1H` in ms (KIP-1106); None for the other policies.

    Raises ConfigError.
    """
    if reset in RESETS:
        return None
    found = _DURATION.fullmatch(reset)
    if found is None or not any(found.groups()):
        raise refused(
            "auto_offset_reset", reset, f"{', '.join(RESETS)} or by_duration:PnDTnHnMnS, as in by_duration:PT1H"
        )
    days, hours, minutes, seconds = (float(part or 0) for part in found.groups())
    return int((((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000)
