"""The tokens of this broker at other brokers, for OAUTHBEARER: of the client-credentials flow, or without a signature.

As in Kafka, an option of the JAAS text that begins with `unsecuredLogin` asks for a token that anyone could forge.

Law
    IB4 A broker has a token for its own secret; one without a signature counts for the unsecured validator alone.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from time import time
from typing import Final

from rota.coordinator.config.definition import ConfigRefused
from rota.coordinator.config.listener_security import ListenerSecurity
from rota.coordinator.security.login_modules import OAUTHBEARER, tls_for_tokens, token_options
from rota.transport.sasl.client_credentials import ClientCredentials
from rota.transport.sasl.login import TokenLogin
from rota.transport.sasl.tokens import TokenCache
from rota.transport.tls import TlsSettings, client_context

UNSECURED: Final = "unsecuredLogin"
CLAIM: Final = f"{UNSECURED}StringClaim_"
LIFETIME: Final = f"{UNSECURED}LifetimeSeconds"
LIFETIME_S: Final = "3600"
URL: Final = "sasl.oauthbearer.token.endpoint.url"
ID: Final = "sasl.oauthbearer.client.credentials.client.id"
SECRET: Final = "sasl.oauthbearer.client.credentials.client.secret"
SCOPE: Final = "sasl.oauthbearer.scope"


def token_login(security: ListenerSecurity) -> TokenLogin:
    """Return what authenticates this broker at others. Raises ConfigRefused."""
    options = token_options(security)
    if any(name.startswith(UNSECURED) for name in options):
        return TokenLogin(TokenCache(_UnsecuredTokens(security, options).token))
    return TokenLogin(TokenCache(_client_credentials(security, options)))


def _client_credentials(security: ListenerSecurity, options: Mapping[str, str]) -> ClientCredentials:
    url = security.text(OAUTHBEARER, URL)
    client = options.get("clientId") or security.text(OAUTHBEARER, ID)
    secret = options.get("clientSecret") or security.text(OAUTHBEARER, SECRET)
    for name, text in ((URL, url), (ID, client), (SECRET, secret)):
        if not text:
            raise ConfigRefused(name, f"Configuration {name} is missing: brokers reach each other with OAUTHBEARER")
    tls = tls_for_tokens(security) or client_context(TlsSettings())
    try:
        return ClientCredentials(url, client, secret, options.get("scope") or security.text(OAUTHBEARER, SCOPE), tls)
    except ValueError as why:
        raise ConfigRefused(URL, f"Configuration {URL}: {str(why).replace('_', '.')}") from None


class _UnsecuredTokens:
    """Tokens whose claims are options of the JAAS text. Raises ConfigRefused."""

    def __init__(self, security: ListenerSecurity, options: Mapping[str, str]) -> None:
        self._claims = {name.removeprefix(CLAIM): text for name, text in options.items() if name.startswith(CLAIM)}
        lifetime = options.get(LIFETIME, LIFETIME_S)
        if not lifetime.isdecimal() or not self._claims:
            name = security.jaas_name(OAUTHBEARER)
            raise ConfigRefused(name, f"Invalid value for configuration {name}: expected {CLAIM}sub and a lifetime")
        self._lifetime_s = int(lifetime)

    async def token(self) -> str:
        now = int(time())
        return f"{_part({'alg': 'none'})}.{_part({**self._claims, 'iat': now, 'exp': now + self._lifetime_s})}."


def _part(value: Mapping[str, object]) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()
