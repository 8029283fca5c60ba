"""Credentials of a client: each login starts the conversations of one mechanism."""

from __future__ import annotations

import secrets
from typing import Final, Protocol

from rota.protocol import scram
from rota.transport.sasl.conversation import Conversation
from rota.transport.sasl.oauthbearer import OauthbearerConversation
from rota.transport.sasl.plain import PlainConversation
from rota.transport.sasl.scram import ScramConversation
from rota.transport.sasl.tokens import TokenCache

NONCE_BYTES: Final = 24
OAUTHBEARER: Final = "OAUTHBEARER"
PASSWORD_MECHANISMS: Final = ("PLAIN", *scram.MECHANISMS)
MECHANISMS: Final = (*PASSWORD_MECHANISMS, OAUTHBEARER)


class Login(Protocol):
    """`mechanism` is the name of the SASL mechanism."""

    @property
    def mechanism(self) -> str: ...

    async def conversation(self) -> Conversation:
        """A new conversation. Raises AuthenticationFailed when there are no credentials."""
        ...


class PasswordLogin:
    """A user and a password, for PLAIN and SCRAM; `is_token`: a delegation token, by its id and HMAC (KIP-48)."""

    def __init__(self, mechanism: str, username: str, password: str, *, is_token: bool = False) -> None:
        assert mechanism in PASSWORD_MECHANISMS
        self.mechanism = mechanism
        self._username, self._password = username, password
        self._extensions = (("tokenauth", "true"),) if is_token else ()

    async def conversation(self) -> Conversation:
        if self.mechanism == "PLAIN":
            return PlainConversation(self._username, self._password)
        kind = scram.MECHANISMS[self.mechanism]
        nonce = secrets.token_urlsafe(NONCE_BYTES)
        return ScramConversation(kind, self._username, self._password, nonce, self._extensions)


class TokenLogin:
    """Tokens of a provider, for OAUTHBEARER."""

    mechanism = OAUTHBEARER

    def __init__(self, tokens: TokenCache) -> None:
        self._tokens = tokens

    async def conversation(self) -> Conversation:
        token = await self._tokens.token()
        return OauthbearerConversation(token.value, token.extensions)
