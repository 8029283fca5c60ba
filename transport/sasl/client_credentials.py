"""Tokens of an authorization server by the client-credentials flow (RFC 6749, section 4.4), over aiohttp.

Laws
    Neither the secret nor a token is in an error text, or in an error's cause.
    The server's answer is bounded in size and time; an unreachable server is asked again, a refusal is final.
"""

from __future__ import annotations

import asyncio
import base64
import importlib.util
import json
import ssl
import time
from typing import Any, Final
from urllib.parse import urlsplit

from rota.transport.errors import AuthenticationFailed
from rota.transport.sasl.tokens import Token

ANSWER_BYTES_MAX: Final = 1024 * 1024
REQUEST_SECONDS: Final = 3.0  # ATTEMPTS of them are within PROVIDER_SECONDS
ATTEMPTS: Final = 3
RETRY_SECONDS: Final = 0.1  # before the second attempt; doubled
DETAIL_CHARS_MAX: Final = 200


class ClientCredentials:
    """A token provider. Raises ValueError for a URL that is not HTTP, and when
    aiohttp is not installed."""

    def __init__(self, url: str, client: str, secret: str, scope: str | None, tls: ssl.SSLContext) -> None:
        if urlsplit(url).scheme not in ("http", "https"):
            raise ValueError("sasl_oauthbearer_token_endpoint_url must be an http or https URL")
        if importlib.util.find_spec("aiohttp") is None:
            raise ValueError("sasl_oauthbearer_token_endpoint_url needs the package aiohttp: pip install 'rota[oauth]'")
        self._url, self._client, self._secret, self._tls = url, client, secret, tls
        self._form = {"grant_type": "client_credentials"} | ({"scope": scope} if scope else {})

    async def token(self) -> Token:
        """A new token. Raises AuthenticationFailed."""
        import aiohttp

        for attempt in range(1, ATTEMPTS + 1):
            unreachable = ""
            try:
                status, body = await self._post()
            except (aiohttp.ClientError, TimeoutError) as why:
                unreachable = type(why).__name__
            if unreachable and attempt == ATTEMPTS:  # raised here: a cause of aiohttp has the request's headers
                raise self._failed(f"it cannot be reached: {unreachable}")
            if not unreachable and (status < 500 or attempt == ATTEMPTS):
                return self._token(status, body)
            await asyncio.sleep(RETRY_SECONDS * 2 ** (attempt - 1))
        raise AssertionError("the last attempt returns or raises")

    async def _post(self) -> tuple[int, bytes]:
        import aiohttp

        pair = base64.b64encode(f"{self._client}:{self._secret}".encode()).decode()
        headers = {"Authorization": f"Basic {pair}", "Accept": "application/json"}
        timeout = aiohttp.ClientTimeout(total=REQUEST_SECONDS)
        async with (
            aiohttp.ClientSession(headers=headers, timeout=timeout) as session,
            session.post(self._url, data=self._form, ssl=self._tls, allow_redirects=False) as response,
        ):
            body = b""
            while len(body) <= ANSWER_BYTES_MAX and (part := await response.content.readany()):
                body += part
            return response.status, body

    def _token(self, status: int, body: bytes) -> Token:
        try:
            answer: Any = json.loads(body)
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            raise self._failed(f"it answered status {status} without a JSON object")
        if status != 200 or not isinstance(answer.get("access_token"), str):
            detail = f"{answer.get('error', 'no access_token')}: {answer.get('error_description', '')}"
            detail = detail.replace(self._secret, "[hidden]")  # some servers repeat what they refuse
            raise self._failed(f"it answered status {status}: {detail[:DETAIL_CHARS_MAX].rstrip(': ')}")
        lifetime = answer.get("expires_in")
        expires_at = time.time() + lifetime if isinstance(lifetime, int | float) else None
        return Token(answer["access_token"], expires_at)

    def _failed(self, problem: str) -> AuthenticationFailed:
        host = urlsplit(self._url).hostname
        return AuthenticationFailed(f"no OAuth token from {host}: {problem}", mechanism="OAUTHBEARER", detail=problem)
