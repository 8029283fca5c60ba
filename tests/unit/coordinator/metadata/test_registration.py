from __future__ import annotations

import json
from pathlib import Path

import pytest

from rota.coordinator.config.listeners import Endpoint
from rota.coordinator.metadata.eager import run_eagerly
from rota.coordinator.metadata.embedded import EmbeddedStore
from rota.coordinator.metadata.registration import AlreadyRegistered, claim_controller, register
from rota.coordinator.metadata.topics import Topics

HERE = (Endpoint("PLAINTEXT", "host-a", 9092), Endpoint("INSIDE", "::1", 9093))


def laid_out(path: Path | None = None) -> EmbeddedStore:
    store = EmbeddedStore(path)
    run_eagerly(Topics(store, broker_id=1, fresh_uuid=lambda: bytes(range(16))).load())
    return store


def test_a_broker_is_there_with_its_addresses() -> None:
    store = laid_out()
    run_eagerly(register(store, 1, HERE, rack="r1", wall_ms=5))
    data, stat = run_eagerly(store.get("/brokers/ids/1"))
    assert stat.ephemeral
    assert json.loads(data) == {
        "version": 5,
        "host": "host-a",
        "port": 9092,
        "jmx_port": -1,
        "timestamp": "5",
        "endpoints": ["PLAINTEXT://host-a:9092", "INSIDE://[::1]:9093"],
        "listener_security_protocol_map": {"PLAINTEXT": "PLAINTEXT", "INSIDE": "PLAINTEXT"},
        "features": {},
        "rack": "r1",
    }


def test_two_brokers_of_one_id_are_one_too_many() -> None:
    store = laid_out()
    run_eagerly(register(store, 1, HERE, wall_ms=5))
    with pytest.raises(AlreadyRegistered):
        run_eagerly(register(store, 1, HERE, wall_ms=6))


def test_the_first_to_ask_is_the_controller() -> None:
    store = laid_out()
    assert run_eagerly(claim_controller(store, 3, wall_ms=5)) == 3
    assert run_eagerly(claim_controller(store, 4, wall_ms=6)) == 3
    assert run_eagerly(claim_controller(store, 3, wall_ms=7)) == 3


def test_a_broker_that_died_is_not_there_any_more(tmp_path: Path) -> None:
    path, copy = tmp_path / "journal", tmp_path / "copy"
    store = laid_out(path)
    run_eagerly(register(store, 1, HERE, wall_ms=5))
    run_eagerly(claim_controller(store, 1, wall_ms=5))
    copy.write_bytes(path.read_bytes())
    run_eagerly(store.close())
    after = laid_out(copy)
    run_eagerly(register(after, 1, HERE, wall_ms=6))
    assert run_eagerly(claim_controller(after, 2, wall_ms=6)) == 2
    run_eagerly(after.close())
