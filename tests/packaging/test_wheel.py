"""The wheel that users install: built once, installed in a fresh environment, and used there."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SMOKE = """
import sys
from rota.protocol import records
from rota.coordinator.config.broker import BrokerConfig
assert not {"protocol", "client", "coordinator", "spark_connector"} & set(sys.modules)
print(BrokerConfig().num_partitions, records.__file__)
"""
CLIENT = """
import asyncio
from rota.client import Consumer, ConsumerConfig, Producer, ProducerConfig
from rota.coordinator.testing import running_broker

async def main(brokers):
    async with Producer(ProducerConfig(bootstrap_servers=brokers, compression_type="zstd")) as producer:
        await producer.send("t", b"hello")
    config = ConsumerConfig(bootstrap_servers=brokers, group_id="g", auto_offset_reset="earliest")
    async with Consumer(config) as consumer:
        consumer.subscribe(["t"])
        print((await consumer.getone()).value)

with running_broker() as address:
    asyncio.run(main(address))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    # a build leaves traces in its tree: it gets a copy
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True).stdout
    for name in filter(None, tracked.split("\0")):
        original, copy = ROOT / name, source / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        if original.is_symlink():
            copy.symlink_to(os.readlink(original))
        elif original.exists():
            copy.write_bytes(original.read_bytes())
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(folder / "out"), str(source)]
    subprocess.run(command, check=True, env={**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1"})
    (built,) = (folder / "out").glob("*.whl")
    return built


def test_the_wheel_holds_the_four_packages_and_their_types(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    for package in ("protocol", "coordinator", "client", "spark_connector"):
        assert f"rota/{package}/__init__.py" in names
        assert f"rota/{package}/py.typed" in names
    assert not [name for name in names if not name.startswith("rota") and ".dist-info" not in name]
    assert any(name.endswith("/LICENSE") for name in names)


def test_the_wheel_works_in_a_fresh_environment(wheel: Path, tmp_path: Path) -> None:
    home = tmp_path / "fresh"
    venv.create(home, with_pip=True)
    python = home / "bin" / "python"
    pip = [str(python), "-m", "pip", "--disable-pip-version-check", "install", "-q"]
    subprocess.run([*pip, "-c", str(ROOT / "constraints.txt"), str(wheel)], check=True)
    done = subprocess.run([str(python), "-c", SMOKE], check=True, capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout.startswith("1 ")
    assert "site-packages" in done.stdout
    told = subprocess.run([str(python), "-c", CLIENT], check=True, capture_output=True, text=True, cwd=tmp_path)
    assert "b'hello'\n" in told.stdout
    version = subprocess.run([str(home / "bin" / "rota"), "version"], check=True, capture_output=True, text=True)
    assert version.stdout.strip()
