"""What is right, what is refused, and that names and defaults are Kafka's."""

import dataclasses
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.client.config import (
    AdminConfig,
    ClientConfig,
    ConsumerConfig,
    ProducerConfig,
    address,
    reset_after_ms,
)
from rota.client.errors import ConfigError, KafkaError
from rota.client.security_config import SecurityConfig
from rota.client.types import address_text

B = "127.0.0.1:9092"
CONFIGS: list[type[ClientConfig]] = [ClientConfig, AdminConfig, ConsumerConfig, ProducerConfig]

# as Apache Kafka 4.3 documents its clients
KAFKAS: dict[type, dict[str, Any]] = {
    ClientConfig: {
        "request.timeout.ms": 30_000,
        "default.api.timeout.ms": 60_000,
        "retry.backoff.ms": 100,
        "retry.backoff.max.ms": 1_000,
        "reconnect.backoff.ms": 50,
        "reconnect.backoff.max.ms": 1_000,
        "socket.connection.setup.timeout.ms": 10_000,
        "connections.max.idle.ms": 540_000,
        "metadata.max.age.ms": 300_000,
        "metadata.recovery.strategy": "rebootstrap",
        "client.rack": "",
    },
    ConsumerConfig: {
        "group.id": None,
        "group.protocol": "classic",
        "group.remote.assignor": None,
        "group.instance.id": None,
        "session.timeout.ms": 45_000,
        "heartbeat.interval.ms": 3_000,
        "max.poll.interval.ms": 300_000,
        "max.poll.records": 500,
        "partition.assignment.strategy": ("range", "cooperative-sticky"),
        "enable.auto.commit": True,
        "auto.commit.interval.ms": 5_000,
        "auto.offset.reset": "latest",
        "isolation.level": "read_uncommitted",
        "fetch.min.bytes": 1,
        "fetch.max.bytes": 50 << 20,
        "fetch.max.wait.ms": 500,
        "max.partition.fetch.bytes": 1 << 20,
        "check.crcs": True,
        "allow.auto.create.topics": True,
        "exclude.internal.topics": True,
    },
    ProducerConfig: {
        "acks": "all",
        "enable.idempotence": None,  # Kafka's default true, unless what stands beside it forbids it
        "transactional.id": None,
        "transaction.timeout.ms": 60_000,
        "batch.size": 16_384,
        "linger.ms": 5,
        "buffer.memory": 32 << 20,
        "max.block.ms": 60_000,
        "max.request.size": 1 << 20,
        "max.in.flight.requests.per.connection": 5,
        "compression.type": "none",
        "delivery.timeout.ms": 120_000,
        "metadata.max.idle.ms": 300_000,
        "retries": 2_147_483_647,
        "partitioner.ignore.keys": False,
    },
}
SECURITY = {field.name.replace("_", ".") for field in dataclasses.fields(SecurityConfig)}  # test_security_config.py
OURS = {"bootstrap.servers", "client.id", "compression.level", "partitioner", *SECURITY}


@pytest.mark.parametrize("config", KAFKAS)
def test_names_and_defaults_are_kafkas(config: type[ClientConfig]) -> None:
    wanted = KAFKAS[ClientConfig] | KAFKAS[config]
    found = {field.name.replace("_", "."): field.default for field in dataclasses.fields(config)}
    assert {name: default for name, default in found.items() if name not in OURS} == wanted


@pytest.mark.parametrize("config", CONFIGS)
def test_the_dotted_names_make_the_same_thing(config: type[ClientConfig]) -> None:
    assert config.from_properties({"bootstrap.servers": B}) == config(bootstrap_servers=B)


def test_properties_are_parsed_to_the_types_of_the_settings() -> None:
    made = ConsumerConfig.from_properties(
        {
            "bootstrap.servers": f"{B}, [::1]:9093",
            "group.id": "g",
            "enable.auto.commit": "False",
            "max.poll.records": " 10 ",
            "partition.assignment.strategy": "sticky, range",
            "session.timeout.ms": 10_000,
        }
    )
    assert made == ConsumerConfig(
        bootstrap_servers=f"{B}, [::1]:9093",
        group_id="g",
        enable_auto_commit=False,
        max_poll_records=10,
        partition_assignment_strategy=("sticky", "range"),
        session_timeout_ms=10_000,
    )
    assert made.bootstrap == (("127.0.0.1", 9092), ("::1", 9093))


def test_assignors_may_be_named_in_one_text() -> None:
    made = ConsumerConfig(bootstrap_servers=B, partition_assignment_strategy="sticky, range")  # type: ignore[arg-type]
    assert made.partition_assignment_strategy == ("sticky", "range")


def test_it_does_not_change() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        ClientConfig(bootstrap_servers=B).client_id = "x"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("h:1", ("h", 1)),
        ("kafka-0.kafka.svc:65535", ("kafka-0.kafka.svc", 65535)),
        ("[::1]:9092", ("::1", 9092)),
        ("[fe80::1%eth0]:9092", ("fe80::1%eth0", 9092)),
        ("PLAINTEXT://h:9092", ("h", 9092)),
    ],
)
def test_addresses(text: str, expected: tuple[str, int]) -> None:
    assert address(text) == expected
    assert address_text(*expected) == text.removeprefix("PLAINTEXT://"), "as messages and tables have it"


@pytest.mark.parametrize(
    "text", ["", "h", "h:", ":9092", "h:0", "h:65536", "h:x", "h:²", "http://h:1", "SSL://h:1", "a b:1", "h:-1", "h:1/"]
)
def test_an_invalid_address_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"bootstrap_servers \(bootstrap\.servers\) is .* must be HOST:PORT"):
        address(text)


@pytest.mark.parametrize("servers", ["", " , ", ()])
def test_at_least_one_server(servers: Any) -> None:
    with pytest.raises(ConfigError, match="at least one HOST:PORT"):
        ClientConfig(bootstrap_servers=servers)


def test_servers_may_be_a_tuple() -> None:
    assert ClientConfig(bootstrap_servers=("a:1", " b:2 ")).bootstrap == (("a", 1), ("b", 2))
    assert ClientConfig(bootstrap_servers=["a:1"]) == ClientConfig(bootstrap_servers=("a:1",))  # type: ignore[arg-type]
    assert ClientConfig.from_properties({"bootstrap.servers": ["a:1", "b:2"]}).bootstrap == (("a", 1), ("b", 2))


@pytest.mark.parametrize(
    ("config", "given", "answer"),
    [
        (ClientConfig, {"bootstrap_servers": "nowhere"}, "HOST:PORT"),
        (ClientConfig, {"request_timeout_ms": 0}, "an integer of at least 1"),
        (ClientConfig, {"request_timeout_ms": True}, "of type int"),
        (ClientConfig, {"request_timeout_ms": 1.5}, "of type int"),
        (ClientConfig, {"request_timeout_ms": "1"}, "of type int"),
        (ClientConfig, {"client_id": None}, "of type str"),
        (ClientConfig, {"client_id": "é" * 20_000}, "of 0 to 32767 bytes"),
        (ClientConfig, {"security_protocol": "TLS"}, "one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"),
        (ClientConfig, {"metadata_recovery_strategy": "maybe"}, "one of rebootstrap, none"),
        (ClientConfig, {"connections_max_idle_ms": -2}, "at least -1"),
        (ConsumerConfig, {"group_id": ""}, "of 1 to 32767 bytes"),
        (ConsumerConfig, {"group_instance_id": "a"}, "None without a group_id"),
        (ConsumerConfig, {"group_id": "g", "group_instance_id": "a b"}, "1 to 249 of the characters"),
        (ConsumerConfig, {"group_id": "g", "group_instance_id": ".."}, "1 to 249 of the characters"),
        (ConsumerConfig, {"group_id": "g", "group_instance_id": "a" * 250}, "1 to 249 of the characters"),
        (ConsumerConfig, {"heartbeat_interval_ms": 45_000}, "less than session_timeout_ms"),
        (ConsumerConfig, {"session_timeout_ms": 1 << 31}, "at most 2147483647"),
        (ConsumerConfig, {"max_poll_interval_ms": 1 << 31}, "at most 2147483647"),
        (ProducerConfig, {"request_timeout_ms": 1 << 31}, "at most 2147483647"),
        (ConsumerConfig, {"session_timeout_ms": 3_000}, "less than session_timeout_ms"),
        (ConsumerConfig, {"max_poll_records": 0}, "at least 1"),
        (ConsumerConfig, {"partition_assignment_strategy": ()}, "at least one assignor"),
        (ConsumerConfig, {"partition_assignment_strategy": " , "}, "at least one assignor"),
        (ConsumerConfig, {"partition_assignment_strategy": 1}, "of type tuple"),
        (ConsumerConfig, {"auto_offset_reset": "newest"}, "earliest, latest, none or by_duration:PnDTnHnMnS"),
        (ConsumerConfig, {"isolation_level": "serializable"}, "read_uncommitted, read_committed"),
        (ConsumerConfig, {"fetch_max_bytes": 1 << 31}, "at most 2147483647"),
        (ConsumerConfig, {"enable_auto_commit": "yes"}, "of type bool"),
        (ProducerConfig, {"acks": 2}, "0, 1 or all"),
        (ProducerConfig, {"acks": True}, "of type int or str"),
        (ProducerConfig, {"acks": 1, "enable_idempotence": True}, "False, or acks=all"),
        (ProducerConfig, {"retries": 0, "enable_idempotence": True}, "False, or acks=all"),
        (
            ProducerConfig,
            {"max_in_flight_requests_per_connection": 6, "enable_idempotence": True},
            "at most 5 in flight",
        ),
        (ProducerConfig, {"delivery_timeout_ms": 30_004}, r"at least linger_ms \+ request_timeout_ms"),
        (ProducerConfig, {"compression_type": "brotli"}, "one of none, gzip, snappy, lz4, zstd"),
        (ProducerConfig, {"compression_level": 3}, "for none None: it has no levels"),
        (ProducerConfig, {"compression_type": "snappy", "compression_level": 3}, "for snappy None: it has no levels"),
        (ProducerConfig, {"compression_type": "gzip", "compression_level": 10}, "for gzip None, or 1 to 9"),
        (ProducerConfig, {"compression_type": "zstd", "compression_level": 23}, "for zstd None, or -131072 to 22"),
        (ProducerConfig, {"linger_ms": -1}, "at least 0"),
    ],
)
def test_an_invalid_value_is_refused_with_the_name_of_the_setting(
    config: type[ClientConfig], given: dict[str, Any], answer: str
) -> None:
    with pytest.raises(ConfigError, match=answer) as failed:
        config(**{"bootstrap_servers": B, **given})
    assert any(name in str(failed.value) for name in given) or "heartbeat_interval_ms" in str(failed.value)
    assert isinstance(failed.value, KafkaError | ValueError)


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("group.idd", "did you mean group.id?"),
        ("groupid", "did you mean group.id?"),
        ("key.deserializer", "keys and values are bytes"),
        ("sasl.kerberos.service.name", "the SASL mechanisms are PLAIN"),
        ("group.protocol.type", "group.protocol chooses"),
        ("qwertzuiop", "known: allow.auto.create.topics, auto.commit.interval.ms"),
    ],
)
def test_an_unsupported_setting_is_refused_with_its_replacement(name: str, answer: str) -> None:
    with pytest.raises(ConfigError, match=f"ConsumerConfig has no setting {name}") as failed:
        ConsumerConfig.from_properties({"bootstrap.servers": B, name: "x"})
    assert answer in str(failed.value)


@pytest.mark.parametrize(
    ("name", "value", "answer"),
    [
        ("max.poll.records", "ten", "an integer"),
        ("enable.auto.commit", "yes", "true or false"),
        ("acks", "some", "all"),
    ],
)
def test_text_that_does_not_fit(name: str, value: str, answer: str) -> None:
    config = ProducerConfig if name == "acks" else ConsumerConfig
    with pytest.raises(ConfigError, match=f"is {value!r}; it must be .*{answer}"):
        config.from_properties({"bootstrap.servers": B, name: value})


@pytest.mark.parametrize(("given", "acks"), [(0, 0), (1, 1), (-1, -1), ("0", 0), ("1", 1), ("-1", -1), ("all", -1)])
def test_acks(given: int | str, acks: int) -> None:
    assert ProducerConfig(bootstrap_servers=B, acks=given).required_acks == acks
    assert ProducerConfig.from_properties({"bootstrap.servers": B, "acks": str(given)}).required_acks == acks


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, True),
        ({"acks": 1}, False),
        ({"retries": 0}, False),
        ({"max_in_flight_requests_per_connection": 6}, False),
        ({"enable_idempotence": False}, False),
        ({"enable_idempotence": True}, True),
    ],
)
def test_idempotence_unless_something_forbids_it(given: dict[str, Any], expected: bool) -> None:
    assert ProducerConfig(bootstrap_servers=B, **given).is_idempotent is expected


def test_automatic_commits_need_a_group() -> None:
    assert not ConsumerConfig(bootstrap_servers=B).has_automatic_commits
    assert ConsumerConfig(bootstrap_servers=B, group_id="g").has_automatic_commits
    assert not ConsumerConfig(bootstrap_servers=B, group_id="g", enable_auto_commit=False).has_automatic_commits


@pytest.mark.parametrize(
    ("reset", "back_ms"),
    [
        ("earliest", None),
        ("none", None),
        ("by_duration:PT1H", 3_600_000),
        ("by_duration:P1DT2H3M4.5S", 93_784_500),
        ("by_duration:P2D", 172_800_000),
        ("by_duration:PT0S", 0),
    ],
)
def test_where_to_start(reset: str, back_ms: int | None) -> None:
    assert reset_after_ms(reset) == back_ms


@pytest.mark.parametrize("reset", ["", "EARLIEST", "by_duration:", "by_duration:P", "by_duration:PT", "by_duration:1H"])
def test_no_place_to_start(reset: str) -> None:
    with pytest.raises(ConfigError, match="auto_offset_reset"):
        reset_after_ms(reset)


@given(name=st.text(max_size=30), value=st.text(max_size=30) | st.integers() | st.none() | st.booleans())
def test_nonsense_is_refused_and_nothing_worse(name: str, value: object) -> None:
    for config in CONFIGS:
        try:
            config.from_properties({"bootstrap.servers": B, name: value})
        except ConfigError:
            continue
        assert name == "bootstrap.servers"


@given(data=st.data())
def test_any_value_of_any_setting_is_taken_or_refused(data: st.DataObject) -> None:
    config = data.draw(st.sampled_from(CONFIGS))
    name = data.draw(st.sampled_from([field.name for field in dataclasses.fields(config)]))
    value = data.draw(
        st.text(max_size=20)
        | st.integers()
        | st.none()
        | st.booleans()
        | st.floats()
        | st.lists(st.integers() | st.text(max_size=5), max_size=2)
    )
    try:
        config(**{"bootstrap_servers": B, name: value})
        config.from_properties({"bootstrap.servers": B, name.replace("_", "."): value})
        return
    except ConfigError as failed:
        refused = str(failed)
    assert any(item in refused for item in (name, "heartbeat_interval_ms", "delivery_timeout_ms"))


def test_it_is_cheap_to_import() -> None:
    dear = ("asyncio", "structlog", "socket", "ssl", "construct")
    code = f"import sys, rota.client.config; print([name for name in {dear} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("given", "own", "by_key"), [(None, False, True), ("murmur2_random", False, True), ("random", False, False)]
)
def test_partitioners_by_name(given: str | None, own: bool, by_key: bool) -> None:
    config = ProducerConfig(bootstrap_servers=B, partitioner=given)
    assert (config.own_partitioner is not None, config.is_partitioned_by_key) == (own, by_key)


def test_a_callable_is_a_custom_partitioner() -> None:
    def last(topic: str, key: bytes | None, value: bytes | None, partitions: Any) -> int:
        return max(partitions)

    assert ProducerConfig(bootstrap_servers=B, partitioner=last).own_partitioner is last


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("murmur2", "did you mean murmur2_random"),
        ("consistent_random", "must be murmur2_random, random or a callable"),
        ("org.apache.kafka.clients.producer.RoundRobinPartitioner", "must be murmur2_random, random or a callable"),
        (7, "must be None, murmur2_random, random or a callable"),
    ],
)
def test_another_partitioner_is_refused_with_the_nearest_name(given: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        ProducerConfig(bootstrap_servers=B, partitioner=given)


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"group_protocol": "share"}, "group_protocol"),
        ({"group_remote_assignor": "range"}, "group_remote_assignor"),
        ({"group_protocol": "consumer", "heartbeat_interval_ms": 100}, "heartbeat_interval_ms"),
        ({"group_protocol": "consumer", "session_timeout_ms": 10_000}, "session_timeout_ms"),
        ({"group_protocol": "consumer", "partition_assignment_strategy": ("sticky",)}, "partition_assignment_strategy"),
    ],
)
def test_settings_of_the_other_group_protocol_are_refused(wrong: dict[str, Any], named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        ConsumerConfig(bootstrap_servers="h:1", group_id="g", **wrong)
