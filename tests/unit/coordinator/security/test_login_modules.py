"""Login modules of JAAS texts: what is refused says the property, and none of its values."""

from __future__ import annotations

import pytest

from rota.coordinator.config.definition import ConfigRefused
from rota.coordinator.config.listener_security import ListenerSecurity
from rota.coordinator.security.login_modules import login_module, tls_for_tokens, token_options

NAME = "listener.name.x.oauthbearer.sasl.jaas.config"


@pytest.mark.parametrize(
    ("jaas", "reason"),
    [("", "Invalid value"), ("planted", "Invalid value"), ('x.Other required a="planted";', "has Other, where Mine")],
)
def test_another_text_is_refused_without_its_values(jaas: str, reason: str) -> None:
    with pytest.raises(ConfigRefused, match=f"{NAME}.*{reason}|{reason}.*{NAME}|{NAME} {reason}") as refused:
        login_module(NAME, jaas, "Mine")
    assert "planted" not in str(refused.value)


def test_options_of_tokens_are_those_of_their_listener() -> None:
    assert token_options(ListenerSecurity("X")) == {}
    assert tls_for_tokens(ListenerSecurity("X")) is None
    jaas = {"OAUTHBEARER": 'x.OAuthBearerLoginModule required clientId="a";'}
    assert token_options(ListenerSecurity("X", jaas=jaas)) == {"clientId": "a"}
    assert tls_for_tokens(ListenerSecurity("X", jaas=jaas)) is None
