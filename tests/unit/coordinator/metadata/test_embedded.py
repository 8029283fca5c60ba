from __future__ import annotations

from pathlib import Path

import pytest

from rota.coordinator.metadata import embedded
from rota.coordinator.metadata.eager import now
from rota.coordinator.metadata.embedded import EmbeddedStore
from rota.coordinator.metadata.journal import frame
from rota.coordinator.metadata.store import StoreFailed


def test_the_journal_is_text_that_people_can_read(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    store = EmbeddedStore(path)
    now(store.create("/a", b'{"version":1}'))
    now(store.set("/a", b"\xff"))
    assert b'["made","/a","{\\"version\\":1}",false,0]' in path.read_bytes()
    now(store.close())
    again = EmbeddedStore(path)
    assert now(again.get("/a"))[0] == b"\xff"
    now(again.close())


def test_opening_compacts(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    store = EmbeddedStore(path)
    now(store.create("/a"))
    for turn in range(200):
        now(store.set("/a", b"%d" % turn))
    before_bytes = path.stat().st_size
    now(store.close())
    again = EmbeddedStore(path)
    assert path.stat().st_size < before_bytes / 20
    assert now(again.get("/a"))[1].version == 200
    now(again.close())


def test_a_journal_that_grows_is_rewritten_while_it_is_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "JOURNAL_BYTES_MAX", 2000)
    path = tmp_path / "journal"
    store = EmbeddedStore(path)
    now(store.create("/a"))
    for turn in range(500):
        now(store.set("/a", b"%d" % turn))
        assert path.stat().st_size < 2200
    now(store.close())
    again = EmbeddedStore(path)
    assert now(again.get("/a"))[0] == b"499"
    now(again.close())


@pytest.mark.parametrize(
    "payload", [b"no json", b'[["unknown","/a"]]', b'[["gone","/nothing"]]', b'[["made"]]', b"{}1"]
)
def test_an_entry_that_makes_no_sense_is_not_skipped(tmp_path: Path, payload: bytes) -> None:
    path = tmp_path / "journal"
    path.write_bytes(frame(payload))
    with pytest.raises(StoreFailed, match="makes no sense"):
        EmbeddedStore(path)


def test_closing_twice_is_allowed(tmp_path: Path) -> None:
    store = EmbeddedStore(tmp_path / "journal")
    now(store.close())
    now(store.close())
