"""Kafka's checkpoint files."""

from __future__ import annotations

import pytest

from rota.coordinator.log.checkpoints import partition_of, read_checkpoint, write_checkpoint
from rota.coordinator.log.epochs import BadCheckpoint


def test_the_file_is_kafkas() -> None:
    offsets = {("test_delete_records", 2): 30, ("with-dashes.and_dots", 0): 1 << 40}
    text = "0\n2\ntest_delete_records 2 30\nwith-dashes.and_dots 0 1099511627776\n"
    assert write_checkpoint(offsets) == text
    assert read_checkpoint(text) == offsets
    assert read_checkpoint(write_checkpoint({})) == {}


@pytest.mark.parametrize(
    "text", ["", "0\n", "0\n1\n", "0\n0\nt 0 1\n", "7\n0\n", "0\n1\nt 0\n", "0\n1\nt x 1\n", "a\nb\n"]
)
def test_a_damaged_file(text: str) -> None:
    with pytest.raises(BadCheckpoint):
        read_checkpoint(text)


@pytest.mark.parametrize(
    ("name", "partition"),
    [
        ("t-0", ("t", 0)),
        ("a-b.c_d-12", ("a-b.c_d", 12)),
        ("__consumer_offsets-49", ("__consumer_offsets", 49)),
        ("t-0.0123-delete", None),
        ("t", None),
        ("t-", None),
        ("-5", None),
        ("t-x", None),
    ],
)
def test_folder_names(name: str, partition: tuple[str, int] | None) -> None:
    assert partition_of(name) == partition
