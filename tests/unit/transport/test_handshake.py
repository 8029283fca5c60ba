import asyncio
import socket
from typing import Any

import pytest
from tests.unit.client.network.scripted import CLOSE, Scripted, framed

from rota.client.errors import TimedOut, TlsFailed, Unreachable
from rota.protocol.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from rota.transport.connection import Connection
from rota.transport.handshake import SOFTWARE_NAME, connect, software_version

FETCH_ONLY = (
    ApiVersion(api_key=1, min_version=4, max_version=11),
    ApiVersion(api_key=18, min_version=0, max_version=2),
)


async def dialled(port: int, host: str = "127.0.0.1", setup_seconds: float = 10) -> Connection:
    return await connect(host, port, "1", "me", setup_seconds=setup_seconds, request_seconds=10, ended=lambda _: None)


async def over(connection: Connection) -> None:
    connection.end(Unreachable("the test is over"))
    await connection.closed()


def older(broker: Scripted, newest: int, api_keys: tuple[ApiVersion, ...]) -> None:
    """A broker that knows ApiVersions up to `newest`, and says so in version 0 when it is asked more."""

    def answer(_: Any) -> Any:
        if broker.headers[-1].api_version > newest:
            return framed(broker.headers[-1], ApiVersionsResponse(error_code=35, api_keys=api_keys), version=0)
        return ApiVersionsResponse(api_keys=FETCH_ONLY)

    broker.on(ApiVersionsRequest, answer)


async def test_the_first_api_versions_request_has_the_newest_version_and_the_software_name() -> None:
    async with Scripted() as broker:
        connection = await dialled(broker.port)
        assert [header.api_version for header in broker.headers] == [4]
        assert broker.requests == [
            ApiVersionsRequest(client_software_name=SOFTWARE_NAME, client_software_version=software_version())
        ]
        assert connection.versions[1] == range(4, 19)
        await over(connection)


@pytest.mark.parametrize(("newest", "listed", "requests"), [(2, FETCH_ONLY, [4, 2]), (0, (), [4, 0]), (3, (), [4, 0])])
async def test_api_versions_falls_back_to_the_version_of_an_older_broker(
    newest: int, listed: tuple[ApiVersion, ...], requests: list[int]
) -> None:
    async with Scripted() as broker:
        older(broker, newest, listed)
        connection = await dialled(broker.port)
        assert [header.api_version for header in broker.headers] == requests
        assert connection.versions == {1: range(4, 12), 18: range(3)}
        await over(connection)


async def test_a_broker_that_refuses_every_version_is_unreachable() -> None:
    async with Scripted() as broker:
        older(broker, -1, FETCH_ONLY)
        with pytest.raises(Unreachable, match=r"refused ApiVersions: UNSUPPORTED_VERSION \(35\)"):
            await dialled(broker.port)
        assert [header.api_version for header in broker.headers] == [4, 2, 1, 0]


async def test_a_broker_that_does_not_let_us_in() -> None:
    async with Scripted() as broker:
        broker.on(ApiVersionsRequest, lambda _: ApiVersionsResponse(error_code=58))
        with pytest.raises(Unreachable, match="SASL_AUTHENTICATION_FAILED"):
            await dialled(broker.port)


@pytest.mark.parametrize(
    ("answer", "kind", "reply"),
    [
        (None, TimedOut, "did not answer within 50 ms"),
        (CLOSE, Unreachable, "closed the connection"),
        (b"SSH-2.0-OpenSSH_9\r\n", Unreachable, "an SSH server"),
        (b"\x15\x03\x03\x00\x02\x02\x46", TlsFailed, "this port is a TLS listener; set security_protocol to SSL"),
        (b"\0\0\0\x06\0\0\0\1\0\0", Unreachable, "cannot be read"),
    ],
)
async def test_a_server_that_is_no_broker_is_named_in_the_error(answer: Any, kind: type[Exception], reply: str) -> None:
    async with Scripted() as broker:
        broker.on(ApiVersionsRequest, lambda _: answer)
        with pytest.raises(kind, match=reply):
            await dialled(broker.port, setup_seconds=0.05 if answer is None else 10)


async def test_nothing_listens() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        with pytest.raises(Unreachable, match="no connection to broker 1: connection refused"):
            await dialled(bound.getsockname()[1])


async def test_an_unknown_host_name_is_unreachable() -> None:
    with pytest.raises(Unreachable, match=r"the host name no-such-host\.invalid is not known"):
        await dialled(1, "no-such-host.invalid")


async def test_every_address_of_a_name_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """127.0.0.2 refuses, 127.0.0.1 answers; and when all refuse, all are told."""

    async def resolved(_: Any, port: int, **__: Any) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (item, port)) for item in ("127.0.0.2", "127.0.0.1")]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", resolved)
    async with Scripted() as broker:
        await over(await dialled(broker.port, "broker.example"))
        port = broker.port
    with pytest.raises(Unreachable, match=r"127\.0\.0\.2: connection refused.*; 127\.0\.0\.1: connection refused"):
        await dialled(port, "broker.example")


async def test_each_address_has_its_own_connection_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    """A listener whose queue is full takes no connection: the next address is tried."""
    full, fillers = socket.socket(), [socket.socket() for _ in range(3)]
    full.bind(("127.0.0.2", 0))
    full.listen(0)
    port = full.getsockname()[1]
    for filler in fillers:
        filler.setblocking(False)
        filler.connect_ex(("127.0.0.2", port))

    async def resolved(_: Any, port: int, **__: Any) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (item, port)) for item in ("127.0.0.2", "127.0.0.1")]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", resolved)
    broker = Scripted()
    try:
        with pytest.raises(TimedOut, match=r"127\.0\.0\.2: not within 100 ms.*; 127\.0\.0\.1: connection refused"):
            await dialled(port, "broker.example", setup_seconds=0.1)
        await broker.listen(port)
        await over(await dialled(port, "broker.example", setup_seconds=0.1))
    finally:
        await broker.stop()
        for item in (full, *fillers):
            item.close()


async def test_ipv6() -> None:
    broker = Scripted()
    try:
        server = await asyncio.start_server(broker._serve, "::1", 0)
    except OSError:
        pytest.skip("no IPv6 here")
    connection = await dialled(server.sockets[0].getsockname()[1], "::1")
    assert connection.is_open
    await over(connection)
    server.close()
    await broker.stop()


async def test_a_cancelled_dial_leaves_no_socket() -> None:
    async with Scripted() as broker:
        broker.on(ApiVersionsRequest, lambda _: None)
        dialling = asyncio.create_task(dialled(broker.port))
        async with asyncio.timeout(10):
            while not broker.requests:
                await asyncio.sleep(0.002)
        dialling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await dialling
        async with asyncio.timeout(10):
            while broker._writers:
                await asyncio.sleep(0.002)


def test_the_version_is_that_of_the_package() -> None:
    assert software_version()[0].isdigit()
