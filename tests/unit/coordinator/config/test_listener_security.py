"""SC1: which properties count for a listener, and what is refused."""

from __future__ import annotations

import pytest

from rota.coordinator.config.broker import BrokerConfig
from rota.coordinator.config.definition import ConfigRefused
from rota.coordinator.config.listener_security import VALIDATOR, ListenerSecurity, check_is_private, split_override
from rota.coordinator.config.listeners import Endpoint

MAP = "listener.security.protocol.map"
PLAIN = {
    "listeners": "SASL_SSL://:0",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
    "listener.name.sasl_ssl.plain.sasl.jaas.config": "x required;",
}


def test_a_property_of_the_listener_stands_above_the_brokers() -> None:
    config = BrokerConfig(
        {
            "listeners": "INSIDE://:0,SSL://:1",
            MAP: "INSIDE:SSL,SSL:SSL",
            "ssl.client.auth": "requested",
            "listener.name.inside.ssl.client.auth": "required",
        }
    )
    assert {name: each.properties["ssl.client.auth"] for name, each in config.security.items()} == {
        "INSIDE": "required",
        "SSL": "requested",
    }


def test_bc7_spaces_around_a_value_of_a_listener_do_not_count() -> None:
    """A file in Java's form keeps those behind a value."""
    issuer, url, validator = "sasl.oauthbearer.expected.issuer", "sasl.oauthbearer.jwks.endpoint.url", VALIDATOR
    config = BrokerConfig(
        {
            "listeners": "SASL_SSL://:0",
            "sasl.enabled.mechanisms": " OAUTHBEARER ",
            issuer: "https://issuer ",
            f"listener.name.sasl_ssl.{issuer}": " https://own\t",
            f"listener.name.sasl_ssl.oauthbearer.{url}": " file:/keys ",
            validator: "org.x.OAuthBearerValidatorCallbackHandler ",
            "ssl.keystore.password": "planted ",
        }
    )
    security = config.security["SASL_SSL"]
    texts = [security.text("OAUTHBEARER", name) for name in (issuer, url, validator)]
    assert texts == ["https://own", "file:/keys", "org.x.OAuthBearerValidatorCallbackHandler"]
    assert security.properties["ssl.keystore.password"] == "planted"


def test_a_dynamic_config_counts_for_its_listener() -> None:
    config = BrokerConfig({"listeners": "SSL://:0"})
    config.reconfigure({}, {"listener.name.ssl.ssl.client.auth": "required"})
    assert config.security["SSL"].properties["ssl.client.auth"] == "required"


@pytest.mark.parametrize(
    ("properties", "reason"),
    [
        ({"listeners": "INSIDE://127.0.0.1:0"}, "no security protocol for the listener INSIDE"),
        ({"listeners": "INSIDE://127.0.0.1:0", MAP: "INSIDE:TLS"}, "TLS is not one of"),
        ({"listeners": "SASL_SSL://:0"}, "does not support GSSAPI"),
        ({"listeners": "SASL_SSL://:0", "sasl.enabled.mechanisms": "GSSAPI"}, "does not support GSSAPI"),
        ({"listeners": "SASL_SSL://:0", "sasl.enabled.mechanisms": ""}, "names no mechanism"),
        (
            {"listeners": "SASL_SSL://:0", "sasl.enabled.mechanisms": "PLAIN"},
            "plain.sasl.jaas.config is missing",
        ),
    ],
)
def test_a_listener_that_cannot_be_secured_as_configured_is_refused(properties: dict[str, str], reason: str) -> None:
    with pytest.raises(ConfigRefused, match=reason):
        BrokerConfig(properties)


def test_mechanisms_and_jaas_texts_of_a_listener() -> None:
    security = BrokerConfig(PLAIN).security["SASL_SSL"]
    assert (security.mechanisms, dict(security.jaas)) == (("PLAIN", "SCRAM-SHA-256"), {"PLAIN": "x required;"})
    assert (security.has_tls, security.has_sasl) == (True, True)
    assert "x required" not in repr(security)


@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SASL_PLAINTEXT"])
@pytest.mark.parametrize("host", ["", "0.0.0.0", "::", "10.0.0.1", "broker.example"])
def test_plain_text_beyond_the_loopback_is_refused_with_the_reason(protocol: str, host: str) -> None:
    with pytest.raises(ConfigRefused, match=r"passwords too.*rota\.allow\.plaintext\.beyond\.loopback=true"):
        check_is_private(Endpoint("X", host, 1), ListenerSecurity("X", protocol))


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost"])
def test_plain_text_on_the_loopback_is_allowed(host: str) -> None:
    check_is_private(Endpoint("X", host, 1), ListenerSecurity("X"))


def test_tls_is_allowed_everywhere() -> None:
    check_is_private(Endpoint("X", "", 1), ListenerSecurity("X", "SSL"))


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("listener.name.a-b_1.ssl.key.password", ("a-b_1", None, "ssl.key.password")),
        ("listener.name.a.plain.sasl.jaas.config", ("a", "plain", "sasl.jaas.config")),
        ("listener.name.a.scram-sha-256.sasl.jaas.config", ("a", "scram-sha-256", "sasl.jaas.config")),
        ("listener.name.a.max.connections", None),
        ("ssl.key.password", None),
    ],
)
def test_parts_of_a_name(name: str, parts: tuple[str, str | None, str] | None) -> None:
    assert split_override(name) == parts


BETWEEN = {
    "listeners": "PLAINTEXT://127.0.0.1:0,SASL_SSL://:0",
    "sasl.enabled.mechanisms": "SCRAM-SHA-512,OAUTHBEARER",
    "sasl.oauthbearer.jwks.endpoint.url": "https://x",
    "inter.broker.listener.name": "SASL_SSL",
    "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
    "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config": "x",
}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sasl.mechanism.inter.broker.protocol": "GSSAPI"}, "is GSSAPI; on the listener SASL_SSL between brokers"),
        ({"sasl.mechanism.inter.broker.protocol": "PLAIN"}, "that sasl.enabled.mechanisms has"),
        ({"sasl.mechanism.inter.broker.protocol": "OAUTHBEARER"}, "oauthbearer.sasl.jaas.config is missing"),
        ({"listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config": None}, "the credentials of this broker"),
        ({"security.inter.broker.protocol": "SASL_SSL"}, "Only one of"),
        ({"inter.broker.listener.name": "SSL"}, "not one of the advertised listeners"),
        ({"inter.broker.listener.name": None, "security.inter.broker.protocol": "SSL"}, "No listener is named SSL"),
    ],
)
def test_a_listener_between_brokers_without_what_it_needs_is_refused(
    change: dict[str, str | None], message: str
) -> None:
    """IB1."""
    BrokerConfig(BETWEEN)
    changed = {name: text for name, text in {**BETWEEN, **change}.items() if text is not None}
    with pytest.raises(ConfigRefused, match=message):
        BrokerConfig(changed)


def test_the_listener_between_brokers_is_named_or_has_the_name_of_its_protocol_or_is_the_first() -> None:
    listeners = {"listeners": "SSL://:0,PLAINTEXT://127.0.0.1:0"}
    assert BrokerConfig(listeners).inter_broker_listener == "SSL"
    named = {"inter.broker.listener.name": "PLAINTEXT"}
    assert BrokerConfig({**listeners, **named}).inter_broker_listener == "PLAINTEXT"
    protocol = {"security.inter.broker.protocol": "PLAINTEXT"}
    assert BrokerConfig({**listeners, **protocol}).inter_broker_listener == "PLAINTEXT"
    assert BrokerConfig(listeners | {"zookeeper.connect": "h:2181"}).inter_broker_listener == "SSL"


OAUTH = {"listeners": "SASL_PLAINTEXT://127.0.0.1:0", "sasl.enabled.mechanisms": "OAUTHBEARER"}
UNSECURED = (
    "org.apache.kafka.common.security.oauthbearer.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"
)


def test_oauthbearer_needs_keys_or_the_unsecured_validator_by_name() -> None:
    keys, handler = "sasl.oauthbearer.jwks.endpoint.url", "sasl.server.callback.handler.class"
    for wrong in ({}, {keys: "keys.json"}, {keys: "ftp://x"}, {handler: "x.OAuthBearerValidatorCallbackHandler"}):
        with pytest.raises(ConfigRefused, match=keys):
            BrokerConfig({**OAUTH, **wrong})
    with pytest.raises(ConfigRefused, match=handler):
        BrokerConfig({**OAUTH, keys: "https://x", handler: "x.Mine"})
    own = f"listener.name.sasl_plaintext.oauthbearer.{keys}"
    for right in (
        {keys: "https://x"},
        {own: "file:///x"},
        {f"listener.name.sasl_plaintext.oauthbearer.{handler}": UNSECURED},
    ):
        security = BrokerConfig({**OAUTH, **right}).security["SASL_PLAINTEXT"]
        assert security.mechanisms == ("OAUTHBEARER",)
    assert (
        BrokerConfig({**OAUTH, keys: "http://all", own: "https://own"})
        .security["SASL_PLAINTEXT"]
        .text("OAUTHBEARER", keys)
        == "https://own"
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("connections.max.idle.ms", "1000"),  # of the broker alone, as in Kafka
        ("plain.ssl.client.auth", "required"),  # TLS is done before a mechanism is known
        ("plain.sasl.server.max.receive.size", "1000"),
        ("plain.sasl.enabled.mechanisms", "PLAIN"),
        ("plain.sasl.server.callback.handler.class", "com.example.Passwords"),  # Kafka would ask it, not the JAAS text
        ("scram-sha-256.sasl.oauthbearer.expected.audience", "a"),
        ("sasl.jaas.config", "x required;"),  # Kafka reads that of a mechanism
    ],
)
def test_a_property_of_a_listener_that_nothing_reads_is_refused(name: str, value: str) -> None:
    with pytest.raises(ConfigRefused, match=f"listener.name.sasl_ssl.{name}.*reads"):
        BrokerConfig({**PLAIN, f"listener.name.sasl_ssl.{name}": value})


@pytest.mark.parametrize(
    "name",
    [
        "ssl.client.auth=required",
        "sasl.server.max.receive.size=1000",
        "connections.max.reauth.ms=1000",
        "plain.connections.max.reauth.ms=1000",
        "oauthbearer.sasl.oauthbearer.expected.audience=a",
        "oauthbearer.sasl.server.callback.handler.class=x.OAuthBearerValidatorCallbackHandler",
    ],
)
def test_a_property_of_a_listener_that_is_read_is_accepted(name: str) -> None:
    name, _, value = name.partition("=")
    assert not BrokerConfig({**PLAIN, f"listener.name.sasl_ssl.{name}": value}).warnings


def test_a_property_of_a_listener_that_does_not_exist_is_refused() -> None:
    """A slip of the pen would leave clients without a check that was meant."""
    with pytest.raises(ConfigRefused, match=r"listener\.name\.sasl_sll\.ssl\.client\.auth.*SASL_SSL"):
        BrokerConfig({**PLAIN, "listener.name.sasl_sll.ssl.client.auth": "required"})
    shared = {MAP: "SASL_SSL:SASL_SSL,OTHER:SSL", "listener.name.other.ssl.client.auth": "required"}
    BrokerConfig({**PLAIN, **shared, "listener.name.http.ssl.client.auth": "required"})
