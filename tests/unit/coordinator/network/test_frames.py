"""Frames out of a stream, however it is cut."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rota.coordinator.network.frames import LARGE_FRAME_BYTES, Framer


def framed(message: bytes) -> bytes:
    return struct.pack(">i", len(message)) + message


@settings(deadline=None)
@given(st.lists(st.binary(max_size=40), max_size=12), st.data())
def test_the_frames_do_not_depend_on_how_the_stream_is_cut(messages: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(map(framed, messages))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=20)))
    framer, seen = Framer(1000), []
    for begin, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        seen += framer.feed(stream[begin:end])
    assert seen == messages
    assert (framer.buffered, framer.refused, framer.large) == (0, None, 0)


@settings(deadline=None)
@given(st.binary(min_size=4, max_size=200), st.lists(st.integers(0, 200), max_size=6))
def test_random_bytes_never_raise_and_nothing_is_kept_beyond_the_limit(noise: bytes, cuts: list[int]) -> None:
    framer, at = Framer(64), 0
    for cut in [*sorted(cuts), len(noise)]:
        for frame in framer.feed(noise[at:cut]):
            assert len(frame) <= 64
        at = max(at, min(cut, len(noise)))
        assert framer.refused is not None or framer.buffered <= 68


@pytest.mark.parametrize("size", [-1, -(2**31), 101, 2**31 - 1])
def test_a_wrong_length_is_refused_before_anything_behind_it_is_kept(size: int) -> None:
    framer = Framer(100)
    assert framer.feed(framed(b"good") + struct.pack(">i", size) + b"x" * 50) == [b"good"]
    assert framer.refused is not None
    assert str(size) in framer.refused
    assert framer.buffered == 0
    assert framer.feed(framed(b"too late")) == []


@pytest.mark.parametrize("size", [0, 100])
def test_the_limit_itself_is_allowed(size: int) -> None:
    assert Framer(100).feed(framed(bytes(size))) == [bytes(size)]


@pytest.mark.parametrize(
    ("head", "word"),
    [(b"GET / HTTP/1.1", "HTTP"), (b"PRI * HTTP/2.0", "HTTP/2"), (b"\x16\x03\x03\0\xf0", "TLS"), (b"SSH-2.0", "SSH")],
)
def test_another_protocol_is_named(head: bytes, word: str) -> None:
    framer = Framer(100 << 20)
    assert framer.feed(head) == []
    assert word in (framer.refused or "")


def test_a_complete_frame_above_the_limit_is_refused_with_all_that_follows() -> None:
    framer = Framer(100)
    assert framer.feed(framed(bytes(101))) == []
    assert framer.refused is not None
    assert framer.feed(framed(b"small")) == []


def test_large_is_the_size_of_an_incomplete_large_frame() -> None:
    framer, size = Framer(1 << 20), LARGE_FRAME_BYTES + 1
    assert framer.feed(framed(b"small") + framed(bytes(size))[:10]) == [b"small"]
    assert framer.large == size + 4
    assert framer.feed(bytes(size - 7)) == []
    assert framer.large == size + 4
    assert [len(frame) for frame in framer.feed(bytes(1))] == [size]
    assert framer.large == 0
