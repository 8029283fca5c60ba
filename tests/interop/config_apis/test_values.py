"""BC8: each property of a broker and each config of a topic takes the values that Apache Kafka takes.

Kafka's own classes check thousands of values, of one property each. What Rota does otherwise has its reason below.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.interop.java_kit import needs_java, run_java

from rota.coordinator.config.broker import BrokerConfig, definition_of
from rota.coordinator.config.definition import ConfigRefused, Support
from rota.coordinator.config.topic import TopicConfig

pytestmark = needs_java
ROOT: Final = Path(__file__).parents[3]
KAFKA: Final = ROOT / "tests" / "unit" / "coordinator" / "config" / "kafka-4.3.1.tsv"
NUMBERS: Final = (
    *("-2147483649", "-3", "-2", "-1", "0", "1", "2", "10", "13", "14", "100", "1000", "1024", "32767", "32768"),
    *("1048575", "1048576", "2147483647", "2147483648", "9223372036854775807", "9223372036854775808"),
    *("1.5", "x", "", " 7 ", "+7", "0x10", "1_0", "007"),
)
VALUES: Final = {
    "SHORT": NUMBERS,
    "INT": NUMBERS,
    "LONG": NUMBERS,
    "DOUBLE": ("-1", "0", "0.5", "1", "1.1", "Infinity", "1e3", "x", "", " 0.5 ", "1_0"),
    "BOOLEAN": ("true", "TRUE", " true ", "yes", "1", "", "False"),
    "LIST": ("", " ", "a,,b", " a , b ", "a,a", "*", "0:1", "none", "compact", " compact , delete ", "Compact"),
    "STRING": ("", " ", "x", " x ", "X", "gzip", " gzip ", "GZIP", "zstd", "producer", "CreateTime", "createtime"),
}
VALUES_OF_CLASSES: Final = ("CLASS", "PASSWORD")
# properties of the test's own broker, and of what Rota does not have
GIVEN: Final = ("controller.", "process.roles", "node.id", "broker.id", "listeners", "listener.", "advertised.")
_NEGATIVE: Final = "Kafka takes numbers below 0 (or 0) that mean nothing; Rota names the limit"
_OF_TLS: Final = "Kafka reads it when it opens a listener with TLS"
REFUSED_HERE: Final = {
    **dict.fromkeys(
        (
            "connections.max.reauth.ms",
            "default.replication.factor",
            "group.initial.rebalance.delay.ms",
            "log.retention.hours",
            "log.retention.minutes",
            "log.retention.ms",
            "replica.fetch.backoff.ms",
            "replica.fetch.max.bytes",
            "replica.fetch.min.bytes",
            "replica.fetch.response.max.bytes",
            "replica.fetch.wait.max.ms",
            "sasl.oauthbearer.clock.skew.seconds",
            "sasl.oauthbearer.jwks.endpoint.refresh.ms",
            "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
            "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
            "sasl.server.max.receive.size",
        ),
        _NEGATIVE,
    ),
    "group.max.session.timeout.ms": "no member could join: it is below group.min.session.timeout.ms",
    "group.min.session.timeout.ms": "no member could join: it is above group.max.session.timeout.ms",
    "num.replica.fetchers": "at most 64",
    "replica.selector.class": "Kafka loads the class when it has started",
    "ssl.enabled.protocols": _OF_TLS,
    "ssl.endpoint.identification.algorithm": _OF_TLS,
    "ssl.keystore.type": _OF_TLS,
    "ssl.truststore.type": _OF_TLS,
    "remote.storage.enable": "there is no tiered storage",
}
TAKEN_HERE: Final = {
    "queued.max.request.bytes": "one larger request at a time gets in",
    **dict.fromkeys(
        ("sasl.enabled.mechanisms", "sasl.oauthbearer.expected.audience", "ssl.cipher.suites"),
        "an empty item of the list counts for nothing",
    ),
}


def cases() -> Iterator[tuple[str, str, str]]:
    """Each kind of resource, name and value."""
    for line in KAFKA.read_text().splitlines()[1:]:
        kind, name, value_type = line.split("\t")[:3]
        if kind == "topic" or (kind == "broker" and _is_compared(name, value_type)):
            yield from ((kind, name, value) for value in VALUES.get(value_type, ()))


def _is_compared(name: str, value_type: str) -> bool:
    if name.startswith(GIVEN) or value_type in VALUES_OF_CLASSES:
        return False
    return definition_of(name).support is Support.USED


def test_bc8_the_values_of_each_config_are_those_of_kafka() -> None:
    compared = list(cases())
    given = "".join(f"{kind}\t{name}={value}\n" for kind, name, value in compared)
    answers = run_java(str(ROOT / "tests" / "interop" / "java" / "Configs.java"), given=given).splitlines()
    answers = [line for line in answers if line == "OK" or line.startswith("ERR ")]
    assert len(answers) == len(compared) > 3_000
    differs: dict[tuple[bool, str], list[str]] = {}
    for (kind, name, value), answer in zip(compared, answers, strict=True):
        refused = refusal(kind, name, value)
        if (answer == "OK") != (refused is None):
            differs.setdefault((answer == "OK", name), []).append(f"{value!r}: {answer} | {refused}")
    unexplained = {
        key: found for key, found in differs.items() if key[1] not in (REFUSED_HERE if key[0] else TAKEN_HERE)
    }
    assert unexplained == {}
    assert {name for is_ok, name in differs if is_ok} == set(REFUSED_HERE)
    assert {name for is_ok, name in differs if not is_ok} == set(TAKEN_HERE)


def refusal(kind: str, name: str, value: str) -> str | None:
    """Why Rota refuses it."""
    try:
        if kind == "topic":
            TopicConfig({name: value}, BrokerConfig())
        else:
            BrokerConfig({"listeners": "PLAINTEXT://127.0.0.1:9092", name: value})
    except ConfigRefused as refused:
        return str(refused)
    return None
