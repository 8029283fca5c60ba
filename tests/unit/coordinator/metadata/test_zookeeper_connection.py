"""The request that sets watches again, byte for byte as ZooKeeper's own client writes it."""

from __future__ import annotations

import pytest

from rota.coordinator.metadata import zookeeper_connection
from rota.coordinator.metadata.zookeeper_connection import SetWatches, _set_watches


def test_a_request_has_the_last_change_and_three_lists_of_paths() -> None:
    request = SetWatches(258, ["/a"], [], ["/b", "/é"])
    assert request.serialize() == (
        b"\x00\x00\x00\x00\x00\x00\x01\x02"
        b"\x00\x00\x00\x01\x00\x00\x00\x02/a"
        b"\x00\x00\x00\x00"
        b"\x00\x00\x00\x02\x00\x00\x00\x02/b\x00\x00\x00\x03/\xc3\xa9"
    )


def test_absent_nodes_get_exists_watches() -> None:
    (request,) = _set_watches(7, ["/a", "/absent"], {"/absent"}, ["/absent"])
    assert request.serialize() == SetWatches(7, ["/a"], ["/absent"], ["/absent"]).serialize()
    assert list(_set_watches(7, [], set(), [])) == []


def test_many_watches_are_several_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zookeeper_connection, "SET_WATCHES_BYTES_MAX", 15)
    requests = list(_set_watches(7, ["/a", "/b", "/c", "/d"], {"/d"}, ["/e"]))
    assert [request.serialize() for request in requests] == [
        SetWatches(7, ["/a", "/b", "/c"], [], []).serialize(),
        SetWatches(7, [], ["/d"], ["/e"]).serialize(),
    ]
