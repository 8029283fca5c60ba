"""The pytest plugin, in pytest runs of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from rota.testing.plugin import seed_of

SUITE = """
import pytest

def test_a_topic_of_its_own(rota_broker, rota_topic):
    rota_broker.faults.delay(10_000)
    assert rota_topic.startswith("test_a_topic_of_its_own-")

@pytest.mark.rota_topic(partitions=3)
def test_the_faults_of_the_last_test_have_ended(rota_broker, rota_topic):
    from confluent_kafka.admin import AdminClient
    topics = AdminClient({"bootstrap.servers": rota_broker.bootstrap_servers}).list_topics(timeout=5).topics
    assert len(topics[rota_topic].partitions) == 3

def test_a_broker_is_killed(rota_broker):
    rota_broker.advance(days=1)
    rota_broker.kill()

def test_b_the_killed_broker_runs_again(rota_broker, rota_topic):
    assert [broker["running"] for broker in rota_broker.info()["brokers"]] == [True]

def test_c_an_advance_that_is_too_long_is_refused(rota_broker):
    with pytest.raises(ValueError, match="at most"):
        rota_broker.advance(days=1e30)

def test_a_cluster(rota_cluster):
    assert len(rota_cluster(2).bootstrap_servers.split(",")) == 2
"""
BROKEN = """
import pytest

ended = []

@pytest.fixture
def of_the_test():
    yield
    ended.append(1)

def test_a_the_broker_is_lost(rota_broker, of_the_test, monkeypatch):
    def lost():
        raise ConnectionError("the broker is gone")
    monkeypatch.setattr(rota_broker.faults, "clear", lost)

def test_b_its_fixtures_have_ended(rota_broker):
    assert ended == [1]
"""
NO_BROKER = """
import sys
def test_nothing():
    assert not [name for name in sys.modules if name.startswith(("rota.coordinator", "rota.protocol", "structlog"))]
"""


def run_pytest(folder: Path, suite: str, *options: str, code: int = 0) -> str:
    (folder / "test_suite.py").write_text(suite)
    (folder / "pytest.ini").write_text("[pytest]\n")
    command = [sys.executable, "-m", "pytest", "-p", "rota.testing.plugin", "-q", "-p", "no:randomly", "-p", "no:xdist"]
    done = subprocess.run(
        [*command, "--strict-markers", *options], cwd=folder, capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


def test_the_fixtures_in_this_process(tmp_path: Path) -> None:
    assert "6 passed" in run_pytest(tmp_path, SUITE)


def test_the_fixtures_with_brokers_in_processes(tmp_path: Path) -> None:
    assert "6 passed" in run_pytest(
        tmp_path, SUITE, "-o", "rota_own_process=true", "-o", "rota_seed=5", "-o", "rota_properties=num.partitions=2"
    )


def test_the_fixtures_of_a_test_end_whatever_becomes_of_the_broker(tmp_path: Path) -> None:
    printed = run_pytest(tmp_path, BROKEN, code=1)
    assert "2 passed, 1 error" in printed
    assert "ConnectionError: the broker is gone" in printed


def test_a_seed_that_is_no_number_is_refused() -> None:
    assert seed_of("-7") == -7
    with pytest.raises(pytest.UsageError, match="rota_seed is 'x'"):
        seed_of("x")


def test_a_run_without_the_fixtures_loads_no_broker(tmp_path: Path) -> None:
    assert "1 passed" in run_pytest(tmp_path, NO_BROKER, "-p", "no:hypothesispytest")
