from __future__ import annotations

import pytest

from rota.coordinator.metadata.store import Check, Create, Delete, Op, Set, Stat
from rota.coordinator.metadata.store_protocol import (
    FRAME_BYTES_MAX,
    HEAD,
    REFUSALS,
    MalformedFrame,
    frame,
    message,
    op_row,
    payload_bytes,
    read_op,
    stat_row,
)

OPS: list[Op] = [Create("/é", b"\0\xff", True, False), Set("/a", b"x", 3), Delete("/a", -1), Check("/a", 0)]


@pytest.mark.parametrize("op", OPS, ids=str)
def test_an_operation_is_read_as_it_was_written(op: Op) -> None:
    (row,) = message(frame([op_row(op)])[HEAD.size :])
    assert read_op(row) == op


def test_a_stat_is_five_numbers() -> None:
    stat = Stat(1, 2, 3, 4, 5)
    assert Stat(*stat_row(stat)) == stat


def test_a_frame_begins_with_its_length() -> None:
    data = frame(["ok"])
    assert data == b'\0\0\0\x06["ok"]'
    assert payload_bytes(data[:4]) == 6


@pytest.mark.parametrize("length", [0, FRAME_BYTES_MAX + 1])
def test_a_frame_of_impossible_length_is_malformed(length: int) -> None:
    with pytest.raises(MalformedFrame):
        payload_bytes(HEAD.pack(length))


@pytest.mark.parametrize("payload", [b"{}", b"[]", b"no json", b"\xff"])
def test_bytes_that_are_no_message_are_malformed(payload: bytes) -> None:
    with pytest.raises(MalformedFrame):
        message(payload)


@pytest.mark.parametrize("row", [[], ["create", "/a"], ["set", "/a", "x", "0"], ["drop", "/a"], "set", None])
def test_bytes_that_are_no_operation_are_malformed(row: object) -> None:
    with pytest.raises(MalformedFrame):
        read_op(row)


def test_every_refusal_has_its_name() -> None:
    assert sorted(REFUSALS) == [
        "BadNode",
        "BadVersion",
        "NoChildrenForEphemerals",
        "NoNode",
        "NodeExists",
        "NotEmpty",
    ]
