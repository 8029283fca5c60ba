from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from rota.coordinator.config.listeners import Endpoint
from rota.coordinator.metadata import znodes
from rota.coordinator.metadata.eager_tasks import run_eagerly
from rota.coordinator.metadata.embedded import EmbeddedStore
from rota.coordinator.metadata.registration import (
    AlreadyRegistered,
    Registration,
    claim_controller,
    forget,
    last_epoch,
    last_registrations,
    register,
    remember,
)
from rota.coordinator.metadata.shared_tree import SharedTree
from rota.coordinator.metadata.store import BadVersion, Op
from rota.coordinator.metadata.topics import Topics
from rota.coordinator.metadata.tree_session import TreeSession

HERE = (Endpoint("PLAINTEXT", "host-a", 9092), Endpoint("INSIDE", "::1", 9093))
INFINITE = b'{"broker_epoch": 1e999}'  # json makes a float of it that is no integer


def laid_out(path: Path | None = None) -> EmbeddedStore:
    store = EmbeddedStore(path)
    run_eagerly(Topics(store, broker_id=1, fresh_uuid=lambda: bytes(range(16))).load())
    return store


def test_a_registration_has_the_addresses_of_the_broker() -> None:
    store = laid_out()
    run_eagerly(register(store, 1, Registration(HERE, rack="r1", directory_id="d", swim="h:5"), wall_ms=5))
    data, stat = run_eagerly(store.get("/brokers/ids/1"))
    assert stat.is_ephemeral
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
        "directory_id": "d",
        "swim": "h:5",
    }


def left_by_another_session(store: EmbeddedStore, directory_id: str) -> None:
    node = {"version": 5, "endpoints": ["PLAINTEXT://host-b:9092"], "directory_id": directory_id}
    run_eagerly(store.create("/brokers/ids/1", json.dumps(node).encode()))


def test_two_brokers_with_one_id_are_refused() -> None:
    store = laid_out()
    left_by_another_session(store, "other")
    with pytest.raises(AlreadyRegistered, match=r"node.id 1 is alive at PLAINTEXT://host-b:9092"):
        run_eagerly(register(store, 1, Registration(HERE, directory_id="own"), wall_ms=6))


def test_a_broker_without_a_folder_replaces_no_registration() -> None:
    store = laid_out()
    left_by_another_session(store, "")
    with pytest.raises(AlreadyRegistered):
        run_eagerly(register(store, 1, Registration(HERE), wall_ms=6))


def test_a_registration_of_an_earlier_life_on_the_same_folder_is_replaced() -> None:
    store = laid_out()
    left_by_another_session(store, "own")
    before = run_eagerly(store.get("/brokers/ids/1"))[1]
    epoch = run_eagerly(register(store, 1, Registration(HERE, directory_id="own"), wall_ms=6))
    data, stat = run_eagerly(store.get("/brokers/ids/1"))
    assert before.created < epoch == stat.created
    assert stat.owner == store.session_id
    assert json.loads(data)["host"] == "host-a"


def test_registering_twice_in_one_session_is_registering_once() -> None:
    store = laid_out()
    first = run_eagerly(register(store, 1, Registration(HERE), wall_ms=5))
    assert run_eagerly(register(store, 1, Registration(HERE), wall_ms=6)) == first


async def test_the_end_of_a_session_that_has_not_expired_yet_is_awaited() -> None:
    tree = SharedTree()
    before, store = TreeSession(tree), TreeSession(tree)
    await Topics(store, broker_id=1, fresh_uuid=lambda: bytes(16)).load()
    first = await register(before, 1, Registration(HERE, directory_id="a"), wall_ms=6)
    joining = asyncio.ensure_future(
        register(store, 1, Registration(HERE, directory_id="b"), wall_ms=6, wait_seconds=30)
    )
    for _ in range(5):
        await asyncio.sleep(0)
    assert not joining.done()
    await before.close()
    assert await joining > first
    await store.close()
    await tree.close()


def test_the_first_claim_wins_the_controller() -> None:
    store = laid_out()
    assert run_eagerly(claim_controller(store, 3, wall_ms=5)) == 3
    assert run_eagerly(claim_controller(store, 4, wall_ms=6)) == 3
    assert run_eagerly(claim_controller(store, 3, wall_ms=7)) == 3


def test_after_a_crash_the_registration_and_controller_are_removed(tmp_path: Path) -> None:
    path, copy = tmp_path / "journal", tmp_path / "copy"
    store = laid_out(path)
    run_eagerly(register(store, 1, Registration(HERE), wall_ms=5))
    run_eagerly(claim_controller(store, 1, wall_ms=5))
    copy.write_bytes(path.read_bytes())
    run_eagerly(store.close())
    after = laid_out(copy)
    run_eagerly(register(after, 1, Registration(HERE), wall_ms=6))
    assert run_eagerly(claim_controller(after, 2, wall_ms=6)) == 2
    run_eagerly(after.close())


def test_the_last_registration_of_a_broker_outlives_it() -> None:
    """Law RG2."""
    store = laid_out()
    for rack in ("r1", "r2"):
        run_eagerly(remember(store, 1, Registration(HERE, rack=rack), wall_ms=5))
    (known,) = run_eagerly(last_registrations(store, (1, 9)))
    assert (known.broker_id, known.endpoints, known.rack) == (1, HERE, "r2")
    _, stat = run_eagerly(store.get("/rota/brokers/1"))
    assert not stat.is_ephemeral


def test_a_last_registration_that_is_damaged_hides_no_other_one() -> None:
    """Law RG2."""
    store = laid_out()
    for broker_id in (1, 2):
        run_eagerly(remember(store, broker_id, Registration(HERE), wall_ms=5))
    run_eagerly(store.set("/rota/brokers/1", b"{"))
    with capture_logs() as lines:
        (known,) = run_eagerly(last_registrations(store, (1, 2)))
    assert known.broker_id == 2
    assert [(line["broker"], "/rota/brokers/1 cannot be read" in line["reason"]) for line in lines] == [(1, True)]


def test_a_broker_that_registers_while_it_is_forgotten_is_remembered() -> None:
    """Law RG3."""
    store = laid_out()
    run_eagerly(remember(store, 1, Registration(HERE), wall_ms=5))
    with pytest.raises(BadVersion):
        run_eagerly(forget(RegistersMeanwhile(store), 1))
    assert len(run_eagerly(last_registrations(store, (1,)))) == 1


async def test_a_broker_that_restarts_between_two_requests_to_forget_it_is_remembered() -> None:
    """RG3. Its new node has the version that the second request has read."""
    tree = SharedTree()
    first, second, broker = (TreeSession(tree) for _ in range(3))
    await Topics(first, broker_id=7, fresh_uuid=lambda: bytes(range(16))).load()
    here = Registration(HERE)
    await remember(broker, 1, here, wall_ms=5)
    commit = second.commit

    async def after_a_restart(ops: Sequence[Op]) -> None:
        await forget(first, 1)
        await register(broker, 1, here, wall_ms=6)
        await remember(broker, 1, here, wall_ms=6)
        await commit(ops)

    second.commit = after_a_restart  # type: ignore[method-assign]
    with pytest.raises(BadVersion):
        await forget(second, 1)
    assert len(await last_registrations(broker, (1,))) == 1
    for session in (first, second, broker):
        await session.close()
    await tree.close()


class RegistersMeanwhile:
    """A store in which broker 1 says again what it is while its last registration is being deleted."""

    def __init__(self, store: EmbeddedStore) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def get(self, path: str) -> Any:
        found = await self._store.get(path)
        await remember(self._store, 1, Registration(HERE, rack="new"), wall_ms=6)
        return found


async def test_cm5_the_epoch_that_a_folder_knew_last_is_kept_with_the_registration() -> None:
    store = laid_out()
    assert await last_epoch(store, 1) == -1
    for noted, content in ((7, None), (-1, None), (-1, b"{"), (-1, b'{"broker_epoch": null}'), (-1, INFINITE)):
        await remember(store, 1, Registration(HERE), wall_ms=5, noted_epoch=noted)
        if content is not None:
            await store.set(znodes.last_registration_path(1), content)
        assert await last_epoch(store, 1) == noted
