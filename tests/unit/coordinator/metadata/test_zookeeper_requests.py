"""The requests that kazoo has not, byte for byte as ZooKeeper's own client writes and reads them."""

from __future__ import annotations

import pytest
from kazoo.exceptions import NoNodeError
from kazoo.protocol.serialization import stat_struct

from rota.coordinator.metadata import zookeeper_requests
from rota.coordinator.metadata.zookeeper_requests import MultiRead, SetWatches, set_watches


def test_a_request_has_the_last_change_and_three_lists_of_paths() -> None:
    request = SetWatches(258, ["/a"], [], ["/b", "/é"])
    assert request.serialize() == (
        b"\x00\x00\x00\x00\x00\x00\x01\x02"
        b"\x00\x00\x00\x01\x00\x00\x00\x02/a"
        b"\x00\x00\x00\x00"
        b"\x00\x00\x00\x02\x00\x00\x00\x02/b\x00\x00\x00\x03/\xc3\xa9"
    )


def test_absent_nodes_get_exists_watches() -> None:
    (request,) = set_watches(7, ["/a", "/absent"], {"/absent"}, ["/absent"])
    assert request.serialize() == SetWatches(7, ["/a"], ["/absent"], ["/absent"]).serialize()
    assert list(set_watches(7, [], set(), [])) == []


def test_many_watches_are_several_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zookeeper_requests, "SET_WATCHES_BYTES_MAX", 15)
    requests = list(set_watches(7, ["/a", "/b", "/c", "/d"], {"/d"}, ["/e"]))
    assert [request.serialize() for request in requests] == [
        SetWatches(7, ["/a", "/b", "/c"], [], []).serialize(),
        SetWatches(7, [], ["/d"], ["/e"]).serialize(),
    ]


def test_many_reads_are_operations_with_a_header_each_and_an_end() -> None:
    assert MultiRead(["/a", "/\u00e9"], None).serialize() == (
        b"\0\0\0\4\0\xff\xff\xff\xff\0\0\0\2/a\0"
        b"\0\0\0\4\0\xff\xff\xff\xff\0\0\0\3/\xc3\xa9\0"
        b"\xff\xff\xff\xff\1\xff\xff\xff\xff"
    )


def test_the_answer_has_data_and_stat_or_an_error_for_each() -> None:
    stat = stat_struct.pack(1, 2, 3, 4, 5, 6, 7, 0, 3, 0, 8)
    answer = (
        b"????"  # what precedes it in the frame
        b"\0\0\0\4\0\0\0\0\0\0\0\0\3abc" + stat + b"\xff\xff\xff\xff\0\xff\xff\xff\x9b\xff\xff\xff\x9b"
        b"\0\0\0\4\0\0\0\0\0\xff\xff\xff\xff" + stat + b"\xff\xff\xff\xff\1\xff\xff\xff\xff"
    )
    first, missing, without_data = MultiRead(["/a", "/b", "/c"], None).deserialize(answer, 4)
    assert isinstance(first, tuple)
    assert (first[0], first[1].czxid, first[1].mzxid, first[1].version) == (b"abc", 1, 2, 5)
    assert isinstance(missing, NoNodeError)
    assert isinstance(without_data, tuple)
    assert not without_data[0]
