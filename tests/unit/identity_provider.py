"""An authorization server for tests: tokens for the secret of a client, and the keys that verify them."""

from __future__ import annotations

import ssl
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import jwt
from aiohttp import BasicAuth, web
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm

KEY, UNKNOWN_KEY = (rsa.generate_private_key(65537, 2048) for _ in range(2))
SECRET = "planted-secret"


def key_set() -> dict[str, Any]:
    """The public half of KEY."""
    return {"keys": [{**RSAAlgorithm.to_jwk(KEY.public_key(), as_dict=True), "kid": "one"}]}


def signed(seconds: float = 60, key: Any = KEY, **claims: Any) -> str:
    """A token for the audience `rota`."""
    now = int(time.time())
    all_claims = {"sub": "alice", "aud": "rota", "iat": now, "exp": int(now + seconds), **claims}
    return jwt.encode(all_claims, key, algorithm="RS256", headers={"kid": "one"})


class IdentityProvider:
    """`/token` gives a token for SECRET, whatever the client's name; `/keys` verifies it. `requests` has the order."""

    def __init__(self, seconds: float = 60) -> None:
        self.url, self.requests = "", list[str]()
        self._seconds = seconds

    @asynccontextmanager
    async def running(self, tls: ssl.SSLContext | None = None) -> AsyncIterator[IdentityProvider]:
        app = web.Application()
        app.router.add_post("/token", self._token)
        app.router.add_get("/keys", self._keys)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
        self.url = f"http{'s' if tls else ''}://localhost:{runner.addresses[0][1]}"
        try:
            yield self
        finally:
            await runner.cleanup()

    async def _token(self, request: web.Request) -> web.StreamResponse:
        login, form = BasicAuth.decode(request.headers["Authorization"]), await request.post()
        self.requests.append(f"{login.login} {form.get('scope')}")
        if (login.password, form["grant_type"]) != (SECRET, "client_credentials"):
            return web.json_response({"error": "invalid_client"}, status=401)
        token = signed(self._seconds, sub=login.login)
        return web.json_response({"access_token": token, "token_type": "Bearer", "expires_in": self._seconds})

    async def _keys(self, request: web.Request) -> web.StreamResponse:
        self.requests.append("keys")
        return web.json_response(key_set())
