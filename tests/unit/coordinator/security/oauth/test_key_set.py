"""Reading keys: from a file, from a server that is slow or sends something else, and ahead of time."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web
from structlog.testing import capture_logs
from tests.unit.coordinator.security.signer import Signer

from rota.coordinator.security.oauth import key_set
from rota.coordinator.security.oauth.access_token import TokenRefused
from rota.coordinator.security.oauth.key_set import (
    KEYS_BYTES_MAX,
    UNKNOWN_KEY_PAUSE_MS,
    Intervals,
    KeySet,
    KeysUnavailable,
    parse_keys,
    read_url,
    shown_url,
)

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def server(answer: Answer) -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_get("/keys", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/keys"
    finally:
        await runner.cleanup()


def test_keys_have_the_algorithms_of_their_type(signer: Signer) -> None:
    found = {each.id: each.algorithms for each in parse_keys(signer.key_set())}
    assert found["rsa"] == ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
    assert found["ec"] == ("ES256",)
    assert found["ed"] == ("EdDSA",)
    assert parse_keys(signer.key_set("rsa", alg="PS256"))[0].algorithms == ("PS256",)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[]",
        b'{"keys": 5}',
        b'{"keys": []}',
        b"[" * 10_000,
        b'{"keys": [5, {"kty": "oct", "k": "c2VjcmV0"}, {"kty": "RSA", "n": "x"}]}',
        json.dumps({"keys": [{}] * 300}).encode(),
    ],
)
def test_what_has_no_public_key_is_refused(text: bytes) -> None:
    with pytest.raises(KeysUnavailable):
        parse_keys(text)


def test_keys_for_encryption_are_left_out(signer: Signer) -> None:
    with pytest.raises(KeysUnavailable, match="no public key for signatures"):
        parse_keys(signer.key_set("rsa", use="enc"))


def test_a_private_key_is_left_out_and_the_warning_says_why(signer: Signer) -> None:
    """Its key object cannot verify: a token of it would end in an error of the broker instead of a refusal."""
    keys = json.loads(signer.key_set())["keys"]
    private = [{**each, "d": "AQAB"} if each["kid"] == "rsa" else each for each in keys]
    with capture_logs() as logs:
        found = parse_keys(json.dumps({"keys": private}).encode())
    assert {each.id for each in found} == {each["kid"] for each in keys} - {"rsa"}
    assert [each["event"].partition(":")[0] for each in logs] == [
        "A key for OAUTHBEARER is a private key and is ignored"
    ]


async def test_a_file_is_read_again_when_a_key_is_not_known(signer: Signer, tmp_path: Path) -> None:
    path = tmp_path / "keys with a space.json"
    path.write_bytes(signer.key_set("rsa"))
    now_ms = 0
    keys = KeySet(f"file://{str(path).replace(' ', '%20')}", Intervals(), lambda: now_ms)
    keys.begin()
    try:
        await keys.first_read()
        assert keys.find("rsa", "RS256").id == "rsa"
        path.write_bytes(signer.key_set("rsa", "ed"))
        with pytest.raises(TokenRefused, match="key is not one of"):
            keys.find("ed", "EdDSA")
        async with asyncio.timeout(20):
            while len(keys._keys) == 1:
                await asyncio.sleep(0.001)
        assert keys.find("ed", "EdDSA").id == "ed"
        # OA5: made-up ids cause one read in UNKNOWN_KEY_PAUSE_MS
        assert not keys._wake.is_set()
        for at_ms, is_read in ((UNKNOWN_KEY_PAUSE_MS - 1, False), (UNKNOWN_KEY_PAUSE_MS, True)):
            now_ms = at_ms
            with pytest.raises(TokenRefused):
                keys.find(f"made up {at_ms}", "RS256")
            assert keys._wake.is_set() is is_read
    finally:
        keys.close()


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        (
            "https://user:planted-secret@id.example:8443/keys?token=planted-secret#planted-secret",
            "https://id.example:8443/keys",
        ),
        ("https://id.example/keys", "https://id.example/keys"),
        ("file:/keys.json", "file:/keys.json"),
        ("file:///keys.json", "file:///keys.json"),
        ("https://user:planted-secret@[x/keys", "https:"),
    ],
)
def test_a_url_is_shown_without_its_secrets(url: str, shown: str) -> None:
    assert shown_url(url) == shown


@pytest.mark.parametrize(
    "query", ["?key=planted-secret", "?key=planted-secret%2Dx", "?key=planted secret", "?key='planted-secret'"]
)
@pytest.mark.parametrize("user", ["user:planted-secret@", ""])
async def test_oa9_no_secret_is_logged_when_the_server_does_not_answer_with_http(user: str, query: str) -> None:
    """The HTTP client's errors name the URL in a spelling of its own."""

    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"SSH-2.0-OpenSSH_9.6\r\n\r\n")
        await writer.drain()
        writer.close()

    served = await asyncio.start_server(respond, "127.0.0.1", 0)
    async with served:
        port = served.sockets[0].getsockname()[1]
        keys = KeySet(f"http://{user}127.0.0.1:{port}/keys{query}", Intervals(), lambda: 0)
        with capture_logs() as logs:
            keys.begin()
            await keys.first_read()
            keys.close()
    assert [each["event"] for each in logs] == ["Keys for OAUTHBEARER cannot be read"]
    assert "planted" not in str(logs)
    assert logs[0]["reason"].startswith("ClientResponseError: 400")


async def test_no_secret_of_the_url_is_logged(signer: Signer) -> None:
    answers = [web.Response(body=signer.key_set("rsa"))]

    async def answer(request: web.Request) -> web.StreamResponse:
        assert request.headers["Authorization"].startswith("Basic ")
        return answers.pop(0)

    async with server(answer) as served:
        url = served.replace("http://", "http://user:planted-secret@") + "?key=planted-secret"
        keys = KeySet(url, Intervals(), lambda: 0)
        with capture_logs() as logs:
            keys.begin()
            await keys.first_read()
            with pytest.raises(TokenRefused) as refused:
                keys.find("other", "RS256")
            keys.close()
            broken = KeySet("http://user:planted-secret@ :x/", Intervals(), lambda: 0)
            broken.begin()
            await broken.first_read()
            broken.close()
        assert [line["log_level"] for line in logs] == ["info", "error"]
        assert "planted-secret" not in f"{logs} {refused.value}"


async def test_a_failure_is_logged_and_the_keys_before_stay(signer: Signer) -> None:
    answers = [web.Response(body=signer.key_set("rsa")), web.Response(status=500), web.Response(text="[]")]
    served = asyncio.Event()

    async def answer(request: web.Request) -> web.StreamResponse:
        if len(answers) == 1:
            served.set()
        return answers.pop(0) if answers else web.Response(status=404)

    async with server(answer) as url:
        keys = KeySet(url, Intervals(refresh_ms=1, retry_ms=1, retry_ms_max=1), lambda: 0)
        with capture_logs() as logs:
            keys.begin()
            try:
                await keys.first_read()
                async with asyncio.timeout(20):
                    await served.wait()
                    while len([line for line in logs if line["log_level"] == "error"]) < 2:
                        await asyncio.sleep(0.001)
            finally:
                keys.close()
        reasons = [line["reason"] for line in logs if line["log_level"] == "error"]
        assert reasons[:2] == ["its status is 500, where 200 is expected", "it is no JSON Web Key Set"]
        assert keys.find("rsa", "RS256")


def is_known(keys: KeySet) -> bool:
    try:
        return keys.find("rsa", "RS256") is not None
    except TokenRefused:
        return False


async def test_an_error_of_the_library_does_not_end_the_reading(
    signer: Signer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `cryptography` raises for a curve that its build does not support."""
    reads = iter([RuntimeError("unsupported"), signer.key_set("rsa")])

    async def read(url: str, tls: object) -> bytes:
        found = next(reads)
        if isinstance(found, RuntimeError):
            raise found
        return found

    monkeypatch.setattr(key_set, "read_url", read)
    keys = KeySet("file:/keys", Intervals(refresh_ms=60_000, retry_ms=1, retry_ms_max=1), lambda: 0)
    keys.begin()
    try:
        async with asyncio.timeout(20):
            while not is_known(keys):
                await asyncio.sleep(0.001)
    finally:
        keys.close()


async def test_a_slow_server_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_set, "REQUEST_SECONDS", 0.05)
    hangs = asyncio.Event()

    async def answer(request: web.Request) -> web.StreamResponse:
        await hangs.wait()
        return web.Response()

    async with server(answer) as url:
        with pytest.raises(KeysUnavailable, match="no whole response within"):
            await read_url(url)
        monkeypatch.setattr(key_set, "REQUEST_SECONDS", 60)
        monkeypatch.setattr(key_set, "FIRST_READ_SECONDS_MAX", 0.01)
        keys = KeySet(url, Intervals(), lambda: 0)
        keys.begin()
        with capture_logs() as logs:
            await keys.first_read()
        assert [line["event"] for line in logs] == [
            "No keys for OAUTHBEARER yet: clients are refused until they are read"
        ]
        with pytest.raises(TokenRefused, match="key is not one of"):
            keys.find("rsa", "RS256")
        keys.close()
        hangs.set()


async def test_what_a_server_may_send_is_bounded() -> None:
    async def large(request: web.Request) -> web.StreamResponse:
        return web.Response(body=b"x" * (KEYS_BYTES_MAX + 1))

    async with server(large) as url:
        with pytest.raises(KeysUnavailable, match="more than"):
            await read_url(url)


async def test_a_redirect_is_not_followed() -> None:
    async def elsewhere(request: web.Request) -> web.StreamResponse:
        raise web.HTTPFound("http://127.0.0.1:9/")

    async with server(elsewhere) as url:
        with pytest.raises(KeysUnavailable, match="status is 302"):
            await read_url(url)


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:9/keys", "file:///is/missing", "file:///%00", "http://", "https://[x"]
)
async def test_what_cannot_be_read_says_why(url: str) -> None:
    with pytest.raises(KeysUnavailable):
        await read_url(url)


def test_pauses_grow_with_the_failures() -> None:
    intervals = Intervals(refresh_ms=9_000, retry_ms=100, retry_ms_max=1_000)
    assert [intervals.wait_ms(failures) for failures in (0, 1, 2, 3, 4, 5, 10_000)] == [
        9_000, 100, 200, 400, 800, 1_000, 1_000,
    ]  # fmt: skip
