import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.transport.frames import Frames, InvalidFrame


def framed(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + body


def fed(pieces: list[bytes]) -> list[bytes]:
    frames = Frames()
    return [frame for piece in pieces for frame in frames.feed(piece)]


bodies = st.lists(st.binary(min_size=4, max_size=40), max_size=6)


@given(bodies=bodies, cuts=st.lists(st.integers(0, 300)))
def test_frames_do_not_depend_on_the_cuts(bodies: list[bytes], cuts: list[int]) -> None:
    stream = b"".join(map(framed, bodies))
    ends = sorted({cut for cut in cuts if cut < len(stream)} | {len(stream)})
    pieces = [stream[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]
    assert fed(pieces) == bodies


@given(bodies=bodies)
def test_byte_by_byte_is_the_same(bodies: list[bytes]) -> None:
    stream = b"".join(map(framed, bodies))
    assert fed([bytes([byte]) for byte in stream]) == bodies


@pytest.mark.parametrize("size", [-1, 0, 3, 101, 0x7FFFFFFF])
def test_a_length_that_no_answer_has_is_refused(size: int) -> None:
    with pytest.raises(InvalidFrame, match=f"an answer of {size} bytes"):
        Frames(100).feed(size.to_bytes(4, "big", signed=True))


def test_frames_before_a_refused_length_are_lost_with_the_connection() -> None:
    frames = Frames(100)
    with pytest.raises(InvalidFrame):
        frames.feed(framed(b"good") + b"\xff\xff\xff\xff")


@pytest.mark.parametrize(
    ("head", "looks"), [(b"HTTP/1.1 400", "an HTTP server"), (b"\x15\x03\x03\x00\x02", "TLS"), (b"SSH-2.0", "SSH")]
)
def test_frames_of_other_protocols_are_named(head: bytes, looks: str) -> None:
    with pytest.raises(InvalidFrame, match=looks):
        Frames().feed(head)


def test_pieces_of_a_large_frame_are_kept_as_they_came_until_it_is_whole() -> None:
    body, piece = bytes(16 << 20), bytes(1 << 10)
    frames = Frames()
    assert frames.feed(len(body).to_bytes(4, "big")) == []
    for _ in range((16 << 10) - 1):
        assert frames.feed(piece) == []
    assert all(kept is piece for kept in frames._chunks)
    assert frames.feed(piece) == [body]
    assert frames._chunks == []


def test_a_whole_large_frame_in_one_piece() -> None:
    body = bytes(range(256)) * 4_096
    assert fed([framed(body) + framed(b"next")]) == [body, b"next"]
