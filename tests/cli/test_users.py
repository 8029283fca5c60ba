"""`rota users` and Kafka's own `kafka-configs.sh` on a Rota broker with SASL."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.kit import Rota
from tests.interop.java_kit import needs_java, run_java, run_java_failing
from tests.interop.security.rota_broker import SecureRota
from tools.peer.secure import USER

from rota.client import Admin, AdminConfig, AuthenticationFailed

CONFIGS = "kafka.admin.ConfigCommand"
BOTH = ["SCRAM-SHA-256", "SCRAM-SHA-512"]


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureRota]:
    with SecureRota(tmp_path_factory.mktemp("users")) as broker:
        yield broker


@pytest.fixture
def rota(secure: SecureRota, capsys: pytest.CaptureFixture[str]) -> Rota:
    """Commands for the listener without SASL."""
    return Rota(secure.address("PLAINTEXT"), capsys)


@pytest.fixture
def sasl_port(secure: SecureRota) -> int:
    return secure.ports["SASL_PLAINTEXT"]


def is_login_accepted(port: int, user: str, password: str, mechanism: str = "SCRAM-SHA-512") -> bool:
    async def lists() -> bool:
        settings: dict[str, Any] = {
            "bootstrap.servers": f"127.0.0.1:{port}",
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": mechanism,
            "sasl.username": user,
            "sasl.password": password,
        }
        try:
            async with Admin(AdminConfig.from_properties(settings)) as admin:
                await admin.list_topics()
        except AuthenticationFailed:
            return False
        return True

    return asyncio.run(lists())


def test_users_are_added_listed_and_removed(rota: Rota, sasl_port: int, tmp_path: Path) -> None:
    password = tmp_path / "password"
    password.write_text("planted one\n")
    add = ("users", "add", "carol", "--password-file", str(password))
    assert rota.json(*add) == {"added": {"user": "carol", "mechanisms": BOTH}}
    assert all(is_login_accepted(sasl_port, "carol", "planted one", mechanism) for mechanism in BOTH)
    credentials = [{"mechanism": each, "iterations": 4096} for each in BOTH]
    listed = rota.json("users", "list")["users"]
    assert {"user": "carol", "credentials": credentials} in listed
    assert {"user": USER, "credentials": credentials} in listed  # of rota.scram.bootstrap.users
    password.write_text("planted two\n")
    only = ("--mechanism", "SCRAM-SHA-512")
    changed = rota(*add, *only, "--iterations", "8192")
    assert (changed.lines, changed.err) == (["user carol added: SCRAM-SHA-512"], "")
    assert is_login_accepted(sasl_port, "carol", "planted two")
    assert not is_login_accepted(sasl_port, "carol", "planted one")
    assert is_login_accepted(sasl_port, "carol", "planted one", "SCRAM-SHA-256")
    assert rota.json("users", "remove", "carol", *only) == {"removed": {"user": "carol", "mechanisms": BOTH[1:]}}
    assert rota.json("users", "remove", "carol") == {"removed": {"user": "carol", "mechanisms": BOTH[:1]}}
    assert not is_login_accepted(sasl_port, "carol", "planted one", "SCRAM-SHA-256")
    refused = rota.fails("users", "remove", "carol")
    assert refused.code == 1
    assert "RESOURCE_NOT_FOUND" in refused.err


@pytest.mark.java
@needs_java[1]
def test_kafka_configs_adds_describes_and_deletes_users(rota: Rota, sasl_port: int) -> None:
    def configs(*arguments: str) -> str:
        return run_java(CONFIGS, "--bootstrap-server", rota.address, *arguments, "--entity-type", "users")

    bob = ("--entity-name", "bob")
    added = configs("--alter", *bob, "--add-config", "SCRAM-SHA-256=[iterations=8192,password=planted]")
    assert "Completed updating config for user bob." in added
    configs("--alter", *bob, "--add-config", "SCRAM-SHA-512=[password=planted]")
    described = configs("--describe", *bob)
    assert "SCRAM credential configs for user-principal 'bob' are" in described
    assert "SCRAM-SHA-256=iterations=8192" in described
    assert "SCRAM-SHA-512=iterations=4096" in described
    assert "bob" in configs("--describe")  # of all users
    assert is_login_accepted(sasl_port, "bob", "planted")
    assert not is_login_accepted(sasl_port, "bob", "wrong")
    configs("--alter", *bob, "--delete-config", "SCRAM-SHA-512")
    assert not is_login_accepted(sasl_port, "bob", "planted")
    assert is_login_accepted(sasl_port, "bob", "planted", "SCRAM-SHA-256")
    assert "SCRAM-SHA-512" not in configs("--describe", *bob)
    again = run_java_failing(
        CONFIGS, "--bootstrap-server", rota.address, "--alter", "--entity-type", "users", *bob,
        "--delete-config", "SCRAM-SHA-512",
    )  # fmt: skip
    assert "Attempt to delete a user credential that does not exist" in again


@pytest.mark.java
@needs_java[1]
def test_kafka_configs_sets_describes_and_removes_quotas(rota: Rota) -> None:
    def configs(*arguments: str) -> str:
        return run_java(CONFIGS, "--bootstrap-server", rota.address, *arguments)

    pair = ("--entity-type", "users", "--entity-name", "dave", "--entity-type", "clients", "--entity-default")
    ip = ("--entity-type", "ips", "--entity-name", "127.0.0.9")
    configs("--alter", *pair, "--add-config", "producer_byte_rate=1024,consumer_byte_rate=2048")
    described = configs("--describe", *pair)
    assert "Quota configs for user-principal 'dave', the default client-id are" in described
    assert "producer_byte_rate=1024.0" in described
    assert "consumer_byte_rate=2048.0" in described
    configs("--alter", *ip, "--add-config", "connection_creation_rate=7")
    assert "connection_creation_rate=7.0" in configs("--describe", *ip)
    configs("--alter", *pair, "--delete-config", "producer_byte_rate,consumer_byte_rate")
    configs("--alter", *ip, "--delete-config", "connection_creation_rate")
    assert "dave" not in configs("--describe", *pair)
    assert "127.0.0.9" not in configs("--describe", "--entity-type", "ips")
