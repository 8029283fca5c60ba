"""The settings of one broker: property strings in, typed attributes out.

Laws
    Every property that Rota knows by type is one attribute: its name with `_` for `.`, its unit last as Kafka has it.
    An invalid configuration is refused as a whole. Only `reconfigure` changes a valid one, as a whole again.
    BC1 A property's value is that of this broker's dynamic config, else of the dynamic default of all brokers, else of
        the properties that the broker was started with, else the default (KIP-226).
    BC6 min.insync.replicas is a config of all brokers, which can be changed and not removed, and never of one broker:
        the controller decides with it about eligible leader replicas (KIP-966).

The file is longer than 400 lines because it is one list of settings.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from dataclasses import replace

from rota.coordinator.config.broker_properties import USED
from rota.coordinator.config.definition import ConfigRefused, Definition, Support, Update, unknown_config
from rota.coordinator.config.dependent_values import check_logs, check_values
from rota.coordinator.config.listener_security import (
    JAAS,
    PREFIX,
    ListenerSecurity,
    check_between_brokers,
    check_is_private,
    check_is_read,
    check_listeners_exist,
    security_of,
    split_override,
)
from rota.coordinator.config.listeners import (
    Endpoint,
    parse_advertised,
    parse_endpoints,
    parse_host_limits,
    parse_http_listener,
)
from rota.coordinator.config.security_properties import SECURITY

SECURED = tuple(definition.name for definition in SECURITY)  # what a listener may have of its own
MIN_ISR = "min.insync.replicas"
HOUR_MS, MINUTE_MS = 3_600_000, 60_000


class BrokerConfig:
    """The settings of a broker. `BrokerConfig({"num.partitions": "3"})`; everything else has its default.

    `properties` are the strings that were given; `warnings` one line for each that is known but has no effect.
    `dynamic` and `dynamic_defaults` are the configs of this broker and of all brokers that were set while it runs.
    Raises ConfigRefused, naming the property and its valid values.
    """

    node_id: int
    broker_id: int
    broker_rack: str | None
    listeners: tuple[str, ...]
    advertised_listeners: tuple[str, ...] | None
    log_dir: tuple[str, ...]
    log_dirs: tuple[str, ...]

    group_initial_rebalance_delay_ms: int
    group_min_session_timeout_ms: int
    group_max_session_timeout_ms: int
    group_max_size: int
    group_consumer_session_timeout_ms: int
    group_consumer_heartbeat_interval_ms: int
    group_consumer_assignment_interval_ms: int
    group_consumer_min_session_timeout_ms: int
    group_consumer_max_session_timeout_ms: int
    group_consumer_min_heartbeat_interval_ms: int
    group_consumer_max_heartbeat_interval_ms: int
    group_consumer_min_assignment_interval_ms: int
    group_consumer_max_assignment_interval_ms: int
    group_coordinator_rebalance_protocols: tuple[str, ...]
    group_consumer_assignors: tuple[str, ...]
    group_consumer_max_size: int
    group_consumer_migration_policy: str
    offsets_topic_num_partitions: int
    offsets_topic_replication_factor: int
    offsets_topic_segment_bytes: int
    offsets_retention_minutes: int
    offsets_retention_check_interval_ms: int
    offset_metadata_max_bytes: int
    offsets_commit_timeout_ms: int

    num_partitions: int
    default_replication_factor: int
    auto_create_topics_enable: bool
    delete_topic_enable: bool
    min_insync_replicas: int
    unclean_leader_election_enable: bool
    message_max_bytes: int
    compression_type: str
    compression_gzip_level: int
    compression_lz4_level: int
    compression_zstd_level: int
    producer_id_expiration_ms: int
    transaction_max_timeout_ms: int
    transaction_state_log_num_partitions: int
    transaction_state_log_replication_factor: int
    transaction_state_log_min_isr: int
    transaction_state_log_segment_bytes: int
    transactional_id_expiration_ms: int
    transaction_remove_expired_transaction_cleanup_interval_ms: int

    log_segment_bytes: int
    log_roll_ms: int | None
    log_roll_hours: int
    log_retention_ms: int | None
    log_retention_minutes: int | None
    log_retention_hours: int
    log_retention_bytes: int
    log_retention_check_interval_ms: int
    log_cleanup_policy: tuple[str, ...]
    log_flush_interval_messages: int
    log_flush_interval_ms: int | None
    log_flush_scheduler_interval_ms: int
    log_index_interval_bytes: int
    log_cleaner_enable: bool
    log_cleaner_backoff_ms: int
    log_cleaner_delete_retention_ms: int
    log_cleaner_min_cleanable_ratio: float
    log_cleaner_min_compaction_lag_ms: int
    log_cleaner_max_compaction_lag_ms: int
    log_message_timestamp_type: str
    log_message_timestamp_before_max_ms: int
    log_message_timestamp_after_max_ms: int

    socket_request_max_bytes: int
    socket_listen_backlog_size: int
    max_connections: int
    max_connections_per_ip: int
    max_connections_per_ip_overrides: str
    connections_max_idle_ms: int
    queued_max_requests: int
    queued_max_request_bytes: int
    fetch_max_bytes: int
    max_incremental_fetch_session_cache_slots: int
    max_request_partition_size_limit: int
    telemetry_max_bytes: int
    request_timeout_ms: int
    controlled_shutdown_enable: bool

    replica_lag_time_max_ms: int
    replica_selector_class: str | None
    inter_broker_listener_name: str | None
    security_inter_broker_protocol: str
    sasl_mechanism_inter_broker_protocol: str
    num_replica_fetchers: int
    quota_window_num: int
    quota_window_size_seconds: int
    controller_quota_window_num: int
    controller_quota_window_size_seconds: int
    replication_quota_window_num: int
    replication_quota_window_size_seconds: int
    leader_replication_throttled_rate: int | None
    follower_replication_throttled_rate: int | None
    replica_fetch_backoff_ms: int
    replica_fetch_max_bytes: int
    replica_fetch_min_bytes: int
    replica_fetch_response_max_bytes: int
    replica_fetch_wait_max_ms: int
    replica_socket_timeout_ms: int

    auto_leader_rebalance_enable: bool
    leader_imbalance_check_interval_seconds: int
    zookeeper_connect: str
    zookeeper_session_timeout_ms: int
    zookeeper_connection_timeout_ms: int | None
    zookeeper_set_acl: bool
    rota_zookeeper_digest: str
    zookeeper_ssl_client_enable: bool
    zookeeper_ssl_keystore_location: str | None
    zookeeper_ssl_keystore_type: str | None
    zookeeper_ssl_keystore_password: str | None
    zookeeper_ssl_truststore_location: str | None
    zookeeper_ssl_truststore_type: str | None
    zookeeper_ssl_truststore_password: str | None
    zookeeper_ssl_cipher_suites: tuple[str, ...]
    zookeeper_ssl_enabled_protocols: tuple[str, ...]
    zookeeper_ssl_endpoint_identification_algorithm: str

    listener_security_protocol_map: str
    ssl_keystore_type: str
    ssl_keystore_location: str | None
    ssl_keystore_password: str | None
    ssl_keystore_key: str | None
    ssl_keystore_certificate_chain: str | None
    ssl_key_password: str | None
    ssl_truststore_type: str
    ssl_truststore_location: str | None
    ssl_truststore_password: str | None
    ssl_truststore_certificates: str | None
    ssl_client_auth: str
    ssl_principal_mapping_rules: str
    ssl_enabled_protocols: tuple[str, ...]
    ssl_endpoint_identification_algorithm: str
    ssl_cipher_suites: tuple[str, ...]
    sasl_enabled_mechanisms: tuple[str, ...]
    sasl_server_callback_handler_class: str | None
    sasl_oauthbearer_jwks_endpoint_url: str | None
    sasl_oauthbearer_jwks_endpoint_refresh_ms: int
    sasl_oauthbearer_jwks_endpoint_retry_backoff_ms: int
    sasl_oauthbearer_jwks_endpoint_retry_backoff_max_ms: int
    sasl_oauthbearer_expected_audience: tuple[str, ...]
    sasl_oauthbearer_expected_issuer: str | None
    sasl_oauthbearer_clock_skew_seconds: int
    sasl_oauthbearer_token_endpoint_url: str | None
    sasl_oauthbearer_client_credentials_client_id: str | None
    sasl_oauthbearer_client_credentials_client_secret: str | None
    sasl_oauthbearer_scope: str | None
    sasl_oauthbearer_scope_claim_name: str
    sasl_oauthbearer_sub_claim_name: str
    sasl_server_max_receive_size: int
    connections_max_reauth_ms: int
    connection_failed_authentication_delay_ms: int
    rota_authentication_timeout_ms: int
    rota_unauthenticated_connections_max: int
    rota_scram_bootstrap_users: str | None
    rota_allow_plaintext_beyond_loopback: bool

    rota_swim_port: int
    rota_swim_interval_ms: int
    rota_swim_ping_timeout_ms: int
    rota_swim_suspicion_timeout_ms: int
    rota_swim_indirect_pings: int
    rota_swim_secret: str
    rota_swim_secret_file: str | None
    rota_drain_timeout_ms: int
    rota_group_timeline_topic_enable: bool
    rota_inflight_bytes_max: int
    rota_connection_inflight_bytes_max: int
    rota_connection_write_buffer_bytes_max: int
    rota_stalled_reader_timeout_ms: int
    rota_http_listener: str
    rota_http_allowed_hosts: tuple[str, ...]
    rota_http_read_only: bool | None
    rota_http_tls: bool
    rota_http_login: bool
    rota_http_metrics_public: bool
    rota_tracing_otlp_endpoint: str
    rota_tracing_sample_ratio: float

    authorizer_class_name: str
    super_users: str
    allow_everyone_if_no_acl_found: bool

    properties: dict[str, str]
    dynamic: Mapping[str, str]
    dynamic_defaults: Mapping[str, str]
    ignored: Mapping[str, str]  # of `dynamic`, what is stored and not in force here (BC4, BC8)
    ignored_defaults: Mapping[str, str]  # of `dynamic_defaults`
    warnings: tuple[str, ...]
    listens: tuple[Endpoint, ...]  # of `listeners`, without those of a metadata quorum
    security: Mapping[str, ListenerSecurity]  # of the addresses in `listens`, by listener name
    http: Endpoint | None  # of `rota.http.listener`
    http_security: ListenerSecurity  # its TLS
    super_user_names: frozenset[str]  # of `super.users`
    advertises: tuple[Endpoint, ...]  # of `advertised.listeners`; empty: those of `listeners`

    def __init__(self, properties: Mapping[str, str] | None = None) -> None:
        self.properties = dict(properties or {})
        self.warnings = tuple(_warnings(self.properties))
        self.dynamic = self.dynamic_defaults = self.ignored = self.ignored_defaults = {}
        self._parse(USED.values())
        self._derive()
        if len(self.log_dirs) > 1:
            self.warnings += (
                f"log.dirs names {len(self.log_dirs)} folders: all logs are in the first, {self.log_dirs[0]}",
            )
        mapped = [each.partition(":")[0].strip() for each in self.listener_security_protocol_map.split(",")]
        check_listeners_exist(self.properties, dict.fromkeys([*self.security, self.http_security.listener, *mapped]))
        self._check()
        check_values(self)

    def _parse(self, definitions: Iterable[Definition]) -> None:
        for definition in definitions:
            setattr(self, definition.name.replace(".", "_"), definition.parse(self.text(definition.name)))

    def text(self, name: str) -> str | None:
        """BC1. Return the value in force as text; None for a property that has none, or no effect and is not set."""
        for configs in (self.dynamic, self.dynamic_defaults, self.properties):
            if name in configs:
                return configs[name]
        return USED[name].default if name in USED else None

    @property
    def cluster_defaults(self) -> dict[str, str]:
        """BC6. The configs of all brokers. min.insync.replicas is one even if it was never set: with this broker's
        value from the start, as Kafka writes it for a cluster that has eligible leader replicas (KIP-966)."""
        minimum = self.properties.get(MIN_ISR, USED[MIN_ISR].default)
        return {MIN_ISR: str(minimum), **self.dynamic_defaults}

    def with_dynamic(self, defaults: Mapping[str, str], own: Mapping[str, str]) -> BrokerConfig:
        """Return these settings with other dynamic configs. Raises ConfigRefused."""
        changed = copy(self)
        changed.dynamic_defaults, changed.dynamic = dict(defaults), dict(own)
        changed._parse(definition for definition in USED.values() if definition.update is not Update.READ_ONLY)
        changed._derive_security()
        changed._check()
        return changed

    def reconfigure(self, defaults: Mapping[str, str], own: Mapping[str, str]) -> None:
        """Replace the dynamic configs of this object, whose users see it at once. Raises ConfigRefused."""
        self.__dict__.update(self.with_dynamic(defaults, own).__dict__)

    def _derive(self) -> None:
        if self.broker_id >= 0:
            if self.properties.get("node.id", str(self.broker_id)).strip() != str(self.broker_id):
                raise ConfigRefused("node.id", "You must set `node.id` to the same value as `broker.id`.")
            self.node_id = self.broker_id
        self.broker_id = self.node_id
        self.log_dirs = self.log_dirs or self.log_dir  # None when log.dirs is not set
        self.listens = parse_endpoints("listeners", self.listeners, self.properties)
        self.http = parse_http_listener(self.rota_http_listener)
        self.advertises = parse_advertised(self.advertised_listeners, self.properties)
        self.super_user_names = parse_principals(self.super_users)
        self._derive_security()

    def _derive_security(self) -> None:
        values = {name: self.text(name) for name in SECURED}
        given = {**self.properties, **self.dynamic_defaults, **self.dynamic}
        self.security = {
            each.listener: security_of(each.listener, self.listener_security_protocol_map, values, given)
            for each in self.listens
        }
        protocol = "SSL" if self.rota_http_tls else "PLAINTEXT"
        self.http_security = security_of("HTTP", f"HTTP:{protocol}", values, given)
        if not self.rota_allow_plaintext_beyond_loopback:
            if self.http is not None and self.rota_http_login:
                check_is_private(self.http, self.http_security, "rota.http.listener")
            for each in self.listens:
                check_is_private(each, self.security[each.listener])

    def _check(self) -> None:
        parse_host_limits(self.max_connections_per_ip_overrides)
        check_logs(self)
        between = self.inter_broker_listener_name
        if between is not None and between not in (
            names := [each.listener for each in self.advertises or self.listens]
        ):
            raise ConfigRefused(
                "inter.broker.listener.name",
                f"inter.broker.listener.name={between} is not one of the advertised listeners: {', '.join(names)}",
            )
        if between is not None and "security.inter.broker.protocol" in self.properties:
            raise ConfigRefused(
                "security.inter.broker.protocol",
                "Only one of inter.broker.listener.name and security.inter.broker.protocol can be set",
            )
        if self.inter_broker_listener not in self.security:
            raise ConfigRefused(
                "security.inter.broker.protocol",
                f"No listener is named {self.inter_broker_listener}, by which brokers would reach each other; "
                f"set inter.broker.listener.name to one of {', '.join(self.security)}",
            )
        if between is not None or self.zookeeper_connect:
            check_between_brokers(self.security[self.inter_broker_listener])
        if self.group_min_session_timeout_ms > self.group_max_session_timeout_ms:
            raise ConfigRefused(
                "group.min.session.timeout.ms",
                f"group.min.session.timeout.ms ({self.group_min_session_timeout_ms}) must not be above "
                f"group.max.session.timeout.ms ({self.group_max_session_timeout_ms})",
            )

    @property
    def inter_broker_listener(self) -> str:
        """The name of the listener that brokers use for each other."""
        if self.inter_broker_listener_name is not None:
            return self.inter_broker_listener_name
        if "security.inter.broker.protocol" in self.properties:
            return self.security_inter_broker_protocol
        return (self.advertises or self.listens)[0].listener

    @property
    def segment_ms(self) -> int:
        """Age in ms at which the log rolls: log.roll.ms, else log.roll.hours."""
        return self.log_roll_ms if self.log_roll_ms is not None else self.log_roll_hours * HOUR_MS

    @property
    def retention_ms(self) -> int:
        """Age in ms at which segments are deleted; -1 for no limit: log.retention.ms, else .minutes, else .hours."""
        if self.log_retention_ms is not None:
            return self.log_retention_ms
        if self.log_retention_minutes is not None:
            return self.log_retention_minutes * MINUTE_MS if self.log_retention_minutes >= 0 else -1
        return self.log_retention_hours * HOUR_MS if self.log_retention_hours >= 0 else -1

    def changed(self, properties: Mapping[str, str]) -> BrokerConfig:
        """Return these settings with `properties` over them. Raises ConfigRefused."""
        return BrokerConfig({**self.properties, **properties})


def parse_principals(text: str) -> frozenset[str]:
    """Return the principals of `super.users`. Raises ConfigRefused."""
    names = frozenset(name.strip() for name in text.split(";") if name.strip())
    for name in names:
        kind, _, rest = name.partition(":")
        if not kind or not rest:
            raise ConfigRefused("super.users", f"super.users has {name!r}, which is no principal: expected TYPE:NAME")
    return names


def definition_of(name: str) -> Definition:
    """Return the definition of a broker property. Raises ConfigRefused with the nearest known name."""
    used = USED.get(name)
    if used is not None:
        return used
    from rota.coordinator.config.other_properties import foreign, others

    known = others().get(name) or foreign().get(name)
    if known is None:
        override = split_override(name)
        if override is not None:
            definition = replace(definition_of(override[2]), name=name)
            if definition.support is Support.USED or override[2] == JAAS:
                check_is_read(name, *override)
            return definition
        if name.startswith(PREFIX):
            raise ConfigRefused(
                name,
                f"Configuration {name}: of a single listener only its ssl.*, sasl.* and connections.* are supported",
            )
        raise unknown_config(name, (*USED, *others()), "broker")
    return known


def _warnings(properties: Mapping[str, str]) -> Iterator[str]:
    for name, text in properties.items():
        definition = definition_of(name)
        override = split_override(name)
        if definition.support is Support.USED or (override and override[2] == JAAS):
            definition.parse(text)
            continue
        value = definition.parse(text)
        if definition.support is Support.REFUSED and value not in (definition.parse(definition.default), "", ()):
            raise ConfigRefused(name, f"Configuration {name} is not supported: {definition.doc}")
        yield f"{name} has no effect ({definition.doc})"
