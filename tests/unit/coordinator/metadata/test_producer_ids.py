from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from rota.coordinator.metadata import znodes
from rota.coordinator.metadata.eager_tasks import run_eagerly
from rota.coordinator.metadata.embedded import EmbeddedStore
from rota.coordinator.metadata.producer_ids import BLOCK_IDS, ProducerIds
from rota.coordinator.metadata.store import StoreFailed


def test_ids_grow_by_one_across_blocks() -> None:
    ids = ProducerIds(EmbeddedStore(), broker_id=1)
    assert [run_eagerly(ids.take()) for _ in range(2 * BLOCK_IDS + 1)] == list(range(2 * BLOCK_IDS + 1))


def test_no_id_is_given_again_after_a_kill(tmp_path: Path) -> None:
    """The process is gone without a word: only the journal is left."""
    seen: set[int] = set()
    for _ in range(3):
        copy = tmp_path / "journal"
        store = EmbeddedStore(copy)
        ids = ProducerIds(store, broker_id=1)
        for _ in range(BLOCK_IDS + 3):
            fresh = run_eagerly(ids.take())
            assert fresh not in seen
            seen.add(fresh)
        left = copy.read_bytes()
        run_eagerly(store.close())
        copy.write_bytes(left)


def test_brokers_share_the_ids_block_by_block() -> None:
    store = EmbeddedStore()
    first, second = ProducerIds(store, broker_id=1), ProducerIds(store, broker_id=2)
    drawn = [run_eagerly(each.take()) for _ in range(3) for each in (first, second)]
    assert drawn == [0, 1000, 1, 1001, 2, 1002]


def test_the_block_is_noted_as_kafka_does() -> None:
    store = EmbeddedStore()
    run_eagerly(ProducerIds(store, broker_id=7).take())
    data, _ = run_eagerly(store.get("/latest_producer_id_block"))
    assert json.loads(data) == {"version": 1, "broker": 7, "block_start": "0", "block_end": "999"}


async def test_concurrent_producers_get_ids_of_one_block(tmp_path: Path) -> None:
    store = EmbeddedStore(tmp_path / "journal")
    ids = ProducerIds(store, broker_id=1)
    assert await asyncio.gather(*(ids.take() for _ in range(50))) == list(range(50))
    data, stat = await store.get("/latest_producer_id_block")
    assert (json.loads(data)["block_end"], stat.version) == ("999", 0)
    await store.close()


@pytest.mark.parametrize(
    "data", [b"", b"[]", b"{}", b"\xff", b'{"block_end": "x"}', b'{"block_end": null}', b'{"block_end": 1e999}']
)
def test_a_damaged_node_gives_no_id_and_stays(data: bytes) -> None:
    """A coordinator answers that it is loading, as for any failure of the store."""
    store = EmbeddedStore()
    run_eagerly(store.create(znodes.PRODUCER_IDS, data))
    ids = ProducerIds(store, broker_id=1)
    with pytest.raises(StoreFailed, match="block_end is expected"):
        run_eagerly(ids.take())
    assert run_eagerly(store.get(znodes.PRODUCER_IDS))[0] == data
