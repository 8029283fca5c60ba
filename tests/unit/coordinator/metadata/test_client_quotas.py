from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.coordinator.metadata import eager_tasks, znodes
from rota.coordinator.metadata.changes import ConfigKind
from rota.coordinator.metadata.client_quotas import (
    all_quotas,
    entity_at,
    entity_of,
    entity_text,
    node_of,
    quota_text,
    read_quotas,
    refuse_entity,
    refuse_quota,
)
from rota.coordinator.metadata.embedded import EmbeddedStore
from rota.coordinator.metadata.topics import Topics

NAMES = (
    st.none()
    | st.sampled_from(["<default>", "%3Cdefault%3E", "/clients/", "a/b", "..", "ü"])
    | st.text(st.characters(codec="utf-8"), min_size=1, max_size=12)
)
ENTITIES = st.one_of(
    st.fixed_dictionaries({"user": NAMES}),
    st.fixed_dictionaries({"client-id": NAMES}),
    st.fixed_dictionaries({"user": NAMES, "client-id": NAMES}),
    st.fixed_dictionaries({"ip": NAMES}),
).map(entity_of)


@given(ENTITIES)
def test_an_entity_is_read_from_its_node(entity: tuple[tuple[str, str | None], ...]) -> None:
    kind, node = node_of(entity)
    assert entity_at(kind, node) == entity
    path = znodes.resource_config_path(kind, node)
    assert path.count("/") == 3
    assert znodes.read_resource_name(path.rpartition("/")[2]) == node


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ({}, "Invalid empty client quota entity"),
        ({"user": ""}, "Empty user not supported"),
        ({"planet": "x"}, "Unhandled client quota entity type: planet"),
        ({"ip": "127.0.0.1", "user": "u"}, "Invalid quota entity combination, IP entity shouldnot be combined with"),
        ({"ip": "no.such.host.invalid"}, "no.such.host.invalid is not a valid IP or resolvable host."),
        ({"ip": None}, None),
        ({"ip": "::1"}, None),
        ({"user": None, "client-id": "c"}, None),
    ],
)
def test_an_entity_that_can_have_no_quotas(names: dict[str, str | None], message: str | None) -> None:
    refusal = refuse_entity(entity_of(names))
    assert (refusal is None) is (message is None)
    assert refusal is None or message is None or refusal.message.startswith(message)


@pytest.mark.parametrize(
    ("entity_type", "key", "value", "message"),
    [
        ("user", "producer_byte_rate", 100, None),
        ("user", "producer_byte_rate", 0, "Quota producer_byte_rate must be greater than 0"),
        ("user", "producer_byte_rate", float("nan"), "Quota producer_byte_rate must be greater than 0"),
        ("user", "producer_byte_rate", 1.5, "producer_byte_rate cannot be a fractional value."),
        ("user", "producer_byte_rate", 1e300, "Proposed value for producer_byte_rate is too large for a LONG."),
        ("user", "producer_byte_rate", float("inf"), "Proposed value for producer_byte_rate is too large for a LONG."),
        ("client-id", "request_percentage", 1.5, None),
        ("client-id", "connection_creation_rate", 1, "Invalid configuration key connection_creation_rate"),
        ("ip", "connection_creation_rate", 10, None),
        (
            "ip",
            "connection_creation_rate",
            1 << 31,
            "Proposed value for connection_creation_rate is too large for an INT.",
        ),
        ("user", "request_percentage", float("inf"), None),
        ("ip", "producer_byte_rate", 10, "Invalid configuration key producer_byte_rate"),
    ],
)
def test_a_quota_is_checked_as_in_kafka(entity_type: str, key: str, value: float, message: str | None) -> None:
    refusal = refuse_quota(entity_of({entity_type: "x"}), key, value)
    assert (refusal and (refusal.code, refusal.message)) == (message and (42, message))


def test_texts() -> None:
    assert entity_text(entity_of({"user": None, "client-id": "c"})) == (
        "ClientQuotaEntity(entries={client-id=c, user=null})"
    )
    assert quota_text("producer_byte_rate", 1024.0) == "1024"
    assert quota_text("request_percentage", 12.5) == "12.5"
    assert quota_text("producer_byte_rate", 1e-9) == "1e-09"  # not 0, which is no quota


def test_credentials_and_garbled_quotas_are_no_quotas() -> None:
    configs = {"SCRAM-SHA-256": "salt=", "producer_byte_rate": "many", "consumer_byte_rate": "7"}
    assert read_quotas(configs) == {"consumer_byte_rate": 7.0}


def test_the_quotas_of_the_image() -> None:
    topics = Topics(EmbeddedStore(), broker_id=1, fresh_uuid=lambda: b"u" * 16)
    eager_tasks.run_eagerly(topics.load())
    for kind, name in ((ConfigKind.USERS, "<default>"), (ConfigKind.USER_CLIENTS, "a%2Fb/clients/<default>")):
        eager_tasks.run_eagerly(topics.configs.update(kind, name, lambda _: {"producer_byte_rate": "5"}))
    eager_tasks.run_eagerly(topics.configs.update(ConfigKind.USERS, "bob", lambda _: {"SCRAM-SHA-256": "x"}))
    quotas = {"producer_byte_rate": 5.0}
    assert list(all_quotas(topics)) == [
        ((("user", None),), quotas),
        ((("client-id", None), ("user", "a/b")), quotas),
    ]
