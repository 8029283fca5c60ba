from __future__ import annotations

import pytest

from rota.coordinator.config.broker import BrokerConfig
from rota.coordinator.config.definition import ConfigRefused
from rota.coordinator.security.sasl.authentication import Authentication

MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
ALICE = f'{MODULE} required user_alice="planted";'


def authentication_of(jaas: str, **properties: str) -> Authentication:
    config = BrokerConfig(
        {
            "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
            "sasl.enabled.mechanisms": "SCRAM-SHA-512,PLAIN",
            "listener.name.sasl_plaintext.plain.sasl.jaas.config": jaas,
            **{name.replace("_", "."): text for name, text in properties.items()},
        }
    )
    return Authentication(config, lambda user, mechanism: None)


def test_a_session_has_the_mechanisms_and_users_of_its_listener() -> None:
    session = authentication_of(ALICE).session("SASL_PLAINTEXT")
    assert session.mechanisms == ("SCRAM-SHA-512", "PLAIN")
    session.handshake("PLAIN", 1)
    assert session.authenticate(b"\0alice\0planted", 0).code == 0


def test_a_session_lasts_as_long_as_its_listener_says() -> None:
    session = authentication_of(ALICE, connections_max_reauth_ms="5000").session("SASL_PLAINTEXT")
    session.handshake("PLAIN", 1)
    assert session.authenticate(b"\0alice\0planted", 0).lifetime_ms == 5000


@pytest.mark.parametrize("jaas", ["planted", 'x.ScramLoginModule required password="planted";', f"{MODULE} x planted"])
def test_an_invalid_jaas_text_is_refused_without_its_values(jaas: str) -> None:
    with pytest.raises(ConfigRefused, match=r"listener\.name\.sasl_plaintext\.plain\.sasl\.jaas\.config") as refused:
        authentication_of(jaas).session("SASL_PLAINTEXT")
    assert "planted" not in str(refused.value)
