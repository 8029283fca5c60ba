"""The connector where data teams run Spark: clusters, Spark Connect, older versions. All run tests/spark/program.py."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pyspark
import pytest
from tests.interop.kit import until
from tests.soak import soak_only
from tools.ports import free_ports

from rota.testing import running_broker

ROOT = Path(__file__).parents[2]
PROGRAM = Path(__file__).with_name("program.py")
PAGE = (ROOT / "docs" / "SPARK.md").read_text()
HOME = Path(pyspark.__file__).parent
CLASS = HOME / "bin" / "spark-class"
PATIENCE_S = 900
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "1",
    "spark.log.level": "ERROR",
    "spark.executor.memory": "512m",
    "spark.cores.max": "2",
}
pytestmark = [soak_only, pytest.mark.timeout(PATIENCE_S)]


@pytest.fixture
def servers() -> Iterator[str]:
    with running_broker({"auto.create.topics.enable": "true", "num.partitions": "2"}) as broker:
        yield broker.bootstrap_servers


def environment(folder: Path, *requirements: str) -> Path:
    """The interpreter of a new virtual environment with these packages."""
    constraints = folder.with_suffix(".txt")
    pins = (ROOT / "constraints.txt").read_text().splitlines()
    constraints.write_text("\n".join(pin for pin in pins if not pin.startswith("pyspark==")))
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    python = folder / "bin" / "python"
    command = [python, "-m", "pip", "--disable-pip-version-check", "install", "-q", "-c", constraints, *requirements]
    subprocess.run(command, check=True, env={**os.environ, "ROTA_COMPILE": "0"}, cwd=ROOT)
    return python


def run(command: list[str | Path], folder: Path, **variables: str) -> dict[str, Any]:
    """What the program prints."""
    done = execute(command, folder, **variables)
    assert done.returncode == 0, done.stderr[-5000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def execute(command: list[str | Path], folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    own = {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_LOCAL_DIRS": str(folder / "local"), **variables}
    inherited = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    return subprocess.run(
        [str(word) for word in command],
        env={**inherited, **own},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )


def settings(**more: str) -> list[str]:
    return [f"{name}={value}" for name, value in {**SETTINGS, **more}.items()]


def check(found: dict[str, Any]) -> None:
    assert found["rows"] == sorted(f"value-{number}" for number in range(40))
    assert found["filtered"] == 5
    assert found["headers"] == found["copied"] == 40
    assert found["table"] == found["distinct"] == 80, "each record once, after a restart from the checkpoint"
    is_old = int(found["version"].split(".")[1]) < 2
    at = 20 if is_old else 40  # there the end of an availableNow run is committed by the next start
    assert found["pipelines"] == {"lag": [[0, at, 40 - at], [1, at, 40 - at]], "dead": 80}
    assert ("option maxOffsetsPerTrigger is 30; " in found["limits"]) == is_old


@pytest.mark.parametrize("version", ["4.0", "4.1"])
def test_an_older_pyspark(servers: str, tmp_path: Path, version: str) -> None:
    python = environment(tmp_path / "environment", f"{ROOT}[spark]", f"pyspark=={version}.*")
    master = {"spark.master": "local[2]"}
    found = run([python, PROGRAM, servers, tmp_path, *settings(**master)], tmp_path, PYSPARK_PYTHON=str(python))
    assert found["version"].startswith(f"{version}.")
    check(found)


@pytest.mark.parametrize("where", ["local-cluster[2,1,1024]", "local[*]"])
def test_local_masters(servers: str, tmp_path: Path, where: str) -> None:
    master = {"spark.master": where}
    command = [sys.executable, PROGRAM, servers, tmp_path, *settings(**master)]
    variables = {"PYSPARK_PYTHON": sys.executable, "SPARK_HOME": str(HOME), "SPARK_WORKER_DIR": str(tmp_path / "work")}
    check(run(command, tmp_path, **variables))


@contextmanager
def process(command: list[str | Path], log: Path, started: str, **more: str) -> Iterator[re.Match[str]]:
    """A process that runs until the end of the block; the match of `started` in its log."""
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    variables |= {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_HOME": str(HOME), "SPARK_LOCAL_DIRS": f"{log}-local", **more}
    with log.open("wb") as out:
        running = subprocess.Popen(
            [str(word) for word in command], stdout=out, stderr=out, env=variables, cwd=log.parent
        )
    try:
        until(lambda: re.search(started, log.read_text()) or running.poll() is not None, started, seconds=300)
        found = re.search(started, log.read_text())
        assert found is not None, log.read_text()
        yield found
    finally:
        running.send_signal(signal.SIGTERM)
        running.wait(60)


@pytest.fixture
def master(tmp_path: Path) -> Iterator[str]:
    """The URL of a standalone master with two workers."""
    package = "org.apache.spark.deploy"
    address = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
    with ExitStack() as stack:
        command: list[str | Path] = [CLASS, f"{package}.master.Master", *address]
        url = stack.enter_context(process(command, tmp_path / "master.log", r"Starting Spark master at (spark://\S+)"))[
            1
        ]
        for number in (1, 2):
            own = ["--cores", "1", "--memory", "1g", "--work-dir", str(tmp_path / f"work-{number}"), *address]
            command = [CLASS, f"{package}.worker.Worker", *own, url]
            log = tmp_path / f"worker-{number}.log"
            stack.enter_context(process(command, log, "Successfully registered with master"))
        yield url


def test_a_standalone_cluster_gets_the_package_as_an_archive(servers: str, master: str, tmp_path: Path) -> None:
    """With the commands of the page; then with an archive that lacks the package."""
    (commands,) = re.findall(r"```sh\n(python -m venv environment\n.*?)```", PAGE, re.DOTALL)
    *prepare, submit = commands.replace("\\\n", " ").splitlines()
    for line in prepare:
        own = line.replace('"rota[spark]"', f'"{ROOT}[spark]" -c {ROOT}/constraints.txt')
        command = own.replace("python -m venv", f"{sys.executable} -m venv") if own.startswith("python") else own
        done = execute(["bash", "-c", command], tmp_path, ROTA_COMPILE="0")
        assert done.returncode == 0, done.stderr
    confs = " ".join(f"--conf '{setting}'" for setting in settings())
    program = submit.replace("spark://HOST:7077", f"{master} {confs}").replace(
        "job.py", f"{PROGRAM} {servers} {tmp_path}"
    )
    path = f"{HOME / 'bin'}:{os.environ['PATH']}"
    check(run(["bash", "-c", program], tmp_path, PATH=path, SPARK_HOME=str(HOME)))

    (tmp_path / "bare").mkdir()
    environment(tmp_path / "bare" / "e", "pyarrow")  # without it Spark itself cannot load what it ships
    subprocess.run(["tar", "-czf", str(tmp_path / "bare.tar.gz"), "-C", str(tmp_path / "bare" / "e"), "."], check=True)
    bare = program.replace("environment.tar.gz#", "bare.tar.gz#")
    done = execute(["bash", "-c", bare], tmp_path, PATH=path, SPARK_HOME=str(HOME))
    assert done.returncode != 0
    printed = done.stdout + done.stderr  # spark-submit prints both streams of a Python program to its stdout
    assert "format('rota') cannot run on this executor: No module named 'rota'" in printed
    assert 'pip install "rota[spark]" there' in printed


def test_spark_connect(servers: str, tmp_path: Path) -> None:
    python = environment(tmp_path / "environment", f"{ROOT}[spark]", f"pyspark[connect]=={pyspark.__version__}")
    (port,) = free_ports(1)
    server = {**SETTINGS, "spark.master": "local[2]", "spark.connect.grpc.binding.port": str(port)}
    server |= {"spark.connect.grpc.binding.address": "127.0.0.1", "spark.log.level": "INFO"}
    confs = [word for name, value in server.items() for word in ("--conf", f"{name}={value}")]
    kind = "org.apache.spark.sql.connect.service.SparkConnectServer"
    submit = [CLASS, "org.apache.spark.deploy.SparkSubmit", *confs, "--class", kind, "spark-internal"]
    own = {"PYSPARK_PYTHON": str(python)}  # plans and runs tasks
    with process(submit, tmp_path / "server.log", "Spark Connect server started at", **own):
        remote = f"remote=sc://127.0.0.1:{port}"
        check(run([python, PROGRAM, servers, tmp_path, remote], tmp_path))
