"""OAUTHBEARER between brokers: the token of a broker at another one, from a real token endpoint and listener."""

from __future__ import annotations

import pytest
from tests.unit.certificates import Certificates, certificates
from tests.unit.coordinator.security.test_broker_connections import close, connection, properties
from tests.unit.identity_provider import SECRET, IdentityProvider

from rota.coordinator.broker import Broker
from rota.coordinator.config.broker import BrokerConfig
from rota.coordinator.config.definition import ConfigRefused
from rota.coordinator.security.broker_connections import security_between_brokers
from rota.transport.errors import AuthenticationFailed

__all__ = ["certificates"]
JAAS = "listener.name.sasl_ssl.oauthbearer.sasl.jaas.config"
URL = "sasl.oauthbearer.token.endpoint.url"
VALIDATOR = "listener.name.sasl_ssl.oauthbearer.sasl.server.callback.handler.class"
UNSECURED = "x.OAuthBearerUnsecuredValidatorCallbackHandler"


def jaas(**options: str) -> str:
    given = " ".join(f'{name.replace("__", ".")}="{text}"' for name, text in options.items())
    return f"org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required {given};"


def with_tokens(certificates: Certificates, provider_url: str = "https://id.example", **options: str) -> dict[str, str]:
    return properties(certificates) | {
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
        "sasl.oauthbearer.jwks.endpoint.url": f"{provider_url}/keys",
        "sasl.oauthbearer.expected.audience": "rota",
        URL: f"{provider_url}/token",
        JAAS: jaas(ssl__truststore__location=str(certificates.ca), **options),
    }


def principals(broker: Broker) -> list[str]:
    return [str(each.principal) for each in broker.listener.connections]


async def test_a_broker_authenticates_with_a_token_for_its_secret(certificates: Certificates) -> None:
    """IB4, over https on both ways; by the options of the JAAS text or by properties."""
    async with IdentityProvider().running(certificates.listener()) as provider:
        given = with_tokens(certificates, provider.url, clientId="broker", clientSecret=SECRET, scope="kafka")
        by_properties = with_tokens(certificates, provider.url) | {
            "sasl.oauthbearer.client.credentials.client.id": "other",
            "sasl.oauthbearer.client.credentials.client.secret": SECRET,
        }
        wrong = with_tokens(certificates, provider.url, clientId="broker", clientSecret="planted-wrong")
        async with Broker(BrokerConfig(given), memory=True) as broker:
            for each, principal in ((given, "User:broker"), (by_properties, "User:other")):
                opened = await connection(broker, each)
                assert principals(broker) == [principal]
                await close(opened)
            with pytest.raises(AuthenticationFailed, match="invalid_client") as refused:
                await connection(broker, wrong)
        assert "planted" not in str(refused.value)
        assert provider.requests == ["keys", "broker kafka", "other None", "broker None"]


async def test_a_token_without_a_signature_is_for_the_unsecured_validator_alone(certificates: Certificates) -> None:
    given = with_tokens(certificates, unsecuredLoginStringClaim_sub="broker") | {VALIDATOR: UNSECURED}
    async with Broker(BrokerConfig(given), memory=True) as broker:
        opened = await connection(broker, given)
        assert principals(broker) == ["User:broker"]
        await close(opened)
    async with IdentityProvider().running(certificates.listener()) as provider:
        signed = with_tokens(certificates, provider.url, clientId="broker", clientSecret=SECRET)
        async with Broker(BrokerConfig(signed), memory=True) as broker:
            with pytest.raises(AuthenticationFailed, match="invalid_token"):
                await connection(broker, given)


@pytest.mark.parametrize(
    ("changes", "options", "refused"),
    [
        ({}, {}, "client.id is missing"),
        ({}, {"clientId": "b"}, "client.secret is missing"),
        ({URL: ""}, {"clientId": "b", "clientSecret": "planted"}, "token.endpoint.url is missing"),
        ({URL: "file:/x"}, {"clientId": "b", "clientSecret": "planted"}, "must be an http or https URL"),
        ({JAAS: "x.ScramLoginModule required;"}, {}, "where OAuthBearerLoginModule is expected"),
        ({}, {"unsecuredLoginLifetimeSeconds": "60"}, "expected unsecuredLoginStringClaim_sub"),
        (
            {},
            {"unsecuredLoginStringClaim_sub": "b", "unsecuredLoginLifetimeSeconds": "-1"},
            "expected unsecuredLoginStringClaim_sub",
        ),
    ],
)
def test_credentials_for_tokens_that_cannot_be_used_are_refused(
    certificates: Certificates, changes: dict[str, str], options: dict[str, str], refused: str
) -> None:
    given = with_tokens(certificates, **options) | changes
    with pytest.raises(ConfigRefused, match=refused) as error:
        security_between_brokers(BrokerConfig(given))
    assert "planted" not in str(error.value)
