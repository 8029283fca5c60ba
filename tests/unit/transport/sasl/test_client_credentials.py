"""The client-credentials flow against an HTTP server."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import ssl
import time
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import parse_qs

import pytest
from tests.unit.certificates import Certificates

from rota.transport.errors import AuthenticationFailed
from rota.transport.sasl.client_credentials import ANSWER_BYTES_MAX, ClientCredentials
from rota.transport.tls import TlsSettings, client_context


class TokenServer:
    """An authorization server: `answers` are (status, body) in order, the last one again and again."""

    def __init__(self, *answers: tuple[int, Any]) -> None:
        self.answers = list(answers)
        self.requests: list[tuple[str, dict[str, list[str]]]] = []
        self.url = ""

    @contextlib.asynccontextmanager
    async def running(self, tls: ssl.SSLContext | None = None) -> AsyncIterator[TokenServer]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", ssl=tls)
        async with server:
            scheme = "http" if tls is None else "https"
            self.url = f"{scheme}://localhost:{server.sockets[0].getsockname()[1]}/token"
            yield self

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            headers = dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if line)
            form = parse_qs((await reader.readexactly(int(headers["Content-Length"]))).decode())
            self.requests.append((headers["Authorization"], form))
            status, body = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
            raw = body if isinstance(body, bytes) else json.dumps(body).encode()
            writer.write(
                f"HTTP/1.1 {status} X\r\nContent-Length: {len(raw)}\r\nConnection: close\r\n\r\n".encode() + raw
            )
            await writer.drain()
        writer.close()


def client(server: TokenServer, scope: str | None = None, tls: ssl.SSLContext | None = None) -> ClientCredentials:
    return ClientCredentials(server.url, "my-client", "planted-secret", scope, tls or client_context(TlsSettings()))


async def test_the_secret_is_exchanged_for_a_token() -> None:
    async with TokenServer(
        (200, {"access_token": "a.b.c", "expires_in": 60, "token_type": "Bearer"})
    ).running() as server:
        token = await client(server, "kafka").token()
        assert token.value == "a.b.c"
        assert token.expires_at is not None
        assert token.expires_at > time.time()
        authorization, form = server.requests[0]
        assert base64.b64decode(authorization.removeprefix("Basic ")) == b"my-client:planted-secret"
        assert form == {"grant_type": ["client_credentials"], "scope": ["kafka"]}


async def test_an_opaque_token_without_an_end() -> None:
    async with TokenServer((200, {"access_token": "opaque"})).running() as server:
        assert (await client(server).token()).expires_at is None


@pytest.mark.parametrize(
    ("answer", "reply", "requests"),
    [
        ((401, {"error": "invalid_client", "error_description": "no"}), "status 401: invalid_client: no", 1),
        ((200, {"expires_in": 1}), "status 200: no access_token", 1),
        ((200, {"access_token": 7}), "status 200: no access_token", 1),
        ((200, b"<html>"), "without a JSON object", 1),
        ((302, b""), "status 302 without a JSON object", 1),
        ((200, b"x" * (2 * ANSWER_BYTES_MAX)), "without a JSON object", 1),
        ((503, b"busy"), "status 503", 3),
    ],
)
async def test_a_refused_token_request_is_final_and_a_failed_one_is_retried(
    answer: Any, reply: str, requests: int
) -> None:
    async with TokenServer(answer).running() as server:
        with pytest.raises(AuthenticationFailed, match=f"no OAuth token from localhost: .*{reply}") as failed:
            await client(server).token()
        assert "planted" not in str(failed.value)
        assert len(server.requests) == requests


async def test_a_fault_that_passes() -> None:
    async with TokenServer((500, b""), (200, {"access_token": "t"})).running() as server:
        assert (await client(server).token()).value == "t"


async def test_a_server_that_does_not_answer() -> None:
    async with TokenServer((200, {})).running() as server:
        provider = client(server)
    with pytest.raises(AuthenticationFailed, match="it cannot be reached: ClientConnectorError"):
        await provider.token()


async def test_its_certificate_is_verified(certificates: Certificates) -> None:
    async with TokenServer((200, {"access_token": "t"})).running(certificates.listener()) as server:
        trusted = client_context(TlsSettings(truststore_location=str(certificates.ca)))
        assert (await client(server, tls=trusted).token()).value == "t"
        with pytest.raises(AuthenticationFailed, match="ClientConnectorCertificateError"):
            await client(server).token()


def test_a_url_that_is_none() -> None:
    with pytest.raises(ValueError, match="an http or https URL"):
        ClientCredentials("file:///etc/passwd", "i", "s", None, client_context(TlsSettings()))


def test_without_aiohttp_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(ValueError, match=r"pip install 'rota\[oauth\]'"):
        ClientCredentials("https://idp/token", "i", "s", None, client_context(TlsSettings()))


async def test_the_secret_is_in_no_cause_and_not_in_what_the_server_repeats() -> None:
    async def nonsense(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/9.9 what\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(nonsense, "127.0.0.1") as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/token"
        provider = ClientCredentials(url, "i", "planted-secret", None, client_context(TlsSettings()))
        with pytest.raises(AuthenticationFailed, match="it cannot be reached") as failed:
            await provider.token()
        assert failed.value.__cause__ is failed.value.__context__ is None, "aiohttp's error has the header with it"
    async with TokenServer((401, {"error_description": "not planted-secret"})).running() as endpoint:
        with pytest.raises(AuthenticationFailed, match=r"not \[hidden\]"):
            await client(endpoint).token()
