"""The public keys of the authorization server: a JSON Web Key Set (RFC 7517), read again and again in the background.

Laws
    OA4 The loop never waits for the endpoint: a token is verified with the keys of the last successful read. A read
        that fails is logged with its reason and repeated with growing pauses; the keys before it stay in use.
    OA5 A key id that is not known causes a read ahead of time, at most one in UNKNOWN_KEY_PAUSE_MS, whatever tokens
        clients make up.
    OA9 Logs and refusals name the URL without user, password and query.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import jwt
import structlog
from jwt.exceptions import PyJWTError

from rota.coordinator.security.oauth.access_token import TokenRefused
from rota.protocol.dataclass import dataclass

UNKNOWN_KEY_PAUSE_MS: Final = 10_000
REQUEST_SECONDS: Final = 10.0
FIRST_READ_SECONDS_MAX: Final = 3.0  # that a start of the broker waits
KEYS_BYTES_MAX: Final = 1 << 20
KEYS_MAX: Final = 256
_ALGORITHMS: Final = {
    "RSA": ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    "P-256": ("ES256",),
    "P-384": ("ES384",),
    "P-521": ("ES512",),
    "Ed25519": ("EdDSA",),
    "Ed448": ("EdDSA",),
}  # by type of key, or its curve; the allow-list of algorithms

log = structlog.get_logger("rota.security")


class KeysUnavailable(Exception):
    """The key set cannot be read; the text says why."""


@dataclass(frozen=True, slots=True)
class VerificationKey:
    """A public key, and the algorithms that it may verify."""

    id: str | None
    algorithms: tuple[str, ...]
    key: Any = field(repr=False)


@dataclass(frozen=True, slots=True)
class Intervals:
    """Times between reads, in ms: after a success, after the first failure, after many."""

    refresh_ms: int = 3_600_000
    retry_ms: int = 100
    retry_ms_max: int = 10_000

    def wait_ms(self, failures: int) -> int:
        """Return the time until the next read after so many failures in a row."""
        if not failures:
            return self.refresh_ms
        return min(self.retry_ms << min(failures - 1, 30), max(self.retry_ms, self.retry_ms_max))


class KeySet:
    """The keys of one URL: `https:`, `http:` or `file:`. `begin` starts to read them, `close` ends that.

    `tls` has the authorities that are trusted; None: those of the system.
    """

    def __init__(
        self, url: str, intervals: Intervals, now_ms: Callable[[], int], tls: ssl.SSLContext | None = None
    ) -> None:
        self.url, self.shown = url, shown_url(url)
        self._intervals, self._now_ms, self._tls = intervals, now_ms, tls
        self._keys: tuple[VerificationKey, ...] = ()
        self._task: asyncio.Task[None] | None = None
        self._was_read, self._wake = asyncio.Event(), asyncio.Event()
        self._early_ms: int | None = None  # the last read ahead of time

    def find(self, key_id: object, algorithm: str) -> VerificationKey:
        """Return the key of a token. Without an id it is the only one for the algorithm. Raises TokenRefused."""
        found = [each for each in self._keys if algorithm in each.algorithms and (key_id is None or each.id == key_id)]
        if len(found) == 1:
            return found[0]
        if found:
            raise TokenRefused("it has no key id, and several keys could be meant")
        if not any(each.id == key_id for each in self._keys):
            self._read_early()
            raise TokenRefused(f"its key is not one of {self.shown}")
        raise TokenRefused("its algorithm is not one of its key")

    def begin(self) -> None:
        """Read the keys from now on."""
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._read_forever(), name=f"keys of {self.shown}")

    async def first_read(self) -> None:
        """Wait until the first read is over, successful or not; no longer than FIRST_READ_SECONDS_MAX."""
        try:
            await asyncio.wait_for(self._was_read.wait(), FIRST_READ_SECONDS_MAX)
        except TimeoutError:
            log.warning("No keys for OAUTHBEARER yet: clients are refused until they are read", url=self.shown)

    def close(self) -> None:
        """Read no more."""
        if self._task is not None:
            self._task.cancel()

    def _read_early(self) -> None:
        now_ms = self._now_ms()
        if self._early_ms is None or now_ms - self._early_ms >= UNKNOWN_KEY_PAUSE_MS:
            self._early_ms = now_ms
            self._wake.set()

    async def _read_forever(self) -> None:
        failures = 0
        while True:
            self._wake.clear()
            try:
                self._keys = parse_keys(await read_url(self.url, self._tls))
                failures = 0
                log.info("Keys for OAUTHBEARER", url=self.shown, keys=[each.id for each in self._keys])
            except Exception as why:  # noqa: BLE001  # also what a library raises for a key: reading goes on
                failures += 1
                kept, reason = len(self._keys), str(why).replace(self.url, self.shown)
                log.error("Keys for OAUTHBEARER cannot be read", url=self.shown, reason=reason, keys_in_use=kept)
            self._was_read.set()
            try:
                await asyncio.wait_for(self._wake.wait(), self._intervals.wait_ms(failures) / 1000)
            except TimeoutError:
                continue


def parse_keys(text: bytes) -> tuple[VerificationKey, ...]:
    """Return the keys that can verify signatures; others are left out. Raises KeysUnavailable."""
    try:
        keys = json.loads(text)["keys"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise KeysUnavailable("it is no JSON Web Key Set") from None
    if not isinstance(keys, list) or len(keys) > KEYS_MAX:
        raise KeysUnavailable(f"it is no JSON Web Key Set with at most {KEYS_MAX} keys")
    found = tuple(_usable(keys))
    if not found:
        raise KeysUnavailable("it has no public key for signatures: RSA, EC or Ed25519")
    return found


def _usable(keys: list[Any]) -> Iterator[VerificationKey]:
    for each in keys:
        if not isinstance(each, Mapping) or each.get("use", "sig") != "sig":
            continue
        if "d" in each:
            log.warning(
                "A key for OAUTHBEARER is a private key and is ignored: publish its public part, and replace it"
            )
            continue
        algorithms = _ALGORITHMS.get("RSA" if each.get("kty") == "RSA" else str(each.get("crv")), ())
        if "alg" in each:
            algorithms = tuple(name for name in algorithms if name == each["alg"])
        try:
            if algorithms:
                key_id = each.get("kid")
                yield VerificationKey(
                    key_id if isinstance(key_id, str) else None,
                    algorithms,
                    jwt.PyJWK.from_dict(dict(each), algorithms[0]).key,
                )
        except (PyJWTError, ValueError, TypeError):
            log.warning("A key for OAUTHBEARER cannot be read and is ignored")


# ---- where the keys come from


def shown_url(url: str) -> str:
    """Return a URL for logs: without user, password and query, which may be secrets."""
    try:
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
    except ValueError:
        return url.partition(":")[0] + ":"
    return url.partition("?")[0].partition("#")[0].replace(parts.netloc, host, 1) if parts.netloc else url


async def read_url(url: str, tls: ssl.SSLContext | None = None) -> bytes:
    """Return the text of a key set. Raises KeysUnavailable."""
    if url.startswith("file:"):
        return await asyncio.to_thread(read_file, url)
    return await _get(url, tls)


def read_file(url: str) -> bytes:
    """Return the text of a `file:` URL. Raises KeysUnavailable."""
    try:
        with Path(unquote(urlsplit(url).path)).open("rb") as file:
            return _bounded(file.read(KEYS_BYTES_MAX + 1))
    except (OSError, ValueError) as error:
        raise KeysUnavailable(f"the file cannot be read: {getattr(error, 'strerror', None) or error}") from None


async def _get(url: str, tls: ssl.SSLContext | None) -> bytes:
    import aiohttp

    timeout = aiohttp.ClientTimeout(total=REQUEST_SECONDS)
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout, headers={"Accept": "application/json"}) as session,
            session.get(url, allow_redirects=False, ssl=True if tls is None else tls) as response,
        ):
            body = b""
            while len(body) <= KEYS_BYTES_MAX and (part := await response.content.readany()):
                body += part
    except TimeoutError:
        raise KeysUnavailable(f"there is no whole response within {REQUEST_SECONDS:.0f} s") from None
    except (aiohttp.ClientError, OSError, ValueError) as error:
        raise KeysUnavailable(_problem(error)) from None
    if response.status != 200:
        raise KeysUnavailable(f"its status is {response.status}, where 200 is expected")
    return _bounded(body)


def _problem(error: Exception) -> str:
    """OA9. Return the text of an error of the request; aiohttp names the URL in some, in a spelling of its own."""
    import aiohttp

    name = type(error).__name__
    if isinstance(error, aiohttp.InvalidURL):
        return name
    if isinstance(error, aiohttp.ClientResponseError):
        return f"{name}: {error.status}, {error.message}"
    return f"{name}: {error}"


def _bounded(text: bytes) -> bytes:
    if len(text) > KEYS_BYTES_MAX:
        raise KeysUnavailable(f"it has more than {KEYS_BYTES_MAX} bytes")
    return text
