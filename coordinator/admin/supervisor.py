"""`rota serve --brokers N`: one host as a cluster. A process for each broker, and this one, which serves their store.

A broker that ends by itself is started again with its id, folder and address. When this process is gone, the brokers
stop: each reads its standard input, which ends then.

    DIR/cluster.journal    the metadata store
    DIR/broker-ID          the logs of one broker

Law
    SV3 A warning says which brokers of the folder are not started, and how many partitions they have.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import field, replace
from pathlib import Path
from typing import Final

from rota.coordinator.admin.options import CLUSTER_JOURNAL, OptionsRefused, ServeOptions
from rota.coordinator.config.broker import BrokerConfig
from rota.coordinator.config.listeners import Endpoint
from rota.coordinator.log.checkpoints import partition_of
from rota.coordinator.metadata.embedded import EmbeddedStore
from rota.coordinator.metadata.store_server import StoreServer
from rota.coordinator.observe.logs import get_logger
from rota.protocol.dataclass import dataclass

EXIT_UNCLEAN_STOP: Final = 1
RESTART_S: Final = 0.1  # doubled with each broker process that ends before it is ready
RESTART_S_MAX: Final = 5.0


class CannotSupervise(Exception):
    """The brokers cannot be started; the message says why."""


class BrokerProcess:
    """One broker: its settings and its process, which is started again whenever it ends."""

    def __init__(self, broker_id: int, listens: tuple[Endpoint, ...], arguments: list[str]) -> None:
        """`arguments` are those of `rota serve` without the listeners, which may get their ports at the first start."""
        self.broker_id, self.address = broker_id, ""
        self._listens, self._arguments = listens, arguments
        self._process: asyncio.subprocess.Process | None = None
        self._stopping = asyncio.Event()

    async def start(self) -> bool:
        """Start a process; return whether it became ready."""
        reads, writes = os.pipe()
        listeners = ",".join(map(str, self._listens))
        command = [sys.executable, "-m", "rota.coordinator", "serve", *self._arguments]
        command += ["--set", f"listeners={listeners}", "--ready-fd", str(writes)]
        try:
            self._process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.PIPE,
                pass_fds=[writes],
                start_new_session=True,  # Ctrl-C is for the supervisor: a second signal would cut a broker's stop short
            )
        finally:
            os.close(writes)
        self.address = await _line(reads) or self.address
        if not self.address:
            return False
        first = self._listens[0]
        self._listens = (replace(first, port=int(self.address.rpartition(":")[2])), *self._listens[1:])
        return self._process.returncode is None

    async def watch(self) -> None:
        """Start the process again whenever it ends, until `stop`."""
        delay_s = RESTART_S
        while not self._stopping.is_set():
            code = await self.wait()
            if self._stopping.is_set():
                return
            get_logger("rota.supervisor").warning("broker ended; it is started again", broker=self.broker_id, code=code)
            await asyncio.sleep(delay_s)
            if self._stopping.is_set():
                return
            self.address, address = "", self.address
            delay_s = RESTART_S if await self.start() else min(2 * delay_s, RESTART_S_MAX)
            self.address = self.address or address

    async def wait(self) -> int:
        """Wait for the end of the process; return its exit code."""
        assert self._process is not None
        return await self._process.wait()

    async def stop(self) -> int:
        """SIGTERM; return the exit code."""
        self._stopping.set()
        if self._process is None:
            return 0
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGTERM)
        return await self._process.wait()


@dataclass(slots=True)
class Supervisor:
    """The store and the broker processes of one host."""

    options: ServeOptions
    config: BrokerConfig
    brokers: list[BrokerProcess] = field(default_factory=list)

    async def run(self, ready: Callable[[str], None], stopping: asyncio.Event) -> int:
        """Start everything, call `ready` with HOST:PORT,..., stop at `stopping`; return the exit code.

        Raises CannotSupervise, StoreFailed, OSError.
        """
        async with AsyncExitStack() as undo:
            store = EmbeddedStore(None if self.options.memory else undo.enter_context(_folder(self.config)))
            undo.push_async_callback(store.close)
            if not self.options.memory:
                _warn_of_brokers_not_started(self.options, self.config)
            server, address = StoreServer(store), undo.enter_context(_socket_path())
            await server.start(address)
            undo.push_async_callback(server.stop)
            self.brokers = broker_processes(self.options, self.config, address)
            undo.push_async_callback(self._stop)
            started = await asyncio.gather(*(broker.start() for broker in self.brokers))
            if not all(started):
                raise CannotSupervise("a broker process could not start; its reason is above")
            watching = [asyncio.create_task(broker.watch()) for broker in self.brokers]
            ready(",".join(broker.address for broker in self.brokers))
            await stopping.wait()
            codes = await self._stop()
            await asyncio.gather(*watching)
            return EXIT_UNCLEAN_STOP if any(codes) else 0

    async def _stop(self) -> list[int]:
        return await asyncio.gather(*(broker.stop() for broker in self.brokers))


def broker_processes(options: ServeOptions, config: BrokerConfig, store: str) -> list[BrokerProcess]:
    """The brokers of `--brokers`: ids and ports follow each other. Raises OptionsRefused."""
    if config.zookeeper_connect:
        raise OptionsRefused("--brokers serves its own metadata store: leave out zookeeper.connect, or --brokers")
    count = options.brokers or 1
    listens = [tuple(_shifted(each, step) for each in config.listens) for step in range(count)]
    ports = [each.port for endpoints in listens for each in endpoints if each.port]
    if len(set(ports)) < len(ports):
        raise OptionsRefused(f"--brokers {count}: the listeners of the brokers would share ports; space them further")
    return [
        BrokerProcess(
            config.node_id + step, listens[step], _arguments(options, config, config.node_id + step, step, store)
        )
        for step in range(count)
    ]


def _arguments(options: ServeOptions, config: BrokerConfig, broker_id: int, step: int, store: str) -> list[str]:
    own = {
        "node.id": str(broker_id),
        "offsets.topic.replication.factor": str(min(config.offsets_topic_replication_factor, options.brokers or 1)),
    }
    if "broker.id" in config.properties:
        own["broker.id"] = str(broker_id)
    if not options.memory:
        own["log.dirs"] = str(Path(config.log_dirs[0]) / f"broker-{broker_id}")
    if config.advertises:
        own["advertised.listeners"] = ",".join(str(_shifted(each, step)) for each in config.advertises)
    if config.rota_swim_port:
        own["rota.swim.port"] = str(config.rota_swim_port + step)
    if config.http is not None:
        own["rota.http.listener"] = str(_shifted(config.http, step)).removeprefix("HTTP://")
    arguments = ["--store", store, "--log-format", options.log_format, "--log-level", options.log_level]
    arguments += ["--memory"] if options.memory else []
    arguments += ["--environment"] if options.environment else []
    for name, value in (("--config", options.config), ("--preset", options.preset)):
        arguments += [name, value] if value is not None else []
    for setting in (*options.settings, *(f"{name}={value}" for name, value in own.items())):
        arguments += ["--set", setting]
    return arguments


def _shifted(endpoint: Endpoint, step: int) -> Endpoint:
    return replace(endpoint, port=endpoint.port + step) if endpoint.port else endpoint


@contextlib.contextmanager
def _folder(config: BrokerConfig) -> Iterator[Path]:
    """Lock the folder; give the path of the store's journal. Raises CannotSupervise, OSError."""
    folder = Path(config.log_dirs[0])
    folder.mkdir(parents=True, exist_ok=True)
    if (folder / "meta.properties").exists():
        raise CannotSupervise(f"{folder} has the data of a single broker: choose another folder with --data")
    with (folder / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise CannotSupervise(f"{folder} is in use by another process") from None
        yield folder / CLUSTER_JOURNAL


def _warn_of_brokers_not_started(options: ServeOptions, config: BrokerConfig) -> None:
    """SV3. A folder without partitions is that of a broker which has been emptied."""
    started = {f"broker-{config.node_id + step}" for step in range(options.brokers or 1)}
    for folder in sorted(Path(config.log_dirs[0]).glob("broker-*")):
        if folder.name not in started and (partitions := _partitions(folder)):
            get_logger("rota.supervisor").warning(
                "A broker of this folder is not started: partitions that are on no other broker have no leader;"
                " start as many brokers as before, with the same node.id",
                folder=str(folder),
                partitions=partitions,
                brokers=options.brokers,
            )


def _partitions(folder: Path) -> int:
    with contextlib.suppress(OSError):
        return sum(partition_of(path.name) is not None for path in folder.iterdir())
    return 0


@contextlib.contextmanager
def _socket_path() -> Iterator[str]:
    """A path that is short enough for a socket."""
    folder = tempfile.mkdtemp(prefix="rota-")
    try:
        yield f"{folder}/store"
    finally:
        shutil.rmtree(folder, ignore_errors=True)


async def _line(descriptor: int) -> str:
    """The line that a process writes to a pipe; empty when it ends without one."""
    reader = asyncio.StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(descriptor, "rb")
    )
    try:
        return (await reader.readline()).decode().strip()
    finally:
        transport.close()
