"""docker compose up: the cluster in containers, with a network that is cut.

It needs a Docker engine: the one that answers, with the images of a registry, or one of its own if ROTA_IMAGE_BASE
names a tar with the root file system of a Debian with Python, which .ci/run makes. Without either it is skipped.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest
from tests.interop.kit import until
from tests.packaging.test_compose import BROKERS, PATIENCE_S, ROOT, rounds
from tools.docker_engine import DockerEngine, Unusable

from rota.client import Admin, AdminConfig

BASE_S_MAX = 900  # .ci/run makes the base image while other tests run
BUILD_S_MAX = 900
BOOTSTRAP = "localhost:9092,localhost:9093,localhost:9094"
PROJECT = "rota-test"
FENCED = "Fenced: this broker leads nothing"
OUTAGE_S = 5.0  # longer than the failure detector waits, shorter than a session


def base_image() -> Path | None:
    """The tar that .ci/run makes; None without one. Waits until it is complete."""
    name = os.environ.get("ROTA_IMAGE_BASE")
    if not name:
        return None
    base, failed = Path(name), Path(f"{name}.failed")
    until(lambda: base.exists() or failed.exists(), f"{base} or {failed}", seconds=BASE_S_MAX)
    return base if base.exists() else pytest.skip(f"no base image: {failed.read_text()[-300:]}")


class Containers:
    """The services of docker-compose.yml, running. `inside` calls a function where the published ports are."""

    def __init__(self, engine: DockerEngine | None) -> None:
        self._compose = ["docker", "compose"] if engine is None else engine.compose
        self._environment = dict(os.environ) if engine is None else engine.environment
        self.engine = engine

    def inside(self, function: Callable[[], None]) -> None:
        if self.engine is None:
            function()
        else:
            self.engine.inside(function)

    def compose(self, *arguments: str, seconds: float = PATIENCE_S) -> None:
        self._run([*self._compose, "--project-name", PROJECT, *arguments], seconds)

    def docker(self, *arguments: str) -> str:
        return self._run(["docker", *arguments], PATIENCE_S)

    def container(self, service: str) -> str:
        labels = {"project": PROJECT, "service": service}
        filters = [
            word for key, value in labels.items() for word in ("--filter", f"label=com.docker.compose.{key}={value}")
        ]
        return self.docker("ps", "--all", "--quiet", *filters).strip()

    def is_healthy(self, service: str) -> bool:
        return (
            self.docker("inspect", "--format", "{{.State.Health.Status}}", self.container(service)).strip() == "healthy"
        )

    def fenced(self) -> dict[str, int]:
        """How often each broker was fenced."""
        return {name: self.logs(name).count(FENCED) for name in BROKERS}

    def logs(self, service: str) -> str:
        return self.docker("logs", self.container(service))

    def cut_off(self, *services: str) -> None:
        """Take the network from them for a while."""
        assert self.engine is not None
        with self.engine.unplugged(*map(self.container, services)):
            time.sleep(OUTAGE_S)  # what is tested is an outage that lasts so long

    def _run(self, command: list[str], seconds: float) -> str:
        done = subprocess.run(
            command,
            cwd=ROOT,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=seconds,
        )
        assert done.returncode == 0, f"{command}: {done.stdout[-3000:]}"
        return done.stdout


@pytest.fixture(scope="module")
def containers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Containers]:
    """The cluster, up and healthy; torn down with its volumes after the tests."""
    with ExitStack() as stack:
        containers = Containers(own_engine(stack, tmp_path_factory.mktemp("engine")))
        stack.callback(containers.compose, "down", "--volumes", seconds=300)
        containers.compose("up", "--build", "--detach", seconds=BUILD_S_MAX)
        for name in BROKERS:
            until(partial(containers.is_healthy, name), f"{name} healthy", seconds=PATIENCE_S)
        yield containers


def own_engine(stack: ExitStack, folder: Path) -> DockerEngine | None:
    """Started, with the images that the compose file needs; None if the host's engine answers, else a skip."""
    base = base_image()
    if base is None:
        if (
            shutil.which("docker") is None
            or subprocess.run(["docker", "info"], capture_output=True, check=False).returncode
        ):
            pytest.skip("no Docker engine answers: docker compose up is not run")
        return None
    try:
        engine = stack.enter_context(DockerEngine(folder))
        engine.make_images(base)
    except Unusable as reason:
        pytest.skip(f"docker compose up is not run: {reason}")
    return engine


async def registered(count: int = len(BROKERS)) -> None:
    """Return when so many brokers are registered."""
    async with asyncio.timeout(PATIENCE_S), Admin(AdminConfig(bootstrap_servers=BOOTSTRAP)) as admin:
        while len((await admin.describe_cluster()).nodes) != count:
            await asyncio.sleep(0.05)


@pytest.mark.timeout(BASE_S_MAX + BUILD_S_MAX + 600)
def test_the_containers_outlive_a_broker(containers: Containers) -> None:
    containers.inside(lambda: asyncio.run(rounds(BOOTSTRAP, lambda: containers.compose("kill", "broker-1"))))
    containers.compose("start", "broker-1")
    containers.inside(lambda: asyncio.run(registered()))


@pytest.mark.timeout(BASE_S_MAX + BUILD_S_MAX + 600)
def test_outages_of_the_network_cost_those_brokers_that_are_cut_off_alone(containers: Containers) -> None:
    """FD14, FN3. Who was cut off fences nobody when it is back; an outage of all that is short costs nothing."""
    if containers.engine is None:
        pytest.skip("the network of a host's Docker engine is not cut")
    containers.inside(lambda: asyncio.run(registered()))
    expected = containers.fenced()
    for name in BROKERS:
        containers.cut_off(name)
        expected[name] += 1  # by the two others
        until(lambda: containers.fenced() == expected, f"{name} fenced alone", seconds=PATIENCE_S)
        containers.inside(lambda: asyncio.run(registered()))
    containers.cut_off(*BROKERS)
    containers.inside(lambda: asyncio.run(rounds(BOOTSTRAP, lambda: None, "later")))
    assert containers.fenced() == expected
