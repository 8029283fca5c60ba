"""The metadata store of a cluster: ZooKeeper, through kazoo. Only a broker with `zookeeper.connect` imports it.

A broker that was cut off from ZooKeeper goes on with the state that it knows. Its calls wait for the connection as long
as the session may still be alive.

The file is longer than 400 lines because one class has every operation of the store's contract.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, Self

from kazoo.exceptions import (
    AuthFailedError,
    BadArgumentsError,
    BadVersionError,
    ConnectionLoss,
    InvalidACLError,
    KazooException,
    NoAuthError,
    NoChildrenForEphemeralsError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    RolledBackError,
    RuntimeInconsistency,
    UnimplementedError,
    ZookeeperError,
)
from kazoo.protocol.serialization import CheckVersion, Exists, GetChildren, GetData, SetData, Transaction
from kazoo.protocol.serialization import Create as CreateNode
from kazoo.protocol.serialization import Delete as DeleteNode
from kazoo.protocol.states import ZnodeStat
from kazoo.security import CREATOR_ALL_ACL, OPEN_ACL_UNSAFE, READ_ACL_UNSAFE

from rota.coordinator.metadata.remote_session import RemoteSession
from rota.coordinator.metadata.store import (
    ANY_VERSION,
    NODE_BYTES_MAX,
    BadNode,
    BadVersion,
    Check,
    Create,
    Delete,
    EventType,
    NoChildrenForEphemerals,
    NodeExists,
    NoNode,
    NotEmpty,
    Op,
    OutcomeUnknown,
    SessionListener,
    Set,
    Stat,
    StoreError,
    StoreFailed,
    Watch,
)
from rota.coordinator.metadata.tree import check_path
from rota.coordinator.metadata.zookeeper_connection import Connection
from rota.coordinator.metadata.zookeeper_requests import MultiRead

SESSION_TIMEOUT_MS: Final = 18_000  # Kafka's default
REQUEST_BYTES_MAX: Final = 0xFFFFF  # ZooKeeper's jute.maxbuffer
HEADER_BYTES: Final = 8  # of a request, which jute.maxbuffer counts, too
ROOT_BYTES_MAX: Final = 128  # of the chroot
NODES_PER_READ_MAX: Final = 128  # of one request; their states are 30 KB
CLOSE_S_MAX: Final = 1.0
PORT, PORT_MAX = 2181, 0xFFFF
ERRORS: Final[dict[type[ZookeeperError], type[StoreError]]] = {
    NoNodeError: NoNode,
    NodeExistsError: NodeExists,
    BadVersionError: BadVersion,
    NotEmptyError: NotEmpty,
    NoChildrenForEphemeralsError: NoChildrenForEphemerals,
    BadArgumentsError: BadNode,
    InvalidACLError: BadNode,
}


class ZooKeeperStore:
    """See `Store` for the promises of its methods."""

    commit_bytes_max = REQUEST_BYTES_MAX - HEADER_BYTES

    def __init__(
        self,
        connect: str,
        *,
        session_timeout_ms: int = SESSION_TIMEOUT_MS,
        connection_timeout_ms: int | None = None,
        digest: str | None = None,
        set_acl: bool = False,
        tls: Callable[[], ssl.SSLContext] | None = None,
    ) -> None:
        """`connect` is HOST:PORT,HOST:PORT/chroot, `digest` USER:PASSWORD. `open` waits for `connection_timeout_ms`, by
        default for the session timeout.

        `tls` returns the context of each connection; None: without TLS.
        With `set_acl` only that user may change the nodes that are created from now on; all users may read them.
        Raises ValueError.
        """
        self._hosts, self._root = parse_connect(connect)
        self._session_timeout_ms = session_timeout_ms
        self._digest, self._tls = digest, tls
        self._acl = [*CREATOR_ALL_ACL, *READ_ACL_UNSAFE] if set_acl else OPEN_ACL_UNSAFE
        self._session = RemoteSession(f"ZooKeeper at {self._hosts}", session_timeout_ms, connection_timeout_ms)
        self._connection: Connection | None = None

    async def open(self) -> Self:
        """Connect within the connection timeout, create the chroot and return the store.

        Raises StoreFailed, also for a server before ZooKeeper 3.6. Calls no listener.
        """
        self._session.begin()
        self._connection = Connection(
            self._hosts,
            session_timeout_ms=self._session_timeout_ms,
            digest=self._digest,
            tls=self._tls,
            on_state=self._session.state_changed,
            on_event=self._event,
        )
        self._connection.start()
        try:
            await self._first_connection()
            await self._create_root()
            await self._check_release()
        except BaseException:
            await self.close()
            raise
        return self

    @property
    def session_id(self) -> int:
        return self._session.session_id

    @property
    def last_change(self) -> int:
        return 0 if self._connection is None else self._connection.last_change

    def on_session(self, listener: SessionListener) -> None:
        self._session.on_session(listener)

    async def get(self, path: str, watch: Watch | None = None) -> tuple[bytes, Stat]:
        data, stat = await self._read(GetData, path, watch, self._session.watches.watch_node)
        return bytes(data or b""), _stat(stat)  # zkCli makes nodes without data (null)

    async def get_many(self, paths: Sequence[str], watch: Watch | None = None) -> list[tuple[bytes, Stat]]:
        portions = [paths[begin : begin + NODES_PER_READ_MAX] for begin in range(0, len(paths), NODES_PER_READ_MAX)]
        return [node for portion in portions for node in await self._read_nodes(portion, watch)]

    async def exists(self, path: str, watch: Watch | None = None) -> Stat | None:
        stat = await self._read(Exists, path, watch, self._session.watches.watch_node)
        return None if stat is None else _stat(stat)

    async def children(self, path: str, watch: Watch | None = None) -> list[str]:
        return sorted(await self._read(GetChildren, path, watch, self._session.watches.watch_children))

    async def create(self, path: str, data: bytes = b"", *, ephemeral: bool = False, sequential: bool = False) -> str:
        (created,) = await self._commit([Create(path, data, ephemeral, sequential)])
        return self._path(created)

    async def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> int:
        (stat,) = await self._commit([Set(path, data, version)])
        return int(stat.version)

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        await self._commit([Delete(path, version)])

    async def commit(self, ops: Sequence[Op]) -> None:
        await self._commit(ops)

    async def close(self) -> None:
        """End the session. Closing twice is allowed; no listener is called."""
        if self._session.is_closed:
            return
        self._session.close()
        if self._connection is not None:
            await self._connection.close(CLOSE_S_MAX)

    # ---- requests

    async def _read(
        self,
        request: Callable[[str, object], Any],
        path: str,
        watch: Watch | None,
        set_watch: Callable[[str, Watch], None],
    ) -> Any:
        """Send a read until it is answered in this session. The watch is set with the answer, before any event."""
        check_path(path)

        def answered() -> None:
            if watch is not None:
                set_watch(path, watch)

        def to_send(connection: Connection) -> Any:
            return request(self._full(path), connection.watcher if watch is not None else None)

        return await self._answer(to_send, path, answered)

    async def _answer(
        self, request: Callable[[Connection], Any], path: str, on_answer: Callable[[], None] | None = None
    ) -> Any:
        """Send a read until it is answered in this session. `path` is for errors."""
        sessions_ended = self._session.sessions_ended
        while True:
            connection = await self._until_connected()
            answered: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

            def done(value: Any, error: Exception | None, answered: asyncio.Future[Any] = answered) -> None:
                if on_answer is not None and error is None and not answered.done():
                    on_answer()
                _settle(answered, value, error)

            connection.send(request(connection), done, sessions_ended=sessions_ended)
            try:
                return await answered
            except ConnectionLoss:
                continue
            except Exception as error:  # noqa: BLE001  # whatever kazoo raises for an answer
                raise _store_error(error, path) from None

    async def _read_nodes(self, paths: Sequence[str], watch: Watch | None) -> list[tuple[bytes, Stat]]:
        """Send one request until it is answered, and all watches are set, in this session."""
        for path in paths:
            check_path(path)

        def set_watches(values: list[Any]) -> None:
            for path, value in zip(paths, values, strict=True):
                if watch is not None and isinstance(value, tuple):
                    self._session.watches.watch_node(path, watch)

        request = MultiRead([self._full(path) for path in paths], set_watches if watch is not None else None)
        values = await self._answer(lambda _: request, paths[0])
        for path, value in zip(paths, values, strict=True):
            if not isinstance(value, tuple):
                raise _store_error(value, path)
        return [(bytes(data or b""), _stat(stat)) for data, stat in values]

    async def _commit(self, ops: Sequence[Op]) -> list[Any]:
        for op in ops:
            _check(op)
        request = _Multi([self._request(op) for op in ops])
        if len(request.payload) > self.commit_bytes_max:
            raise BadNode(ops[0].path, f"a change of more than {self.commit_bytes_max} bytes")
        sessions_ended = self._session.sessions_ended
        connection = await self._until_connected()
        if not ops:
            return []
        answered: asyncio.Future[list[Any]] = asyncio.get_running_loop().create_future()
        connection.send(request, partial(_settle, answered), sessions_ended=sessions_ended)
        try:
            results = await answered
        except ConnectionLoss:
            raise OutcomeUnknown("the connection to ZooKeeper was lost before the answer came") from None
        except (KazooException, StoreFailed) as error:
            raise _store_error(error, ops[0].path) from None
        except Exception as error:
            raise OutcomeUnknown(f"ZooKeeper's answer cannot be read: {error!r}") from error
        _refuse(ops, results)
        return results

    def _request(self, op: Op) -> Any:
        path = self._full(op.path)
        match op:
            case Create(_, data, ephemeral, sequential):
                return CreateNode(path, data, self._acl, ephemeral + 2 * sequential)
            case Set(_, data, version):
                return SetData(path, data, version)
            case Delete(_, version):
                return DeleteNode(path, version)
            case Check(_, version):
                return CheckVersion(path, version)

    async def _create_root(self) -> None:
        root, names = self._root, self._root.split("/")[1:]
        self._root = ""
        try:
            for end in range(1, len(names) + 1):
                path = "/" + "/".join(names[:end])
                if await self.exists(path) is None:
                    await self._create_if_absent(path)
        finally:
            self._root = root

    async def _create_if_absent(self, path: str) -> None:
        try:
            await self.create(path)
        except NodeExists:
            return  # by another broker

    async def _check_release(self) -> None:
        """Raises StoreFailed unless the server knows each request: one that it does not know ends the connection."""
        await self._answer(lambda _: MultiRead([self._full("/")], None), "/")

    def _full(self, path: str) -> str:
        return path if not self._root else self._root if path == "/" else self._root + path

    def _path(self, full: str) -> str:
        return full[len(self._root) :] or "/"

    async def _first_connection(self) -> None:
        try:
            await self._until_connected()
        except StoreFailed as failure:
            raise StoreFailed(f"{failure}: is it running, and is zookeeper.connect right?") from failure

    async def _until_connected(self) -> Connection:
        await self._session.until_connected()
        assert self._connection is not None
        return self._connection

    def _event(self, event_type: EventType, full: str) -> None:
        self._session.event(event_type, self._path(full))


class _Multi(Transaction):  # type: ignore[misc]  # kazoo has no types
    """A transaction that is serialized in the loop: kazoo's thread would end by an error, and its size is known."""

    payload: bytes

    def __new__(cls, operations: list[Any]) -> Self:
        multi: Self = super().__new__(cls, operations)
        multi.payload = bytes(Transaction.serialize(multi))
        return multi

    def serialize(self) -> bytes:
        return self.payload


def parse_connect(connect: str) -> tuple[str, str]:
    """(hosts, chroot) of a value of zookeeper.connect; the chroot is empty or begins with "/". Raises ValueError."""
    hosts, slash, root = connect.strip().partition("/")
    root = slash + root.rstrip("/") if root.strip("/") else ""
    found = [re.fullmatch(r"(?:[\w.\-]+|\[[0-9a-fA-F:]+\])(?::(\d{1,5}))?", host) for host in hosts.split(",")]
    if not all(match and int(match[1] or PORT) <= PORT_MAX for match in found):
        raise ValueError(f"zookeeper.connect={connect!r} is not HOST:PORT,HOST:PORT/chroot")
    try:
        check_path(root or "/")
    except BadNode as error:
        raise ValueError(f"zookeeper.connect={connect!r}: {error}") from None
    if len(root.encode()) > ROOT_BYTES_MAX:
        raise ValueError(f"zookeeper.connect: a chroot of more than {ROOT_BYTES_MAX} bytes")
    return hosts, root


def _check(op: Op) -> None:
    """What ZooKeeper would refuse with its connection, or in another way than the other stores."""
    check_path(op.path)
    if isinstance(op, Create | Set) and len(op.data) > NODE_BYTES_MAX:
        raise BadNode(op.path, f"more than {NODE_BYTES_MAX} bytes")
    if op.path == "/" and isinstance(op, Delete):
        raise BadNode(op.path, "the root stays")
    if op.path == "/" and isinstance(op, Create):
        raise NodeExists(op.path)


def _refuse(ops: Sequence[Op], results: list[Any]) -> None:
    """Raise the error of the operation that ZooKeeper refused; the others report that they were not executed."""
    errors = [(op, result) for op, result in zip(ops, results, strict=True) if isinstance(result, ZookeeperError)]
    for op, error in errors:
        if not isinstance(error, RolledBackError | RuntimeInconsistency):
            raise _store_error(error, op.path)
    if errors:
        raise StoreFailed(f"ZooKeeper refused a change without a reason: {errors[0]!r}")


def _store_error(error: Exception, path: str) -> Exception:
    kind = ERRORS.get(type(error))
    if kind is not None:
        return kind(path, str(error))
    if isinstance(error, StoreFailed):
        return error
    if isinstance(error, UnimplementedError):
        return StoreFailed("ZooKeeper is older than 3.6: use a later release")
    if not isinstance(error, KazooException):
        return StoreFailed(f"ZooKeeper's answer cannot be read: {error!r}")
    if isinstance(error, NoAuthError | AuthFailedError):
        return StoreFailed(f"ZooKeeper's ACL of {path} does not allow it")
    return StoreFailed(f"ZooKeeper: {type(error).__name__} {error}")


def _settle(answered: asyncio.Future[Any], value: Any, error: Exception | None) -> None:
    if answered.done():
        return
    if error is None:
        answered.set_result(value)
    else:
        answered.set_exception(error)


def _stat(stat: ZnodeStat) -> Stat:
    return Stat(stat.version, stat.ephemeralOwner, stat.numChildren, stat.czxid, stat.mzxid)
