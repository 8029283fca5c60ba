"""docker-compose.yml: it follows the compose specification, and its brokers are a cluster, also as plain processes."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml
from compose_spec import PyCompose
from tests.interop.kit import until
from tests.soak import soak_only
from tools.ports import free_ports
from tools.zookeeper import ZooKeeperServer, missing

from rota.client import Admin, AdminConfig, Consumer, ConsumerConfig, NewTopic, Producer, ProducerConfig, TopicPartition
from rota.coordinator.admin.options import environment_properties
from rota.coordinator.config.broker import BrokerConfig

ROOT = Path(__file__).parents[2]
BROKERS = ("broker-1", "broker-2", "broker-3")
DATA = "/var/lib/rota/data"
PATIENCE_S = 60
RECORDS = 30


def compose() -> dict[str, Any]:
    """The file with the defaults of its variables. Raises ValueError for what is not in the specification."""
    text = re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", (ROOT / "docker-compose.yml").read_text())
    loaded: dict[str, Any] = PyCompose.from_json(json.dumps(yaml.safe_load(text))).to_dict()
    return loaded


SERVICES = compose()["services"]


def environment(name: str) -> dict[str, str]:
    return {key: str(value) for key, value in SERVICES[name]["environment"].items()}


def config(name: str) -> BrokerConfig:
    ignored: list[str] = []
    properties = environment_properties(environment(name), ignored)
    assert not ignored
    return BrokerConfig(properties)


def test_a_file_that_is_not_in_the_specification_would_be_noticed() -> None:
    with pytest.raises(ValueError, match="imag"):
        PyCompose.from_yaml("services: {a: {imag: x}}")


@pytest.mark.parametrize("name", BROKERS)
def test_a_broker_is_reached_by_its_name_inside_and_by_its_port_from_the_host(name: str) -> None:
    advertised = {endpoint.listener: (endpoint.host, endpoint.port) for endpoint in config(name).advertises}
    inside, outside = config(name).listens
    port, console = SERVICES[name]["ports"]
    assert advertised["INSIDE"] == (name, inside.port)
    assert advertised["HOST"][0] == "localhost"
    assert str(port).endswith(f"127.0.0.1:{advertised['HOST'][1]}:{outside.port}")
    assert f"127.0.0.1:{inside.port}" in SERVICES[name]["healthcheck"]["test"]
    assert config(name).inter_broker_listener_name == inside.listener == "INSIDE"
    http = config(name).http
    assert http is not None
    assert str(console).endswith(f"127.0.0.1:{8079 + int(name[-1])}:{http.port}")


def test_the_brokers_are_one_cluster_with_racks_and_folders_of_their_own() -> None:
    configs = [config(name) for name in BROKERS]
    assert len({each.node_id for each in configs}) == len({each.broker_rack for each in configs}) == len(BROKERS)
    assert {each.zookeeper_connect for each in configs} == {"zookeeper:2181/rota"}
    volumes = [str(volume) for name in BROKERS for volume in SERVICES[name]["volumes"]]
    assert len(set(volumes)) == len(BROKERS)
    assert {each.log_dirs for each in configs} == {(DATA,)}


def test_zookeeper_keeps_its_data_and_is_not_root() -> None:
    assert SERVICES["zookeeper"]["user"] == "zookeeper"
    assert len(SERVICES["zookeeper"]["volumes"]) == 2


def test_prometheus_scrapes_every_broker_by_a_name_that_its_console_allows() -> None:
    """With the profile `prometheus` alone; the files that its services read exist."""
    services = [SERVICES["prometheus"], SERVICES["grafana"]]
    assert all(service["profiles"] == ["prometheus"] for service in services)
    for volume in (str(volume) for service in services for volume in service["volumes"]):
        assert not volume.startswith("./") or (ROOT / volume.split(":")[0]).exists()
    scraped = yaml.safe_load((ROOT / "deploy" / "prometheus" / "prometheus.yml").read_text())
    (job,) = scraped["scrape_configs"]
    targets = {target for each in job["static_configs"] for target in each["targets"]}
    assert targets == {f"{name}:{http.port}" for name in BROKERS if (http := config(name).http) is not None}
    assert {name for name in BROKERS if name in config(name).rota_http_allowed_hosts} == set(BROKERS)
    assert all((ROOT / "deploy" / "prometheus" / name).exists() for name in scraped["rule_files"])


JOBS = ("ingest", "group-activity", "report")
LAKE = "/var/lib/rota/lake"


def test_the_jobs_run_with_the_profile_spark_alone_and_name_the_brokers() -> None:
    for name in JOBS:
        service = SERVICES[name]
        assert service["profiles"] == ["spark"]
        assert service["build"]["target"] == "spark"
        assert f"lake:{LAKE}" in [str(volume) for volume in service["volumes"]]
    servers = ",".join(f"{name}:29092" for name in BROKERS)
    for name in JOBS[:2]:
        assert f"--bootstrap-servers={servers}" in SERVICES[name]["command"]
    assert "AS spark\n" in (ROOT / "Dockerfile").read_text()
    assert (ROOT / "deploy" / "spark" / "orders.ddl").exists()


class Topology:
    """The brokers of the file as processes: its environment and command, with free ports for its names and ports."""

    def __init__(self, zookeeper: str, folder: Path) -> None:
        self.folder, self._zookeeper = folder, zookeeper
        ports = iter(free_ports(2 * len(BROKERS)))
        self.inside = {name: next(ports) for name in BROKERS}
        self.outside = {name: next(ports) for name in BROKERS}
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def variables(self, name: str) -> dict[str, str]:
        ours = {"zookeeper:2181": self._zookeeper, DATA: str(self.folder / name)}
        ours |= {f"//{broker}:29092": f"//127.0.0.1:{port}" for broker, port in self.inside.items()}
        ours |= {"0.0.0.0:29092": f"127.0.0.1:{self.inside[name]}", "0.0.0.0:9092": f"127.0.0.1:{self.outside[name]}"}
        ours["0.0.0.0:8080"] = "127.0.0.1:0"
        ours[f"localhost:{9091 + int(name[-1])}"] = f"127.0.0.1:{self.outside[name]}"
        variables = environment(name)
        for theirs, replacement in ours.items():
            variables = {key: value.replace(theirs, replacement) for key, value in variables.items()}
        return variables

    def start(self, name: str) -> None:
        command = [sys.executable, "-m", "rota.coordinator", *SERVICES[name]["command"]]
        read, write = os.pipe()
        with (self.folder / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                [*command, "--ready-fd", str(write)],
                env={**os.environ, **self.variables(name)},
                pass_fds=[write],
                stderr=log,
            )
        os.close(write)
        with os.fdopen(read) as ready:
            assert ready.readline(), (self.folder / f"{name}.log").read_text()

    def end(self, name: str, number: signal.Signals) -> int:
        process = self.processes.pop(name)
        process.send_signal(number)
        return process.wait(PATIENCE_S)

    def is_healthy(self, name: str) -> bool:
        command = [sys.executable, "-m", "rota.coordinator", "check", f"127.0.0.1:{self.inside[name]}"]
        return subprocess.run(command, capture_output=True, check=False, timeout=PATIENCE_S).returncode == 0

    @property
    def bootstrap(self) -> str:
        return ",".join(f"127.0.0.1:{port}" for port in self.outside.values())


@pytest.fixture
def topology(tmp_path: Path) -> Iterator[Topology]:
    reason = missing()
    if reason is not None:
        pytest.skip(f"no ZooKeeper: {reason}")
    (tmp_path / "zookeeper").mkdir()
    with ZooKeeperServer(tmp_path / "zookeeper") as zookeeper:
        topology = Topology(zookeeper.address, tmp_path)
        try:
            yield topology
        finally:
            for name in list(topology.processes):
                topology.end(name, signal.SIGKILL)


async def rounds(bootstrap: str, kill: Callable[[], object], topic: str = "t") -> None:
    """A group reads what is written to a new topic, before and after `kill` is called."""
    async with asyncio.timeout(PATIENCE_S), Admin(AdminConfig(bootstrap_servers=bootstrap)) as admin:
        while len((await admin.describe_cluster()).nodes) < len(BROKERS):
            await asyncio.sleep(0.05)
        await admin.create_topics([NewTopic(topic, 3)])
        producer = Producer(ProducerConfig(bootstrap_servers=bootstrap, acks="all"))
        consumer = Consumer(ConsumerConfig(bootstrap_servers=bootstrap, group_id="g", auto_offset_reset="earliest"))
        async with producer, consumer:
            consumer.subscribe([topic])
            await write_and_read(topic, producer, consumer)
            await asyncio.to_thread(kill)
            await write_and_read(topic, producer, consumer)


async def write_and_read(topic: str, producer: Producer, consumer: Consumer) -> None:
    sent = {b"%d" % number for number in range(RECORDS)}
    for value in sent:
        await producer.send(topic, value, partition=int(value) % 3)
    await producer.flush()
    received: set[bytes | None] = set()
    while received < sent:
        batches = await consumer.getmany(timeout_ms=500)
        received |= {record.value for records in batches.values() for record in records}
    await consumer.commit()


def test_the_same_topology_as_processes_outlives_a_broker(topology: Topology) -> None:
    for name in BROKERS:
        topology.start(name)
    assert all(map(topology.is_healthy, BROKERS))
    asyncio.run(rounds(topology.bootstrap, lambda: topology.end("broker-1", signal.SIGKILL)))
    assert not topology.is_healthy("broker-1")
    topology.start("broker-1")
    assert topology.is_healthy("broker-1")
    assert [topology.end(name, signal.SIGTERM) for name in BROKERS] == [0, 0, 0]


def job_command(name: str, topology: Topology, http: int) -> list[str]:
    """The command of a job of the file, with the addresses and folders of the processes."""
    ours = {f"{broker}:29092": f"127.0.0.1:{port}" for broker, port in topology.inside.items()}
    ours |= {LAKE: str(topology.folder / "lake"), "/etc/rota": str(ROOT / "deploy" / "spark")}
    ours |= {"0.0.0.0:8090": f"127.0.0.1:{http}", "1 minute": "2 seconds"}
    words = [str(word) for word in SERVICES[name]["command"]]
    for theirs, replacement in ours.items():
        words = [word.replace(theirs, replacement) for word in words]
    return [sys.executable, "-m", *words]


def start_job(name: str, topology: Topology, http: int) -> None:
    conf = (
        "--conf spark.master=local[1] --conf spark.ui.enabled=false --conf spark.sql.shuffle.partitions=1 pyspark-shell"
    )
    variables = {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable, "PYSPARK_SUBMIT_ARGS": conf}
    with (topology.folder / f"{name}.log").open("ab") as log:
        command = job_command(name, topology, http)
        environment = {**os.environ, **variables}
        topology.processes[name] = subprocess.Popen(
            command, env=environment, stdout=log, stderr=log, cwd=topology.folder, start_new_session=True
        )


async def write_orders(bootstrap: str) -> None:
    async with Admin(AdminConfig(bootstrap_servers=bootstrap)) as admin:
        while len((await admin.describe_cluster()).nodes) < len(BROKERS):
            await asyncio.sleep(0.05)
        await admin.create_topics([NewTopic("orders", 3)])
        # creates __consumer_offsets, which needs three brokers, and without which group_activity ends
        await admin.alter_group_offsets("first", {TopicPartition("orders", 0): 0})
    async with Producer(ProducerConfig(bootstrap_servers=bootstrap, acks="all")) as producer:
        for number in range(RECORDS):
            await producer.send("orders", b'{"id": %d, "name": "n"}' % number, partition=number % 3)


@soak_only
@pytest.mark.timeout(900)
def test_the_jobs_as_processes_fill_the_tables_and_the_report_is_served(topology: Topology) -> None:
    (http,) = free_ports(1)
    for name in BROKERS:
        topology.start(name)
    asyncio.run(write_orders(topology.bootstrap))
    for name in JOBS:
        start_job(name, topology, http)
    records = topology.folder / "lake" / "orders" / "records"
    until(lambda: len(rows_of(records)) == RECORDS, "the records in the table", seconds=400)
    topology.end("broker-1", signal.SIGKILL)  # the jobs go on with the two others
    until(lambda: b"orders-table" in report(http), "the group of ingest in the report", seconds=400)
    assert {row["id"] for row in rows_of(records)} == set(range(RECORDS))


def rows_of(folder: Path) -> list[dict[str, Any]]:
    """Without the files of tasks that still write, which are in _temporary."""
    files = [str(file) for file in folder.glob("event_day=*/batch_id=*/*.parquet")]
    return [row for file in files for row in pq.ParquetFile(file).read().to_pylist()]


def report(port: int) -> bytes:
    """The page; empty while there is none."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=60) as answer:
            found: bytes = answer.read()
            return found
    except OSError:
        return b""
