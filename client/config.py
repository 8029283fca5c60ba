"""What a client is told: dataclasses with Kafka's names in snake_case, or Kafka's dotted names by `from_properties`.

Laws
    A name or a default that Kafka's clients have is the same here; what Rota adds says so.
    A configuration is right as a whole or refused with ConfigError, which names the setting, what was given, what would
    be right; once built it does not change.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final, Self

from rota.client.checks import between, check, instance, one_of, parsed, refused, some, unknown, wire_text

RESETS: Final = ("earliest", "latest", "none")
CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
LEVELS: Final = {"gzip": range(1, 10), "lz4": range(1, 18), "zstd": range(-131_072, 23)}  # Kafka's (KIP-390)
INT32_MAX: Final = (1 << 31) - 1
ACKS: Final[dict[int | str, int]] = {0: 0, 1: 1, -1: -1, "0": 0, "1": 1, "-1": -1, "all": -1}
IN_FLIGHT_IDEMPOTENT_MAX: Final = 5  # batches of which a broker remembers the sequence
_DURATION: Final = re.compile(r"by_duration:P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientConfig:
    """What every client needs. Times in milliseconds, sizes in bytes."""

    bootstrap_servers: str | tuple[str, ...] = some("HOST:PORT,… of some brokers; the others are learned from them")
    client_id: str = some("names this client in the broker's log, metrics and member ids", "rota", wire_text())
    client_rack: str = some("where this client is, so that it may read from a replica near by", "")
    security_protocol: str = some("PLAINTEXT is all that there is", "PLAINTEXT", one_of("PLAINTEXT"))
    request_timeout_ms: int = some("a broker that has not answered by then has failed", 30_000, between(1))
    default_api_timeout_ms: int = some("how long a call tries, over all its requests", 60_000, between(1))
    retry_backoff_ms: int = some("the first wait before a request is repeated; doubled each time", 100, between(0))
    retry_backoff_max_ms: int = some("the longest wait before a request is repeated", 1_000, between(0))
    reconnect_backoff_ms: int = some("the first wait before a broker is dialled again; doubled", 50, between(0))
    reconnect_backoff_max_ms: int = some("the longest wait before a broker is dialled again", 1_000, between(0))
    socket_connection_setup_timeout_ms: int = some("how long a dialled broker may take", 10_000, between(1))
    connections_max_idle_ms: int = some("an unused connection is closed; -1 never", 540_000, between(-1))
    metadata_max_age_ms: int = some("topics and leaders are asked for anew at the latest", 300_000, between(0))
    metadata_recovery_strategy: str = some(
        "when no known broker is left: go back to bootstrap_servers, or not (KIP-899)",
        "rebootstrap",
        one_of("rebootstrap", "none"),
    )

    def __post_init__(self) -> None:
        check(self)
        if not self.bootstrap:
            raise refused("bootstrap_servers", self.bootstrap_servers, "at least one HOST:PORT")

    @classmethod
    def from_properties(cls, properties: Mapping[str, Any]) -> Self:
        """From Kafka's dotted names, values as text or already of their type. Raises ConfigError."""
        known = {field.name.replace("_", "."): field for field in fields(cls)}
        given = {}
        for name, value in properties.items():
            if name not in known:
                raise unknown(cls.__name__, name, known, _elsewhere(name))
            given[known[name].name] = parsed(name, known[name], value)
        return cls(**given)

    @property
    def bootstrap(self) -> tuple[tuple[str, int], ...]:
        """The addresses, taken apart."""
        return tuple(address(one) for one in self._servers())

    def _servers(self) -> tuple[str, ...]:
        given = self.bootstrap_servers
        listed = given.split(",") if isinstance(given, str) else given
        return tuple(one.strip() for one in listed if one.strip())


@dataclass(frozen=True, slots=True, kw_only=True)
class AdminConfig(ClientConfig):
    """An admin client needs no more than every client."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerConfig(ClientConfig):
    """A consumer: its group, how it fetches, where it starts."""

    group_id: str | None = some("the consumer group; None: no group, no committed offsets", None, wire_text(1))
    group_instance_id: str | None = some("a name that survives restarts: static membership (KIP-345)", None, instance)
    session_timeout_ms: int = some("without a heartbeat for so long a member is dead", 45_000, between(1))
    heartbeat_interval_ms: int = some("how often a member says that it lives", 3_000, between(1))
    max_poll_interval_ms: int = some("a member that does not poll for so long leaves the group", 300_000, between(1))
    max_poll_records: int = some("at most so many records in one poll", 500, between(1))
    partition_assignment_strategy: tuple[Any, ...] = some(
        "assignors, the best first: range, roundrobin, sticky, cooperative-sticky, or an Assignor of your own",
        ("range", "cooperative-sticky"),
    )
    enable_auto_commit: bool = some("commit what earlier polls returned, when polling and closing", True)
    auto_commit_interval_ms: int = some("how often", 5_000, between(0))
    auto_offset_reset: str = some(
        "where to start without a committed offset: earliest, latest, none (NoOffset is raised), "
        "by_duration:PnDTnHnMnS",
        "latest",
    )
    isolation_level: str = some(
        "read_committed hides records of aborted and open transactions",
        "read_uncommitted",
        one_of("read_uncommitted", "read_committed"),
    )
    fetch_min_bytes: int = some("a broker waits until it has so much", 1, between(0, INT32_MAX))
    fetch_max_bytes: int = some("a broker answers with about so much at most", 52_428_800, between(1, INT32_MAX))
    fetch_max_wait_ms: int = some("a broker waits for fetch_min_bytes no longer", 500, between(0, INT32_MAX))
    max_partition_fetch_bytes: int = some("of one partition at most", 1_048_576, between(1, INT32_MAX))
    check_crcs: bool = some("check the checksum of every batch", True)
    allow_auto_create_topics: bool = some("subscribing may create a topic, if the broker does that", True)
    exclude_internal_topics: bool = some("a pattern never matches internal topics", True)

    def __post_init__(self) -> None:
        ClientConfig.__post_init__(self)
        if self.heartbeat_interval_ms >= self.session_timeout_ms:
            raise refused("heartbeat_interval_ms", self.heartbeat_interval_ms, "less than session_timeout_ms")
        if self.group_id is None and self.group_instance_id is not None:
            raise refused("group_instance_id", self.group_instance_id, "None without a group_id")
        if not self.partition_assignment_strategy:
            raise refused("partition_assignment_strategy", (), "at least one assignor")
        reset_after_ms(self.auto_offset_reset)

    @property
    def commits_by_itself(self) -> bool:
        """Automatic commits need a group."""
        return self.enable_auto_commit and self.group_id is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerConfig(ClientConfig):
    """A producer: what a delivery promises, how records are gathered."""

    acks: int | str = some("who must have a record before it counts: 0 nobody, 1 the leader, all", "all")
    enable_idempotence: bool | None = some(
        "a retry never duplicates nor reorders; None: when acks, retries and in-flight requests allow it", None
    )
    batch_size: int = some("records of one partition are gathered up to so many bytes", 16_384, between(0))
    linger_ms: int = some("and for so long", 5, between(0))
    buffer_memory: int = some("records that wait take so much at most; then send() waits", 33_554_432, between(0))
    max_block_ms: int = some("send() waits for metadata and memory no longer", 60_000, between(0))
    max_request_size: int = some("the largest record, and the largest request", 1_048_576, between(0, INT32_MAX))
    max_in_flight_requests_per_connection: int = some("requests that wait for their answer", 5, between(1))
    compression_type: str = some("of a batch", "none", one_of(*CODECS))
    compression_level: int | None = some("the codec's own; None: Kafka's default (Rota's name)", None)
    delivery_timeout_ms: int = some("a record that is not delivered by then has failed", 120_000, between(1))
    retries: int = some("within delivery_timeout_ms", INT32_MAX, between(0))
    partitioner_ignore_keys: bool = some("keys do not choose the partition", False)
    partitioner: Any = some(  # noqa: RUF009  # it makes a field
        "None: murmur2 of the key, sticky without one; or a callable (topic, key, value, partitions) -> partition", None
    )

    def __post_init__(self) -> None:
        ClientConfig.__post_init__(self)
        if self.acks not in ACKS:
            raise refused("acks", self.acks, "0, 1 or all")
        if self.enable_idempotence and not self._may_be_idempotent:
            given = (
                f"acks={self.acks}, retries={self.retries}, max_in_flight={self.max_in_flight_requests_per_connection}"
            )
            raise refused("enable_idempotence", given, "False, or acks=all, retries above 0 and at most 5 in flight")
        level = LEVELS.get(self.compression_type, range(0))
        if self.compression_level is not None and self.compression_level not in level:
            right = f"None, or {level[0]} to {level[-1]}" if level else "None: it has no levels"
            raise refused("compression_level", self.compression_level, f"for {self.compression_type} {right}")
        if self.delivery_timeout_ms < self.linger_ms + self.request_timeout_ms:
            raise refused("delivery_timeout_ms", self.delivery_timeout_ms, "at least linger_ms + request_timeout_ms")

    @property
    def required_acks(self) -> int:
        """As Produce says it: 0, 1, -1."""
        return ACKS[self.acks]

    @property
    def is_idempotent(self) -> bool:
        return self._may_be_idempotent if self.enable_idempotence is None else self.enable_idempotence

    @property
    def _may_be_idempotent(self) -> bool:
        few = self.max_in_flight_requests_per_connection <= IN_FLIGHT_IDEMPOTENT_MAX
        return self.required_acks == -1 and self.retries > 0 and few


def address(text: str) -> tuple[str, int]:
    """HOST:PORT, [IPv6]:PORT, PLAINTEXT://HOST:PORT. Raises ConfigError."""
    found = _ADDRESS.fullmatch(text)
    if found is None or not 0 < int(found["port"]) < 65_536:
        raise refused("bootstrap_servers", text, "HOST:PORT, as in 127.0.0.1:9092 or [::1]:9092")
    return found["host"], int(found["port"])


def _elsewhere(name: str) -> str | None:
    """Why a setting of Kafka's clients is none of ours, and what there is instead."""
    return next((instead for pattern, instead in _ELSEWHERE if re.fullmatch(pattern, name)), None)


_ADDRESS: Final = re.compile(r"(?:PLAINTEXT://)?\[?(?P<host>[0-9A-Za-z._%:-]+)\]?:(?P<port>[0-9]{1,5})", re.ASCII)
_ELSEWHERE: Final = (
    (r"(key|value)\.(de)?serializer", "keys and values are bytes: encode before you send, decode what you are given"),
    (r"(ssl|sasl)\..*", "security_protocol PLAINTEXT is all that there is"),
    (r"group\.(protocol|remote\.assignor)", "groups are of the classic protocol"),
    (r"transaction(al)?\..*", "there are no transactions"),
    (r"partitioner\.class", "give a callable as `partitioner`"),
    (r"interceptor\.classes|metrics?\..*|metric\.reporters|enable\.metrics\.push", "there is no such thing here"),
    (r"(send|receive)\.buffer\.bytes|client\.dns\.lookup", "the system's defaults fit; every address is tried"),
    (r"compression\.(gzip|lz4|zstd)\.level", "the level of compression.type is compression.level"),
)


def reset_after_ms(reset: str) -> int | None:
    """How far back `auto_offset_reset=by_duration:PT1H` goes (KIP-1106); None for the words. Raises ConfigError."""
    if reset in RESETS:
        return None
    found = _DURATION.fullmatch(reset)
    if found is None or not any(found.groups()):
        raise refused(
            "auto_offset_reset", reset, f"{', '.join(RESETS)} or by_duration:PnDTnHnMnS, as in by_duration:PT1H"
        )
    days, hours, minutes, seconds = (float(part or 0) for part in found.groups())
    return int((((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000)
