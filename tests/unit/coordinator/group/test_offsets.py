from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rota.coordinator.group.events import OffsetRecord, OffsetRecords, OffsetValue
from rota.coordinator.group.offsets import Offsets, decode_offset, each_offset, encode_offset

int32, int64 = st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1)
metadata = st.text(max_size=5)
topic_ids = st.none() | st.binary(min_size=16, max_size=16).filter(any)
offsets = st.builds(OffsetValue, int64, int32, metadata, int64, st.none(), topic_ids) | st.builds(
    OffsetValue, int64, st.just(-1), metadata, int64, st.integers(0, 2**62), st.none()
)
keys = st.tuples(st.sampled_from("tu"), st.integers(0, 2))


@given(offsets)
def test_an_offset_is_read_as_it_was_written(value: OffsetValue) -> None:
    assert decode_offset(encode_offset(value)) == value


@given(st.lists(st.tuples(keys, st.none() | offsets), max_size=12))
def test_it_is_a_mapping(steps: list[tuple[tuple[str, int], OffsetValue | None]]) -> None:
    mapping, model = Offsets(), dict[tuple[str, int], OffsetValue]()
    for key, value in steps:
        if value is None:
            assert mapping.pop(key, None) == model.pop(key, None)
        else:
            mapping[key] = model[key] = value
        assert (mapping, len(mapping), bool(mapping), set(mapping)) == (model, len(model), bool(model), set(model))
        assert all((key in mapping) == (key in model) for key in (("t", 0), ("t", 1), ("u", 2)))
        assert all(mapping.by_topic.values()), "a topic without offsets is kept"


def test_offsets_one_by_one() -> None:
    value, other = OffsetValue(1, 2, "", 3), OffsetValue(4, 5, "m", 6)
    removed = OffsetRecord("g", "u", 0, None)
    columns = OffsetRecords("g", "t", [7, 8], [encode_offset(value), encode_offset(other)])
    assert list(each_offset([removed, columns])) == [
        removed,
        OffsetRecord("g", "t", 7, value),
        OffsetRecord("g", "t", 8, other),
    ]
