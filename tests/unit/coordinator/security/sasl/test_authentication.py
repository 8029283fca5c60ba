from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.unit.coordinator.security.oauth.test_access_token import NOW, NOW_MS, token
from tests.unit.coordinator.security.sasl.test_oauthbearer import message
from tests.unit.coordinator.security.signer import Signer

from rota.coordinator.config.broker import BrokerConfig
from rota.coordinator.config.definition import ConfigRefused
from rota.coordinator.security.sasl.authentication import Authentication
from rota.coordinator.security.sasl.scram import no_users
from rota.protocol.errors import ErrorCode

MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
ALICE = f'{MODULE} required user_alice="planted";'


def authentication_of(jaas: str, **properties: str) -> Authentication:
    config = BrokerConfig(
        {
            "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
            "sasl.enabled.mechanisms": "SCRAM-SHA-512,PLAIN",
            "listener.name.sasl_plaintext.plain.sasl.jaas.config": jaas,
            **{name if "." in name else name.replace("_", "."): text for name, text in properties.items()},
        }
    )
    return Authentication(config, no_users, lambda: 0, lambda: 0)


def test_a_session_has_the_mechanisms_and_users_of_its_listener() -> None:
    session = authentication_of(ALICE).session("SASL_PLAINTEXT")
    assert session.mechanisms == ("SCRAM-SHA-512", "PLAIN")
    session.handshake("PLAIN", 1, 0)
    assert session.authenticate(b"\0alice\0planted", 0).code == 0


def test_a_session_lasts_as_long_as_its_listener_says() -> None:
    session = authentication_of(ALICE, connections_max_reauth_ms="5000").session("SASL_PLAINTEXT")
    session.handshake("PLAIN", 1, 0)
    assert session.authenticate(b"\0alice\0planted", 0).lifetime_ms == 5000


def test_the_lifetime_of_a_mechanism_stands_above_the_listeners() -> None:
    own = "listener.name.sasl_plaintext.plain.connections.max.reauth.ms"
    session = authentication_of(ALICE, connections_max_reauth_ms="5000", **{own: "1000"}).session("SASL_PLAINTEXT")
    session.handshake("PLAIN", 1, 0)
    assert session.authenticate(b"\0alice\0planted", 0).lifetime_ms == 1000


@pytest.mark.parametrize("jaas", ["planted", 'x.ScramLoginModule required password="planted";', f"{MODULE} x planted"])
def test_an_invalid_jaas_text_is_refused_without_its_values(jaas: str) -> None:
    with pytest.raises(ConfigRefused, match=r"listener\.name\.sasl_plaintext\.plain\.sasl\.jaas\.config") as refused:
        authentication_of(jaas).session("SASL_PLAINTEXT")
    assert "planted" not in str(refused.value)


def oauth_of(**properties: str) -> Authentication:
    names = {name.replace("__", "-").replace("_", "."): text for name, text in properties.items()}
    config = BrokerConfig(
        {"listeners": "SASL_PLAINTEXT://127.0.0.1:0", "sasl.enabled.mechanisms": "OAUTHBEARER"} | names
    )
    return Authentication(config, no_users, lambda: 0, lambda: NOW_MS)


def log_in(authentication: Authentication, token: str) -> int:
    session = authentication.session("SASL_PLAINTEXT")
    session.handshake("OAUTHBEARER", 1, 0)
    session.authenticate(message(token), 0)
    return session.authenticate(b"\x01", 0).code


def test_a_trust_store_for_keys_that_cannot_be_used_is_refused() -> None:
    name = "listener.name.sasl_plaintext.oauthbearer.sasl.jaas.config"
    store = 'ssl.truststore.location="/is/missing" ssl.truststore.password="planted"'
    properties = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "sasl.oauthbearer.jwks.endpoint.url": "https://id.example/keys",
        name: f"x.OAuthBearerLoginModule required {store};",
    }
    authentication = Authentication(BrokerConfig(properties), no_users, lambda: 0, lambda: NOW_MS)
    with pytest.raises(ConfigRefused, match=f"{name}.*ssl_truststore_location") as refused:
        authentication.session("SASL_PLAINTEXT")
    assert "planted" not in str(refused.value)


def test_the_unsecured_validator_has_the_options_of_the_jaas_text() -> None:
    prefix, module = "listener.name.sasl_plaintext.oauthbearer.", f"{MODULE.rpartition('.plain')[0]}.oauthbearer"
    options = 'unsecuredValidatorPrincipalClaimName="user" unsecuredValidatorAllowableClockSkewMs="%s"'
    settings = {
        f"{prefix}sasl.server.callback.handler.class": "x.OAuthBearerUnsecuredValidatorCallbackHandler",
        f"{prefix}sasl.jaas.config": f"{module}.OAuthBearerLoginModule required {options};",
    }
    given = {name: text.replace("%s", "2000") for name, text in settings.items()}
    base = {"listeners": "SASL_PLAINTEXT://127.0.0.1:0", "sasl.enabled.mechanisms": "OAUTHBEARER"}
    authentication = Authentication(BrokerConfig(base | given), no_users, lambda: 0, lambda: NOW_MS)
    assert log_in(authentication, token(user="bob", exp=NOW - 1, iat=NOW - 9)) == ErrorCode.ILLEGAL_SASL_STATE  # open
    assert log_in(authentication, token()) == ErrorCode.SASL_AUTHENTICATION_FAILED
    wrong = {name: text.replace("%s", "-1") for name, text in settings.items()}
    with pytest.raises(ConfigRefused, match="unsecuredValidatorAllowableClockSkewMs"):
        Authentication(BrokerConfig(base | wrong), no_users, lambda: 0, lambda: 0).session("SASL_PLAINTEXT")


async def test_signed_tokens_are_verified_with_the_keys_of_the_listener(signer: Signer, tmp_path: Path) -> None:
    keys = tmp_path / "keys.json"
    keys.write_bytes(signer.key_set())
    authentication = oauth_of(
        sasl_oauthbearer_jwks_endpoint_url=f"file://{keys}",
        sasl_oauthbearer_expected_audience="kafka,rota",
        sasl_oauthbearer_expected_issuer="me",
        sasl_oauthbearer_sub_claim_name="user",
        sasl_oauthbearer_clock_skew_seconds="5",
    )
    authentication.session("SASL_PLAINTEXT")
    await authentication.first_keys()
    claims = {"user": "bob", "aud": "rota", "iss": "me", "iat": NOW, "exp": NOW - 4}
    assert log_in(authentication, signer.sign({**claims, "iat": NOW - 9})) == ErrorCode.ILLEGAL_SASL_STATE  # open
    for wrong in ({"aud": "x"}, {"iss": "x"}, {"exp": NOW - 6}, {"user": 5}):
        refused = log_in(authentication, signer.sign({**claims, "iat": NOW - 9, **wrong}))
        assert refused == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert log_in(authentication, token()) == ErrorCode.SASL_AUTHENTICATION_FAILED  # no signature
    authentication.close()


def test_a_file_without_keys_is_refused_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(ConfigRefused, match="cannot be read: No such file"):
        oauth_of(sasl_oauthbearer_jwks_endpoint_url=f"file://{tmp_path}/missing").session("SASL_PLAINTEXT")


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "rota.coordinator.security.oauth.signed_token", raising=False)
    monkeypatch.setitem(sys.modules, "jwt", None)
    with pytest.raises(ConfigRefused, match=r"not installed: jwt.*rota\[oauth\]"):
        oauth_of(sasl_oauthbearer_jwks_endpoint_url="https://x").session("SASL_PLAINTEXT")
